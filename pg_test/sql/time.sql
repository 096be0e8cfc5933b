-- Time from IDs: age, and partitions by it.
SET datestyle = ISO;
CREATE EXTENSION pg_snowflake;

-- Age.
SELECT snowflake_age(snowflake_encode(now() - interval '90 s', 1)) BETWEEN interval '90 s' AND interval '90.002 s' AS age,
       snowflake_age(snowflake_encode(now() - interval '90 s', 1, 0, 1, 'twitter'), 'twitter') BETWEEN interval '90 s' AND interval '90.002 s' AS of_twitter,
       snowflake_age(NULL) IS NULL AS unknown;

-- Partitions by ID time are pruned, at planning and at execution.
SET timezone = 'UTC';
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
CREATE TABLE events_2026_01 PARTITION OF events
    FOR VALUES FROM (snowflake_min_id('2026-01-01')) TO (snowflake_min_id('2026-02-01'));
CREATE TABLE events_2026_02 PARTITION OF events
    FOR VALUES FROM (snowflake_min_id('2026-02-01')) TO (snowflake_min_id('2026-03-01'));
CREATE TABLE events_later PARTITION OF events FOR VALUES FROM (snowflake_min_id('2026-03-01')) TO (MAXVALUE);
INSERT INTO events VALUES (snowflake_encode('2026-01-31 23:59:59.999', 1)), (snowflake_encode('2026-02-01', 1)), (DEFAULT);
SELECT tableoid::regclass, snowflake_timestamp(id) < now() + interval '1 s' AS past FROM events ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-02-01', '2026-02-02');
PREPARE later (timestamptz) AS SELECT count(*) FROM events WHERE snowflake_between(id, $1, 'infinity');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE later('2026-03-01');

-- Partitions for a range of time, made at once; those that are there are left alone.
CREATE SCHEMA "Odd Schema";
CREATE TABLE "Odd Schema"."Odd Table" (id bigint PRIMARY KEY DEFAULT snowflake_next(), at timestamptz) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('"Odd Schema"."Odd Table"', '1 month', '2026-01-01', '2026-04-01');
SELECT * FROM snowflake_create_partitions('"Odd Schema"."Odd Table"', '1 month', '2026-03-01', '2026-06-15');
SELECT relname, pg_get_expr(relpartbound, c.oid) AS bounds
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = '"Odd Schema"."Odd Table"'::regclass ORDER BY relname;
INSERT INTO "Odd Schema"."Odd Table"
SELECT snowflake_encode(at, 1), at FROM generate_series('2026-01-01'::timestamptz, '2026-06-30 23:59:59', '1 day 11 h') at;
SELECT tableoid::regclass, min(at), max(at), count(*) FROM "Odd Schema"."Odd Table" GROUP BY 1 ORDER BY 2;
CREATE TABLE hourly (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('hourly', '6 h', '2026-03-29 00:00', '2026-03-30 00:00');
SELECT count(*) FROM snowflake_create_partitions('hourly', '6 h', '2026-03-29 00:00', '2026-03-29 00:00');

-- As pg_partman calls its encoder and decoder.
SELECT snowflake_time_encoder('2026-03-29 00:00'), snowflake_time_decoder(snowflake_time_encoder('2026-03-29 00:00')),
       snowflake_time_decoder('0296433277501440000'), snowflake_time_decoder(NULL) IS NULL AS unknown;
SELECT snowflake_time_decoder('296433277501440000');

-- What cannot be.
SELECT snowflake_create_partitions('hourly', '1 year', '2023-01-01', '2026-01-01');
SELECT snowflake_create_partitions('hourly', '0 h', '2026-01-01', '2026-01-02');
SELECT snowflake_create_partitions('hourly', '7 h', '2026-03-29 00:00', '2026-03-29 08:00');
CREATE TABLE plain (id bigint PRIMARY KEY);
SELECT snowflake_create_partitions('plain', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions(0, '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT count(*) FROM snowflake_create_partitions('hourly', NULL, '2026-01-01', '2026-01-02');
CREATE ROLE regress_snowflake_other;
SET ROLE regress_snowflake_other;
SELECT snowflake_create_partitions('hourly', '1 h', '2026-04-01 00:00', '2026-04-01 01:00');
RESET ROLE;
DROP ROLE regress_snowflake_other;
