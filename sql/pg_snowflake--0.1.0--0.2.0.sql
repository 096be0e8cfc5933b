\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- 0.2.0 has the objects of 0.1.0.
