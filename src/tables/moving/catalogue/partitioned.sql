-- Of columns ($1, tables, and $2, numbers), those that come first in the partition key of their table, by ranges or lists: the table, and
-- the bounds of its partitions.
SELECT partrelid, ARRAY(SELECT pg_get_expr(relpartbound, c.oid) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhparent = partrelid ORDER BY c.oid)
FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
JOIN pg_partitioned_table ON partrelid = relation AND partattrs[0] = number AND partstrat IN ('r', 'l') ORDER BY 1
