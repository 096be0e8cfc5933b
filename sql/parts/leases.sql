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
