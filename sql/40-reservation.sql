-- What a database remembers of its IDs: sequences that hold numbers and give none. Dumps carry each as one setval, which
-- replaces what was there; nothing publishes, truncates or models sequences. Who may dump the database may read them, and who
-- created the extension may restore them.
CREATE SCHEMA _snowflake;
COMMENT ON SCHEMA _snowflake IS
    'what pg_snowflake remembers of the IDs of this database; not for use';
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;

CREATE SEQUENCE _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.reservation OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'instant before which snowflake IDs of this database may have been made, in milliseconds since 1970; not for use';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');

CREATE SEQUENCE _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.layout OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.layout IS
    'fields and tick of the layout of the snowflake IDs of this database, as a number; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.layout', '');

CREATE SEQUENCE _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.epoch OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'epoch of the layout of the snowflake IDs of this database, in microseconds since 1970; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');

CREATE FUNCTION _snowflake.prepare() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_prepare_wrapper';
SELECT _snowflake.prepare();
DROP FUNCTION _snowflake.prepare();

CREATE FUNCTION snowflake_server_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_server_layout_wrapper';
COMMENT ON FUNCTION snowflake_server_layout() IS
    'layout that the settings of this server make, in full notation';

CREATE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_database_layout_wrapper';
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

CREATE FUNCTION snowflake_adopt_layout() RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_adopt_layout_wrapper';
REVOKE ALL ON FUNCTION snowflake_adopt_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adopt_layout() IS
    'makes the layout of this server that of this database, if no snowflake IDs were made in it yet';

CREATE FUNCTION snowflake_rewind(last_id bigint) RETURNS timestamptz
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_rewind_wrapper';
REVOKE ALL ON FUNCTION snowflake_rewind(bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_rewind(bigint) IS
    'takes the snowflake IDs of this server back to just above an ID, after the clock was far ahead; no higher ID may be kept anywhere';
