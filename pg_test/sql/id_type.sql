-- The type snowflake_id: a bigint in all but JSON.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

CREATE TABLE orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), n integer, "at" timestamptz);
CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_next(), order_id snowflake_id NOT NULL REFERENCES orders);
CREATE TABLE notes (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), order_id bigint REFERENCES orders, item_id snowflake_id REFERENCES items);
INSERT INTO orders SELECT snowflake_encode('2026-01-01', 0, g), g, '2026-01-01'::timestamptz + g * interval '1 hour' FROM generate_series(1, 1000) g;
INSERT INTO orders (n) VALUES (0) RETURNING id > 0 AS made, pg_typeof(id);
DELETE FROM orders WHERE n = 0;
INSERT INTO items VALUES (1, 264905529753600001), (2, 264905529753600002);
INSERT INTO notes VALUES (264905529753600003, 264905529753600001, 1);
ANALYZE;

-- JSON: text, also of foreign keys of the type.
SELECT row_to_json(n) FROM notes n;
SELECT to_jsonb(n) FROM notes n;
SELECT json_agg(id ORDER BY id), jsonb_agg(id) FROM orders WHERE n <= 2;
SELECT json_build_object('id', id), jsonb_build_object('id', id), json_build_array(id), jsonb_build_array(id) FROM orders WHERE n = 1;
SELECT to_json(id), to_jsonb(id), array_to_json(ARRAY[id]), to_jsonb(ARRAY[[id]]), json_object_agg('id', id), jsonb_object_agg('id', id)
FROM orders WHERE n = 1 GROUP BY id;
-- As the name of a field, it is to be text already.
SELECT json_build_object(id, n) FROM orders WHERE n = 1;
SELECT json_build_object(id::text, n), jsonb_object_agg(id::text, id) FROM orders WHERE n = 1 GROUP BY id, n;
CREATE TYPE pair AS (id snowflake_id, ids snowflake_id[]);
SELECT to_json(ROW(id, ARRAY[id, NULL])::pair), row_to_json(ROW(id, id::bigint)) FROM orders WHERE n = 1;
CREATE DOMAIN order_id AS snowflake_id CHECK (VALUE > 0);
SELECT to_json(id::order_id), to_json(NULL::snowflake_id), to_json('-9223372036854775808'::snowflake_id) FROM orders WHERE n = 1;
-- And back, from text and from numbers.
SELECT * FROM jsonb_populate_record(NULL::notes, '{"id": "264905529753600003", "order_id": 264905529753600001, "item_id": 5}');
SELECT * FROM json_to_recordset('[{"id": "264905529753600003"}, {"id": 264905529753600003}, {"id": null}]') AS r (id snowflake_id);
SELECT pg_typeof(id), id FROM jsonb_to_record('{"id": "7", "ids": ["8", 9]}') AS r (id snowflake_id, ids snowflake_id[]);
SELECT ('{"id": "7"}'::jsonb ->> 'id')::snowflake_id;
SELECT * FROM json_to_record('{"id": "seven"}') AS r (id snowflake_id);

-- Literals, parameters and columns of other types are compared as with bigint.
PREPARE by_unknown AS SELECT n FROM orders WHERE id = $1;
EXECUTE by_unknown(264905529753600005);
EXECUTE by_unknown('264905529753600005');
SELECT parameter_types FROM pg_prepared_statements;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = '5';
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE '5' < id;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = 264905529753600005;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id IN (5, 6);
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id IN ('5', '6');
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = ANY ('{5,6}');
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = ANY ('{5,6}'::bigint[]);
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id = ANY (ARRAY['5', '6']::snowflake_id[]);
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id BETWEEN 5 AND 7;
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE (id, n) > (5, 6);
EXPLAIN (COSTS OFF) SELECT * FROM orders ORDER BY id DESC LIMIT 1;
RESET enable_seqscan;
-- As expressions.
SELECT pg_typeof(id + 1), id + 1, pg_typeof(-id), pg_typeof(abs(id)), abs(id), id % 7, id >> 22, id::text, id::bigint, id || '!', id::numeric
FROM orders WHERE n = 1;
SELECT pg_typeof(max(id)), pg_typeof(sum(id)), max(id), min(id), sum(id), count(DISTINCT id) FROM orders WHERE n <= 2;
SELECT pg_typeof(array_agg(id)), array_agg(id), string_agg(id::text, ','), bool_or(id = ANY (ARRAY[264905529753600001])) FROM orders WHERE n <= 2;
SELECT pg_typeof(COALESCE(id, 0)), pg_typeof(COALESCE(0, id)), pg_typeof(COALESCE(id, 0::bigint)), pg_typeof(COALESCE(0::bigint, id)),
    pg_typeof(CASE WHEN n = 1 THEN id ELSE 0 END), pg_typeof(GREATEST(id, '5')), pg_typeof(ARRAY[id, 0]), pg_typeof(NULLIF(id, 0))
FROM orders WHERE n = 1;
SELECT pg_typeof(id) FROM (SELECT id FROM orders WHERE n = 1 UNION SELECT 5 UNION ALL SELECT NULL) AS both_kinds LIMIT 1;
SELECT pg_typeof(id) FROM (SELECT id FROM orders UNION ALL SELECT id FROM items) AS both_kinds LIMIT 1;
SELECT id FROM orders WHERE id IS DISTINCT FROM 264905529753600001 AND id <= 264905529753600003 ORDER BY id USING >;
SELECT 5::snowflake_id, 5::bigint::snowflake_id, 5.0::snowflake_id, '5'::snowflake_id, (-5)::smallint::snowflake_id;
SELECT pg_typeof(COALESCE(id, 0::smallint)), pg_typeof(COALESCE(0::smallint, id)), pg_typeof(ARRAY[0::smallint, id]), id = 5::smallint FROM orders WHERE n = 1;
-- A small number, as drivers send it.
PREPARE small(smallint) AS INSERT INTO notes VALUES ($1, NULL, NULL) RETURNING id;
EXECUTE small(5);
DELETE FROM notes WHERE id = 5::smallint;
-- Beside numeric, it is to be a bigint.
\set VERBOSITY sqlstate
SELECT id > 1e17 FROM orders WHERE n = 1;
\set VERBOSITY default
SELECT id::bigint > 1e17 AS above, round(id::bigint, -17), ARRAY[id]::bigint[] && ARRAY[264905529753600001] AS shared FROM orders WHERE n = 1;
SELECT 'five'::snowflake_id;
SELECT '9223372036854775808'::snowflake_id;
SELECT 1e30::snowflake_id;
-- Of the extension.
SELECT snowflake_timestamp(id), (snowflake_decode(id)).worker_id, snowflake_to_text(id, 'hex'), snowflake_between(id, '2026-01-01', '2026-01-02')
FROM orders WHERE n = 1;

-- The planner knows of its time.
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE snowflake_timestamp(id) >= '2026-02-01' AND snowflake_timestamp(id) < '2026-02-02';
EXPLAIN (COSTS OFF) SELECT * FROM orders ORDER BY snowflake_timestamp(id) DESC LIMIT 3;

-- Joins of each kind, with bigint and with the type itself.
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders JOIN items ON order_id = orders.id;
EXPLAIN (COSTS OFF) SELECT * FROM orders JOIN notes ON order_id = orders.id;
SELECT count(*) FROM orders JOIN items ON order_id = orders.id;
SET enable_hashjoin = on;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT * FROM orders JOIN notes ON order_id = orders.id;
SELECT count(*) FROM orders JOIN notes ON order_id = orders.id;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_mergejoin;
-- Foreign keys hold in both directions.
INSERT INTO items VALUES (3, 7);
INSERT INTO notes VALUES (1, 7, NULL);
DELETE FROM orders WHERE n = 1;
UPDATE orders SET id = 9 WHERE n = 1;
-- So do unique and exclusion constraints, and indexes of other kinds.
INSERT INTO orders VALUES (264905529753600001);
CREATE INDEX ON items USING hash (order_id);
CREATE INDEX ON items USING brin (order_id);
CREATE INDEX ON items ((order_id % 10));
ALTER TABLE items ADD EXCLUDE USING btree (order_id WITH =);
INSERT INTO items VALUES (4, 264905529753600001);

-- Statistics are those of a bigint: 10 of 1000 rows.
-- The highest is the last of the index, also by its time.
CREATE FUNCTION plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (COSTS OFF, FORMAT json) ' || query INTO plan; RETURN plan; END $$;
SELECT plan(query) ~ 'Index Only Scan.*Backward' AS by_index FROM unnest('{SELECT max(id) FROM orders,SELECT max(snowflake_timestamp(id)) FROM orders}'::text[]) AS query;
CREATE FUNCTION estimated(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
SELECT estimated('SELECT FROM orders WHERE id <= 264905529753600010') BETWEEN 5 AND 15 AS id,
    estimated('SELECT FROM orders WHERE id > 264905529753600900') BETWEEN 90 AND 110 AS ids,
    estimated('SELECT FROM orders WHERE snowflake_timestamp(id) > ''2026-01-02''') AS "time";

-- COPY, as text and as binary, to and from bigint.
COPY (SELECT id, n FROM orders WHERE n <= 2) TO STDOUT;
CREATE TABLE numbers (id bigint, n integer);
CREATE PROCEDURE copy(statement text) LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('COPY %s %L (FORMAT binary)', statement, current_setting('data_directory') || '/copied'); END $$;
CALL copy('(SELECT id, n FROM orders) TO');
CALL copy('numbers FROM');
SELECT count(*) FROM numbers JOIN orders USING (id, n);
TRUNCATE orders, items, notes;
CALL copy('(SELECT id, n FROM numbers) TO');
CALL copy('orders (id, n) FROM');
SELECT count(*) FROM numbers JOIN orders USING (id, n);

-- Partitions.
CREATE TABLE events (id snowflake_id PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
CREATE TABLE events_first PARTITION OF events FOR VALUES FROM (0) TO (100);
CREATE TABLE events_second PARTITION OF events FOR VALUES FROM ('100') TO (snowflake_min_id('2026-01-01'));
SELECT snowflake_create_partitions('events', '1 month', '2026-01-01', '2026-04-01');
INSERT INTO events VALUES (5), (snowflake_min_id('2026-02-14')), (snowflake_min_id('2026-03-14'));
SELECT tableoid::regclass, id FROM events ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-02-14' AND snowflake_timestamp(id) < '2026-02-15';
-- The type of a partition key stays; the partitions change theirs, and go to another table.
\set VERBOSITY sqlstate
ALTER TABLE events ALTER id TYPE bigint;
\set VERBOSITY default
CREATE TABLE events_of_bigint (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
ALTER TABLE events DETACH PARTITION events_first;
ALTER TABLE events_first ALTER id TYPE bigint;
ALTER TABLE events_of_bigint ATTACH PARTITION events_first FOR VALUES FROM (0) TO (100);
SELECT tableoid::regclass, pg_typeof(id), id FROM events_of_bigint;
CREATE TABLE listed (id snowflake_id) PARTITION BY LIST (id);
CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN (1, '2');
CREATE TABLE hashed (id snowflake_id) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed SELECT g FROM generate_series(1, 100) g;
EXPLAIN (COSTS OFF) SELECT * FROM hashed WHERE id = 5;

-- A column changes its type, and back, without being written again, and with it a column that refers to it.
CREATE TABLE makers (id bigint PRIMARY KEY DEFAULT snowflake_next());
CREATE TABLE made (id bigint PRIMARY KEY, maker bigint REFERENCES makers);
INSERT INTO makers SELECT FROM generate_series(1, 10);
INSERT INTO made SELECT id, id FROM makers;
CREATE TEMPORARY TABLE files AS SELECT oid, relname, relfilenode FROM pg_class WHERE relname ~ '^(makers|made)' AND relkind IN ('r', 'i');
ALTER TABLE makers ALTER id TYPE snowflake_id;
ALTER TABLE made ALTER maker TYPE snowflake_id;
SELECT count(*) FROM files JOIN pg_class USING (oid, relfilenode);
SELECT row_to_json(m) ->> 'maker' = id::text AS is_text FROM made m LIMIT 1;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'makers'::regclass;
INSERT INTO makers DEFAULT VALUES;
INSERT INTO made VALUES (1, 2);
ALTER TABLE made ALTER maker TYPE bigint;
ALTER TABLE makers ALTER id TYPE bigint;
SELECT count(*) FROM files JOIN pg_class USING (oid, relfilenode);

-- A table moves in, gets the type, and moves out again.
CREATE TABLE customers (id serial PRIMARY KEY);
CREATE TABLE contracts (id serial PRIMARY KEY, customer integer REFERENCES customers);
INSERT INTO customers SELECT FROM generate_series(1, 3);
INSERT INTO contracts (customer) VALUES (1), (2);
SELECT highest_before FROM snowflake_adopt('customers');
ALTER TABLE customers ALTER id TYPE snowflake_id;
ALTER TABLE contracts ALTER customer TYPE snowflake_id;
INSERT INTO customers DEFAULT VALUES;
SELECT to_json(customer) FROM contracts ORDER BY id;
SELECT snowflake_adopt('customers');
SELECT snowflake_release('customers');
ALTER TABLE contracts ALTER customer TYPE bigint;
ALTER TABLE customers ALTER id TYPE bigint;
SELECT snowflake_release('customers') > 3 AS released;
CREATE TABLE odd (id snowflake_id PRIMARY KEY);
SELECT snowflake_adopt('odd');
SELECT verdict, finding FROM snowflake_preflight(keys => '{orders}') WHERE subject = 'key';

-- Views, and PL/pgSQL.
CREATE VIEW recent AS SELECT id, id::bigint AS number, snowflake_timestamp(id) AS created_at FROM orders;
SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'recent'::regclass ORDER BY attnum;
DO $$
DECLARE
    of_type snowflake_id := 5;
    number bigint := of_type;
    r orders;
BEGIN
    of_type := number + 1;
    number := of_type * 2;
    SELECT * INTO r FROM orders WHERE id = (SELECT min(id) FROM orders);
    FOR i IN of_type..number LOOP NULL; END LOOP;
    UPDATE orders SET n = r.n WHERE id = r.id;
    RAISE NOTICE '% % % %', of_type, number, r.id, to_json(r) ->> 'id';
END $$;
CREATE FUNCTION takes(snowflake_id) RETURNS text LANGUAGE sql AS $$ SELECT 'snowflake_id' $$;
SELECT takes(5), takes('5'), takes(id) FROM orders LIMIT 1;
\set VERBOSITY sqlstate
SELECT takes(5::bigint);
\set VERBOSITY default

-- Who has a table of that name keeps it, in another schema than the extension's.
CREATE TABLE snowflake (id bigint);
CREATE TABLE snowflake_id (id bigint);
CREATE SCHEMA others;
CREATE TABLE others.snowflake_id (id snowflake_id DEFAULT 7, n integer);
SET search_path = others, public;
SELECT 5::snowflake_id;
SELECT 5::public.snowflake_id;
INSERT INTO snowflake_id VALUES (DEFAULT) RETURNING to_json(id), to_json(snowflake_id);
RESET search_path;
