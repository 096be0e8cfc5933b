-- In place of the library's type, which only a superuser can create: a domain. So tables are declared and dumped alike.

IF to_regtype('_snowflake.snowflake_id') IS NULL THEN
    CREATE DOMAIN snowflake_id AS bigint;
END IF;
COMMENT ON TYPE snowflake_id IS
    'a bigint, for tables that are declared as with the library; JSON functions write it as a number';
