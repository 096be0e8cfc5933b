-- Partitions by ID time.

CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz,
    layout text DEFAULT NULL
) RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_create_partitions_in';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz, text) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

CREATE FUNCTION snowflake_maintain_partitions(
    parent regclass,
    every interval,
    ahead interval,
    retention interval DEFAULT NULL,
    expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false,
    default_rows text DEFAULT 'refuse',
    layout text DEFAULT NULL
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    AS 'MODULE_PATHNAME', 'snowflake_maintain_partitions_in';
COMMENT ON FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text, text) IS
    'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention';

CREATE FUNCTION snowflake_declare_keys(parent regclass, since timestamptz DEFAULT NULL, layout text DEFAULT NULL)
    RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_declare_keys';
COMMENT ON FUNCTION snowflake_declare_keys(regclass, timestamptz, text) IS
    'declares that the keys of a partitioned table from a time on are snowflake IDs, so that its partitions can expire; returns those that it marks';

-- For pg_partman from 5.2 on, for a partition key of type text that holds IDs in decimal form.

CREATE FUNCTION snowflake_time_encoder(at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_to_text(snowflake_min_id(at), 'decimal');
COMMENT ON FUNCTION snowflake_time_encoder(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one, in decimal form; for p_time_encoder of pg_partman';

CREATE FUNCTION snowflake_time_decoder("text" text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_timestamp(snowflake_from_text("text", 'decimal'));
COMMENT ON FUNCTION snowflake_time_decoder(text) IS
    'time of a snowflake ID in decimal form; for p_time_decoder of pg_partman';
