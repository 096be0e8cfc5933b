-- A plan, checked before the first ID is made.
SET timezone = 'UTC';
SET datestyle = ISO;
CREATE EXTENSION pg_snowflake;
-- Without what changes as time passes.
CREATE FUNCTION lasting(text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace($1, '\d+\.\d years (more|have)', 'N years \1', 'g'),
        'below the next ID, \d+', 'below the next ID, ID'), '(true from|up to) [-0-9]+ [0-9:.+]+', '\1 THEN', 'g') $$;

-- Nothing is given: what the server is configured for.
SELECT subject, verdict, lasting(finding) AS finding, advice FROM snowflake_preflight();

-- A plan that works, and nobody in JavaScript.
SELECT DISTINCT verdict FROM snowflake_preflight('default', servers => 500, datacenters => 3, leases => false, ids_per_second => 20000, years => 50,
    javascript => false, oldest_row => '2024-05-06');

-- Plans that cannot work are rows, not errors.
CREATE FUNCTION trouble(VARIADIC plan text[]) RETURNS TABLE (subject text, verdict text, finding text, advice text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT subject, verdict, lasting(finding), advice FROM snowflake_preflight(%s) WHERE subject NOT IN (''server'', ''database'') AND verdict <> ''ok''',
        array_to_string(plan, ', '));
END $$;
SELECT * FROM trouble('''cosid-js''', 'servers => 5', 'leases => true', 'ids_per_second => 400000', 'javascript => true');
SELECT * FROM trouble('''cosid-js''', 'servers => 8', 'leases => true', 'ids_per_second => 600000', 'years => 100');
SELECT * FROM trouble('''cosid-js''', 'servers => 9', 'datacenters => 3');
SELECT * FROM trouble('''twitter''', 'servers => 33', 'datacenters => 1', 'javascript => true', 'oldest_row => ''2009-12-31 12:00+00''');
SELECT * FROM trouble('''twitter''', 'servers => 33', 'datacenters => 33', 'javascript => false', 'oldest_row => ''1969-12-31 12:00+00''');
SELECT * FROM trouble('''twitter''', 'servers => 33', 'javascript => false', 'oldest_row => ''infinity''');
SELECT * FROM trouble('''baidu''', 'javascript => false');
SELECT * FROM trouble('''mastodon''', 'javascript => false', 'servers => 2');
SELECT * FROM trouble('''default''', 'epoch => ''2050-01-01 00:00+00''', 'javascript => false', 'oldest_row => ''-infinity''');
SELECT * FROM trouble('''timestamp=31 worker=16 sequence=16 tick=1s''', 'ids_per_second => 100000');
-- In an epoch of its own, IDs are below 2^53 for some days.
SELECT subject, verdict, finding LIKE 'IDs are below 2^53 until %' AS below FROM snowflake_preflight(epoch => now() - interval '1 day') WHERE subject = 'javascript';

-- The settings of the server, and what the database has on record.
SELECT subject, verdict, finding, advice FROM snowflake_preflight('timestamp=31 worker=16 sequence=16 tick=1s', leases => true) WHERE subject IN ('server', 'database');
SELECT subject, verdict, finding, advice FROM snowflake_preflight('twitter') WHERE subject IN ('server', 'database');
SELECT subject, verdict, finding, advice FROM snowflake_preflight(epoch => '2020-01-01 00:00+00') WHERE subject IN ('server', 'database');
SELECT snowflake_next() > 0 AS made;
SELECT subject, verdict, finding, advice FROM snowflake_preflight() WHERE subject = 'database';
SELECT subject, verdict, finding, advice FROM snowflake_preflight('twitter') WHERE subject = 'database';

-- Keys that exist.
CREATE TABLE small (id serial PRIMARY KEY);
INSERT INTO small SELECT FROM generate_series(1, 1000);
CREATE TABLE negative (id bigint PRIMARY KEY);
INSERT INTO negative VALUES (-5), (7);
CREATE TABLE empty (id smallint PRIMARY KEY);
CREATE TABLE "it's made ""so""" (id bigint PRIMARY KEY DEFAULT snowflake_next());
INSERT INTO "it's made ""so""" SELECT FROM generate_series(1, 3);
CREATE TABLE two (a bigint, b bigint, PRIMARY KEY (a, b));
CREATE TABLE named (id text PRIMARY KEY);
CREATE VIEW seen AS SELECT * FROM small;
SELECT subject, verdict, regexp_replace(lasting(finding), '\d{16,}', 'ID', 'g') AS finding, advice
FROM snowflake_preflight(keys => ARRAY['small', 'negative', 'empty', '"it''s made ""so"""', 'two', 'named', 'seen']::regclass[]) WHERE subject = 'key';
INSERT INTO two VALUES (1, 2);
SELECT verdict, lasting(finding) AS finding, advice FROM snowflake_preflight(keys => '{two, small}', key_column => 'b') WHERE subject = 'key';
SELECT verdict, finding, advice FROM snowflake_preflight(keys => ARRAY[99999999::regclass]) WHERE subject = 'key';
-- IDs of pgEdge's, which are above those of the default layout until their epoch is that of the layout.
CREATE TABLE edge (id bigint PRIMARY KEY);
INSERT INTO edge VALUES (snowflake_encode(now(), 7, 5, NULL, 'pgedge'));
SELECT verdict, advice LIKE '%The value could be of pgedge (%).' AS named FROM snowflake_preflight(keys => '{edge}') WHERE subject = 'key';
SELECT pg_sleep(0.01);
SELECT verdict FROM snowflake_preflight('pgedge', keys => '{edge}') WHERE subject = 'key';
SELECT verdict FROM snowflake_preflight('default', epoch => '2023-01-01 00:00+00', keys => '{edge}') WHERE subject = 'key';
INSERT INTO edge VALUES (9223372036854775807);
SELECT verdict, regexp_replace(finding, 'be \d+', 'be ID') AS finding, advice FROM snowflake_preflight(keys => '{edge}') WHERE subject = 'key';
SELECT verdict, regexp_replace(finding, 'from \d+', 'from ID') AS finding, advice FROM snowflake_preflight('baidu', keys => '{edge}') WHERE subject = 'key';

-- Anybody may check a plan. Keys take the privilege to read them.
CREATE ROLE regress_snowflake_planner;
SET ROLE regress_snowflake_planner;
SELECT count(*) FROM snowflake_preflight(servers => 3);
SELECT subject FROM snowflake_preflight(keys => '{small}');
RESET ROLE;
GRANT SELECT ON small TO regress_snowflake_planner;
SET ROLE regress_snowflake_planner;
SELECT verdict FROM snowflake_preflight(keys => '{small}') WHERE subject = 'key';
RESET ROLE;
-- Rows that a policy hides are not left out.
ALTER TABLE small ENABLE ROW LEVEL SECURITY;
CREATE POLICY half ON small USING (id < 500);
SET ROLE regress_snowflake_planner;
SELECT verdict FROM snowflake_preflight(keys => '{small}') WHERE subject = 'key';
RESET ROLE;
REVOKE SELECT ON small FROM regress_snowflake_planner;
DROP ROLE regress_snowflake_planner;
-- Whatever the search_path has, and also within a transaction that may only read.
CREATE SCHEMA trap;
CREATE FUNCTION trap.min(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1/0::bigint';
CREATE FUNCTION trap.quote_ident(name) RETURNS text LANGUAGE sql AS 'SELECT ''pg_class''';
SET search_path = trap, pg_catalog, public;
BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT verdict, finding LIKE 'public.negative.id has values from -5 to 7,%' AS found FROM public.snowflake_preflight(keys => '{negative}') WHERE subject = 'key';
COMMIT;
RESET search_path;

-- What is no plan.
SELECT * FROM snowflake_preflight('twiter');
SELECT * FROM snowflake_preflight(epoch => 'infinity');
SELECT * FROM snowflake_preflight(epoch => '1969-12-31 00:00+00');
SELECT * FROM snowflake_preflight('mastodon', epoch => '8000-01-01 00:00+00');
SELECT * FROM snowflake_preflight(servers => 0);
SELECT * FROM snowflake_preflight(datacenters => -1);
SELECT * FROM snowflake_preflight(years => 0);
SELECT * FROM snowflake_preflight(ids_per_second => 'nan');
SELECT * FROM snowflake_preflight(ids_per_second => -1);
SELECT * FROM snowflake_preflight(keys => ARRAY[NULL]::regclass[]);
SELECT count(*) FROM snowflake_preflight(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT subject FROM snowflake_preflight(ids_per_second => 'infinity', servers => 2147483647, years => 2147483647, datacenters => 2147483647) WHERE verdict = 'problem';
