-- Partitions by ID time.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

-- They are pruned, at planning and at execution.
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
CREATE TABLE events_2026_01 PARTITION OF events
    FOR VALUES FROM (snowflake_min_id('2026-01-01')) TO (snowflake_min_id('2026-02-01'));
CREATE TABLE events_2026_02 PARTITION OF events
    FOR VALUES FROM (snowflake_min_id('2026-02-01')) TO (snowflake_min_id('2026-03-01'));
CREATE TABLE events_later PARTITION OF events FOR VALUES FROM (snowflake_min_id('2026-03-01')) TO (MAXVALUE);
INSERT INTO events VALUES (snowflake_encode('2026-01-31 23:59:59.999', 1)), (snowflake_encode('2026-02-01', 1)), (DEFAULT);
SELECT tableoid::regclass, snowflake_timestamp(id) < now() + interval '1 s' AS past FROM events ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-02-01', '2026-02-02');
PREPARE later (timestamptz) AS SELECT count(*) FROM events WHERE snowflake_between(id, $1, 'infinity');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE later('2026-03-01');

-- What a table's partitions hold, as times.
CREATE FUNCTION partitions(parent regclass) RETURNS TABLE (partition text, since timestamptz, until timestamptz) LANGUAGE sql AS $$
    SELECT relname::text, snowflake_timestamp(bounds[1]::bigint), snowflake_timestamp(bounds[2]::bigint)
    FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid,
         regexp_match(pg_get_expr(relpartbound, c.oid), 'FROM \(''(\d+)''\) TO \(''(\d+)''\)') bounds
    WHERE inhparent = parent ORDER BY bounds[1]::bigint, relname $$;

-- Made for a range of time at once; those that are there are left alone, and the last one is whole.
CREATE SCHEMA "Odd Schema";
CREATE TABLE "Odd Schema"."Odd Table" (id bigint PRIMARY KEY DEFAULT snowflake_next(), at timestamptz) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('"Odd Schema"."Odd Table"', '1 month', '2026-01-01', '2026-04-01');
SELECT * FROM snowflake_create_partitions('"Odd Schema"."Odd Table"', '1 month', '2026-03-01', '2026-06-15');
SELECT count(*) FROM snowflake_create_partitions('"Odd Schema"."Odd Table"', '1 month', '2026-01-01', '2026-07-01');
SELECT relname, pg_get_expr(relpartbound, c.oid) AS bounds
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = '"Odd Schema"."Odd Table"'::regclass ORDER BY relname;
INSERT INTO "Odd Schema"."Odd Table"
SELECT snowflake_encode(at, 1), at FROM generate_series('2026-01-01'::timestamptz, '2026-06-30 23:59:59', '1 day 11 h') at;
SELECT tableoid::regclass, min(at), max(at), count(*) FROM "Odd Schema"."Odd Table" GROUP BY 1 ORDER BY 2;
CREATE TABLE hourly (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('hourly', '6 h', '2026-03-29 00:00', '2026-03-30 00:00');

-- In UTC, whatever the session's time zone: London and New York change their clocks in
-- March, Lord Howe by half an hour in April.
CREATE TABLE london (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE new_york (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE lord_howe (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SET timezone = 'Europe/London';
SELECT count(*) FROM snowflake_create_partitions('london', '1 day', '2026-03-27 00:00+00', '2026-04-01 00:00+00');
SET timezone = 'America/New_York';
SELECT count(*) FROM snowflake_create_partitions('new_york', '1 day', '2026-03-05 00:00+00', '2026-03-12 00:00+00');
SELECT count(*) FROM snowflake_create_partitions('new_york', '1 month', '2026-04-01 00:00+00', '2027-01-01 00:00+00');
SET timezone = 'Australia/Lord_Howe';
SELECT count(*) FROM snowflake_create_partitions('lord_howe', '1 week', '2026-03-23 00:00+00', '2026-04-20 00:00+00');
SET timezone = 'UTC';
SELECT * FROM partitions('london');
SELECT * FROM partitions('new_york');
SELECT * FROM partitions('lord_howe');

-- Steps are counted from the start: months from the 31st come back to it.
CREATE TABLE month_ends (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('month_ends', '1 month', '2028-01-31', '2028-06-01');
SELECT * FROM partitions('month_ends');
-- Pieces that do not begin at midnight in UTC have the time of day in their names.
CREATE TABLE local_days (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('local_days', '1 day', '2026-03-01 00:00+09:30', '2026-03-03 00:00+09:30');

-- A partition is known by its bounds, whatever its name and its own kind.
CREATE TABLE by_bounds (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE february PARTITION OF by_bounds FOR VALUES FROM (snowflake_min_id('2026-02-01')) TO (snowflake_min_id('2026-03-01'))
    PARTITION BY RANGE (id);
CREATE TABLE before PARTITION OF by_bounds FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-01-01'));
CREATE TABLE after PARTITION OF by_bounds FOR VALUES FROM (snowflake_min_id('2026-04-01')) TO (MAXVALUE);
SELECT * FROM snowflake_create_partitions('by_bounds', '1 month', '2026-01-01', '2026-04-01');
SELECT * FROM snowflake_create_partitions('february', '2 weeks', '2026-02-01', '2026-03-01');
-- Its name is not enough: this one is the first of March only.
CREATE TABLE by_name (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM snowflake_create_partitions('by_name', '1 day', '2026-03-01', '2026-03-02');
SELECT * FROM snowflake_create_partitions('by_name', '1 month', '2026-02-01', '2026-04-01');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM partitions('by_name');
-- Other overlaps; nothing is made before they are found.
SELECT snowflake_create_partitions('by_bounds', '1 month', '2025-12-01', '2026-02-01');
SELECT snowflake_create_partitions('by_bounds', '1 month', '2026-03-01', '2026-05-01');
SELECT snowflake_create_partitions('hourly', '7 h', '2026-03-28 17:00', '2026-03-29 08:00');
CREATE TABLE negative PARTITION OF by_name FOR VALUES FROM (-5) TO (5);
SELECT snowflake_create_partitions('by_name', '1 day', '2024-01-01', '2024-01-02');
-- From days to months, after the days.
SELECT count(*) FROM snowflake_create_partitions('by_name', '1 day', '2026-03-01', '2026-04-01');
SELECT * FROM snowflake_create_partitions('by_name', '1 month', '2026-04-01', '2026-06-01');
-- A day that is no partition any more still has its name.
ALTER TABLE by_name DETACH PARTITION by_name_20260401;
SELECT snowflake_create_partitions('by_name', '1 day', '2026-04-01', '2026-04-03');
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE by_name_20260401 RENAME TO by_name_april;
SELECT * FROM snowflake_create_partitions('by_name', '1 day', '2026-04-01', '2026-04-03');
CREATE VIEW by_name_20260404 AS SELECT 1;
SELECT snowflake_create_partitions('by_name', '1 day', '2026-04-03', '2026-04-05');
CREATE TABLE "Odd Schema".by_name_20260405 ();
SELECT snowflake_create_partitions('by_name', '1 day', '2026-04-05', '2026-04-06');

-- A default partition must have no rows of a new one.
CREATE TABLE orders (id bigint PRIMARY KEY, item text) PARTITION BY RANGE (id);
CREATE TABLE orders_default PARTITION OF orders DEFAULT;
SELECT count(*) FROM snowflake_create_partitions('orders', '1 month', '2026-01-01', '2026-03-01');
INSERT INTO orders SELECT snowflake_encode(at, 1), 'lamp' FROM generate_series('2026-01-15'::timestamptz, '2026-08-15', '1 month') at;
SELECT count(*) FROM snowflake_create_partitions('orders', '1 month', '2025-11-01', '2026-02-01');
SELECT snowflake_create_partitions('orders', '1 month', '2026-01-01', '2026-07-01');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM pg_inherits WHERE inhparent = 'orders'::regclass;
SELECT count(*) FROM snowflake_create_partitions('orders', '1 month', '2026-09-01', '2026-10-01');
-- As the hint says.
BEGIN;
ALTER TABLE public.orders DETACH PARTITION public.orders_default;
SELECT snowflake_create_partitions('orders', '1 month', '2026-01-01', '2026-07-01');
WITH moved AS (DELETE FROM public.orders_default WHERE id >= 264905529753600000 AND id < 330497733427200000 RETURNING *)
INSERT INTO public.orders SELECT * FROM moved;
ALTER TABLE public.orders ATTACH PARTITION public.orders_default DEFAULT;
COMMIT;
SELECT tableoid::regclass AS partition, count(*) FROM orders GROUP BY 1 ORDER BY min(id);
-- A default partition that is partitioned.
CREATE TABLE deep (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE deep_default PARTITION OF deep DEFAULT PARTITION BY HASH (id);
CREATE TABLE deep_hash PARTITION OF deep_default FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO deep VALUES (snowflake_min_id('2026-01-31 23:59:59.999'));
SELECT * FROM snowflake_create_partitions('deep', '1 month', '2026-02-01', '2026-03-01');
SELECT snowflake_create_partitions('deep', '1 month', '2025-12-01', '2026-03-01');

-- Names are not cut: 54 bytes are left by the shorter ends, 47 by those with a time of day.
SELECT format('CREATE TABLE %I (id bigint PRIMARY KEY) PARTITION BY RANGE (id)', name)
FROM unnest(ARRAY[repeat('a', 54), repeat('b', 58), repeat('c', 63), repeat('é', 27), repeat('日', 19), repeat('d', 47), repeat('e', 48)]) name \gexec
SELECT * FROM snowflake_create_partitions(repeat('a', 54)::regclass, '1 month', '2026-01-01', '2027-01-01') LIMIT 2;
SELECT * FROM snowflake_create_partitions(repeat('b', 58)::regclass, '1 month', '2026-01-01', '2027-01-01');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_create_partitions(repeat('c', 63)::regclass, '1 month', '2026-01-01', '2027-01-01');
SELECT * FROM snowflake_create_partitions(repeat('é', 27)::regclass, '1 month', '2026-01-01', '2026-02-01');
SELECT * FROM snowflake_create_partitions(repeat('日', 19)::regclass, '1 month', '2026-01-01', '2026-02-01');
SELECT * FROM snowflake_create_partitions(repeat('d', 47)::regclass, '1 hour', '2026-01-01', '2026-01-01 01:00');
SELECT * FROM snowflake_create_partitions(repeat('e', 48)::regclass, '1 hour', '2026-01-01', '2026-01-01 01:00');
SELECT inhparent::regclass, count(*) FROM pg_inherits WHERE inhparent IN (repeat('b', 58)::regclass, repeat('c', 63)::regclass) GROUP BY 1;
-- One that is there needs no name.
SELECT format('CREATE TABLE january PARTITION OF %I FOR VALUES FROM (%s) TO (%s)', repeat('c', 63), snowflake_min_id('2026-01-01'), snowflake_min_id('2026-02-01')) \gexec
SELECT count(*) FROM snowflake_create_partitions(repeat('c', 63)::regclass, '1 month', '2026-01-01', '2026-02-01');

-- Names are quoted, and nothing is looked up in the search_path.
CREATE SCHEMA "s""; DROP TABLE public.orders; --";
CREATE TABLE "s""; DROP TABLE public.orders; --"."t'%I $1 \ " ("i""d%s" bigint PRIMARY KEY) PARTITION BY RANGE ("i""d%s");
CREATE TABLE "s""; DROP TABLE public.orders; --"."d'%I $1 \ " PARTITION OF "s""; DROP TABLE public.orders; --"."t'%I $1 \ " DEFAULT;
CREATE SCHEMA elsewhere;
CREATE FUNCTION elsewhere.wrong(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'from the search_path'; END $$;
CREATE OPERATOR elsewhere.>= (FUNCTION = elsewhere.wrong, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR elsewhere.< (FUNCTION = elsewhere.wrong, LEFTARG = bigint, RIGHTARG = bigint);
CREATE DOMAIN elsewhere."char" AS text CHECK (false);
CREATE FUNCTION elsewhere.pg_get_partkeydef(oid) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'from the search_path'; END $$;
SET search_path = elsewhere, pg_catalog, public;
SELECT * FROM snowflake_create_partitions('"s""; DROP TABLE public.orders; --"."t''%I $1 \ "', '1 year', '2026-01-01', '2027-01-01');
INSERT INTO "s""; DROP TABLE public.orders; --"."t'%I $1 \ " VALUES (public.snowflake_min_id('2027-01-01'));
SELECT public.snowflake_create_partitions('"s""; DROP TABLE public.orders; --"."t''%I $1 \ "', '1 year', '2026-01-01', '2028-01-01');
RESET search_path;
SELECT count(*) FROM orders;
CREATE TEMPORARY TABLE passing (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('passing', '1 day', '2026-01-01', '2026-01-03');
SELECT relname, relpersistence FROM pg_class WHERE relname LIKE 'passing%' AND relkind = 'r' ORDER BY relname;

-- The table must be partitioned by a range of a bigint.
CREATE TABLE plain (id bigint PRIMARY KEY);
CREATE TABLE by_list (id bigint PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE by_hash (id bigint PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE by_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
CREATE TABLE by_expression (id bigint) PARTITION BY RANGE ((id / 2));
CREATE TABLE by_integer (id integer) PARTITION BY RANGE (id);
CREATE TABLE by_time (at timestamptz) PARTITION BY RANGE (at);
CREATE OPERATOR CLASS downwards FOR TYPE bigint USING btree AS
    OPERATOR 1 > , OPERATOR 2 >= , OPERATOR 3 = , OPERATOR 4 <= , OPERATOR 5 < , FUNCTION 1 btint8cmp(bigint, bigint);
CREATE TABLE by_class (id bigint) PARTITION BY RANGE (id downwards);
SELECT snowflake_create_partitions('plain', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('by_list', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_hash', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_two', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_expression', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_integer', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_time', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('by_class', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions('partitions_of_nobody', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
SELECT snowflake_create_partitions(0, '1 h', '2026-01-01 00:00', '2026-01-01 01:00');
CREATE DOMAIN key AS bigint CHECK (VALUE > 0);
CREATE TABLE by_domain (id key) PARTITION BY RANGE (id);
CREATE TABLE by_domain_default PARTITION OF by_domain DEFAULT;
SELECT * FROM snowflake_create_partitions('by_domain', '1 h', '2026-01-01 00:00', '2026-01-01 01:00');

-- What cannot be a step or a range.
CREATE TABLE many (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT snowflake_create_partitions('many', '500 ms', '2026-01-01', '2026-01-02');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1.5 s', '2026-01-01', '2026-01-02');
SELECT snowflake_create_partitions('many', '0 h', '2026-01-01', '2026-01-02');
SELECT snowflake_create_partitions('many', '-1 h', '2026-01-01', '2026-01-02');
SELECT snowflake_create_partitions('many', '1 month -30 days', '2026-01-01', '2026-05-01');
SELECT snowflake_create_partitions('many', '1 day', '-infinity', '2026-01-02');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1 day', '2026-01-01', 'infinity');
SELECT snowflake_create_partitions(NULL, '1 day', '2026-01-01', '2026-01-02');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', NULL, '2026-01-01', '2026-01-02');
SELECT snowflake_create_partitions('many', '1 day', NULL, '2026-01-02');
SELECT snowflake_create_partitions('many', '1 day', '2026-01-01', NULL);
SELECT snowflake_create_partitions('many', '1 day', '2026-01-01', '2026-01-01');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1 day', '2026-01-02', '2026-01-01');
SELECT snowflake_create_partitions('many', '1 year', '2023-01-01', '2026-01-01');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1 year', '2090-01-01', '2094-01-01');
SELECT snowflake_create_partitions('many', '1 year', '294276-01-01', '294276-12-01');
SELECT snowflake_create_partitions('many', '1 year', '2093-01-01', '2093-02-01');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '178000000 years', '2026-01-01', '2026-02-01');
SELECT snowflake_create_partitions('many', '1 day', '2024-01-01', '2051-05-19');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1 s', '2024-01-01', '2093-01-01');
SELECT count(*) FROM pg_inherits WHERE inhparent = 'many'::regclass;
SELECT count(*) FROM snowflake_create_partitions('many', '1 s', '2026-01-01 00:00:00', '2026-01-01 00:00:20');
SELECT * FROM partitions('many') OFFSET 18;

-- Ownership comes first, whatever else is wrong, and whatever a role may do in the schema.
CREATE ROLE regress_snowflake_owner;
CREATE ROLE regress_snowflake_other;
GRANT CREATE, USAGE ON SCHEMA public, "Odd Schema" TO regress_snowflake_owner, regress_snowflake_other;
GRANT ALL ON many, plain TO regress_snowflake_other;
CREATE SCHEMA owned AUTHORIZATION regress_snowflake_owner;
SET ROLE regress_snowflake_other;
SELECT snowflake_create_partitions('many', '1 day', '2026-02-01', '2026-02-02');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_create_partitions('many', '1 ms', '-infinity', 'infinity');
SELECT snowflake_create_partitions('plain', NULL, NULL, NULL);
-- Whoever calls, they belong to the owner of the table, who must be allowed to create them.
RESET ROLE;
GRANT regress_snowflake_owner TO regress_snowflake_other;
SET ROLE regress_snowflake_owner;
CREATE TABLE owned.days (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE owned.days_default PARTITION OF owned.days DEFAULT;
SET ROLE regress_snowflake_other;
SELECT * FROM snowflake_create_partitions('owned.days', '1 day', '2026-02-01', '2026-02-02');
SELECT relname, relowner::regrole FROM pg_class WHERE relname LIKE 'days%' AND relkind = 'r' ORDER BY 1;
RESET ROLE;
REVOKE CREATE ON SCHEMA owned FROM regress_snowflake_owner;
ALTER SCHEMA owned OWNER TO CURRENT_USER;
GRANT USAGE ON SCHEMA owned TO regress_snowflake_other;
SET ROLE regress_snowflake_other;
SELECT * FROM snowflake_create_partitions('owned.days', '1 day', '2026-02-02', '2026-02-03');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT * FROM snowflake_create_partitions('owned.days', '1 day', '2026-02-02', '2026-02-03');

-- They have the privileges of their table, and no others; and none can be read past its policies.
CREATE FUNCTION privileges(of regclass) RETURNS TABLE (grantee text, privileges text) LANGUAGE sql AS $$
    SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
        string_agg(concat(privilege_type, ' ' || attname, CASE WHEN is_grantable AND g.grantee <> relowner THEN ' *' END), ', '
            ORDER BY privilege_type, attname)
    FROM pg_class c, LATERAL (
        SELECT NULL AS attname, a.* FROM aclexplode(coalesce(relacl, acldefault('r', relowner))) a
        UNION ALL SELECT attname, a.* FROM pg_attribute, aclexplode(attacl) a WHERE attrelid = c.oid
    ) g WHERE c.oid = "of" GROUP BY 1 ORDER BY 1 $$;
CREATE TABLE shared (id bigint PRIMARY KEY, tenant name, "Note" text) PARTITION BY RANGE (id);
ALTER TABLE shared OWNER TO regress_snowflake_owner;
GRANT SELECT, INSERT ON shared TO regress_snowflake_other WITH GRANT OPTION;
GRANT SELECT (id, "Note"), UPDATE ("Note") ON shared TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_snowflake_owner GRANT ALL ON TABLES TO PUBLIC;
SELECT * FROM snowflake_create_partitions('shared', '1 day', '2026-02-01', '2026-02-02');
SELECT array(SELECT privileges('shared')) = array(SELECT privileges('shared_20260201')) AS same;
SELECT * FROM privileges('shared_20260201') WHERE grantee <> 'regress_snowflake_owner';
REVOKE TRUNCATE ON shared FROM regress_snowflake_owner;
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shared USING (tenant = current_user);
SELECT * FROM snowflake_create_partitions('shared', '1 day', '2026-02-02', '2026-02-03');
SELECT array(SELECT privileges('shared')) = array(SELECT privileges('shared_20260202')) AS same;
REVOKE regress_snowflake_owner FROM regress_snowflake_other;
INSERT INTO shared SELECT snowflake_min_id('2026-02-02') + n, (ARRAY['regress_snowflake_other', 'another'])[n] FROM generate_series(1, 2) n;
SET ROLE regress_snowflake_other;
SELECT (SELECT count(*) FROM shared) AS by_table, (SELECT count(*) FROM shared_20260202) AS by_partition;
RESET ROLE;
ALTER TABLE shared FORCE ROW LEVEL SECURITY;
SELECT * FROM snowflake_create_partitions('shared', '1 day', '2026-02-03', '2026-02-04');
SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname LIKE 'shared\_2%' ORDER BY 1;
ALTER DEFAULT PRIVILEGES FOR ROLE regress_snowflake_owner REVOKE ALL ON TABLES FROM PUBLIC;
DROP TABLE shared;
DROP FUNCTION privileges;
-- And its replica identity.
CREATE TABLE replicated (id bigint NOT NULL, n integer NOT NULL) PARTITION BY RANGE (id);
CREATE UNIQUE INDEX "by n" ON replicated (id, n);
SELECT snowflake_create_partitions('replicated', '1 day', '2026-01-01', '2026-01-02');
ALTER TABLE replicated REPLICA IDENTITY USING INDEX "by n";
SELECT snowflake_create_partitions('replicated', '1 day', '2026-01-02', '2026-01-03');
ALTER TABLE replicated REPLICA IDENTITY FULL;
SELECT snowflake_create_partitions('replicated', '1 day', '2026-01-03', '2026-01-04');
ALTER TABLE replicated REPLICA IDENTITY NOTHING;
SELECT snowflake_create_partitions('replicated', '1 day', '2026-01-04', '2026-01-05');
SELECT relname, relreplident, array(SELECT indexrelid::regclass FROM pg_index i WHERE indrelid = c.oid AND indisreplident) AS by
FROM pg_class c WHERE relname LIKE 'replicated\_2%' AND relkind = 'r' ORDER BY 1;
DROP TABLE replicated;

-- Nothing is made, and nothing locked, in a transaction that only reads.
BEGIN READ ONLY;
SELECT snowflake_create_partitions('many', '1 day', '2026-02-01', '2026-02-02');
ROLLBACK;
-- What stays locked to the end of the transaction: the table, as by CREATE TABLE ... PARTITION OF, and its default partition.
CREATE VIEW locks AS SELECT relation::regclass::text, mode FROM pg_locks
    WHERE pid = pg_backend_pid() AND relation IN ('orders'::regclass, 'orders_default'::regclass) ORDER BY 1, 2;
BEGIN;
SELECT count(*) FROM snowflake_create_partitions('orders', '1 month', '2026-10-01', '2026-11-01');
SELECT * FROM locks WHERE mode = 'AccessExclusiveLock';
ROLLBACK;
-- Nothing, where all partitions are there.
BEGIN;
SELECT count(*) FROM snowflake_create_partitions('orders', '1 month', '2026-01-01', '2026-07-01');
SELECT * FROM locks;
ROLLBACK;

-- As pg_partman calls its encoder and decoder.
SELECT snowflake_time_encoder('2026-03-29 00:00'), snowflake_time_decoder(snowflake_time_encoder('2026-03-29 00:00')),
       snowflake_time_decoder('0296433277501440000'), snowflake_time_decoder(NULL) IS NULL AS unknown;
SELECT snowflake_time_decoder('296433277501440000');

DROP SCHEMA owned CASCADE;
DROP OWNED BY regress_snowflake_owner, regress_snowflake_other;
DROP ROLE regress_snowflake_owner, regress_snowflake_other;
