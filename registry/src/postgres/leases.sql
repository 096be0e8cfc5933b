-- What the schema snowflake_registry has: for leases of worker IDs. Versions come by chance, from the client: a sequence would give the
-- same again after a failover.
CREATE TABLE IF NOT EXISTS snowflake_registry.namespaces (
    namespace pg_catalog.text COLLATE pg_catalog."C" PRIMARY KEY,
    format integer NOT NULL,
    layout pg_catalog.text NOT NULL,
    life pg_catalog.text NOT NULL,
    leases_from pg_catalog.timestamptz,
    written_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE TABLE IF NOT EXISTS snowflake_registry.workers (
    namespace pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
    worker bigint NOT NULL,
    version bigint NOT NULL,
    format integer NOT NULL,
    token pg_catalog.uuid,
    granted_from pg_catalog.timestamptz NOT NULL,
    granted_until pg_catalog.timestamptz NOT NULL,
    host pg_catalog.text NOT NULL,
    data_directory pg_catalog.text NOT NULL,
    port integer NOT NULL,
    cluster_name pg_catalog.text NOT NULL,
    system_identifier numeric(20) NOT NULL,
    process pg_catalog.text NOT NULL,
    written_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (namespace, worker)
);

COMMENT ON SCHEMA snowflake_registry IS 'pg_snowflake: who may make IDs with which worker ID, and of which time';

COMMENT ON COLUMN snowflake_registry.workers.token IS
    'secret of the server that holds the lease: grant the other columns only; null where the worker was given back';

COMMENT ON COLUMN snowflake_registry.workers.granted_until IS
    'IDs of the holder have times before this; the next holder starts here. Never lower it';
