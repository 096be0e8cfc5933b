-- The layouts that are built in, and what 10-decode.sql does, in a layout that the call names: by its built-in name, or
-- in the notation of pg_snowflake.layout.

CREATE FUNCTION snowflake_layouts() RETURNS TABLE (
    name text,
    layout text,
    tick interval,
    first_time timestamptz,
    last_time timestamptz,
    workers bigint,
    ids_per_second bigint,
    makes_ids boolean,
    fits_double boolean,
    source text
)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 ROWS 16
    AS 'MODULE_PATHNAME', 'snowflake_layouts_wrapper';
COMMENT ON FUNCTION snowflake_layouts() IS
    'built-in layouts of snowflake IDs; ids_per_second is that of one worker';

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_in_wrapper';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of a snowflake ID of the given layout, to its tick';

CREATE FUNCTION snowflake_datacenter(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_datacenter_in_wrapper';
COMMENT ON FUNCTION snowflake_datacenter(bigint, text) IS
    'datacenter of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_worker_in_wrapper';
COMMENT ON FUNCTION snowflake_worker(bigint, text) IS
    'worker of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sequence_in_wrapper';
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
    AS 'MODULE_PATHNAME', 'snowflake_encode_in_wrapper';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'snowflake ID of the given layout with the given parts; does not make it unique';
