-- Tables of each kind that Citus has, filled with rows of 2026, one every 7 minutes, whose IDs are of worker 0.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), customer integer NOT NULL, note text);
SELECT create_distributed_table('orders', 'id');
CREATE TABLE events (
    id bigint NOT NULL DEFAULT snowflake_next(), customer integer NOT NULL, amount bigint, PRIMARY KEY (customer, id)
);
CREATE INDEX ON events (id);
SELECT create_distributed_table('events', 'customer');
CREATE TABLE parts (
    id bigint NOT NULL DEFAULT snowflake_next(), customer integer NOT NULL, amount bigint, PRIMARY KEY (customer, id)
) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('parts', '1 month', '2026-01-01', now() + interval '2 months');
SELECT create_distributed_table('parts', 'customer', colocate_with => 'events');
CREATE TABLE countries (id bigint PRIMARY KEY DEFAULT snowflake_next(), name text);
SELECT create_reference_table('countries');
CREATE TABLE numbers (k integer PRIMARY KEY, n integer);
SELECT create_distributed_table('numbers', 'k');
CREATE TABLE local_orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), v integer);
CREATE EXTENSION IF NOT EXISTS citus_columnar;
CREATE TABLE columnar_events (LIKE events INCLUDING DEFAULTS) USING columnar;
SELECT create_distributed_table('columnar_events', 'customer');
CREATE INDEX ON columnar_events (id);
CREATE TABLE local_columnar (id bigint PRIMARY KEY, customer integer) USING columnar;
-- By ranges of IDs, and so by the time: one shard for each half of 2026.
CREATE TABLE halves (id bigint PRIMARY KEY DEFAULT snowflake_next(), customer integer);
SELECT create_distributed_table('halves', 'id', 'range');
SELECT master_create_empty_shard('halves'), master_create_empty_shard('halves');
UPDATE pg_dist_shard SET shardminvalue = snowflake_min_id('2026-01-01'), shardmaxvalue = snowflake_max_id_before('2026-07-01')
WHERE shardid = (SELECT min(shardid) FROM pg_dist_shard WHERE logicalrelid = 'halves'::regclass);
UPDATE pg_dist_shard SET shardminvalue = snowflake_min_id('2026-07-01'), shardmaxvalue = snowflake_max_id('infinity')
WHERE shardid = (SELECT max(shardid) FROM pg_dist_shard WHERE logicalrelid = 'halves'::regclass);

INSERT INTO orders
SELECT snowflake_min_id(timestamptz '2026-01-01' + n * interval '7 minutes') + n % 4000, n % 100, 'old'
FROM generate_series(1, 20000) AS n;
-- Of the same time as an order, and another sequence number.
INSERT INTO events SELECT id + 1, customer, customer % 17 FROM orders;
INSERT INTO parts SELECT id, customer, amount FROM events;
INSERT INTO columnar_events SELECT * FROM events;
INSERT INTO local_columnar SELECT id, customer FROM orders;
INSERT INTO halves SELECT id, customer FROM orders;
INSERT INTO local_orders SELECT id, customer FROM orders WHERE customer < 5;
INSERT INTO countries
SELECT snowflake_min_id(timestamptz '2026-01-01' + n * interval '1 day'), n::text FROM generate_series(1, 200) AS n;
INSERT INTO numbers SELECT n, n FROM generate_series(1, 1000) AS n;
CREATE VIEW orders_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM orders;
CREATE VIEW events_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM events;
CREATE VIEW parts_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM parts;
CREATE VIEW columnar_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM columnar_events;
CREATE VIEW local_columnar_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM local_columnar;
CREATE VIEW halves_by_time AS SELECT *, snowflake_timestamp(id) AS created_at FROM halves;
ANALYZE;
