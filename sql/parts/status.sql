-- The state of the server's IDs, for monitoring. A function rather than a view, since tools that compare a database with a model
-- would want to drop a view that is not in the model.

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
