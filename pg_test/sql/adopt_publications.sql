-- Publications: a column that a list or a condition names cannot change its type. PostgreSQL 14 has neither.
SET client_min_messages = error;
\set SHOW_CONTEXT never
CREATE EXTENSION pg_snowflake;
\i sql/include/adopt.sql
CREATE TABLE replicated (id serial PRIMARY KEY, note text);
CREATE PUBLICATION all_of FOR TABLE replicated;
CREATE PUBLICATION columns_of FOR TABLE replicated (id);
CREATE PUBLICATION rows_of FOR TABLE replicated WHERE (id > 5);
SELECT note FROM plan('replicated') WHERE kind = 'obstacle' OR note LIKE 'published%';
SELECT * FROM adopt('replicated');
DROP PUBLICATION columns_of, rows_of;
SELECT * FROM adopt('replicated');
