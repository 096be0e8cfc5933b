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

-- Which times a condition accepts that compares what is made of the time, as date_trunc() is. The way from the time to that is a text.

CREATE FUNCTION _snowflake.earliest(way text, VARIADIC given "any") RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE COST 20
    AS 'MODULE_PATHNAME', 'snowflake_earliest';
COMMENT ON FUNCTION _snowflake.earliest(text, VARIADIC "any") IS
    'internal: no time before this one is accepted by a condition that compares what is made of the time; -infinity where none is known';

CREATE FUNCTION _snowflake.latest(way text, VARIADIC given "any") RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE COST 20
    AS 'MODULE_PATHNAME', 'snowflake_latest';
COMMENT ON FUNCTION _snowflake.latest(text, VARIADIC "any") IS
    'internal: no time after this one is accepted by a condition that compares what is made of the time; infinity where none is known';

-- The elements of a list of times, for a scan that reads an index by one after the other.

CREATE FUNCTION _snowflake.sorted("values" anyarray) RETURNS anyarray
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sorted';
COMMENT ON FUNCTION _snowflake.sorted(anyarray) IS
    'internal: the elements of an array of timestamptz, timestamp or date that are not NULL, each once, in rising order';
