-- Whether the caller may read all values of a column ($1, $2) by a query, and a foreign table in which some of them are.
SELECT has_schema_privilege(relnamespace, 'USAGE') AND has_column_privilege(oid, $2::int2, 'SELECT') AND NOT row_security_active(oid),
    (
        WITH RECURSIVE family (relation) AS (
            SELECT c.oid UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = relation
        )
        SELECT format('%I.%I', n.nspname, f.relname) FROM family JOIN pg_class f ON f.oid = relation JOIN pg_namespace n ON n.oid = f.relnamespace
        WHERE f.relkind = 'f' ORDER BY f.oid LIMIT 1
    )
FROM pg_class c WHERE oid = $1
