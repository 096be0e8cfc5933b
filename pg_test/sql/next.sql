-- Making IDs, in every place where PostgreSQL lets an expression stand.
CREATE EXTENSION pg_snowflake;

-- They rise, and say what they should.
SELECT a < b AS rises FROM (SELECT snowflake_next() AS a, snowflake_next() AS b OFFSET 0) ids;
SELECT worker_id, datacenter_id, abs(extract(epoch FROM clock_timestamp() - "timestamp")) < 10 AS now
FROM (SELECT snowflake_next() AS id OFFSET 0) one, LATERAL (SELECT (snowflake_decode(id)).*) parts;

-- Batches: as many as asked for, distinct, in order.
SELECT count(*), count(DISTINCT id) FROM snowflake_next(100000) id;
SELECT count(*) AS out_of_order FROM (SELECT id, lag(id) OVER () AS before FROM snowflake_next(10000) id) ids WHERE id <= before;
SELECT count(*) FROM snowflake_next(0);
SELECT count(*) FROM snowflake_next(NULL);
SELECT count(*) FROM (SELECT snowflake_next(5) LIMIT 3) few;
SELECT count(*), count(DISTINCT id) FROM (SELECT snowflake_next(3) AS id FROM generate_series(1, 1000)) ids;
SELECT count(*) FROM snowflake_next(-1);
SELECT snowflake_next(-2147483648);
DO $$ BEGIN PERFORM snowflake_next(-1); EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '%', SQLSTATE; END $$;

-- As a default: INSERT, INSERT ... SELECT, COPY, RETURNING, ON CONFLICT.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL);
INSERT INTO orders (item) VALUES ('a'), ('b'), ('c');
INSERT INTO orders (item) SELECT 'x' FROM generate_series(1, 1000);
COPY orders (item) FROM stdin;
one
two
\.
INSERT INTO orders (item) VALUES ('returned') RETURNING id > (SELECT max(id) FROM orders) AS is_highest;
INSERT INTO orders VALUES (DEFAULT, 'default') ON CONFLICT DO NOTHING;
SELECT count(*), count(DISTINCT id) FROM orders;

-- The order of rows is the order of their IDs.
SELECT string_agg(item, ' ' ORDER BY id) FROM orders WHERE item <> 'x';

-- In a trigger, in PL/pgSQL, as the default of a function, in a partitioned table.
CREATE TABLE audit (id bigint PRIMARY KEY, order_id bigint);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO audit VALUES (snowflake_next(), NEW.id); RETURN NEW; END $$;
CREATE TRIGGER audit AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION audit();
INSERT INTO orders (item) SELECT 'audited' FROM generate_series(1, 100);
SELECT count(*), bool_and(id > order_id) AS later FROM audit;
DO $$
DECLARE
    before bigint := snowflake_next();
    id bigint;
BEGIN
    FOR i IN 1..1000 LOOP
        id := snowflake_next();
        IF id <= before THEN RAISE EXCEPTION '% after %', id, before; END IF;
        before := id;
    END LOOP;
END $$;
CREATE FUNCTION with_default(id bigint DEFAULT snowflake_next()) RETURNS boolean LANGUAGE sql AS 'SELECT id > 0';
SELECT with_default();
CREATE TABLE parted (id bigint DEFAULT snowflake_next(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_past PARTITION OF parted FOR VALUES FROM (0) TO (snowflake_min_id('2026-01-01 00:00+00'));
CREATE TABLE parted_rest PARTITION OF parted FOR VALUES FROM (snowflake_min_id('2026-01-01 00:00+00')) TO (MAXVALUE);
INSERT INTO parted SELECT FROM generate_series(1, 10);
SELECT tableoid::regclass, count(*) FROM parted GROUP BY 1;

-- Neither a rollback nor a read-only transaction matters.
BEGIN;
CREATE TEMP TABLE seen ON COMMIT PRESERVE ROWS AS SELECT snowflake_next() AS id;
SAVEPOINT s;
INSERT INTO seen SELECT snowflake_next();
SELECT max(id) AS before FROM seen \gset
ROLLBACK TO s;
SELECT snowflake_next() > :before AS not_given_again;
COMMIT;
BEGIN READ ONLY;
SELECT snowflake_next() > 0 AS read_only;
COMMIT;

-- What a pooler in transaction mode does to a session changes nothing.
SELECT snowflake_next() AS before \gset
DISCARD ALL;
SELECT snowflake_next() > :before AS goes_on;

-- Each row gets its own, also where the planner could think one is enough.
SELECT count(DISTINCT id) FROM (SELECT snowflake_next() AS id FROM generate_series(1, 1000)) ids;

-- CREATE TABLE AS in parallel.
CREATE TABLE source AS SELECT i FROM generate_series(1, 200000) i;
ANALYZE source;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) CREATE TABLE target AS SELECT snowflake_next() AS id, i FROM source;
CREATE TABLE target AS SELECT snowflake_next() AS id, i FROM source;
SELECT count(*), count(DISTINCT id) FROM target;
