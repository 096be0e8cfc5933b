-- The foreign keys on either side of tables ($1). Those that partitions have from their table are left out.
SELECT quote_ident(conname), conrelid, confrelid,
    ARRAY(SELECT quote_ident(attname) FROM unnest(conkey) WITH ORDINALITY AS keys (number, place)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place),
    ARRAY(SELECT quote_ident(attname) FROM unnest(confkey) WITH ORDINALITY AS keys (number, place)
        JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place),
    pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint'),
    EXISTS (SELECT FROM pg_trigger WHERE tgconstraint = pg_constraint.oid AND tgenabled <> 'O'),
    ARRAY(SELECT quote_ident(attname) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indexrelid = conindid AND attnum <> ALL (confkey))
FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND (conrelid = ANY ($1) OR confrelid = ANY ($1))
ORDER BY conrelid, conname
