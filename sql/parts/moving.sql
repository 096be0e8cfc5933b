-- Existing tables: from a sequence or an identity to snowflake IDs, and back. The plans say what would be done, as rows: what
-- stands in the way (kind 'obstacle'), the statements in order, and what one should know ('note').

CREATE FUNCTION snowflake_adopt_plan(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_plan';
COMMENT ON FUNCTION snowflake_adopt_plan(regclass, name, text) IS
    'what snowflake_adopt() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_adopt';
COMMENT ON FUNCTION snowflake_adopt(regclass, name, text) IS
    'gives an existing column the default snowflake_next(), and makes it and all columns that refer to it bigint; new IDs are at or above first_id, old numbers below it';

CREATE FUNCTION snowflake_adopt_all_plan(
    tables regclass[],
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all_plan';
COMMENT ON FUNCTION snowflake_adopt_all_plan(regclass[], text) IS
    'what snowflake_adopt_all() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt_all(
    tables regclass[],
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    tbl regclass,
    col text,
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all';
COMMENT ON FUNCTION snowflake_adopt_all(regclass[], text) IS
    'does for several tables what snowflake_adopt() does for one, by one plan that locks and rewrites each table once; leaves out those that make snowflake IDs already';

CREATE FUNCTION snowflake_release_plan(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_release_plan';
COMMENT ON FUNCTION snowflake_release_plan(regclass, name, bigint, boolean) IS
    'what snowflake_release() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode; does nothing';

CREATE FUNCTION snowflake_release(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000
    AS 'MODULE_PATHNAME', 'snowflake_release';
COMMENT ON FUNCTION snowflake_release(regclass, name, bigint, boolean) IS
    'gives a column whose default is snowflake_next() back what it had before, or else a sequence or an identity; returns the next value, where it is known';
