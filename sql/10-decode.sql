-- Reading snowflake IDs, and making them from their parts. All of it works without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is SQL over them, and not STRICT, so that the planner puts its body
-- in place of the call: (snowflake_decode(id)).* costs what the accessors cost.

CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
COMMENT ON TYPE snowflake_parts IS
    'parts of a snowflake ID; a part that the layout lacks is NULL';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_wrapper';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of a snowflake ID, to the tick of its layout';

CREATE FUNCTION snowflake_datacenter(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_datacenter_wrapper';
COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
    'datacenter of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_worker_wrapper';
COMMENT ON FUNCTION snowflake_worker(bigint) IS
    'worker of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_sequence_wrapper';
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
    AS 'MODULE_PATHNAME', 'snowflake_encode_wrapper';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'snowflake ID with the given parts, for tests and for rows from before; does not make it unique';
