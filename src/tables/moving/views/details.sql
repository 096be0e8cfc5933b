-- A part of others: further statements for it.
ARRAY(
    SELECT statement FROM (
        SELECT 1 AS step, 0::int2 AS place, '' AS item,
            format('ALTER %s%s OWNER TO %s', kind, name, owner) AS statement
        WHERE owner <> quote_ident(current_user)
        UNION ALL
        SELECT 2, 0::int2, indexrelid::regclass::text, pg_get_indexdef(indexrelid)
        FROM pg_index WHERE indrelid = view
        UNION ALL
        SELECT 3, 0::int2, indexrelid::regclass::text, format('COMMENT ON INDEX %I.%I IS %s', nspname, i.relname,
            quote_literal(obj_description(indexrelid, 'pg_class')))
        FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_namespace n ON n.oid = i.relnamespace
        WHERE indrelid = view AND obj_description(indexrelid, 'pg_class') IS NOT NULL
        UNION ALL
        -- What ALTER DEFAULT PRIVILEGES gives to a new view.
        SELECT DISTINCT 4, 0::int2, grantee::text, format('REVOKE ALL ON %s FROM %s', name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM pg_default_acl, aclexplode(defaclacl) WHERE :given AND grantee <> relowner
        UNION ALL
        SELECT 4, 0::int2, '', format('REVOKE ALL ON %s FROM %s', name, owner) WHERE :odd
        UNION ALL
        SELECT 5, 0::int2, grantee::text, format('GRANT %s ON %s TO %s%s',
            string_agg(privilege_type, ', ' ORDER BY privilege_type), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE grantee <> relowner OR :odd
        GROUP BY grantee, is_grantable
        UNION ALL
        SELECT 6, attnum, grantee::text, format('GRANT %s ON %s TO %s%s',
            string_agg(format('%s (%I)', privilege_type, attname), ', ' ORDER BY privilege_type), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM pg_attribute, aclexplode(attacl) WHERE attrelid = view AND attnum > 0
        GROUP BY attnum, attname, grantee, is_grantable
        UNION ALL
        SELECT 7, 0::int2, '', format('COMMENT ON %s%s IS %s', kind, name,
            quote_literal(obj_description(view, 'pg_class')))
        WHERE obj_description(view, 'pg_class') IS NOT NULL
        UNION ALL
        SELECT 8, attnum, '', format('COMMENT ON COLUMN %s.%I IS %s', name, attname,
            quote_literal(col_description(view, attnum)))
        FROM pg_attribute
        WHERE attrelid = view AND attnum > 0 AND col_description(view, attnum) IS NOT NULL
    ) details ORDER BY step, place, item)
