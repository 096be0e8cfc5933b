-- The columns of a table ($1); $2 is snowflake_next().
SELECT attnum, attname::text, :width, format_type(atttypid, atttypmod),
    :width = 8 AND atttypid <> 'int8'::regtype, attgenerated <> '',
    EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey)),
    attidentity <> '', pg_get_expr(adbin, adrelid),
    EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid
        AND refclassid = 'pg_proc'::regclass AND refobjid = $2),
    EXISTS (SELECT FROM pg_depend JOIN pg_class s ON s.oid = refobjid AND relkind = 'S'
        WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_class'::regclass),
    attnotnull, attidentity = 'a'
FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum
