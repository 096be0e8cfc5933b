-- A table that has children, of which an extension may add more while a query is planned. So it has conditions on the ID beside those on its
-- time until then; and they are evaluated once.
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;
CREATE TABLE family (id bigint NOT NULL, n integer);
CREATE TABLE child () INHERITS (family);
INSERT INTO family SELECT snowflake_min_id('2026-01-01 00:00+00'::timestamptz + n * interval '1 minute'), n FROM generate_series(1, 9) n;
EXPLAIN (COSTS OFF) SELECT * FROM ONLY family WHERE snowflake_timestamp(id) >= '2026-01-01 00:07+00';
EXPLAIN (COSTS OFF) SELECT * FROM ONLY family WHERE snowflake_timestamp(id) < '2026-01-01 00:02+00' OR n = 5;
SELECT * FROM ONLY family WHERE snowflake_timestamp(id) < '2026-01-01 00:02+00' OR n = 5;
SELECT * FROM ONLY family WHERE snowflake_timestamp(id) < '2026-01-01 00:03+00' AND snowflake_timestamp(id) <= '2026-01-01 00:02:59.999+00';
-- The conditions for one member of a UNION ALL are not there for the next one.
CREATE TABLE moments (id bigint, at timestamptz);
INSERT INTO moments VALUES (NULL, '2026-01-01 00:00+00');
SELECT * FROM (SELECT id, snowflake_timestamp(id) AS at FROM family UNION ALL SELECT id, least(at, '2030-01-01 00:00+00') FROM moments) AS a
WHERE at < '2026-01-01 00:02+00' ORDER BY at;
