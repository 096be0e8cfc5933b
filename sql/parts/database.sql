-- The record that a database keeps of its IDs: three sequences, used as variables that hold one number each.
--
-- Sequences, because pg_dump writes each as one setval(), which on restore overwrites the number that CREATE EXTENSION stored; and
-- because FOR ALL TABLES publications, TRUNCATE, and tools that map tables to models leave sequences alone.
-- Everybody may read them, so that the owner of a database can dump it. They belong to the role that creates the extension, so
-- that this role can restore a dump.

CREATE SCHEMA _snowflake;
COMMENT ON SCHEMA _snowflake IS
    'pg_snowflake''s internal record of the IDs of this database';
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;

CREATE SEQUENCE _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.reservation OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'internal: upper bound of the times of the snowflake IDs of this database, in milliseconds since 1970';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');

CREATE SEQUENCE _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.layout OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.layout IS
    'internal: fields and tick of the layout of this database, encoded as a number; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.layout', '');

CREATE SEQUENCE _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.epoch OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'internal: epoch of the layout of this database, in microseconds since 1970; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');

CREATE SEQUENCE _snowflake.since AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.since OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.since TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.since IS
    'internal: since when this database makes snowflake IDs, in milliseconds since 1970; lower keys are not its own';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.since', '');

-- Stores the server's layout in the record, and since when there is one. If the library is preloaded, also creates the replication origin that the server's
-- reservation is stored in.
CREATE FUNCTION _snowflake.prepare() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_prepare';
SELECT _snowflake.prepare();
DROP FUNCTION _snowflake.prepare();

CREATE FUNCTION snowflake_server_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_server_layout';
COMMENT ON FUNCTION snowflake_server_layout() IS
    'layout that this server is configured with, in full notation';

CREATE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_database_layout';
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

CREATE FUNCTION snowflake_adopt_layout() RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_adopt_layout';
REVOKE ALL ON FUNCTION snowflake_adopt_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adopt_layout() IS
    'sets the layout of this database to that of this server; refused if snowflake IDs were made in the database';

CREATE FUNCTION snowflake_rewind(last_id bigint) RETURNS timestamptz
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_rewind';
REVOKE ALL ON FUNCTION snowflake_rewind(bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_rewind(bigint) IS
    'continues with snowflake IDs after last_id, or of the current time if that is later; for a server whose clock was ahead when it made IDs; no ID above last_id may be in use anywhere';
