-- A database of its own for the registry, with a role that is no superuser.
CREATE ROLE snowflake LOGIN PASSWORD 'example';
CREATE DATABASE snowflake OWNER snowflake;
REVOKE ALL ON DATABASE snowflake FROM PUBLIC;
