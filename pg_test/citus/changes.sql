-- Statements that change rows by the time of their IDs, and prepared ones, which get a generic plan after five executions. Nothing that
-- they show depends on new IDs.
BEGIN;
PREPARE bounded(timestamptz, timestamptz) AS
    SELECT count(*) FROM orders_by_time WHERE created_at >= $1 AND created_at < $2;
SELECT format('EXECUTE bounded(%L, %L)', since, since + interval '3 days')
FROM generate_series(timestamptz '2026-03-01', '2026-03-08', '1 day') AS days (since) \gexec
EXECUTE bounded(NULL, '2026-03-03');
EXECUTE bounded('-infinity', 'infinity');
PREPARE of_one(int, timestamptz) AS SELECT count(*) FROM events_by_time WHERE customer = $1 AND created_at < $2;
SELECT format('EXECUTE of_one(%s, %L)', n, timestamptz '2026-03-01' + n * interval '5 days') FROM generate_series(1, 8) AS n \gexec
PREPARE one_row(int) AS INSERT INTO orders (customer) VALUES ($1) RETURNING snowflake_worker(id) = :worker;
SELECT format('EXECUTE one_row(%s)', n) FROM generate_series(1, 8) AS n \gexec
PREPARE two_rows(int) AS
    INSERT INTO events (customer, amount) VALUES ($1, 1), ($1 + 1, 2) RETURNING snowflake_worker(id) = :worker;
SELECT format('EXECUTE two_rows(%s)', n) FROM generate_series(1, 8) AS n \gexec
UPDATE orders SET note = 'changed' WHERE snowflake_timestamp(id) < '2026-01-05';
SELECT count(*) FROM orders WHERE note = 'changed';
DELETE FROM events WHERE snowflake_timestamp(id) < '2026-01-05' AND customer < 50;
SELECT count(*) FROM events;
WITH deleted AS (DELETE FROM events WHERE snowflake_timestamp(id) < '2026-01-07' AND customer > 50 RETURNING id)
SELECT count(*) FROM deleted;
DELETE FROM events WHERE snowflake_timestamp(id) < '2026-01-08' AND customer = 8;
UPDATE events SET amount = amount + 1 WHERE snowflake_timestamp(id) < '2026-01-09' AND customer = 9;
SELECT sum(amount) FROM events;
UPDATE parts SET amount = 1000 FROM events_by_time AS e
WHERE e.customer = parts.customer AND snowflake_timestamp(parts.id) = e.created_at AND e.created_at < '2026-02-01';
SELECT sum(amount) FROM parts;
INSERT INTO orders (customer, note)
SELECT customer, 'copied' FROM events_by_time WHERE created_at >= '2026-04-01' AND created_at < '2026-04-03';
SELECT count(*) FROM orders WHERE note = 'copied';
INSERT INTO events (id, customer, amount)
SELECT id + 1, customer, 5 FROM parts_by_time WHERE created_at > '2026-05-01' AND created_at < '2026-06-01'
ON CONFLICT DO NOTHING;
SELECT count(*) FROM events;
MERGE INTO events AS t USING parts AS s
ON t.customer = s.customer AND t.id = s.id AND snowflake_timestamp(s.id) < '2026-03-01'
WHEN MATCHED AND snowflake_timestamp(t.id) < '2026-02-01' THEN UPDATE SET amount = 77
WHEN NOT MATCHED THEN DO NOTHING;
SELECT count(*) FROM events WHERE amount = 77;
SELECT count(*), count(DISTINCT id) FROM orders;
ROLLBACK;
