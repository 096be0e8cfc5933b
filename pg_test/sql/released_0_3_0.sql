-- 0.3.0, as it was released, with the library of today: the objects that its script creates, and each C function once. A database
-- stays so until somebody runs ALTER EXTENSION pg_snowflake UPDATE in it.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake VERSION '0.3.0';
\i sql/include/objects.sql

-- What a database has on record.
SELECT snowflake_server_layout();
SELECT snowflake_adopt_layout();
SELECT snowflake_database_layout();

-- Making IDs.
SELECT snowflake_next() > id AS rises FROM (SELECT max(id) AS id, count(*) FROM snowflake_next(3) id) batch WHERE count = 3;
SELECT worker_id, datacenter_id, previous_worker_id, previous_datacenter_id, previous_until IS NULL AS unchanged, layout, epoch,
       layout_end, clock_source IN ('tsc', 'cntvct', 'system') AS clock, last_time > started_at AS last, lead < interval '10 s' AS leads,
       reserved_until > clock_timestamp() AS reserved, started_after, reservations > 0 AS counted, waits >= 0 AS waits,
       wait_time >= '0' AS wait_time, clock_steps >= 0 AS clock_steps, largest_clock_step >= '0' AS largest_clock_step,
       clock_leaps, clock_leap, errors >= 0 AS errors, registry, lease, granted_until, registry_error
FROM snowflake_status();
DO $$ BEGIN PERFORM snowflake_rewind(-1); EXCEPTION WHEN numeric_value_out_of_range THEN RAISE NOTICE '%', SQLSTATE; END $$;

-- Reading and composing them.
SELECT (snowflake_decode(382304429472247813)).*;
SELECT (snowflake_decode(1541815603606036480, 'twitter')).*;
SELECT snowflake_encode('2026-11-20 23:01:18.859+00', 7, 5),
       snowflake_encode('2022-06-28 16:07:40.105+00', 26, 0, 11, 'twitter') AS of_twitter;
SELECT name, layout, tick, first_time, workers, ids_per_second, fits_double FROM snowflake_layouts() WHERE name = 'twitter';
SELECT snowflake_age(snowflake_next()) < '10 s' AS age, snowflake_age(1541815603606036480, 'twitter') > '10 s' AS of_twitter;

-- Ranges of time.
SELECT snowflake_min_id('2026-11-01 00:00+00'), snowflake_max_id('2026-11-01 00:00+00'),
       snowflake_max_id_before('2026-11-01 00:00+00'),
       snowflake_between(382304429472247813, '2026-11-20 00:00+00', '2026-11-21 00:00+00');
SELECT snowflake_min_id('2026-11-01 00:00+00', 'twitter'), snowflake_max_id('2026-11-01 00:00+00', 'twitter'),
       snowflake_max_id_before('2026-11-01 00:00+00', 'twitter'),
       snowflake_between(1541815603606036480, '2022-06-28 00:00+00', '2022-06-29 00:00+00', 'twitter');
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('events', '1 month', '2026-11-01 00:00+00', '2027-01-01 00:00+00');
SELECT action, count(*) > 0 AS partitions, bool_and(statement LIKE 'CREATE TABLE %') AS created
FROM snowflake_maintain_partitions('events', '1 month', '3 months', retention => '100 years', dry_run => true) GROUP BY 1 ORDER BY 1;
CREATE TABLE visits (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer) PARTITION BY RANGE (id);
CREATE TABLE visits_rest PARTITION OF visits DEFAULT;
SELECT snowflake_create_partitions('visits', '1 month', '2026-11-01 00:00+00', '2026-12-01 00:00+00');
INSERT INTO visits VALUES (snowflake_encode('2027-01-15 00:00+00', 7, 5), 1);
CALL snowflake_partition_default_rows('visits', every => '1 month', dry_run => true);
CALL snowflake_partition_default_rows('visits', every => '1 month');
SELECT tableoid::regclass AS partition, n FROM visits;

-- Text forms.
SELECT snowflake_to_text(382304429472247813, 'hex'), snowflake_from_text('054e37da62c07005', 'hex');
SELECT snowflake_time_encoder('2026-11-01 00:00+00'), snowflake_time_decoder('0375071440896000000');

-- A type of IDs that JSON functions write as text.
SELECT id, to_json(id), id::json, id::bigint, id::numeric, _snowflake.id_send(id)
FROM (VALUES ('382304429472247813'::snowflake_id), (7), (7::smallint), (7::bigint::snowflake_id), (7.0::snowflake_id)) given (id);
CREATE TABLE ids (id snowflake_id);
INSERT INTO ids VALUES (7::bigint), (7.4);
DO $$ BEGIN
    EXECUTE format('COPY ids TO %L (FORMAT binary)', current_setting('data_directory') || '/ids');
    EXECUTE format('COPY ids FROM %L (FORMAT binary)', current_setting('data_directory') || '/ids');
END $$;
SELECT id, count(*) FROM ids GROUP BY 1;

-- Bounds of timestamps without a time zone, and of dates.
SELECT _snowflake.min_id(at), _snowflake.min_id(at::date), _snowflake.min_id(at, 'twitter'), _snowflake.min_id(at::date, 'twitter'),
       _snowflake.max_id(at), _snowflake.max_id(at::date), _snowflake.max_id(at, 'twitter'), _snowflake.max_id(at::date, 'twitter'),
       _snowflake.max_id_before(at), _snowflake.max_id_before(at::date),
       _snowflake.max_id_before(at, 'twitter'), _snowflake.max_id_before(at::date, 'twitter'),
       _snowflake.min_id(at::timestamptz), _snowflake.min_id(at::timestamptz, 'twitter')
FROM (VALUES (timestamp '2026-11-01 00:00')) given (at) \gx

-- What the planner makes of a day, and of lists.
SELECT _snowflake.earliest('date local =', '2026-11-01'::date, NULL::timestamptz) AS earliest,
       _snowflake.latest('date local =', '2026-11-01'::date, NULL::timestamptz) AS latest,
       _snowflake.sorted('{2026-11-02, NULL, 2026-11-01, 2026-11-02}'::timestamptz[]) AS sorted;

-- Leases and segments: a registry is needed.
DO $$
DECLARE call text;
BEGIN
    FOREACH call IN ARRAY '{"snowflake_workers()", "snowflake_segments()", "snowflake_segments(false)", "snowflake_segment_create(''orders'')",
        "snowflake_segment_next(''orders'')", "snowflake_segment_next(''orders'', 3)", "snowflake_segment_raise(''orders'', 100)",
        "snowflake_segment_drop(''orders'')"}'::text[]
    LOOP
        BEGIN
            EXECUTE format('SELECT count(*) FROM %s', call);
            RAISE NOTICE '%: no error', call;
        EXCEPTION WHEN others THEN RAISE NOTICE '%: %', call, SQLSTATE; END;
    END LOOP;
END $$;

-- Moving in and out.
CREATE TABLE customers (id serial PRIMARY KEY);
INSERT INTO customers SELECT FROM generate_series(1, 3);
SELECT kind, count(*) > 0 AS steps FROM snowflake_adopt_plan('customers') GROUP BY 1 ORDER BY 1;
SELECT first_id > 3 AS above, abs(extract(epoch FROM clock_timestamp() - adopted_at)) < 600 AS adopted, highest_before FROM snowflake_adopt('customers');
SELECT kind, count(*) > 0 AS steps FROM snowflake_release_plan('customers') GROUP BY 1 ORDER BY 1;
SELECT snowflake_release('customers');
CREATE TABLE suppliers (id serial PRIMARY KEY);
SELECT count(*) > 4 AS steps FROM snowflake_adopt_all_plan('{customers,suppliers}');
SELECT tbl, col, highest_before FROM snowflake_adopt_all('{customers,suppliers}');

-- Before the first ID.
SELECT verdict, count(*) > 0 AS findings FROM snowflake_preflight(servers => 3, ids_per_second => 1000) GROUP BY 1 ORDER BY 1;
