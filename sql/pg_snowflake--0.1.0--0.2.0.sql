\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- Bounds of ranges of time for the planner, which replaces comparisons of an ID's time by comparisons of the ID. Those
-- of a timestamp or a date are STABLE, because they use the session's time zone, as PostgreSQL's operators do that
-- compare these types with timestamptz.

CREATE FUNCTION _snowflake.min_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz) IS
    'internal: lowest snowflake ID whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.min_id(timestamp) IS
    'internal: lowest snowflake ID whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date';
COMMENT ON FUNCTION _snowflake.min_id(date) IS
    'internal: lowest snowflake ID whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.max_id(timestamp) IS
    'internal: highest snowflake ID whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date';
COMMENT ON FUNCTION _snowflake.max_id(date) IS
    'internal: highest snowflake ID whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp) IS
    'internal: highest snowflake ID whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date';
COMMENT ON FUNCTION _snowflake.max_id_before(date) IS
    'internal: highest snowflake ID whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- The same functions for a layout that the caller names.

CREATE FUNCTION _snowflake.min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamp, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date_in';
COMMENT ON FUNCTION _snowflake.min_id(date, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date_in';
COMMENT ON FUNCTION _snowflake.max_id(date, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date_in';
COMMENT ON FUNCTION _snowflake.max_id_before(date, text) IS
    'internal: highest snowflake ID of the layout whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- Four more columns.

DROP FUNCTION snowflake_status();
CREATE FUNCTION snowflake_status() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    previous_worker_id integer,
    previous_datacenter_id integer,
    previous_until timestamptz,
    layout text,
    epoch timestamptz,
    layout_end timestamptz,
    clock_source text,
    last_time timestamptz,
    lead interval,
    reserved_until timestamptz,
    started_at timestamptz,
    started_after text,
    reservations bigint,
    waits bigint,
    wait_time interval,
    clock_steps bigint,
    largest_clock_step interval,
    clock_leaps bigint,
    clock_leap interval,
    errors bigint,
    registry text,
    lease text,
    granted_until timestamptz,
    registry_error text
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_status_0_2_0';
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_status() IS
    'state of the snowflake IDs of this server, and counters since its start; does not make an ID';

-- The workers of all servers, as the registry has them.

CREATE FUNCTION snowflake_workers() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    state text,
    granted_from timestamptz,
    granted_until timestamptz,
    host text,
    port integer,
    data_directory text,
    cluster_name text,
    system_identifier bigint,
    is_this_server boolean
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_workers';
REVOKE ALL ON FUNCTION snowflake_workers() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_workers() TO pg_monitor;
COMMENT ON FUNCTION snowflake_workers() IS
    'worker IDs that servers have leased from the registry, and who has them; asks the registry';

-- Existing tables.
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

-- A plan, checked before the first ID is made. Each row answers one question; what is not given is not compared.

CREATE FUNCTION snowflake_preflight(
    layout text DEFAULT NULL,
    epoch timestamptz DEFAULT NULL,
    servers integer DEFAULT NULL,
    datacenters integer DEFAULT NULL,
    leases boolean DEFAULT NULL,
    ids_per_second double precision DEFAULT NULL,
    years integer DEFAULT 20,
    javascript boolean DEFAULT NULL,
    oldest_row timestamptz DEFAULT NULL,
    keys regclass[] DEFAULT NULL,
    key_column name DEFAULT NULL
) RETURNS TABLE (
    subject text,
    verdict text,
    finding text,
    advice text
)
    LANGUAGE c STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_preflight';
COMMENT ON FUNCTION snowflake_preflight(text, timestamptz, integer, integer, boolean, double precision, integer, boolean, timestamptz, regclass[], name) IS
    'checks a layout and the settings of this server before the first snowflake ID is made: until when IDs last, how many servers and IDs a second there is room for, which rows can have IDs, whether existing keys sort below; changes nothing';
