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

-- Every instant has bounds, also before the first tick and after the start of the last one, and the infinite ones.
SELECT at, snowflake_min_id(at), snowflake_max_id(at), snowflake_max_id_before(at)
FROM unnest('{-infinity, 4714-11-24 00:00:00+00 BC, 1970-01-01 00:00:00+00, 2023-12-31 23:59:59.999999+00,
              2093-09-06 15:47:35.551+00, 2093-09-06 15:47:35.551001+00, 2093-09-06 15:47:35.552+00, 3000-01-01 00:00:00+00,
              294276-12-31 23:59:59.999999+00, infinity}'::timestamptz[]) at;
-- In a layout of fewer bits, the highest ID is below the highest bigint.
SELECT at, snowflake_min_id(at, layout), snowflake_max_id(at, layout), snowflake_max_id_before(at, layout)
FROM unnest('{-infinity, 2023-12-31 23:59:59.999999+00, 2093-09-06 15:47:35.551+00, 2093-09-06 15:47:35.552+00, infinity}'::timestamptz[]) at,
     (VALUES ('timestamp=41 worker=3 sequence=9')) narrow(layout);
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

-- Exact for all instants and all numbers: those that are no IDs are in no range.
CREATE TABLE instants AS
SELECT DISTINCT at + n * interval '1 us' AS at
FROM unnest('{4714-11-25 00:00:00+00 BC, 1970-01-01 00:00:00+00, 2010-11-04 01:42:54.657+00, 2014-09-01 00:00:00+00, 2024-01-01 00:00:00+00,
              2026-03-04 05:06:07.89+00, 2080-07-10 17:30:30.208+00, 2080-07-10 17:30:30.209+00, 2093-09-06 15:47:35.551+00,
              2093-09-06 15:47:35.552+00, 3000-01-01 00:00:00+00, 294276-12-31 23:59:59.999998+00, -infinity, infinity}'::timestamptz[]) at,
     generate_series(-1, 1) n;
CREATE TABLE numbers AS
SELECT layout, id, CASE WHEN id BETWEEN 0 AND snowflake_max_id('infinity', layout) THEN snowflake_timestamp(id, layout) END AS at
FROM unnest('{default, twitter, sonyflake, timestamp=41 worker=3 sequence=9, timestamp=31 worker=4 sequence=4 tick=1s}'::text[]) layout,
     LATERAL (SELECT snowflake_max_id(at, layout) FROM instants UNION SELECT snowflake_min_id(at, layout) FROM instants
              UNION SELECT snowflake_max_id_before(at, layout) FROM instants
              UNION SELECT snowflake_max_id('infinity', layout) - 1
              UNION VALUES ((-9223372036854775808)::bigint), (-2), (9007199254740992), (9223372036854775806)) ids(id);
SELECT count(*) FILTER (WHERE at IS NOT NULL) AS ids, count(*) FILTER (WHERE at IS NULL) > 0 AS others, count(DISTINCT at) > 30 AS times
FROM numbers;
SELECT count(*) AS wrong FROM numbers n, instants i
WHERE n.at IS NOT NULL
  AND ((id <= snowflake_max_id(i.at, layout)) <> (n.at <= i.at)
    OR (id <= snowflake_max_id_before(i.at, layout)) <> (n.at < i.at)
    OR (id >= snowflake_min_id(i.at, layout)) <> (n.at >= i.at) AND id < 9223372036854775807);
SELECT count(*) AS wrong FROM numbers n, instants since, instants until
WHERE snowflake_between(id, since.at, until.at, layout) <> coalesce(n.at >= since.at AND n.at < until.at, false)
  AND id < 9223372036854775807;
SELECT count(*) AS wrong FROM numbers n, instants since, instants until
WHERE layout = 'default'
  AND snowflake_between(id, since.at, until.at) <> coalesce(n.at >= since.at AND n.at < until.at, false)
  AND id < 9223372036854775807;
-- But the last ID of 63 bits has no number above it, and so is at or after every instant.
SELECT snowflake_timestamp(9223372036854775807), snowflake_between(9223372036854775807, '2094-01-01 00:00+00', 'infinity');

-- A row with a time before all IDs is joined as any other, and the primary key serves it.
CREATE TABLE shifts (name text, since timestamptz, until timestamptz);
INSERT INTO shifts VALUES ('epoch', '1970-01-01 00:00+00', '1970-01-02 00:00+00'), ('forever', '1970-01-01 00:00+00', 'infinity'),
    ('early', '1970-01-01 00:00+00', '2026-01-01 00:00:01+00'), ('late', '2026-01-01 00:00:01+00', '3000-01-01 00:00+00'),
    ('never', '3000-01-01 00:00+00', '3001-01-01 00:00+00'), ('unknown', NULL, '2026-01-01 00:00:01+00');
SELECT name, count(id) FROM shifts LEFT JOIN orders ON snowflake_between(id, since, until) GROUP BY name ORDER BY name;
ANALYZE shifts;
-- What an index is asked for. The majors name subqueries differently.
CREATE FUNCTION index_conditions(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line LIKE '%Index Cond%' THEN
            RETURN NEXT regexp_replace(trim(line), '\$\d|\(InitPlan \w+\)\.col1', 'subquery', 'g');
        END IF;
    END LOOP;
END $$;
SELECT index_conditions('SELECT name FROM shifts JOIN orders ON snowflake_between(id, since, until)');
SELECT index_conditions('SELECT * FROM orders WHERE snowflake_between(id, (SELECT min(since) FROM shifts), (SELECT min(until) FROM shifts))');
SELECT index_conditions('SELECT * FROM orders WHERE snowflake_between(id, ''1970-01-01 00:00+00'', ''2026-01-01 00:00:00.1+00'')');
SELECT index_conditions('SELECT * FROM orders WHERE snowflake_between(id, ''2026-01-01 00:00+00'', ''3000-01-01 00:00+00'', ''timestamp=41 worker=3 sequence=9'')');

-- The primary key serves it.
EXPLAIN (COSTS OFF)
SELECT * FROM orders WHERE snowflake_between(id, '2026-01-01 00:00:01+00', '2026-01-01 00:00:01.1+00');
PREPARE range (timestamptz, timestamptz) AS SELECT count(*) FROM orders WHERE snowflake_between(id, $1, $2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE range('2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00');
EXECUTE range('2026-01-01 00:00:01+00', '2026-01-01 00:00:02+00');
EXECUTE range('-infinity', 'infinity');
