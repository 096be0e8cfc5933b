-- Of a table ($1) with columns ($2) that are given: the others that a row is written with, each behind a comma; the same without those that have
-- a unique index and a default; what makes another row of each of the two, as unique indexes see it; how they are set to what they are; the order
-- in which the newest row comes first; the path for its functions; and whether what an INSERT has written can be asked for.
WITH others AS (
    SELECT quote_ident(attname) AS name, attnum, atthasdef AND EXISTS (SELECT FROM pg_index
            WHERE indrelid = $1 AND indisunique AND indnkeyatts = 1 AND indkey[0] = attnum) AS is_made,
        EXISTS (SELECT FROM pg_index WHERE indrelid = $1 AND indisunique AND (attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])
                OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = indexrelid
                    AND refclassid = 'pg_class'::regclass AND refobjid = $1 AND refobjsubid = attnum)))
            AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = $1 AND contype = 'f' AND attnum = ANY (conkey)) AS is_unique,
        EXISTS (SELECT FROM pg_index WHERE indrelid = $1 AND indisunique AND indkey[0] = attnum) AS is_first, atttypid AS type
    FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND attnum <> ALL ($2) AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
), varied AS (
    SELECT o.*, CASE WHEN NOT is_unique THEN name
        WHEN type IN ('text'::regtype, 'varchar'::regtype) THEN name || ' OPERATOR(pg_catalog.||) ''x''::pg_catalog.text'
        WHEN type = 'uuid'::regtype THEN 'pg_catalog.gen_random_uuid()'
        WHEN type = 'bytea'::regtype THEN name || ' OPERATOR(pg_catalog.||) ''x''::pg_catalog.bytea'
        WHEN type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
            CASE WHEN is_first THEN format('(SELECT pg_catalog.max(%s) OPERATOR(pg_catalog.+) 1::pg_catalog.int2 FROM %I.%I)', name, nspname, relname) ELSE name || ' OPERATOR(pg_catalog.+) 1::pg_catalog.int2' END
        WHEN type = 'date'::regtype THEN name || ' OPERATOR(pg_catalog.+) 1::pg_catalog.int4'
        WHEN type IN ('timestamp'::regtype, 'timestamptz'::regtype) THEN name || ' OPERATOR(pg_catalog.+) ''1 second''::pg_catalog.interval'
        ELSE name END AS varied
    FROM others o, pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = $1
)
SELECT coalesce((SELECT string_agg(', ' || name, '' ORDER BY attnum) FROM varied), ''),
    coalesce((SELECT string_agg(', ' || name, '' ORDER BY attnum) FROM varied WHERE NOT is_made), ''),
    coalesce((SELECT string_agg(', ' || varied, '' ORDER BY attnum) FROM varied), ''),
    coalesce((SELECT string_agg(', ' || varied, '' ORDER BY attnum) FROM varied WHERE NOT is_made), ''),
    coalesce((SELECT string_agg(format('%1$s = %1$s', name), ', ' ORDER BY attnum) FROM varied), ''),
    coalesce((SELECT ' ORDER BY ' || string_agg(quote_ident(attname) || ' DESC', ', ' ORDER BY place)
        FROM pg_index, unnest(indkey) WITH ORDINALITY AS keys (number, place) JOIN pg_attribute ON attrelid = $1 AND attnum = number
        WHERE indrelid = $1 AND indisprimary AND place <= indnkeyatts), ''),
    format('SELECT pg_catalog.set_config(''search_path'', %L, true)',
        'pg_catalog, ' || CASE WHEN is_closed THEN quote_ident(nspname) || ', ' ELSE '' END || 'pg_temp'),
    NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = $1 AND ev_type = '3' AND is_instead)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, LATERAL (
    SELECT (nspowner = relowner OR nspowner = 'pg_database_owner'::regrole OR (SELECT rolsuper FROM pg_roles r WHERE r.oid = nspowner))
        AND NOT EXISTS (SELECT FROM aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
            WHERE privilege_type = 'CREATE' AND grantee NOT IN (nspowner, relowner)) AS is_closed
) s WHERE c.oid = $1
