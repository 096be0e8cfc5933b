-- Values that a setting does not take, on a server that runs. What a start does with them: tests/settings.rs.
CREATE EXTENSION pg_snowflake;
ALTER SYSTEM SET pg_snowflake.worker_id = 1024;
ALTER SYSTEM SET pg_snowflake.worker_id = -2;
ALTER SYSTEM SET pg_snowflake.worker_id = 'one';
ALTER SYSTEM SET pg_snowflake.datacenter_id = 0;
ALTER SYSTEM SET pg_snowflake.max_lead = 'soon';
ALTER SYSTEM SET pg_snowflake.sequence_spread = 0;
ALTER SYSTEM SET pg_snowflake.sequence_spread = 48;
ALTER SYSTEM SET pg_snowflake.layout = 'twiter';
ALTER SYSTEM SET pg_snowflake.layout = 'timestamp=41 worker=11 sequence=12';
ALTER SYSTEM SET pg_snowflake.layout = 'timestamp=41 worker=9 sequence=1o';
ALTER SYSTEM SET pg_snowflake.epoch = '2024-01-01';
ALTER SYSTEM SET pg_snowflake.epoch = '1288834974657';
-- A name that is misspelt. PostgreSQL 14 only warns of it, and only where it stands in the configuration.
DO $$ BEGIN
    SET pg_snowflake.worker = 1;
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE SQLSTATE '42602' USING MESSAGE = 'invalid configuration parameter name "pg_snowflake.worker"';
    END IF;
EXCEPTION WHEN SQLSTATE '42602' THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
