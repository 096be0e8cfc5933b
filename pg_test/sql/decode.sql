-- Reading IDs and making them from their parts.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

-- One ID, by its accessors and whole.
SELECT snowflake_timestamp(382304429472247808), snowflake_datacenter(382304429472247808),
       snowflake_worker(382304429472247808), snowflake_sequence(382304429472247808);
SELECT snowflake_decode(382304429472247808);
SELECT (snowflake_decode(382304429472247808)).*;
SELECT (snowflake_decode(382304429472247808)).timestamp;

-- The ends.
SELECT (snowflake_decode(0)).*;
SELECT (snowflake_decode(9223372036854775807)).*;

-- NULL.
SELECT snowflake_timestamp(NULL) IS NULL AS t, snowflake_worker(NULL) IS NULL AS w,
       snowflake_datacenter(NULL) IS NULL AS d, snowflake_sequence(NULL) IS NULL AS s;
SELECT snowflake_decode(NULL) IS NULL AS is_null, (snowflake_decode(NULL)).*;

-- What is no ID.
DO $$ BEGIN PERFORM snowflake_timestamp(-1); EXCEPTION WHEN numeric_value_out_of_range THEN RAISE NOTICE '%', SQLSTATE; END $$;
SELECT snowflake_timestamp(-1);
SELECT snowflake_worker(-9223372036854775808);
SELECT snowflake_sequence(-2);
SELECT snowflake_datacenter(-2);
SELECT (snowflake_decode(-1)).*;

-- Encode is the inverse of decode.
SELECT snowflake_encode('2026-11-20 23:01:18.859+00', 7, 5);
SELECT snowflake_encode('2026-11-20 23:01:18.859+00', 7) AS sequence_0;
SELECT snowflake_encode(worker_id => 7, "timestamp" => '2026-11-20 23:01:18.859999+00', sequence => 5) AS within_the_tick;
SELECT count(*) AS wrong
FROM (SELECT (random() * 9223372036854775000)::bigint AS id FROM generate_series(1, 10000)) ids,
     LATERAL (SELECT (snowflake_decode(id)).*) p
WHERE snowflake_encode(p."timestamp", p.worker_id, p.sequence, p.datacenter_id) <> id;
SELECT snowflake_encode('2024-01-01 00:00:00+00', 0, 0) AS lowest,
       snowflake_encode('2093-09-06 15:47:35.551+00', 1023, 4095) AS highest;

-- NULL in, and parts that cannot be.
SELECT snowflake_encode(NULL, 1, 1) IS NULL AS t, snowflake_encode(now(), 1, NULL) IS NULL AS s;
SELECT snowflake_encode('2026-01-01 00:00:00+00', NULL, 1);
SELECT snowflake_encode('2026-01-01 00:00:00+00', 1024, 1);
SELECT snowflake_encode('2026-01-01 00:00:00+00', -1, 1);
SELECT snowflake_encode('2026-01-01 00:00:00+00', 1, 4096);
SELECT snowflake_encode('2026-01-01 00:00:00+00', 1, -4096);
SELECT snowflake_encode('2026-01-01 00:00:00+00', 1, 1, 1);
SELECT snowflake_encode('2023-12-31 23:59:59.999999+00', 1, 1);
SELECT snowflake_encode('2093-09-06 15:47:35.552+00', 1, 1);
SELECT snowflake_encode('4714-11-24 00:00:00+00 BC', 1, 1);
SELECT snowflake_encode('294276-12-31 23:59:59.999999+00', 1, 1);
SELECT snowflake_encode('infinity', 1, 1);
SELECT snowflake_encode('-infinity', 1, 1);

-- The planner puts the accessors in place of snowflake_decode(), and knows a constant's parts.
CREATE TABLE tweets (id bigint);
EXPLAIN (VERBOSE, COSTS OFF) SELECT (snowflake_decode(id)).* FROM tweets;
EXPLAIN (VERBOSE, COSTS OFF) SELECT (snowflake_decode(id)).worker_id FROM tweets;
EXPLAIN (VERBOSE, COSTS OFF) SELECT snowflake_timestamp(382304429472247808);

-- IMMUTABLE, so a generated column and an index may use them.
CREATE TABLE events (
    id bigint PRIMARY KEY,
    at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
    worker integer GENERATED ALWAYS AS ((snowflake_decode(id)).worker_id) STORED
);
CREATE INDEX events_worker ON events (snowflake_worker(id), snowflake_timestamp(id));
INSERT INTO events VALUES (382304429472247808), (382304429472247809);
SELECT * FROM events ORDER BY id;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_worker(id) = 7;

-- Parallel plans.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_seqscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT snowflake_worker(id), count(*) FROM events GROUP BY 1;
