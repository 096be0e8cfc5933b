-- What the planner makes of an ID's time: comparisons with it are comparisons of the ID, and an index on the ID has its
-- order. The plans are the same on all majors.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

-- An ID each minute from 2026-01-01 on, by four workers.
CREATE TABLE orders (id bigint PRIMARY KEY, customer integer, item text);
INSERT INTO orders
SELECT snowflake_encode('2026-01-01 00:00+00'::timestamptz + n * interval '1 minute', n % 4), n % 100, 'item ' || n
FROM generate_series(0, 9999) n;
CREATE VIEW v AS SELECT snowflake_timestamp(id) AS created_at, * FROM orders;
CREATE TABLE sales (name text, since timestamptz, until timestamptz, day date);
INSERT INTO sales VALUES ('new year', '2026-01-01 00:00+00', '2026-01-01 12:00+00', '2026-01-01'),
                         ('epiphany', '2026-01-06 08:00+00', '2026-01-06 08:30+00', '2026-01-06'),
                         ('long ago', '1970-01-01 00:00+00', '1970-01-02 00:00+00', '1970-01-01'),
                         ('always', '-infinity', 'infinity', NULL);
ANALYZE orders, sales;
-- So that a plan shows what is possible, whatever it costs in tables of this size.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;

-- The plan of a query, without what differs between majors. Then how many rows it returns, and whether they are the
-- same, in the same order, without plan_by_time.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    line text;
    ours text[];
    theirs text[];
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ '^ *(Window:|Replaces:|Run Condition:|Disabled:|JIT:|Index Searches:)';
        -- The result of an InitPlan has a name of its own in each major.
        line := regexp_replace(line, '\(InitPlan \w+\)(\.col1)?', '$0');
        RETURN NEXT regexp_replace(line, 'InitPlan \w+( \(returns \$\d+\))?', 'InitPlan');
    END LOOP;
    EXECUTE 'SELECT array_agg(r::text) FROM (' || query || ') r' INTO ours;
    SET LOCAL pg_snowflake.plan_by_time = off;
    EXECUTE 'SELECT array_agg(r::text) FROM (' || query || ') r' INTO theirs;
    SET LOCAL pg_snowflake.plan_by_time = on;
    RETURN NEXT CASE WHEN ours IS NOT DISTINCT FROM theirs THEN '' ELSE 'NOT ' END
        || format('the same %s rows', coalesce(cardinality(ours), 0));
END $$;
\pset format unaligned
\pset tuples_only on

-- Comparisons.
SELECT explain($$SELECT * FROM v WHERE created_at >= '2026-01-07 12:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at > '2026-01-07 12:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at < '2026-01-01 01:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at <= '2026-01-01 01:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at = '2026-01-01 01:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE '2026-01-01 01:00+00' > created_at$$);
SELECT explain($$SELECT * FROM v WHERE created_at BETWEEN '2026-01-02 00:00+00' AND '2026-01-02 01:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE NOT created_at < '2026-01-07 12:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at < '2026-01-01 00:10+00' OR created_at >= '2026-01-07 22:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE customer = 5 AND (created_at < '2026-01-01 01:00+00' OR item = 'item 205')$$);

-- With what is known only when the query runs.
SELECT explain($$SELECT * FROM v WHERE created_at >= now() + interval '100 years'$$);
SELECT explain($$SELECT * FROM v WHERE created_at < (SELECT min(since) FROM sales WHERE since > '2026-01-01 00:00+00')$$);
-- A date and a timestamp are those of the session's time zone.
SELECT explain($$SELECT * FROM v WHERE created_at >= '2026-01-07'::date$$);
SELECT explain($$SELECT * FROM v WHERE created_at < '2026-01-01 08:00'::timestamp$$);
SET timezone = 'America/New_York';
SELECT explain($$SELECT * FROM v WHERE created_at >= '2026-01-07'::date$$);
SET timezone = 'UTC';
-- A generic plan.
PREPARE range (timestamptz, timestamptz) AS SELECT count(*) FROM v WHERE created_at >= $1 AND created_at < $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE range ('2026-01-02 00:00+00', '2026-01-03 00:00+00');
EXECUTE range ('2026-01-02 00:00+00', '2026-01-03 00:00+00');
EXECUTE range ('1900-01-01', 'infinity');
EXECUTE range (NULL, 'infinity');
RESET plan_cache_mode;

-- Times before the epoch and after the layout's end have answers.
SELECT explain($$SELECT * FROM v WHERE created_at < '1970-01-01'$$);
SELECT explain($$SELECT * FROM v WHERE created_at > '3000-01-01'$$);
SELECT explain($$SELECT * FROM v WHERE created_at BETWEEN '-infinity' AND 'infinity'$$);

-- Other ways to write an ID's time.
SELECT explain($$SELECT * FROM orders WHERE (snowflake_decode(id)).timestamp >= '2026-01-07 22:00+00'$$);
CREATE TABLE statuses (id bigint PRIMARY KEY, author text);
INSERT INTO statuses SELECT snowflake_encode('2016-01-01 00:00+00'::timestamptz + n * interval '1 hour', 1, 0, 1, 'discord'), 'somebody' FROM generate_series(0, 999) n;
ANALYZE statuses;
SELECT explain($$SELECT * FROM statuses WHERE snowflake_timestamp(id, 'discord') < '2016-01-02 00:00+00'$$);
-- A layout of fewer than 63 bits: numbers above its highest ID are no IDs.
CREATE TABLE scripts (id bigint PRIMARY KEY);
INSERT INTO scripts SELECT snowflake_encode('2026-01-01 00:00+00'::timestamptz + n * interval '1 hour', 1, 0, NULL, 'cosid-js') FROM generate_series(0, 99) n;
SELECT explain($$SELECT * FROM scripts WHERE snowflake_timestamp(id, 'cosid-js') >= '2026-01-05 00:00+00'$$);

-- Joins by a range of time, and the tables of an outer join.
SELECT explain($$SELECT count(item) FROM sales JOIN v ON created_at >= since AND created_at < until$$);
SELECT explain($$SELECT name, item FROM sales LEFT JOIN v ON created_at >= day AND created_at < day + interval '3 minutes' ORDER BY name, id$$);
SELECT explain($$SELECT name FROM sales WHERE EXISTS (SELECT FROM v WHERE created_at BETWEEN since AND until) ORDER BY name$$);

-- The order of the time is that of the primary key.
SELECT explain($$SELECT * FROM v ORDER BY created_at LIMIT 3$$);
SELECT explain($$SELECT * FROM v ORDER BY created_at DESC LIMIT 3$$);
SELECT explain($$SELECT * FROM v ORDER BY created_at DESC NULLS LAST LIMIT 3$$);
SELECT explain($$SELECT * FROM v ORDER BY created_at DESC, id DESC LIMIT 3$$);
SELECT explain($$SELECT * FROM v ORDER BY created_at, customer LIMIT 3$$);
SELECT explain($$SELECT min(created_at), max(created_at) FROM v$$);
SELECT explain($$SELECT max(created_at) FROM v WHERE created_at < '2026-01-03 00:00+00'$$);
SELECT explain($$SELECT id, row_number() OVER (ORDER BY created_at) FROM v WHERE created_at < '2026-01-01 00:05+00'$$);
SELECT explain($$SELECT created_at, count(*) FROM v WHERE created_at < '2026-01-01 00:05+00' GROUP BY created_at ORDER BY created_at$$);
-- What rises with the time: date_bin(), and date_trunc() in UTC. In other zones, a day may come twice.
SELECT explain($$SELECT date_bin('1 day', created_at, '2026-01-01 00:00+00'), count(*) FROM v GROUP BY 1 ORDER BY 1 DESC LIMIT 2$$);
SELECT explain($$SELECT date_trunc('day', created_at, 'UTC') AS day, count(*) FROM v GROUP BY 1 ORDER BY 1 LIMIT 2$$);
SELECT explain($$SELECT date_trunc('day', created_at, 'Europe/Berlin') AS day, count(*) FROM v GROUP BY 1 ORDER BY 1 LIMIT 2$$);
-- NULLs are where they belong.
CREATE TABLE loose (id bigint UNIQUE, n integer);
INSERT INTO loose SELECT id, customer FROM orders LIMIT 100;
INSERT INTO loose VALUES (NULL, 1);
ANALYZE loose;
SELECT explain($$SELECT * FROM loose ORDER BY snowflake_timestamp(id) DESC LIMIT 2$$);
SELECT explain($$SELECT * FROM loose ORDER BY snowflake_timestamp(id) DESC NULLS LAST LIMIT 2$$);
-- An index that has the ID after another column, in an order of its own.
CREATE INDEX ON loose (n, id DESC NULLS LAST);
SELECT explain($$SELECT * FROM loose WHERE n = 1 ORDER BY snowflake_timestamp(id) DESC NULLS LAST LIMIT 2$$);
SELECT explain($$SELECT * FROM loose WHERE n = 1 ORDER BY snowflake_timestamp(id) NULLS FIRST LIMIT 2$$);

-- Partitions by ID.
CREATE TABLE events (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('events', '1 day', '2026-01-01 00:00+00', '2026-01-04 00:00+00');
INSERT INTO events SELECT snowflake_encode('2026-01-01 00:00+00'::timestamptz + n * interval '1 minute', 1), n FROM generate_series(0, 4319) n;
ANALYZE events;
SELECT explain($$SELECT * FROM events WHERE snowflake_timestamp(id) < '2026-01-01 00:03+00'$$);
SELECT explain($$SELECT * FROM events WHERE snowflake_timestamp(id) BETWEEN '2026-01-01 23:50+00' AND '2026-01-02 00:10+00'$$);
SELECT explain($$SELECT * FROM events ORDER BY snowflake_timestamp(id) DESC LIMIT 3$$);
-- Where the partitions are not in the order of the IDs.
CREATE TABLE visits (id bigint, shop integer, PRIMARY KEY (id, shop)) PARTITION BY LIST (shop);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES IN (1);
CREATE TABLE visits_2 PARTITION OF visits FOR VALUES IN (2);
INSERT INTO visits SELECT id, customer % 2 + 1 FROM orders;
ANALYZE visits;
SELECT explain($$SELECT * FROM visits ORDER BY snowflake_timestamp(id) DESC LIMIT 3$$);

-- Row-level security, and a view that is a security barrier: the policy's condition comes first where it must.
CREATE ROLE regress_snowflake_clerk;
CREATE FUNCTION seen(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$BEGIN RAISE NOTICE 'seen: %', $1; RETURN true; END$$;
CREATE POLICY new_ones ON orders TO regress_snowflake_clerk USING (snowflake_timestamp(id) >= '2026-01-07 22:37+00');
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON orders TO regress_snowflake_clerk;
SET ROLE regress_snowflake_clerk;
EXPLAIN (COSTS OFF) SELECT item FROM orders WHERE seen(item) AND snowflake_timestamp(id) < '2026-01-07 22:39+00';
SELECT item FROM orders WHERE seen(item) AND snowflake_timestamp(id) < '2026-01-07 22:39+00';
RESET ROLE;
ALTER TABLE orders DISABLE ROW LEVEL SECURITY;
CREATE VIEW few WITH (security_barrier) AS SELECT snowflake_timestamp(id) AS created_at, * FROM orders WHERE customer = 7;
EXPLAIN (COSTS OFF) SELECT item FROM few WHERE seen(item) AND created_at < '2026-01-01 01:00+00';
SELECT item FROM few WHERE seen(item) AND created_at < '2026-01-01 01:00+00';

-- Changes.
EXPLAIN (COSTS OFF) UPDATE v SET item = 'none' WHERE created_at = '2026-01-03 00:00+00';
UPDATE v SET item = 'none' WHERE created_at = '2026-01-03 00:00+00' RETURNING created_at, item;
EXPLAIN (COSTS OFF) DELETE FROM v WHERE created_at < '2026-01-01 00:02+00';
DELETE FROM v WHERE created_at < '2026-01-01 00:02+00' RETURNING created_at;

-- What is left alone: volatile expressions, <>, a join by equal times, a layout that is not a constant, IN.
SELECT explain($$SELECT * FROM v WHERE created_at < clock_timestamp() - interval '100 years'$$);
SELECT explain($$SELECT * FROM v WHERE created_at <> '2026-01-03 00:00+00'$$);
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT explain($$SELECT * FROM sales JOIN v ON created_at = since$$);
RESET enable_mergejoin;
RESET enable_nestloop;
SELECT explain($$SELECT * FROM statuses WHERE snowflake_timestamp(id, lower('DISCORD') || left(author, 0)) < '2016-01-01 03:00+00'$$);
SELECT explain($$SELECT * FROM v WHERE created_at IN ('2026-01-03 00:01+00', '2026-01-03 00:02+00')$$);
-- A view that puts tables together.
CREATE VIEW both_tables AS SELECT snowflake_timestamp(id) AS created_at, id FROM orders
                 UNION ALL SELECT snowflake_timestamp(id), id FROM loose WHERE id IS NOT NULL;
SELECT explain($$SELECT * FROM both_tables WHERE created_at < '2026-01-01 00:05+00'$$);
SELECT explain($$SELECT * FROM both_tables ORDER BY created_at, id LIMIT 3$$);
-- The same without conditions of its own: one of its tables has partitions, and a column of another type.
CREATE VIEW all_tables AS SELECT snowflake_timestamp(id) AS created_at, what FROM events
                UNION ALL SELECT snowflake_timestamp(id), item FROM orders;
SELECT explain($$SELECT count(what) FROM all_tables WHERE created_at >= '2026-01-03 23:58+00' AND created_at < '2026-01-04 00:02+00'$$);
SELECT explain($$SELECT * FROM all_tables WHERE created_at < '2026-01-01 00:02+00' OR created_at = '2026-01-07 22:38+00'$$);
SELECT explain($$SELECT * FROM all_tables WHERE created_at >= (SELECT '2026-01-07 22:38+00'::timestamptz)$$);
SELECT explain($$SELECT * FROM all_tables WHERE created_at < '2026-01-05 00:00+00' ORDER BY created_at DESC LIMIT 2$$);
-- Its rows have its columns and no more. So only where the ID is one of them, it is compared.
SELECT explain($$SELECT a FROM all_tables a WHERE created_at < '2026-01-01 00:02+00'$$);
CREATE VIEW all_ids AS SELECT id, snowflake_timestamp(id) AS created_at FROM events
             UNION ALL SELECT id, snowflake_timestamp(id) FROM orders;
SELECT explain($$SELECT a FROM all_ids a WHERE created_at < '2026-01-01 00:02+00'$$);
SELECT explain($$SELECT id FROM (SELECT id FROM events UNION ALL SELECT id FROM orders) a
                 WHERE snowflake_timestamp(id) < '2026-01-01 00:02+00'$$);
-- An OR beside this is left alone: some versions of PostgreSQL overlook a default partition.
SELECT explain($$SELECT id FROM loose
                 WHERE id IS NOT NULL AND (snowflake_timestamp(id) < '2026-01-01 00:02+00' OR snowflake_timestamp(id) > '2026-01-07')$$);
-- Members of different layouts have no bounds in common.
CREATE VIEW mixed AS SELECT snowflake_timestamp(id) AS created_at, what FROM events
           UNION ALL SELECT snowflake_timestamp(id, 'discord'), author FROM statuses;
SELECT explain($$SELECT count(*) FROM mixed WHERE created_at < '2016-01-01 02:00+00'$$);

-- Tables with an index on the time, or partitions by it, and none on the ID.
CREATE TABLE by_time (id bigint NOT NULL, customer integer);
CREATE INDEX by_time_index ON by_time (snowflake_timestamp(id));
INSERT INTO by_time SELECT id, customer FROM orders;
ANALYZE by_time;
SELECT explain($$SELECT * FROM by_time WHERE snowflake_timestamp(id) >= '2026-01-07 22:37+00'$$);
DROP INDEX by_time_index;
CREATE INDEX by_time_index ON by_time (customer) WHERE snowflake_timestamp(id) >= '2026-01-07 00:00+00';
SELECT explain($$SELECT id FROM by_time WHERE customer = 5 AND snowflake_timestamp(id) >= '2026-01-07 20:00+00'$$);
CREATE INDEX by_id ON by_time (id);
DROP INDEX by_time_index;
CREATE INDEX by_time_index ON by_time (snowflake_timestamp(id));
SELECT explain($$SELECT * FROM by_time WHERE snowflake_timestamp(id) >= '2026-01-07 22:37+00'$$);
CREATE TABLE parts (id bigint NOT NULL, customer integer) PARTITION BY RANGE (snowflake_timestamp(id));
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2026-01-05 00:00+00');
CREATE TABLE parts_new PARTITION OF parts FOR VALUES FROM ('2026-01-05 00:00+00') TO (MAXVALUE);
INSERT INTO parts SELECT id, customer FROM orders;
ANALYZE parts;
SELECT explain($$SELECT * FROM parts WHERE snowflake_timestamp(id) >= '2026-01-07 22:37+00'$$);
-- An index on the time of partitions by something else.
CREATE TABLE shops (id bigint NOT NULL, shop integer) PARTITION BY LIST (shop);
CREATE TABLE shops_1 PARTITION OF shops FOR VALUES IN (1);
CREATE INDEX ON shops (snowflake_timestamp(id));
INSERT INTO shops SELECT id, 1 FROM orders;
ANALYZE shops;
SELECT explain($$SELECT * FROM shops WHERE snowflake_timestamp(id) >= '2026-01-07 22:37+00'$$);

-- In the order of the ID, by the same scan.
SELECT explain($$SELECT id FROM v WHERE created_at > '2026-01-05 12:00+00' ORDER BY id LIMIT 3$$);
SELECT explain($$SELECT id FROM v WHERE created_at > '2026-01-05 12:00+00' ORDER BY id DESC LIMIT 3$$);
SELECT explain($$SELECT id FROM v WHERE created_at < '2026-01-05 12:00+00' AND customer = 7 ORDER BY id DESC LIMIT 3$$);
SELECT explain($$SELECT id FROM v WHERE created_at < (SELECT max(since) FROM sales WHERE day < '2026-02-01') ORDER BY id DESC LIMIT 3$$);

-- Without it.
RESET enable_seqscan;
SET pg_snowflake.plan_by_time = off;
EXPLAIN (COSTS OFF) SELECT * FROM v WHERE created_at >= '2026-01-07 12:00+00' ORDER BY created_at DESC LIMIT 3;
RESET pg_snowflake.plan_by_time;

-- Numbers that are no IDs have no time. With an index range, they are not met; else they are an error.
CREATE TABLE numbers (id bigint PRIMARY KEY);
INSERT INTO numbers VALUES (-1), (0), (snowflake_encode('2026-01-01 00:00+00', 1));
SELECT count(*) FROM numbers WHERE snowflake_timestamp(id) < '2026-01-02';
SELECT count(*) FROM numbers WHERE snowflake_timestamp(id) <> '2026-01-02';
SET pg_snowflake.plan_by_time = off;
SELECT count(*) FROM numbers WHERE snowflake_timestamp(id) < '2026-01-02';
RESET pg_snowflake.plan_by_time;
DROP OWNED BY regress_snowflake_clerk;
DROP ROLE regress_snowflake_clerk;
