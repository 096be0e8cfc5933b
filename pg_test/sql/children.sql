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
-- Rows that a query reads as wholes have the columns of the UNION ALL, and none of the conditions of its members.
CREATE TABLE pieces (id bigint NOT NULL, n integer) PARTITION BY RANGE (snowflake_timestamp(id));
CREATE TABLE pieces_old PARTITION OF pieces FOR VALUES FROM (MINVALUE) TO ('2026-01-01 00:05+00');
CREATE TABLE pieces_new PARTITION OF pieces FOR VALUES FROM ('2026-01-01 00:05+00') TO (MAXVALUE);
INSERT INTO pieces SELECT id, n FROM family;
CREATE VIEW both_kinds AS SELECT id, n, snowflake_timestamp(id) AS at FROM family UNION ALL SELECT id, n, snowflake_timestamp(id) FROM pieces;
SELECT b.id FROM both_kinds AS b WHERE b.at < '2026-01-01 00:02+00' AND length(b::text) > 0;
SELECT b.id FROM both_kinds AS b WHERE b.at < '2026-01-01 00:02'::timestamp AND b IS NOT NULL;
SELECT count(b), min(b::text) FROM both_kinds AS b WHERE at < '2026-01-01 00:02+00';
EXPLAIN (COSTS OFF) SELECT b.id FROM both_kinds AS b WHERE b.at < '2026-01-01 00:02+00';
