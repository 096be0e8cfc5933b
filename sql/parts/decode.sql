-- Reading the parts of an ID, and composing an ID from parts. These functions work without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is an SQL function that calls them. It is not STRICT, so that the planner can
-- inline it: (snowflake_decode(id)).* costs as much as the accessors.

CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
COMMENT ON TYPE snowflake_parts IS
    'parts of a snowflake ID; a part that its layout does not have is NULL';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of a snowflake ID, rounded down to a tick of its layout';

CREATE FUNCTION snowflake_datacenter(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_datacenter';
COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
    'datacenter of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_worker';
COMMENT ON FUNCTION snowflake_worker(bigint) IS
    'worker of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION snowflake_sequence(bigint) IS
    'sequence number of a snowflake ID within its tick';

CREATE FUNCTION snowflake_decode(id bigint) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN ROW (
        snowflake_timestamp(id),
        snowflake_datacenter(id),
        snowflake_worker(id),
        snowflake_sequence(id)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of a snowflake ID';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer DEFAULT 0,
    datacenter_id integer DEFAULT NULL
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'composes a snowflake ID from its parts, for tests and for existing rows; does not ensure that it is unique';

-- The same functions for a layout that the caller names: a built-in one, or one in the notation of pg_snowflake.layout.

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_in';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of a snowflake ID of the given layout, rounded down to a tick';

CREATE FUNCTION snowflake_datacenter(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_datacenter_in';
COMMENT ON FUNCTION snowflake_datacenter(bigint, text) IS
    'datacenter of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_worker_in';
COMMENT ON FUNCTION snowflake_worker(bigint, text) IS
    'worker of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sequence_in';
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
    'sequence number of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_decode(id bigint, layout text) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 8
    RETURN ROW (
        snowflake_timestamp(id, layout),
        snowflake_datacenter(id, layout),
        snowflake_worker(id, layout),
        snowflake_sequence(id, layout)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of a snowflake ID of the given layout';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer,
    datacenter_id integer,
    layout text
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_encode_in';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'composes a snowflake ID of the given layout from its parts; does not ensure that it is unique';
