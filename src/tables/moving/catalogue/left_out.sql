-- What PostgreSQL leaves out of indexes and statistics on columns ($1, tables, and $2, numbers) that it makes again: statements. With
-- what is in their way: only a role that may act as the owner of statistics may run them.
WITH dependent AS (
    SELECT DISTINCT classid, objid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
    UNION
    -- Those of a key or a unique constraint depend on this.
    SELECT 'pg_class'::regclass, indexrelid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
    JOIN pg_index ON indrelid = relation AND number = ANY (indkey)
)
SELECT format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', nspname, relname, attnum, attstattarget), NULL
FROM dependent JOIN pg_class i ON classid = 'pg_class'::regclass AND i.oid = objid AND relkind IN ('i', 'I')
JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute ON attrelid = i.oid AND coalesce(attstattarget, -1) >= 0
UNION ALL
SELECT format('ALTER STATISTICS %I.%I SET STATISTICS %s', nspname, stxname, stxstattarget),
    CASE WHEN NOT pg_has_role(relowner, stxowner, 'USAGE')
        THEN format('statistics %I.%I belong to role %I', nspname, stxname, pg_get_userbyid(stxowner)) END
FROM dependent JOIN pg_statistic_ext s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid
JOIN pg_class c ON c.oid = stxrelid JOIN pg_namespace n ON n.oid = stxnamespace WHERE coalesce(stxstattarget, -1) >= 0
ORDER BY 1
