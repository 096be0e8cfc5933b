-- Who may make many IDs by one call: snowflake_next(count) needs USAGE on this type, and does nothing else with it. It belongs to
-- whoever owns the database, who can so keep that from PUBLIC; the functions belong to a superuser. Defaults do not need it.

CREATE DOMAIN _snowflake.batch AS bigint;
ALTER DOMAIN _snowflake.batch OWNER TO pg_database_owner;
GRANT USAGE ON TYPE _snowflake.batch TO PUBLIC;
COMMENT ON DOMAIN _snowflake.batch IS
    'USAGE allows to call snowflake_next(count); for the owner of the database to revoke and grant';
