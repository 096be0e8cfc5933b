-- The statements that give a partition the privileges that its table has, its row-level security and its replica identity.
-- src/tables/partitions/privileges.rs runs this text, too, with a search_path of pg_catalog, as the owner of both.

CREATE FUNCTION _snowflake.privileges(parent oid, partition oid) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH both_tables AS (
        SELECT p.oid::regclass::text AS name, p.relowner AS owner, t.relrowsecurity AS has_policies,
            t.relforcerowsecurity AS is_forced, t.relreplident AS identity,
            coalesce(t.relacl, acldefault('r', t.relowner)) AS wanted, coalesce(p.relacl, acldefault('r', p.relowner)) AS has
        FROM pg_class t, pg_class p WHERE t.oid = $1 AND p.oid = $2
    ), differing AS (
        SELECT * FROM both_tables WHERE NOT (wanted @> has AND has @> wanted)
    )
    SELECT statement FROM (
        SELECT 1 AS step, 0 AS place, grantee::text, format('REVOKE ALL ON TABLE %s FROM %s', name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS statement
        FROM differing, LATERAL (SELECT DISTINCT grantee FROM aclexplode(has)) AS granted
        UNION ALL
        SELECT 2, 0, grantee::text, format('GRANT %s ON TABLE %s TO %s%s',
            string_agg(DISTINCT privilege_type, ', ' ORDER BY privilege_type), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable AND grantee <> owner THEN ' WITH GRANT OPTION' END)
        FROM differing, aclexplode(wanted) GROUP BY name, owner, grantee, is_grantable
        UNION ALL
        SELECT 3, attnum, grantee::text, format('GRANT %s ON TABLE %s TO %s%s',
            string_agg(DISTINCT format('%s (%I)', privilege_type, attname), ', '), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM both_tables, pg_attribute, aclexplode(attacl) WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
        GROUP BY name, attnum, grantee, is_grantable
        UNION ALL
        SELECT 4, 0, '', format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name) FROM both_tables WHERE has_policies
        UNION ALL
        SELECT 5, 0, '', format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', name) FROM both_tables WHERE is_forced
        UNION ALL
        SELECT 6, 0, '', format('ALTER TABLE %s REPLICA IDENTITY %s', name, CASE identity WHEN 'f' THEN 'FULL' ELSE 'NOTHING' END)
        FROM both_tables WHERE identity IN ('f', 'n')
        UNION ALL
        SELECT 6, 0, '', format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', name, i.relname)
        FROM both_tables, pg_index p, pg_inherits, pg_index c, pg_class i
        WHERE identity = 'i' AND p.indrelid = $1 AND p.indisreplident AND inhparent = p.indexrelid AND c.indexrelid = inhrelid
            AND c.indrelid = $2 AND i.oid = inhrelid
    ) statements ORDER BY step, place, grantee
$$;
COMMENT ON FUNCTION _snowflake.privileges(oid, oid) IS
    'part of snowflake_partition_default_rows(): statements that give a partition the privileges of its table';
