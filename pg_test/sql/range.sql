-- Ranges of time as ranges of IDs.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

-- A tick has 4,194,304 IDs in this layout. An instant within one belongs to it.
SELECT snowflake_min_id('2024-01-01 00:00:00.000000+00') AS epoch,
       snowflake_min_id('2024-01-01 00:00:00.000001+00') AS within,
       snowflake_min_id('2024-01-01 00:00:00.001000+00') AS next;
SELECT snowflake_max_id('2024-01-01 00:00:00.000000+00') AS epoch,
       snowflake_max_id('2024-01-01 00:00:00.000999+00') AS within,
       snowflake_max_id('2024-01-01 00:00:00.001000+00') AS next;
SELECT snowflake_max_id_before('2024-01-01 00:00:00.000000+00') AS epoch,
       snowflake_max_id_before('2024-01-01 00:00:00.000001+00') AS within,
       snowflake_max_id_before('2024-01-01 00:00:00.001000+00') AS next;

-- The last tick.
SELECT snowflake_min_id('2093-09-06 15:47:35.551+00'), snowflake_max_id('2093-09-06 15:47:35.551999+00'),
       snowflake_max_id_before('2093-09-06 15:47:35.552+00');

-- Infinity is a bound beyond all IDs.
SELECT snowflake_min_id('-infinity'), snowflake_max_id('-infinity'), snowflake_max_id_before('-infinity');
SELECT snowflake_min_id('infinity'), snowflake_max_id('infinity'), snowflake_max_id_before('infinity');

-- Other instants outside the layout's time are errors.
SELECT snowflake_min_id('2023-12-31 23:59:59.999999+00');
SELECT snowflake_min_id('2093-09-06 15:47:35.551001+00');
SELECT snowflake_max_id('2023-12-31 23:59:59.999999+00');
SELECT snowflake_max_id('2093-09-06 15:47:35.552+00');
SELECT snowflake_max_id_before('2023-12-31 23:59:59.999999+00');
SELECT snowflake_max_id_before('2093-09-06 15:47:35.552001+00');
SELECT snowflake_min_id('4714-11-24 00:00:00+00 BC');
SELECT snowflake_max_id('294276-12-31 23:59:59.999999+00');
DO $$ BEGIN PERFORM snowflake_min_id('2000-01-01'); EXCEPTION WHEN datetime_field_overflow THEN RAISE NOTICE '%', SQLSTATE; END $$;
SELECT snowflake_min_id(NULL) IS NULL AND snowflake_max_id(NULL) IS NULL AND snowflake_max_id_before(NULL) IS NULL AS nulls;

-- Half-open, and equal to comparing timestamps.
CREATE TABLE orders (id bigint PRIMARY KEY);
INSERT INTO orders
SELECT snowflake_encode('2026-01-01 00:00:00+00'::timestamptz + i * interval '1 ms', i % 1024, i % 4096)
FROM generate_series(0, 9999) i;
ANALYZE orders;
SELECT count(*) FROM orders WHERE snowflake_between(id, '2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00');
SELECT count(*) AS wrong
FROM orders,
     (VALUES ('2026-01-01 00:00:01.0005+00'::timestamptz, '2026-01-01 00:00:02.0005+00'::timestamptz),
             ('2026-01-01 00:00:01+00', '2026-01-01 00:00:01+00'),
             ('2026-01-01 00:00:02+00', '2026-01-01 00:00:01+00'),
             ('-infinity', '2026-01-01 00:00:01.000001+00'),
             ('2026-01-01 00:00:01.000001+00', 'infinity')) ranges(since, until)
WHERE snowflake_between(id, since, until)
      <> (snowflake_timestamp(id) >= since AND snowflake_timestamp(id) < until);
SELECT snowflake_between(0, '-infinity', 'infinity') AS lowest,
       snowflake_between(9223372036854775807, '-infinity', 'infinity') AS highest,
       snowflake_between(-1, '-infinity', 'infinity') AS negative,
       snowflake_between(5, NULL, 'infinity') IS NULL AS unknown;

-- The primary key serves it.
EXPLAIN (COSTS OFF)
SELECT * FROM orders WHERE snowflake_between(id, '2026-01-01 00:00:01+00', '2026-01-01 00:00:01.1+00');
PREPARE range (timestamptz, timestamptz) AS SELECT count(*) FROM orders WHERE snowflake_between(id, $1, $2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE range('2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00');
EXECUTE range('2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00');
EXECUTE range('-infinity', 'infinity');
