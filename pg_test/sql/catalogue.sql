-- Every object of the extension and every parameter. A new object is added here, too.
CREATE EXTENSION pg_snowflake;
\i sql/include/objects.sql

SELECT name, setting, unit, context, vartype, boot_val, min_val, max_val FROM pg_settings
WHERE name LIKE 'pg_snowflake.%' ORDER BY name COLLATE "C";
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'pg_snowflake.%' ORDER BY name COLLATE "C";

-- Nothing is left behind.
DROP EXTENSION pg_snowflake;
SELECT count(*) FROM pg_class WHERE relname LIKE 'snowflake%' OR relnamespace::regnamespace::text = '_snowflake';
SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%snowflake%';
SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT count(*) FROM pg_type WHERE typname LIKE '%snowflake%';
