-- What a database has on record about its IDs, and what changes it.
CREATE EXTENSION pg_snowflake;

-- The record of another layout: IDs are read, and none are made.
SELECT snowflake_next() > 0 AS made;
SELECT snowflake_database_layout(), snowflake_database_layout() = snowflake_server_layout() AS same;
ALTER SEQUENCE _snowflake.layout RESTART WITH 4295659718092;
ALTER SEQUENCE _snowflake.epoch RESTART WITH 1288834974657000;
SELECT snowflake_database_layout();
\c -
SELECT snowflake_next();
SELECT (snowflake_decode(1541815603606036480)).*;
SELECT snowflake_adopt_layout();
ALTER SEQUENCE _snowflake.layout RESTART WITH 4295664258048;
ALTER SEQUENCE _snowflake.epoch RESTART WITH 1704067200000000;
SELECT snowflake_next() > 0 AS made;

-- A record that is not a layout. A dump cannot set it where IDs were made.
SELECT setval('_snowflake.layout', 1);
ALTER SEQUENCE _snowflake.layout RESTART WITH 1;
\c -
SELECT snowflake_next();
SELECT snowflake_timestamp(0);
SELECT snowflake_adopt_layout();
SELECT snowflake_next() > 0 AS made;

-- A rewind is refused if the number is not an ID, if no ID above it was made, or if a row has one.
SELECT snowflake_rewind(-1);
SELECT snowflake_rewind(snowflake_max_id('2090-01-01'));
CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_next());
INSERT INTO rows VALUES (382304429472247813);
SELECT snowflake_rewind(0);
DROP TABLE rows;

-- Without the extension.
DROP EXTENSION pg_snowflake;
CREATE FUNCTION stray() RETURNS bigint LANGUAGE c AS '$libdir/pg_snowflake', 'snowflake_next';
SELECT stray();
