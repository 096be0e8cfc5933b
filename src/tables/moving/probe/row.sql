-- Of a table ($1) with a key ($2): the other columns that a row is written with, each behind a comma, and the path for its functions.
SELECT coalesce((SELECT string_agg(', ' || quote_ident(attname), '' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND attnum <> $2 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''), ''),
    format('SELECT pg_catalog.set_config(''search_path'', %L, true)',
        'pg_catalog, ' || CASE WHEN is_closed THEN quote_ident(nspname) || ', ' ELSE '' END || 'pg_temp')
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, LATERAL (
    SELECT (nspowner = relowner OR nspowner = 'pg_database_owner'::regrole OR (SELECT rolsuper FROM pg_roles r WHERE r.oid = nspowner))
        AND NOT EXISTS (SELECT FROM aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
            WHERE privilege_type = 'CREATE' AND grantee NOT IN (nspowner, relowner)) AS is_closed
) s WHERE c.oid = $1
