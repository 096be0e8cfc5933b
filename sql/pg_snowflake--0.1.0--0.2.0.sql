\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- Not STRICT, so that the planner can inline it. Both bounds are the highest ID before an instant, a number from -1 to
-- the layout's highest ID. So no number is between them that is no ID of the layout.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN id > snowflake_max_id_before(since) AND id <= snowflake_max_id_before(until);

CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3
    RETURN id > snowflake_max_id_before(since, layout) AND id <= snowflake_max_id_before(until, layout);

-- The highest IDs at or before a timestamp or a date, and before one. For the planner, which replaces comparisons of
-- an ID's time with a timestamp or a date by comparisons of the ID. STABLE, because they use the session's time zone,
-- as PostgreSQL's operators do that compare these types with timestamptz.

CREATE FUNCTION _snowflake.max_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.max_id(timestamp) IS
    'internal: highest snowflake ID whose time is at or before the given timestamp in the session''s time zone';

CREATE FUNCTION _snowflake.max_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date';
COMMENT ON FUNCTION _snowflake.max_id(date) IS
    'internal: highest snowflake ID whose time is at or before the start of the given date in the session''s time zone';

CREATE FUNCTION _snowflake.max_id_before(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp) IS
    'internal: highest snowflake ID whose time is before the given timestamp in the session''s time zone';

CREATE FUNCTION _snowflake.max_id_before(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date';
COMMENT ON FUNCTION _snowflake.max_id_before(date) IS
    'internal: highest snowflake ID whose time is before the start of the given date in the session''s time zone';

CREATE FUNCTION _snowflake.max_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the given timestamp in the session''s time zone';

CREATE FUNCTION _snowflake.max_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date_in';
COMMENT ON FUNCTION _snowflake.max_id(date, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the start of the given date in the session''s time zone';

CREATE FUNCTION _snowflake.max_id_before(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is before the given timestamp in the session''s time zone';

CREATE FUNCTION _snowflake.max_id_before(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date_in';
COMMENT ON FUNCTION _snowflake.max_id_before(date, text) IS
    'internal: highest snowflake ID of the layout whose time is before the start of the given date in the session''s time zone';
