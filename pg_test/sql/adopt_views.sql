-- Views that stand in the way are dropped and created again, with all that belongs to them, where the caller says so.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION pg_snowflake;
\i sql/include/adopt.sql
CREATE ROLE regress_snowflake_viewed;
CREATE ROLE regress_snowflake_viewer;
-- As from PostgreSQL 15 on.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE SCHEMA "odd ""schema""";

-- All that a view can have that is not lost.
CREATE FUNCTION views() RETURNS TABLE (view text, owner name, options text[], acl text, comment text, columns text, populated boolean, definition text)
LANGUAGE sql AS $$
    SELECT c.oid::regclass::text, CASE pg_get_userbyid(relowner) WHEN current_user THEN 'me' ELSE pg_get_userbyid(relowner) END, reloptions, (SELECT string_agg(a::text, ' ' ORDER BY a::text COLLATE "C") FROM unnest(relacl) a), obj_description(c.oid),
        (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), (SELECT string_agg(concat_ws('=', grantee::regrole, privilege_type), ',') FROM aclexplode(attacl)), col_description(c.oid, attnum)), ', ' ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),
        relispopulated, pg_get_viewdef(c.oid)
    FROM pg_class c WHERE relkind IN ('v', 'm') AND relnamespace IN ('public'::regnamespace, '"odd ""schema"""'::regnamespace) ORDER BY 1 $$;
CREATE TABLE goods (id serial PRIMARY KEY, name text, price integer);
CREATE TABLE stock (goods_id integer REFERENCES goods, n integer);
INSERT INTO goods (name, price) SELECT 'g' || n, n FROM generate_series(1, 20) n;
INSERT INTO stock SELECT n, 2 * n FROM generate_series(1, 20) n;
CREATE VIEW cheap WITH (security_barrier) AS SELECT id AS goods, name, price FROM goods WHERE price < 10 WITH LOCAL CHECK OPTION;
COMMENT ON VIEW cheap IS 'it''s \cheap';
COMMENT ON COLUMN cheap.name IS 'the name';
GRANT SELECT ON cheap TO PUBLIC;
GRANT INSERT, UPDATE ON cheap TO regress_snowflake_viewed WITH GRANT OPTION;
GRANT REFERENCES (name) ON cheap TO regress_snowflake_viewed;
CREATE MATERIALIZED VIEW "odd ""schema"""."many ""goods""" WITH (fillfactor = 70) AS
    SELECT goods, sum(n) AS total FROM cheap JOIN stock ON goods_id = goods GROUP BY goods;
CREATE UNIQUE INDEX "odd ""index""" ON "odd ""schema"""."many ""goods""" (goods) WITH (fillfactor = 50);
CREATE INDEX ON "odd ""schema"""."many ""goods""" ((total + 1)) WHERE goods > 3;
COMMENT ON INDEX "odd ""schema"""."odd ""index""" IS 'of goods';
GRANT SELECT ON "odd ""schema"""."many ""goods""" TO regress_snowflake_viewed;
CREATE MATERIALIZED VIEW unfilled AS SELECT goods FROM cheap WITH NO DATA;
CREATE VIEW above AS SELECT m.goods, u.goods AS also FROM "odd ""schema"""."many ""goods""" m LEFT JOIN cheap u USING (goods);
CREATE VIEW owned AS SELECT goods_id FROM stock UNION ALL SELECT 1;
ALTER VIEW owned OWNER TO regress_snowflake_viewer;
REVOKE ALL ON owned FROM regress_snowflake_viewer;
CREATE RECURSIVE VIEW counting (id) AS SELECT min(id) FROM goods UNION ALL SELECT id + 1 FROM counting WHERE id < 5;
CREATE VIEW untouched AS SELECT name FROM goods;
SELECT untouched::regclass::oid AS untouched FROM (SELECT 'untouched' AS untouched) u \gset
CREATE TABLE views_before AS SELECT * FROM views();
CREATE TABLE indexes_before AS SELECT indexrelid::regclass::text AS i, pg_get_indexdef(indexrelid) AS definition, obj_description(indexrelid) AS comment
FROM pg_index WHERE indrelid = '"odd ""schema"""."many ""goods"""'::regclass;

-- Not unless it is said.
SELECT kind, note FROM plan('goods') WHERE kind = 'obstacle';
SELECT * FROM adopt('goods', views => 'perhaps');
SELECT kind, split_part(statement, ' AS ', 1) AS statement, locks, rewrites, note FROM plan('goods', views => 'recreate') WHERE kind <> 'note';
GRANT CREATE ON SCHEMA public TO regress_snowflake_viewer;
SELECT count(*) FROM (TABLE views_before EXCEPT SELECT * FROM views()) changed;
-- Where functions and operators of the search_path lie in wait.
CREATE SCHEMA trap;
CREATE FUNCTION trap.sum(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 666::bigint';
CREATE FUNCTION trap.less(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.less);
SET search_path = trap, pg_catalog, public;
SELECT * FROM public.adopt('public.goods', views => 'recreate');
RESET search_path;
-- The types are others, and what follows from them.
SELECT view, before.columns, now.columns, before.definition = now.definition AS same FROM views_before before FULL JOIN views() now USING (view)
WHERE before.columns IS DISTINCT FROM now.columns;
SELECT view, owner, options, acl, comment, populated FROM views_before EXCEPT SELECT view, owner, options, acl, comment, populated FROM views();
SELECT view, owner, options, comment, populated FROM views();
TABLE indexes_before EXCEPT
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), obj_description(indexrelid)
FROM pg_index WHERE indrelid = '"odd ""schema"""."many ""goods"""'::regclass;
SELECT 'untouched'::regclass::oid = :untouched AS untouched;
SELECT count(*), sum(total) FROM "odd ""schema"""."many ""goods""";
SELECT count(*) FROM above;
TABLE unfilled;
\set VERBOSITY terse
INSERT INTO cheap (name, price) VALUES ('dear', 11);
\set VERBOSITY default
INSERT INTO cheap (name, price) VALUES ('new', 1) RETURNING goods > 1000000 AS new;
SET ROLE regress_snowflake_viewed;
SELECT count(*) FROM cheap;
RESET ROLE;

-- What cannot be made again is in the way, and named.
CREATE TABLE things (id serial PRIMARY KEY, n integer);
CREATE VIEW seen AS SELECT id, n FROM things;
CREATE VIEW seen_too AS SELECT id FROM seen;
CREATE MATERIALIZED VIEW kept AS SELECT id, n::text AS t FROM things;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER instead INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE RULE log_it AS ON UPDATE TO seen DO INSTEAD NOTHING;
ALTER VIEW seen_too ALTER COLUMN id SET DEFAULT 7;
CREATE TABLE rows_of_seen (s seen_too, many seen[]);
CREATE TABLE guarded (n integer);
CREATE POLICY by_view ON guarded USING (n IN (SELECT id FROM seen));
CREATE FUNCTION of_seen(seen_too) RETURNS integer LANGUAGE sql AS 'SELECT 1';
ALTER MATERIALIZED VIEW kept ALTER COLUMN t SET STATISTICS 7;
CREATE INDEX kept_id ON kept (id);
ALTER MATERIALIZED VIEW kept CLUSTER ON kept_id;
GRANT SELECT ON seen TO regress_snowflake_viewed WITH GRANT OPTION;
SET ROLE regress_snowflake_viewed;
GRANT SELECT ON seen TO regress_snowflake_viewer;
RESET ROLE;
CREATE TEMP VIEW temporary AS SELECT id FROM things;
SELECT regexp_replace(note, 'pg_temp_\d+', 'pg_temp') AS note FROM plan('things', views => 'recreate') WHERE kind = 'obstacle';
-- Whose they are, and what new views of this role get by default.
DROP VIEW seen CASCADE;
DROP MATERIALIZED VIEW kept;
DROP VIEW temporary;
CREATE VIEW of_other AS SELECT id FROM things;
GRANT regress_snowflake_viewer TO regress_snowflake_viewed;
ALTER TABLE things OWNER TO regress_snowflake_viewer;
ALTER SEQUENCE things_id_seq OWNER TO regress_snowflake_viewer;
SET ROLE regress_snowflake_viewed;
SELECT note FROM plan('things', views => 'recreate') WHERE kind = 'obstacle';
SELECT * FROM adopt('things', views => 'recreate');
RESET ROLE;
-- Privileges that new views get are not for this one.
BEGIN;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO regress_snowflake_viewed;
SELECT * FROM adopt('things', views => 'recreate');
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'of_other'::regclass;
SELECT has_table_privilege('regress_snowflake_viewed', 'of_other', 'SELECT');
ROLLBACK;
-- A view that does not fit bigint: in the way, or, where that is not seen, PostgreSQL's error, and nothing is done.
CREATE FUNCTION narrow(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE VIEW narrowed AS SELECT narrow(id) FROM things;
SELECT * FROM adopt('things', views => 'recreate');
CREATE OR REPLACE VIEW narrowed AS SELECT narrow(id + 0) FROM things;
\set VERBOSITY sqlstate
SELECT * FROM adopt('things', views => 'recreate');
\set VERBOSITY default
DROP VIEW narrowed;
SELECT * FROM adopt('things', views => 'recreate');
SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'of_other'::regclass;
-- Where nothing becomes wider, views stay as they are.
CREATE TABLE wide (id bigserial PRIMARY KEY);
CREATE VIEW on_wide AS SELECT id FROM wide;
CREATE TRIGGER instead INSTEAD OF INSERT ON on_wide FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT kind, statement FROM plan('wide', views => 'recreate') WHERE kind <> 'note';

DROP OWNED BY regress_snowflake_viewed, regress_snowflake_viewer CASCADE;
DROP ROLE regress_snowflake_viewed, regress_snowflake_viewer;
