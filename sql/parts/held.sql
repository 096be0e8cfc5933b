-- Names of tables that stay what they are, and keys that are read without a name: for functions in PL/pgSQL.

-- A table, its partitions and the tables that inherit from it, without a lock: that of pg_partition_tree() would stay.
CREATE FUNCTION _snowflake.family_of(tbl regclass) RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE family (relid) AS (
        SELECT tbl::oid UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = relid
    ) SELECT relid::regclass FROM family ORDER BY relid <> tbl, relid
    $$;
COMMENT ON FUNCTION _snowflake.family_of(regclass) IS
    'part of snowflake_partition_default_rows(): a table first, then its partitions and the tables that inherit from it';

-- As long as this transaction lasts, the name stands for this table: the lock keeps the table, and another its schema.
CREATE FUNCTION _snowflake.hold(tbl regclass) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100
    AS 'MODULE_PATHNAME', 'snowflake_hold';
COMMENT ON FUNCTION _snowflake.hold(regclass) IS
    'part of snowflake_partition_default_rows(): locks a table of the caller''s, and returns its name as statements write it; NULL where it is gone';

-- These read without SQL, which would find the tables by their names, and run code of theirs already to plan it.
CREATE FUNCTION _snowflake.lowest_key(tbl regclass, col name, since bigint, until bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_lowest_key';
COMMENT ON FUNCTION _snowflake.lowest_key(regclass, name, bigint, bigint) IS
    'part of snowflake_partition_default_rows(): the lowest key of a range in a table of the caller''s and its partitions';

CREATE FUNCTION _snowflake.count_keys(tbl regclass, col name, since bigint, until bigint)
    RETURNS TABLE (inside bigint, outside bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_count_keys';
COMMENT ON FUNCTION _snowflake.count_keys(regclass, name, bigint, bigint) IS
    'part of snowflake_partition_default_rows(): how many rows have a key of a range, and how many have not';

-- Whose the keys of a partition are: only IDs have an age.
CREATE FUNCTION _snowflake.known_from(parent regclass, layout text) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_known_from';
COMMENT ON FUNCTION _snowflake.known_from(regclass, text) IS
    'part of snowflake_partition_default_rows(): from which key on those of the default partition are known to be snowflake IDs';

CREATE FUNCTION _snowflake.mark(partition regclass, "from" bigint, layout text) RETURNS void
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_mark';
COMMENT ON FUNCTION _snowflake.mark(regclass, bigint, text) IS
    'part of snowflake_partition_default_rows(): notes from which key on those of a partition are snowflake IDs';
