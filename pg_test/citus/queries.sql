SELECT count(*), min(id), max(id) FROM orders_by_time WHERE created_at >= '2026-03-01' AND created_at < '2026-04-01'
SELECT count(*) FROM orders_by_time WHERE created_at = (SELECT max(created_at) FROM orders_by_time WHERE created_at < '2026-05-01')
SELECT count(*) FROM orders_by_time o JOIN orders_by_time p ON o.id = p.id WHERE o.created_at < '2026-02-01'
SELECT count(*) FROM events_by_time e JOIN events_by_time f ON e.customer = f.customer AND e.created_at = f.created_at WHERE e.created_at < '2026-02-01'
SELECT count(*) FROM events_by_time e JOIN parts_by_time f ON e.customer = f.customer AND e.created_at = f.created_at
SELECT count(*) FROM events_by_time e JOIN parts_by_time f ON e.customer = f.customer AND e.created_at > f.created_at WHERE e.created_at < '2026-01-20'
SELECT count(*) FROM events_by_time e LEFT JOIN parts_by_time f ON e.customer = f.customer AND e.id = f.id AND f.created_at < '2026-03-01' WHERE e.created_at < '2026-06-01'
SELECT count(*) FROM events_by_time e FULL JOIN parts_by_time f ON e.customer = f.customer AND e.id = f.id AND e.created_at = f.created_at
SELECT count(*) FROM orders_by_time o JOIN events_by_time e ON o.created_at = e.created_at
SELECT count(*) FROM orders_by_time o JOIN countries c ON snowflake_timestamp(c.id) <= o.created_at WHERE snowflake_timestamp(c.id) < '2026-01-10'
SELECT count(*) FROM orders_by_time o JOIN countries c ON snowflake_timestamp(c.id) = o.created_at
SELECT count(*) FROM orders_by_time o LEFT JOIN countries c ON snowflake_timestamp(c.id) = o.created_at
SELECT count(*) FROM local_orders JOIN countries c ON snowflake_timestamp(c.id) = snowflake_timestamp(local_orders.id)
SELECT count(*) FROM local_orders JOIN orders_by_time o ON snowflake_timestamp(local_orders.id) = o.created_at
SELECT count(*) FROM local_orders JOIN orders_by_time o ON local_orders.id = o.id WHERE o.created_at > '2026-05-05'
SELECT date_trunc('month', created_at) m, count(*), sum(amount) FROM parts_by_time WHERE created_at >= '2026-03-15' GROUP BY 1 ORDER BY 1
SELECT date_trunc('day', created_at, 'UTC') d, count(DISTINCT customer) FROM events_by_time WHERE created_at BETWEEN '2026-03-15' AND '2026-03-25' GROUP BY 1 ORDER BY 1
SELECT date_bin('6 hours', created_at, '2026-01-01') d, count(*) FROM events_by_time WHERE customer = 17 AND created_at < '2026-01-20' GROUP BY 1 ORDER BY 1
SELECT customer, max(created_at) FROM events_by_time GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5
SELECT min(created_at), max(created_at) FROM parts_by_time
SELECT id, created_at FROM parts_by_time ORDER BY created_at DESC, id DESC LIMIT 5
SELECT id, created_at FROM orders_by_time WHERE created_at > '2026-04-01' ORDER BY created_at, id LIMIT 5
SELECT snowflake_worker(id) w, count(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT count(*) FROM (SELECT id, created_at FROM orders_by_time UNION ALL SELECT id, created_at FROM events_by_time) u WHERE created_at < '2026-02-01'
SELECT count(*) FROM (SELECT customer, id, created_at FROM parts_by_time UNION ALL SELECT customer, id, created_at FROM events_by_time) u WHERE created_at < '2026-02-01' AND customer = 3
SELECT count(*) FROM (SELECT customer, created_at FROM parts_by_time UNION ALL SELECT customer, created_at FROM events_by_time) u WHERE created_at < '2026-02-01'
SELECT count(*) FROM (SELECT created_at FROM parts_by_time UNION ALL SELECT created_at FROM events_by_time) u WHERE created_at < '2026-02-01'
SELECT count(*) FROM (SELECT created_at, 1 FROM orders_by_time UNION SELECT created_at, 2 FROM events_by_time) u WHERE created_at < '2026-02-01'
WITH x AS MATERIALIZED (SELECT * FROM orders_by_time WHERE created_at > '2026-09-01') SELECT count(*) FROM x WHERE created_at < '2026-09-02'
WITH x AS (SELECT customer, count(*) n FROM events_by_time WHERE created_at > '2026-06-01' GROUP BY 1) SELECT sum(n), count(*) FROM x
SELECT count(*) FROM orders_by_time WHERE customer IN (SELECT customer FROM events_by_time WHERE created_at < '2026-01-01 03:00')
SELECT count(*) FROM events_by_time e WHERE EXISTS (SELECT 1 FROM parts_by_time p WHERE p.customer = e.customer AND p.created_at = e.created_at)
SELECT count(*) FROM events_by_time e WHERE NOT EXISTS (SELECT 1 FROM parts_by_time p WHERE p.customer = e.customer AND p.created_at = e.created_at)
SELECT count(*) FROM orders_by_time WHERE created_at < '2026-02-01' OR created_at > '2026-10-01'
SELECT count(*) FROM orders_by_time WHERE NOT (created_at < '2026-02-01' OR customer = 7)
SELECT count(*) FROM orders_by_time WHERE created_at::date = '2026-03-03'
SELECT count(*) FROM orders_by_time WHERE created_at >= date '2026-03-03' AND created_at < timestamp '2026-03-04 12:00'
SELECT count(*) FROM orders WHERE snowflake_between(id, '2026-03-01', '2026-03-02')
SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY created_at) FROM events_by_time WHERE created_at < '2026-01-02' ORDER BY 1, 2 LIMIT 7
SELECT (snowflake_decode(id)).* FROM orders WHERE id = (SELECT min(id) FROM orders)
SELECT id, d.* FROM orders, LATERAL snowflake_decode(id) d ORDER BY id LIMIT 3
SELECT d.worker_id, count(*) FROM orders, snowflake_decode(id) d GROUP BY 1 ORDER BY 1
SELECT count(*) FROM orders_by_time WHERE id = 319626097459200000 AND created_at > '2020-01-01'
SELECT count(*) FROM orders_by_time WHERE id = (SELECT min(id) FROM orders) AND created_at > '2020-01-01'
SELECT e.customer, count(*) FROM events_by_time e, LATERAL (SELECT * FROM parts_by_time p WHERE p.customer = e.customer AND p.created_at > e.created_at ORDER BY created_at LIMIT 1) x WHERE e.created_at < '2026-01-15' GROUP BY 1 ORDER BY 1 LIMIT 5
SELECT count(*) FROM events_by_time e JOIN orders_by_time o ON e.customer = o.customer WHERE e.created_at = o.created_at AND o.created_at < '2026-01-20'
SELECT count(*) FROM parts_by_time WHERE created_at < '2026-02-15' AND customer = 3
SELECT count(*) FROM countries WHERE snowflake_timestamp(id) < '2026-02-15'
SELECT count(*) FROM orders_by_time WHERE created_at IN ('2026-01-01 00:07', '2026-01-01 00:14')
SELECT count(*) FROM orders_by_time WHERE created_at <> '2026-01-01 00:07'
SELECT count(*) FROM orders_by_time o WHERE created_at > (SELECT max(snowflake_timestamp(id)) FROM countries WHERE snowflake_timestamp(id) < '2026-04-04')
SELECT count(*) FROM orders_by_time a WHERE a.created_at >= ALL (SELECT created_at FROM events_by_time WHERE created_at < '2026-03-03')
SELECT count(*), sum(c) FROM (SELECT date_trunc('hour', created_at) h, count(*) c FROM orders_by_time GROUP BY 1) x
SELECT count(*) FROM orders TABLESAMPLE BERNOULLI (100) WHERE snowflake_timestamp(id) < '2026-02-02'
SELECT customer, snowflake_timestamp(max(id)) FROM events GROUP BY customer HAVING snowflake_timestamp(max(id)) > '2026-07-01' ORDER BY 1 LIMIT 4
SELECT count(*), min(id) FROM columnar_by_time WHERE created_at >= '2026-03-01' AND created_at < '2026-04-01'
SELECT id, created_at FROM columnar_by_time WHERE created_at < '2026-03-01' ORDER BY created_at DESC LIMIT 3
SELECT count(*), min(id) FROM local_columnar_by_time WHERE created_at >= '2026-03-01' AND created_at < '2026-04-01'
SELECT id, created_at FROM local_columnar_by_time WHERE created_at < '2026-03-01' ORDER BY created_at DESC, id LIMIT 3
SELECT min(created_at), max(created_at) FROM local_columnar_by_time WHERE id < 340000000000000000
SELECT c.customer, count(*) FROM columnar_by_time c JOIN events_by_time e ON e.customer = c.customer AND e.created_at = c.created_at GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3
SELECT count(*) FROM local_columnar_by_time l JOIN orders_by_time o ON l.created_at = o.created_at
SELECT count(*) FROM local_columnar_by_time l JOIN local_orders o ON l.created_at = snowflake_timestamp(o.id)
SELECT date_trunc('month', created_at, 'UTC') m, count(*) FROM local_columnar_by_time GROUP BY 1 ORDER BY 1
SELECT DISTINCT ON (customer) customer, created_at FROM events_by_time WHERE created_at < '2026-05-01' ORDER BY customer, created_at DESC LIMIT 5
SELECT created_at FROM orders_by_time WHERE created_at < '2026-01-02' EXCEPT SELECT created_at FROM events_by_time WHERE customer = 5 ORDER BY 1 LIMIT 4
SELECT created_at FROM orders_by_time WHERE created_at < '2026-01-02' INTERSECT SELECT created_at FROM events_by_time ORDER BY 1 LIMIT 4
SELECT count(*) FROM (SELECT * FROM orders_by_time ORDER BY created_at DESC OFFSET 100 LIMIT 200) x WHERE created_at < '2027-01-01'
SELECT customer, created_at, lag(created_at) OVER (ORDER BY created_at) FROM orders_by_time WHERE created_at < '2026-01-01 01:00' ORDER BY 2
SELECT count(*) FROM (SELECT created_at FROM local_columnar_by_time UNION ALL SELECT snowflake_timestamp(id) FROM local_orders UNION ALL SELECT snowflake_timestamp(id) FROM countries) u WHERE created_at >= '2026-05-05' AND created_at < '2026-05-07'
SELECT count(*) FROM (SELECT id, created_at FROM local_columnar_by_time UNION ALL SELECT id, created_at FROM orders_by_time) u WHERE created_at >= '2026-05-05' AND created_at < '2026-05-07'
SELECT created_at FROM (SELECT id, created_at FROM orders_by_time UNION ALL SELECT id, created_at FROM events_by_time) u WHERE created_at < '2026-06-06' ORDER BY created_at DESC LIMIT 3
SELECT count(*) FROM events_by_time e LEFT JOIN LATERAL (SELECT max(created_at) m FROM parts_by_time p WHERE p.customer = e.customer AND p.created_at < e.created_at) x ON true WHERE e.created_at < '2026-01-20' AND m IS NOT NULL
SELECT count(*) FROM orders_by_time o, events_by_time e, parts_by_time p WHERE e.customer = p.customer AND p.customer = o.customer AND o.created_at < '2026-01-03' AND e.created_at = o.created_at AND p.created_at = e.created_at
SELECT count(*) FROM countries c, numbers n, events_by_time e WHERE n.k = e.customer AND snowflake_timestamp(c.id) < e.created_at AND e.created_at < '2026-01-10'
SELECT count(*) FROM orders_by_time WHERE created_at > (SELECT created_at FROM events_by_time WHERE customer = 4 ORDER BY created_at LIMIT 1)
SELECT count(*) FROM orders_by_time WHERE (created_at, id) > ('2026-03-03', 0)
SELECT count(*) FROM orders_by_time WHERE created_at > ANY (ARRAY[timestamptz '2026-03-03', '2026-02-02'])
SELECT count(*) FROM orders_by_time WHERE coalesce(created_at, now()) > '2026-03-03' AND created_at > '2026-03-04'
SELECT count(*) FROM orders WHERE CASE WHEN customer > 50 THEN snowflake_timestamp(id) > '2026-03-03' ELSE snowflake_timestamp(id) < '2026-02-02' END
