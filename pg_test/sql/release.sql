-- The way back: from snowflake IDs to a sequence or an identity.
SET datestyle = ISO;
SET timezone = 'UTC';
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION pg_snowflake;
\i sql/include/adopt.sql

CREATE TABLE orders (id serial PRIMARY KEY, parent_id integer REFERENCES orders);
INSERT INTO orders SELECT FROM generate_series(1, 3);
SELECT * FROM adopt('orders');
INSERT INTO orders SELECT FROM generate_series(1, 3);
-- Behind the highest.
SELECT step, kind, regexp_replace(statement, '\d{16,}', 'ID') AS statement, locks, rewrites, regexp_replace(note, '\d{16,}', 'ID') AS note
FROM snowflake_release_plan('orders');
SELECT snowflake_release('orders') AS next \gset
SELECT :next = max(id) + 1 AS next FROM orders;
INSERT INTO orders DEFAULT VALUES RETURNING id = :next AS next;
SELECT * FROM columns('orders');
SELECT pg_get_serial_sequence('orders', 'id');
SELECT snowflake_release('orders');
-- Afresh, behind the old numbers, below the new IDs.
SELECT * FROM adopt('orders') \gset adopted_
SELECT statement, regexp_replace(note, '\d{16,}', 'ID', 'g') AS note FROM snowflake_release_plan('orders', start => 4);
SELECT snowflake_release('orders', start => 3);
SELECT snowflake_release('orders', start => 4);
INSERT INTO orders DEFAULT VALUES RETURNING id;
-- As an identity.
SELECT * FROM adopt('orders') \gset adopted_
SELECT statement FROM snowflake_release_plan('orders', start => 10, identity => true);
SELECT snowflake_release('orders', start => 10, identity => true);
INSERT INTO orders DEFAULT VALUES RETURNING id;
SELECT * FROM columns('orders');
SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace ORDER BY 1;
-- A sequence that was kept is used again.
CREATE TABLE kept (id smallserial PRIMARY KEY);
INSERT INTO kept DEFAULT VALUES;
SELECT * FROM adopt('kept') \gset adopted_
INSERT INTO kept DEFAULT VALUES;
SELECT regexp_replace(statement, '\d{16,}', 'ID') AS statement, regexp_replace(note, '\d{16,}', 'ID') AS note FROM snowflake_release_plan('kept');
SELECT snowflake_release('kept') AS next \gset
SELECT :next = max(id) + 1 AS next FROM kept;
INSERT INTO kept DEFAULT VALUES;
SELECT data_type, start_value, min_value, max_value FROM pg_sequences WHERE sequencename = 'kept_id_seq';
-- A table that never had one; its name is taken.
CREATE TABLE born (id bigint PRIMARY KEY DEFAULT snowflake_next(), maybe bigint DEFAULT snowflake_next());
CREATE TABLE born_id_seq ();
SELECT statement FROM snowflake_release_plan('born');
SELECT statement FROM snowflake_release_plan('born', 'maybe');
SELECT snowflake_release('born', 'maybe', identity => true);
SELECT snowflake_release('born', 'maybe', start => -5);
INSERT INTO born DEFAULT VALUES RETURNING maybe;
-- Partitions have the default, and from PostgreSQL 17 on an identity; tables that inherit have the default only.
CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
SELECT statement, locks FROM snowflake_release_plan('parted');
SELECT snowflake_release('parted');
INSERT INTO parted DEFAULT VALUES RETURNING id;
INSERT INTO parted_1 DEFAULT VALUES RETURNING id;
CREATE TABLE base (id bigint PRIMARY KEY DEFAULT snowflake_next());
CREATE TABLE heir () INHERITS (base);
SELECT snowflake_release('base', identity => true);
SELECT snowflake_release('base');
SELECT * FROM columns('base', 'heir', 'parted', 'parted_1');
-- What cannot be released.
CREATE TABLE full_up (id bigint PRIMARY KEY DEFAULT snowflake_next());
INSERT INTO full_up VALUES (9223372036854775807);
SELECT snowflake_release('full_up');
SELECT snowflake_release('full_up', start => 1);
SELECT snowflake_release('orders');
SELECT snowflake_release(NULL);
CREATE ROLE regress_snowflake_releaser;
SET ROLE regress_snowflake_releaser;
SELECT snowflake_release('born', 'id');
RESET ROLE;
DROP ROLE regress_snowflake_releaser;
-- There and back, and there again: the same schema each time.
CREATE TABLE there (id serial PRIMARY KEY);
SELECT * FROM adopt('there') \gset adopted_
SELECT snowflake_release('there');
SELECT * FROM adopt('there') \gset adopted_
SELECT snowflake_release('there');
SELECT * FROM columns('there');
