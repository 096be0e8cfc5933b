-- Partitions by ID time.

CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz
) RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_create_partitions_wrapper';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) IS
    'creates the partitions, by ID time, of a table that is partitioned by a range of snowflake IDs, where they are not there yet';

-- For pg_partman 5, whose time_encoder and time_decoder are for columns of text: these are of IDs in decimal form.

CREATE FUNCTION snowflake_time_encoder(at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_to_text(snowflake_min_id(at), 'decimal');
COMMENT ON FUNCTION snowflake_time_encoder(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one, in decimal form; as pg_partman''s p_time_encoder';

CREATE FUNCTION snowflake_time_decoder("text" text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_timestamp(snowflake_from_text("text", 'decimal'));
COMMENT ON FUNCTION snowflake_time_decoder(text) IS
    'time of a snowflake ID in decimal form; as pg_partman''s p_time_decoder';
