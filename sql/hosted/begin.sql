-- pg_snowflake in SQL and PL/pgSQL, for servers where no library can be installed. Made by scripts/hosted; docs/hosted.md says how to
-- install it. It can be run again, and so is also the script of an upgrade.

-- In a database that has the extension, only the extension's own update may run this.
DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('pg_catalog.pg_class', '');
EXCEPTION
    WHEN object_not_in_prerequisite_state THEN
        NULL; -- CREATE EXTENSION or ALTER EXTENSION
    WHEN feature_not_supported THEN
        IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_snowflake') THEN
            RAISE duplicate_object USING MESSAGE = 'extension pg_snowflake is created in this database already',
                HINT = 'Update it by ALTER EXTENSION pg_snowflake UPDATE.';
        END IF;
END $$;
