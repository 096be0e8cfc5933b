-- Tables ($1).
SELECT c.oid, quote_ident(nspname) || '.' || quote_ident(relname), pg_has_role(relowner, 'USAGE'), relispartition,
    CASE WHEN relkind = 'r' THEN pg_total_relation_size(c.oid) ELSE 0 END,
    relowner, relowner::regrole::text, relowner = quote_ident(current_user)::regrole,
    has_schema_privilege(relowner, relnamespace, 'CREATE'),
    ARRAY(
        WITH RECURSIVE heirs (heir) AS (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid
            UNION SELECT inhrelid FROM heirs JOIN pg_inherits ON inhparent = heir
        )
        SELECT format('%s to %s', heir::regclass, h.relowner::regrole) FROM heirs JOIN pg_class h ON h.oid = heir
        WHERE h.relowner <> c.relowner ORDER BY 1),
    relpersistence = 'u', relkind = 'f',
    ARRAY(
        WITH RECURSIVE parts (part) AS (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid AND c.relkind = 'p'
            UNION SELECT inhrelid FROM parts JOIN pg_inherits ON inhparent = part
        )
        SELECT quote_ident(s.nspname) || '.' || quote_ident(p.relname)
        FROM parts JOIN pg_class p ON p.oid = part JOIN pg_namespace s ON s.oid = p.relnamespace ORDER BY part)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = ANY ($1) ORDER BY c.oid
