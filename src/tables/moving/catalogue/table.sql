-- A relation ($1).
SELECT relkind::text, oid < 16384, relpersistence = 't' AND relnamespace <> pg_my_temp_schema(), relispartition,
    ARRAY(SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid ORDER BY inhseqno), relname::text
FROM pg_class c WHERE oid = $1
