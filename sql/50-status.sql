-- For who watches the server.

CREATE FUNCTION snowflake_status() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    layout text,
    epoch timestamptz,
    layout_end timestamptz,
    clock_source text,
    last_time timestamptz,
    lead interval,
    reserved_until timestamptz,
    run bigint,
    started_at timestamptz,
    started_after text,
    reservations bigint,
    waits bigint,
    wait_time interval,
    clock_steps bigint,
    largest_clock_step interval,
    errors bigint
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_status_wrapper';
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_status() IS
    'state of this server''s snowflake IDs, and counts since its start; makes no ID';

CREATE VIEW snowflake_status AS SELECT * FROM snowflake_status();
REVOKE ALL ON snowflake_status FROM PUBLIC;
GRANT SELECT ON snowflake_status TO pg_monitor;
COMMENT ON VIEW snowflake_status IS
    'state of this server''s snowflake IDs, and counts since its start';
