-- Bounds for the planner: of a timestamp and a date, as PostgreSQL compares them with the time of an ID.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

CREATE FUNCTION of_dates(dates date[]) RETURNS TABLE (date date, min_id bigint, max_id bigint, max_id_before bigint)
    LANGUAGE sql AS 'SELECT d, _snowflake.min_id(d), _snowflake.max_id(d), _snowflake.max_id_before(d) FROM unnest(dates) d';
CREATE FUNCTION of_timestamps(timestamps timestamp[]) RETURNS TABLE ("timestamp" timestamp, min_id bigint, max_id bigint, max_id_before bigint)
    LANGUAGE sql AS 'SELECT t, _snowflake.min_id(t), _snowflake.max_id(t), _snowflake.max_id_before(t) FROM unnest(timestamps) t';

-- The layout's time is from 2024-01-01 to 2093-09-06 15:47:35.552 in UTC.
SELECT * FROM of_dates('{-infinity, 4714-11-24 BC, 1970-01-01, 2023-12-31, 2024-01-01, 2024-01-02, 2093-09-06, 2093-09-07, 294276-12-31, 294277-01-01,
                         5874897-12-31, infinity}');
SELECT * FROM of_timestamps('{-infinity, 4714-11-24 00:00 BC, 1970-01-01, 2023-12-31 23:59:59.999999, 2024-01-01, 2024-01-01 00:00:00.000001,
                              2093-09-06 15:47:35.551, 2093-09-06 15:47:35.551001, 2093-09-06 15:47:35.552,
                              294276-12-31 23:59:59.999999, infinity}');
-- Elsewhere, midnight is another instant. The lowest and the highest values are out of range in UTC.
SET timezone = 'Asia/Kathmandu';
SELECT * FROM of_dates('{4714-11-24 BC, 2024-01-01, 2024-01-02}');
SET timezone = 'Etc/GMT-14';
SELECT * FROM of_timestamps('{4714-11-24 00:00 BC, 2024-01-01 14:00}');
SET timezone = 'Etc/GMT+12';
SELECT * FROM of_timestamps('{294276-12-31 23:59:59.999999, 2023-12-31 12:00}');
-- Neither 02:30 in a gap nor 01:30 in an overlap is a single instant; PostgreSQL takes each for one, in standard time.
SET timezone = 'America/New_York';
SELECT "timestamp", snowflake_timestamp(min_id) FROM of_timestamps('{2026-03-08 02:30, 2026-03-08 03:30, 2026-11-01 01:30}');
SET timezone = 'UTC';

-- As for a timestamptz, a lower bound is NULL where no ID is at or above it: in a layout of 63 bits, the highest bigint is an ID.
SELECT _snowflake.min_id('1970-01-01 00:00+00'::timestamptz), _snowflake.min_id('2093-09-06 15:47:35.551+00'::timestamptz) AS last,
       _snowflake.min_id('2093-09-06 15:47:35.551001+00'::timestamptz) IS NULL AS none, _snowflake.min_id('infinity'::timestamptz) IS NULL AS infinite,
       _snowflake.min_id('infinity'::timestamptz, 'timestamp=41 worker=3 sequence=9') IS NULL AS narrow;
SELECT _snowflake.max_id(NULL::date) IS NULL AND _snowflake.max_id(NULL::timestamp) IS NULL
   AND _snowflake.max_id('2026-01-01'::date, NULL) IS NULL AND _snowflake.min_id(NULL::timestamptz) IS NULL AS nulls;
SELECT _snowflake.max_id('2026-01-01'::date, 'no layout');

-- The same result as each comparison, for IDs next to all of these in time zones with gaps, overlaps and a day left out.
CREATE TABLE zones AS
SELECT * FROM unnest('{UTC, America/New_York, Europe/London, Australia/Lord_Howe, Asia/Kathmandu, Pacific/Apia,
                       Etc/GMT-14, Etc/GMT+12, <+23>-23:59, <-23>+23:59}'::text[]) zone;
CREATE TABLE timestamps AS
SELECT DISTINCT t + n * interval '1 us' AS t
FROM unnest('{-infinity, 4714-11-24 00:00:00.000001 BC, 4714-11-24 13:00 BC, 1969-12-31, 1970-01-01, 2010-11-04 01:42:54.657, 2011-12-29 23:59:59, 2011-12-30,
              2011-12-30 12:00, 2011-12-31, 2014-09-01, 2023-12-31 12:00, 2024-01-01, 2024-01-01 05:45, 2026-03-08 01:59:59.999, 2026-03-08 02:00,
              2026-03-08 02:30, 2026-03-08 03:00, 2026-03-29 01:30, 2026-04-05 01:30, 2026-04-05 02:00, 2026-10-04 02:15, 2026-10-25 01:30, 2026-11-01 01:00,
              2026-11-01 01:30, 2026-11-01 02:00, 2080-07-10 17:30:30.209, 2093-09-06 15:47:35.551, 2093-09-06 15:47:35.552, 2188-12-20 11:16:06.18, 9999-12-31,
              294276-12-31 12:00, 294276-12-31 23:59:59.999998, infinity}'::timestamp[]) t, generate_series(-1, 1) n;
CREATE TABLE dates AS
SELECT DISTINCT CASE WHEN isfinite(d) AND d BETWEEN '4714-11-25 BC' AND '5874897-12-30' THEN d + n ELSE d END AS d
FROM unnest('{-infinity, 4714-11-24 BC, 4714-11-26 BC, 1969-12-31, 1970-01-01, 2010-11-04, 2011-12-30, 2014-09-01, 2024-01-01, 2026-03-08, 2026-04-05, 2026-10-04,
              2026-11-01, 2080-07-10, 2093-09-06, 2188-12-20, 9999-12-31, 294276-12-31, 5874897-12-31, infinity}'::date[]) d, generate_series(-1, 1) n;
CREATE TABLE layouts AS
SELECT * FROM unnest('{default, twitter, sonyflake, timestamp=31 worker=4 sequence=4 tick=1s epoch=1970-01-01T00:00:00Z}'::text[]) layout;
CREATE TABLE ids AS
SELECT zone, layout, id, snowflake_timestamp(id, layout) AS at
FROM layouts,
     LATERAL (SELECT zone, t AT TIME ZONE zone AS at FROM (SELECT t FROM timestamps UNION SELECT d FROM dates WHERE d < '9999-01-01') local, zones
              WHERE t BETWEEN '1960-01-01' AND '2200-01-01' AND t = date_trunc('milliseconds', t)) instants,
     LATERAL (VALUES (0), (snowflake_max_id('infinity', layout)), (snowflake_max_id(at, layout)), (snowflake_max_id_before(at, layout)),
                     (_snowflake.min_id(at, layout))) numbers(id)
WHERE id >= 0 GROUP BY zone, layout, id;
SELECT layout, count(*) > 500 AS ids FROM ids GROUP BY layout ORDER BY layout COLLATE "C";

CREATE FUNCTION wrong_timestamps() RETURNS bigint LANGUAGE sql AS $$
    WITH bounds AS MATERIALIZED (
        SELECT layout, t, _snowflake.min_id(t, layout) AS low, _snowflake.max_id(t, layout) AS high, _snowflake.max_id_before(t, layout) AS before
        FROM timestamps, layouts
        UNION SELECT 'default', t, _snowflake.min_id(t), _snowflake.max_id(t), _snowflake.max_id_before(t) FROM timestamps
    )
    SELECT count(*) FROM ids JOIN bounds USING (layout)
    WHERE zone = current_setting('timezone') AND ((at <= t) <> (id BETWEEN 0 AND high) OR (at < t) <> (id BETWEEN 0 AND before)
       OR (at > t) <> (id > high) OR (at >= t) <> coalesce(id >= low, false) OR (at >= t) <> (id > before)) $$;
CREATE FUNCTION wrong_dates() RETURNS bigint LANGUAGE sql AS $$
    WITH bounds AS MATERIALIZED (
        SELECT layout, d, _snowflake.min_id(d, layout) AS low, _snowflake.max_id(d, layout) AS high, _snowflake.max_id_before(d, layout) AS before
        FROM dates, layouts
        UNION SELECT 'default', d, _snowflake.min_id(d), _snowflake.max_id(d), _snowflake.max_id_before(d) FROM dates
    )
    SELECT count(*) FROM ids JOIN bounds USING (layout)
    WHERE zone = current_setting('timezone') AND ((at <= d) <> (id BETWEEN 0 AND high) OR (at < d) <> (id BETWEEN 0 AND before)
       OR (at > d) <> (id > high) OR (at >= d) <> coalesce(id >= low, false) OR (at >= d) <> (id > before)) $$;
SELECT zone, set_config('timezone', zone, false) = zone AS set, wrong_timestamps(), wrong_dates() FROM zones ORDER BY zone COLLATE "C";
SET timezone = 'UTC';

-- An index serves them, although their result depends on the time zone.
CREATE TABLE orders (id bigint PRIMARY KEY);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
SELECT * FROM orders WHERE id >= _snowflake.min_id('2026-03-08'::date) AND id <= _snowflake.max_id_before('2026-03-09'::date);
-- The elements of a list, by which the planner reads an index.
SELECT _snowflake.sorted('{2026-01-02, NULL, infinity, 2026-01-01, 2026-01-02, -infinity}'::timestamptz[]) AS instants,
       _snowflake.sorted('{{2026-01-02, 2026-01-01}, {NULL, 2026-01-02}}'::timestamp[]) AS local,
       _snowflake.sorted('{2026-01-02, -infinity, 1999-01-01, infinity, NULL}'::date[]) AS dates;
SELECT _snowflake.sorted('{}'::timestamptz[]) AS empty, _snowflake.sorted(ARRAY[NULL]::date[]) AS only_null, _snowflake.sorted(NULL::date[]) AS none,
       _snowflake.sorted('{b, a, b}'::text[]) AS others;
