-- What the schema snowflake_registry has for segments. Not a part of leases.sql: a role that may not create needs it only where segments
-- are used.
CREATE TABLE IF NOT EXISTS snowflake_registry.segments (
    namespace pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
    tag pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
    version bigint NOT NULL,
    format integer NOT NULL,
    next numeric(20) NOT NULL,
    floor numeric(20) NOT NULL,
    first numeric(20) NOT NULL,
    last numeric(20) NOT NULL,
    state pg_catalog.text NOT NULL,
    smallest numeric(20) NOT NULL,
    largest numeric(20) NOT NULL,
    written_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (namespace, tag)
);

CREATE TABLE IF NOT EXISTS snowflake_registry.segment_holders (
    namespace pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
    worker bigint NOT NULL,
    tag pg_catalog.text COLLATE pg_catalog."C" NOT NULL,
    format integer NOT NULL,
    run pg_catalog.text NOT NULL,
    current_first numeric(20) NOT NULL,
    current_end numeric(20) NOT NULL,
    after_first numeric(20) NOT NULL,
    after_end numeric(20) NOT NULL,
    granted_at pg_catalog.timestamptz NOT NULL,
    used numeric(20) NOT NULL,
    used_in numeric(20) NOT NULL,
    PRIMARY KEY (namespace, worker, tag)
);

COMMENT ON COLUMN snowflake_registry.segments.next IS 'the next number that no server was granted. Never lower it';

COMMENT ON TABLE snowflake_registry.segment_holders IS
    'what the server of each worker held of each segment at its last grant: for people, nothing depends on it';
