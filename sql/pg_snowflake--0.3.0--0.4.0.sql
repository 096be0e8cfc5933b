\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.4.0'" to load this file. \quit
