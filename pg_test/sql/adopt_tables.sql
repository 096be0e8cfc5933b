-- Partitions, inheritance, what stands in the way, odd names, and who may.
SET datestyle = ISO;
SET timezone = 'UTC';
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION pg_snowflake;
\i sql/include/adopt.sql

-- A partitioned table whose key others refer to; and one whose partitions refer to it.
CREATE TABLE events (id serial, at date, parent integer, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY LIST (at);
CREATE TABLE events_2_1 PARTITION OF events_2 DEFAULT;
CREATE TABLE visits (event integer, at date, FOREIGN KEY (event, at) REFERENCES events) PARTITION BY HASH (at);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE visits_2 PARTITION OF visits FOR VALUES WITH (MODULUS 2, REMAINDER 1);
-- A foreign key of a partition alone, and one to a partition.
CREATE TABLE persons (id serial PRIMARY KEY);
ALTER TABLE visits ADD person integer;
ALTER TABLE visits_1 ADD CONSTRAINT of_person FOREIGN KEY (person) REFERENCES persons;
CREATE TABLE january (event integer, at date, FOREIGN KEY (event, at) REFERENCES events_1 ON DELETE CASCADE);
COMMENT ON CONSTRAINT january_event_at_fkey ON january IS 'an event of January';
INSERT INTO events (at) SELECT '2026-01-15'::date + 14 * n FROM generate_series(0, 2) n;
INSERT INTO visits (event, at) SELECT id, at FROM events;
INSERT INTO january SELECT id, at FROM events_1;
SELECT * FROM plan('events_1');
SELECT * FROM plan('events_2_1');
SELECT * FROM plan('events', 'id');
SELECT * FROM adopt('events', 'id');
SELECT * FROM columns('events', 'events_1', 'events_2', 'events_2_1', 'visits', 'visits_1', 'visits_2', 'january');
INSERT INTO events (at) VALUES ('2026-02-20');
INSERT INTO visits (event, at) SELECT max(id), '2026-02-20' FROM events;
INSERT INTO events_1 (at) VALUES ('2026-01-20');
SELECT * FROM plan('persons');
SELECT * FROM adopt('persons');
SELECT * FROM columns('visits', 'visits_1', 'visits_2');
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated, obj_description(oid)
FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 ORDER BY 1, 2;
-- The column is in the partition key.
CREATE TABLE by_id (id serial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE by_id_1 PARTITION OF by_id FOR VALUES FROM (0) TO (1000);
SELECT * FROM plan('by_id');
SELECT * FROM adopt('by_id');
CREATE TABLE by_big_id (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE by_big_id_1 PARTITION OF by_big_id DEFAULT;
SELECT * FROM adopt('by_big_id');
SELECT * FROM columns('by_big_id', 'by_big_id_1');

-- Inheritance. A table that refers to the key inherits the column from another.
CREATE TABLE base (id serial PRIMARY KEY, what text);
CREATE TABLE heir (more text) INHERITS (base);
CREATE TABLE heir_of_heir () INHERITS (heir);
CREATE TABLE referring_base (base_id integer);
CREATE TABLE referring (FOREIGN KEY (base_id) REFERENCES base) INHERITS (referring_base);
SELECT * FROM plan('heir');
SELECT * FROM plan('heir_of_heir', 'id');
SELECT * FROM plan('base');
SELECT * FROM adopt('base');
SELECT * FROM columns('base', 'heir', 'heir_of_heir', 'referring_base', 'referring');
INSERT INTO heir_of_heir DEFAULT VALUES RETURNING id > 1000000 AS new;
-- From two tables: its type cannot change.
CREATE TABLE keys (id serial PRIMARY KEY);
CREATE TABLE left_base (key_id integer);
CREATE TABLE right_base (key_id integer);
CREATE TABLE both_bases (FOREIGN KEY (key_id) REFERENCES keys) INHERITS (left_base, right_base);
SELECT * FROM plan('keys');
SELECT * FROM adopt('keys');

-- All that does not let a column change its type is listed, of referring columns, too.
CREATE TABLE goods (id serial PRIMARY KEY, name text, double_id integer GENERATED ALWAYS AS (2 * id) STORED);
CREATE TABLE stock (goods_id integer REFERENCES goods, n integer);
CREATE VIEW goods_view AS SELECT id FROM goods;
CREATE VIEW goods_view_view AS SELECT id FROM goods_view;
CREATE MATERIALIZED VIEW stock_view AS SELECT goods_id FROM stock;
CREATE RULE log_goods AS ON INSERT TO goods DO ALSO NOTIFY goods;
CREATE RULE log_id AS ON UPDATE TO goods WHERE NEW.id < 0 DO INSTEAD NOTHING;
CREATE POLICY few ON goods USING (id < 10);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER when_id BEFORE UPDATE ON goods FOR EACH ROW WHEN (NEW.id > 7) EXECUTE FUNCTION nothing();
CREATE TRIGGER of_id BEFORE UPDATE OF goods_id ON stock FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER any_column BEFORE UPDATE ON goods FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE FUNCTION highest() RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT max(id) FROM goods; END;
CREATE STATISTICS goods_statistics ON id, name FROM goods;
CREATE INDEX ON goods (id) WHERE id > 3;
CREATE TABLE rows_of_goods (g goods, many goods[]);
CREATE DOMAIN small AS integer CHECK (VALUE < 100);
CREATE TABLE in_domain (goods_id small REFERENCES goods);
CREATE TYPE typed AS (goods_id integer);
CREATE TABLE of_type OF typed (FOREIGN KEY (goods_id) REFERENCES goods);
SELECT kind, note FROM plan('goods') WHERE kind = 'obstacle';
SELECT * FROM adopt('goods');
SELECT * FROM columns('goods', 'stock');
-- Each of them is one that PostgreSQL refuses; without them, it goes.
DROP VIEW goods_view CASCADE;
DROP MATERIALIZED VIEW stock_view;
DROP RULE log_id ON goods;
DROP POLICY few ON goods;
DROP TRIGGER when_id ON goods;
DROP TRIGGER of_id ON stock;
DROP FUNCTION highest;
ALTER TABLE goods DROP double_id;
DROP TABLE rows_of_goods, in_domain, of_type;
SELECT * FROM adopt('goods');
SELECT stxname, stxkeys FROM pg_statistic_ext;
-- They do not matter where the type stays.
CREATE TABLE wide (id bigserial PRIMARY KEY);
CREATE VIEW wide_view AS SELECT id FROM wide;
SELECT * FROM adopt('wide');
SELECT * FROM plan('wide_view');

-- What can only be guessed is a note.
CREATE TABLE mentioned (id serial PRIMARY KEY, CONSTRAINT not_too_many CHECK (id < 1000000));
CREATE FUNCTION reads_mentioned() RETURNS integer LANGUAGE plpgsql AS 'DECLARE i integer; BEGIN SELECT max(id) INTO i FROM Mentioned; RETURN i; END';
CREATE FUNCTION reads_its_sequence() RETURNS bigint LANGUAGE sql AS $$SELECT currval('mentioned_id_seq')$$;
CREATE FUNCTION reads_mentioned_2() RETURNS text LANGUAGE sql AS $$SELECT 'mentioned_2'::text$$;
SELECT note FROM plan('mentioned') WHERE kind = 'note';

-- Odd names: quotes, backslashes, letters beyond ASCII, 63 bytes; objects in front of PostgreSQL's own.
CREATE SCHEMA "o'd\d ""s";
CREATE TABLE "o'd\d ""s"."t'; DROP TABLE x; --" ("i""d'; \" serial PRIMARY KEY);
CREATE TABLE "o'd\d ""s"."ßñ漢字ßñ漢字ßñ漢字ßñ漢字ßñ漢字ßñ漢字" ("äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüä" integer REFERENCES "o'd\d ""s"."t'; DROP TABLE x; --");
CREATE TABLE "o'd\d ""s".aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123 (
    aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff456 serial PRIMARY KEY);
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.nothing() RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'captured'; END$$;
CREATE FUNCTION hostile.captured(anyelement, anyelement) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'captured'; END$$;
CREATE FUNCTION hostile.captured(oid, oid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'captured'; END$$;
CREATE OPERATOR hostile.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = hostile.captured);
CREATE OPERATOR hostile.>= (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = hostile.captured);
CREATE OPERATOR hostile.|| (LEFTARG = anyelement, RIGHTARG = anyelement, FUNCTION = hostile.captured);
CREATE FUNCTION hostile.quote_ident(name) RETURNS text LANGUAGE sql AS 'SELECT hostile.nothing()';
CREATE FUNCTION hostile.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT hostile.nothing()::bigint';
CREATE FUNCTION hostile.snowflake_next() RETURNS bigint LANGUAGE sql AS 'SELECT hostile.nothing()::bigint';
CREATE AGGREGATE hostile.max(integer) (SFUNC = int4larger, STYPE = integer, INITCOND = '2147483647');
CREATE TABLE hostile.pg_class (oid oid, relkind "char");
CREATE TABLE hostile.pg_constraint (oid oid);
CREATE DOMAIN hostile.bigint AS text;
CREATE DOMAIN hostile.int8 AS text;
CREATE DOMAIN hostile.regclass AS text;
SET search_path = hostile, pg_catalog, public;
SELECT statement, rewrites FROM public.plan('"o''d\d ""s"."t''; DROP TABLE x; --"');
SELECT * FROM public.snowflake_adopt('"o''d\d ""s"."t''; DROP TABLE x; --"') \gset adopted_
SELECT * FROM public.snowflake_adopt('"o''d\d ""s".aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123', 'aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff456') \gset adopted_
SELECT statement FROM public.snowflake_release_plan('"o''d\d ""s"."t''; DROP TABLE x; --"');
SELECT public.snowflake_release('"o''d\d ""s"."t''; DROP TABLE x; --"');
SELECT public.snowflake_release('"o''d\d ""s".aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123');
RESET search_path;
SELECT * FROM columns('"o''d\d ""s"."t''; DROP TABLE x; --"', '"o''d\d ""s"."ßñ漢字ßñ漢字ßñ漢字ßñ漢字ßñ漢字ßñ漢字"',
    '"o''d\d ""s".aaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123');

-- The owner of all tables, and nobody else, whatever the privileges.
CREATE ROLE regress_snowflake_adopter;
CREATE ROLE regress_snowflake_stranger;
GRANT CREATE ON SCHEMA public TO regress_snowflake_adopter, regress_snowflake_stranger;
SET ROLE regress_snowflake_adopter;
CREATE TABLE theirs (id serial PRIMARY KEY);
GRANT ALL ON theirs TO regress_snowflake_stranger;
SET ROLE regress_snowflake_stranger;
CREATE TABLE ours (id serial PRIMARY KEY, theirs_id integer REFERENCES theirs);
SELECT * FROM adopt('theirs');
SELECT kind, note FROM plan('theirs') WHERE kind = 'obstacle';
-- A table at the other end of a foreign key of ours stays as it is.
SELECT * FROM adopt('ours');
SET ROLE regress_snowflake_adopter;
SELECT * FROM adopt('theirs');
SELECT kind, note FROM plan('theirs') WHERE kind = 'obstacle';
RESET ROLE;
-- Who may do so may not either: functions of one owner would be run as the other.
SELECT * FROM adopt('theirs');
SELECT kind, note FROM plan('theirs') WHERE kind = 'obstacle';
ALTER TABLE ours OWNER TO regress_snowflake_adopter;
SELECT * FROM adopt('theirs');
SET ROLE regress_snowflake_adopter;
INSERT INTO theirs DEFAULT VALUES RETURNING id > 1000000 AS new;
-- Rows that a policy hides count.
CREATE TABLE hidden (id bigserial PRIMARY KEY);
INSERT INTO hidden VALUES (1);
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
SELECT * FROM adopt('hidden');
RESET ROLE;
-- The owner of the table gets the sequence, too, whoever calls.
SELECT snowflake_release('hidden') > 1 AS released;
SELECT relowner::regrole FROM pg_class WHERE relname = 'hidden_id_seq';
DROP TABLE theirs, ours, hidden;
REVOKE CREATE ON SCHEMA public FROM regress_snowflake_adopter, regress_snowflake_stranger;
DROP ROLE regress_snowflake_adopter;
DROP ROLE regress_snowflake_stranger;

-- What else a table has stays.
CREATE TABLE kept (id serial, code int4range, at timestamptz, CONSTRAINT kept_key PRIMARY KEY (id) INCLUDE (at),
    EXCLUDE USING gist (code WITH &&)) WITH (fillfactor = 77, autovacuum_enabled = off);
ALTER TABLE kept SET UNLOGGED;
ALTER TABLE kept ADD CHECK (id > 0) NOT VALID;
CREATE UNIQUE INDEX kept_identity ON kept (id) WITH (fillfactor = 55);
ALTER TABLE kept REPLICA IDENTITY USING INDEX kept_identity;
ALTER TABLE kept CLUSTER ON kept_key;
COMMENT ON INDEX kept_identity IS 'an index';
CREATE INDEX invalid ON kept (id);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid'::regclass;
SELECT * FROM adopt('kept');
SELECT relpersistence, relreplident, reloptions FROM pg_class WHERE relname = 'kept';
SELECT indexrelid::regclass, indisreplident, indisclustered, indisvalid, reloptions, obj_description(indexrelid), pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'kept'::regclass ORDER BY 1::text;
SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'kept'::regclass AND contype IN ('c', 'x', 'p') ORDER BY 1;
-- Publications go on. Those with column lists and conditions: adopt_publications.sql.
CREATE TABLE replicated (id serial PRIMARY KEY, note text);
SET client_min_messages = error;
CREATE PUBLICATION all_of FOR TABLE replicated;
SELECT note FROM plan('replicated') WHERE kind = 'obstacle' OR note LIKE 'published%';
SELECT * FROM adopt('replicated');
SELECT pubname, schemaname, tablename FROM pg_publication_tables;
SET client_min_messages = warning;
-- A temporary table, one in use, one with events that are waiting.
CREATE TEMP TABLE temporary (id serial PRIMARY KEY);
SELECT * FROM adopt('temporary');
CREATE TABLE used (id serial PRIMARY KEY, used_id integer REFERENCES used DEFERRABLE INITIALLY DEFERRED);
INSERT INTO used DEFAULT VALUES;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM used;
FETCH c;
SELECT * FROM adopt('used');
ROLLBACK;
BEGIN;
INSERT INTO used (used_id) VALUES (1);
SELECT * FROM adopt('used');
ROLLBACK;
-- Event triggers see the statements.
CREATE FUNCTION tags() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE WARNING '%', tg_tag; END$$;
CREATE EVENT TRIGGER tags ON ddl_command_end EXECUTE FUNCTION tags();
SELECT * FROM adopt('used');
DROP EVENT TRIGGER tags;
