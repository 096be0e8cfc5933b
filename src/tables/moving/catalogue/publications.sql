-- The publications that tables ($1) are in.
SELECT DISTINCT quote_ident(pubname) FROM pg_publication_tables JOIN pg_namespace n ON nspname = schemaname
JOIN pg_class c ON relname = tablename AND relnamespace = n.oid WHERE c.oid = ANY ($1) ORDER BY 1
