-- Partitions that live by themselves. What is printed is relative to the present day, in UTC.
SET datestyle = ISO;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;

CREATE FUNCTION days(at timestamptz) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN at < now() - interval '100 days' THEN 'long ago'
        ELSE to_char(at - date_trunc('day', clock_timestamp()), 'FMDDD HH24:MI:SS') END $$;
CREATE FUNCTION plain(text) RETURNS text LANGUAGE sql AS $$ SELECT regexp_replace($1, '\d{6,}', '#', 'g') $$;
CREATE FUNCTION maintained(parent regclass, every interval, ahead interval, retention interval DEFAULT NULL, expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false) RETURNS TABLE (partition text, action text, since text, until text, statement text, note text)
    LANGUAGE sql AS $$
    SELECT plain(m.partition), m.action, days(m.since), days(m.until), plain(m.statement), m.note
    FROM snowflake_maintain_partitions(parent, every, ahead, retention, expired, dry_run) AS m $$;
CREATE FUNCTION partitions(parent regclass) RETURNS TABLE (partition text, since text, until text) LANGUAGE sql AS $$
    SELECT plain(c.oid::regclass::text), days(snowflake_timestamp(bounds[1]::bigint)), days(snowflake_timestamp(bounds[2]::bigint))
    FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid,
         regexp_match(pg_get_expr(relpartbound, c.oid), 'FROM \(''(\d+)''\) TO \(''(\d+)''\)') bounds
    WHERE inhparent = parent ORDER BY bounds[1]::bigint, relname $$;
-- Days from so many before the present one to before so many after it.
CREATE FUNCTION create_days(parent regclass, before integer, after integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    made bigint := (SELECT count(*) FROM snowflake_create_partitions(parent, '1 day', date_trunc('day', clock_timestamp()) - before * interval '1 day',
        date_trunc('day', clock_timestamp()) + after * interval '1 day'));
BEGIN
    PERFORM snowflake_declare_keys(parent);
    RETURN made;
END $$;

-- Runs a statement that has a day in it.
CREATE FUNCTION run(statement text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; END $$;

-- The natural call goes on where the last one ended, without a gap.
CREATE TABLE natural_call (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('natural_call', '1 day', now(), now() + interval '3 days');
SELECT pg_sleep(0.01);
SELECT count(*) FROM snowflake_create_partitions('natural_call', '1 day', now(), now() + interval '3 days');
SELECT count(*) FROM snowflake_create_partitions('natural_call', '1 day', now() + interval '2 days 3 hours', now() + interval '6 days');
SELECT count(*), max(upper) - min(lower) = sum(upper - lower) AS without_gaps
FROM (SELECT b[1]::bigint AS lower, b[2]::bigint AS upper FROM pg_class, regexp_match(pg_get_expr(relpartbound, oid), '''(\d+).*''(\d+)') AS b
      WHERE relname LIKE 'natural\_call\_2%' AND relkind = 'r') AS bounds;
\set VERBOSITY sqlstate
SELECT snowflake_create_partitions('natural_call', '5 hours', now() + interval '3 hours', now() + interval '1 day');
\set VERBOSITY default

-- The first call, a dry run, and the second call, which finds nothing to do.
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next(), what text) PARTITION BY RANGE (id);
SELECT * FROM maintained('events', '1 day', '2 days', dry_run => true);
SELECT count(*) FROM partitions('events');
SELECT * FROM maintained('events', '1 day', '2 days');
SELECT * FROM maintained('events', '1 day', '2 days');
SELECT * FROM partitions('events');
SELECT partition = format('public.events_%s', to_char(since, 'YYYYMMDD')) AS named FROM snowflake_maintain_partitions('events', '1 day', '3 days');
INSERT INTO events (what) VALUES ('now');
-- The names of what it returns.
SELECT * FROM snowflake_maintain_partitions('events', every => '1 day', ahead => '3 days', retention => '3 months', expired => 'drop');

-- What is older goes: detached, or dropped with its rows.
SELECT create_days('events', 6, 0);
INSERT INTO events SELECT snowflake_min_id(now() - n * interval '1 day'), n FROM generate_series(1, 5) n;
SELECT * FROM maintained('events', '1 day', '3 days', '4 days', dry_run => true);
SELECT * FROM maintained('events', '1 day', '3 days', '4 days');
SELECT count(*) FROM events;
SELECT count(*) FROM pg_class WHERE relname LIKE 'events\_2%' AND relkind = 'r' AND NOT relispartition;
SELECT * FROM maintained('events', '1 day', '3 days', '2 days', 'drop');
SELECT count(*) FROM pg_class WHERE relname LIKE 'events\_2%' AND relkind = 'r';
SELECT * FROM maintained('events', '1 day', '3 days', '1 day', 'drop');
SELECT * FROM partitions('events');
SELECT what FROM events ORDER BY id;
SELECT * FROM maintained('events', '1 day', '3 days', '100 years', 'drop');

-- Concurrently: the statement is for psql's \gexec, as no function can run it.
SELECT create_days('events', 3, 0);
SELECT * FROM maintained('events', '1 day', '3 days', '1 day', 'detach concurrently');
SELECT * FROM maintained('events', '1 day', '3 days', '1 day', 'detach concurrently');
\set ECHO none
SELECT statement FROM snowflake_maintain_partitions('events', '1 day', '3 days', '1 day', 'detach concurrently')
WHERE action = 'detach concurrently' \gexec
\set ECHO all
SELECT * FROM partitions('events');
\set VERBOSITY sqlstate
DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE events DETACH PARTITION %s CONCURRENTLY', inhrelid::regclass) FROM pg_inherits
    WHERE inhparent = 'events'::regclass LIMIT 1); END $$;
CREATE PROCEDURE detach() LANGUAGE plpgsql AS $$ BEGIN
    COMMIT; EXECUTE (SELECT format('ALTER TABLE events DETACH PARTITION %s CONCURRENTLY', inhrelid::regclass) FROM pg_inherits
    WHERE inhparent = 'events'::regclass LIMIT 1); END $$;
CALL detach();
\set VERBOSITY default
-- One that somebody has begun to detach is ended.
CREATE TABLE begun (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT create_days('begun', 3, 1);
UPDATE pg_inherits SET inhdetachpending = true FROM pg_class WHERE inhrelid = oid AND inhparent = 'begun'::regclass
    AND relname = (SELECT min(relname) FROM pg_class WHERE relname LIKE 'begun\_2%' AND relkind = 'r');
SELECT * FROM maintained('begun', '1 day', '1 day', '1 day', 'detach concurrently');
SELECT * FROM partitions('begun');
SELECT * FROM maintained('begun', '1 day', '1 day', '1 day', 'drop');
SELECT count(*) FROM pg_class WHERE relname LIKE 'begun\_2%' AND relkind = 'r';

-- Steps lie on one grid, whenever the first call was: months begin on the first, weeks on Monday, six hours at midnight.
CREATE TABLE months (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*), bool_and(extract(day FROM since) = 1 AND since = date_trunc('month', since)) AS on_the_first
FROM snowflake_maintain_partitions('months', '1 month', '2 months');
CREATE TABLE weeks (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) BETWEEN 2 AND 3 AS enough, bool_and(since = date_trunc('week', since) AND until = since + interval '1 week') AS on_monday
FROM snowflake_maintain_partitions('weeks', '7 days', '10 days');
CREATE TABLE hours (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*), bool_and(date_bin('6 hours', since, '2000-01-01') = since AND right(partition, 4) = '0000') AS on_the_hour
FROM snowflake_maintain_partitions('hours', '6 hours', '12 hours');
SET timezone = 'Asia/Kathmandu';
CREATE TABLE zoned (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*), bool_and((since AT TIME ZONE 'UTC')::time = '00:00') AS in_utc FROM snowflake_maintain_partitions('zoned', '1 day', '1 day');
-- Those that begin at another hour stay so.
CREATE TABLE local_days (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_create_partitions('local_days', '1 day', date_trunc('day', now()), date_trunc('day', now()) + interval '1 day');
SELECT count(*) BETWEEN 1 AND 2 AS more, bool_and(since::time = '00:00') AS local FROM snowflake_maintain_partitions('local_days', '1 day', '2 days');
SET timezone = 'UTC';
-- From days to months: what is left of the month first.
CREATE TABLE longer (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT create_days('longer', 0, 1);
SELECT bool_and(until = date_trunc('month', until)) AS to_the_first, count(*) BETWEEN 1 AND 3 AS enough
FROM snowflake_maintain_partitions('longer', '1 month', '40 days');
-- Nothing is needed where there is a partition for all that comes; a hole is filled.
CREATE TABLE endless (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT run(format('CREATE TABLE endless_rest PARTITION OF endless FOR VALUES FROM (%s) TO (MAXVALUE)',
    snowflake_min_id(date_trunc('day', now()) + interval '2 days')));
SELECT * FROM maintained('endless', '1 day', '10 days');
SELECT * FROM maintained('endless', '1 day', '10 days', '1 day', 'drop');
-- A column of the type snowflake_id, and a domain.
CREATE TABLE typed (id snowflake_id PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM maintained('typed', '1 day', '1 day');
CREATE DOMAIN key AS bigint;
CREATE TABLE by_domain (id key PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM maintained('by_domain', '1 day', '1 day');
CREATE TEMPORARY TABLE passing (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT create_days('passing', 3, 0);
SELECT count(*) FROM maintained('passing', '1 day', '1 day', '1 day', 'drop');

-- What is not ours to take away stays, and is told.
CREATE TABLE kept (id bigint NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE kept_before PARTITION OF kept FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE kept_numbers PARTITION OF kept FOR VALUES FROM (1) TO (10000000);
CREATE TABLE kept_default PARTITION OF kept DEFAULT;
SELECT create_days('kept', 7, 1);
CREATE FUNCTION of_kept(n integer) RETURNS regclass LANGUAGE sql AS $$
    SELECT format('kept_%s', to_char(date_trunc('day', now()) - n * interval '1 day', 'YYYYMMDD'))::regclass $$;
SELECT run(format('ALTER TABLE %1$s ADD PRIMARY KEY (id); CREATE TABLE refers (id bigint REFERENCES %1$s)', of_kept(7)));
SELECT run(format('CREATE VIEW looks AS SELECT * FROM %s', of_kept(6)));
SELECT run(format('CREATE TABLE holds (kept %s)', of_kept(5)));
SELECT run(format('ALTER TABLE kept DETACH PARTITION %1$s; DROP TABLE %1$s', of_kept(4)));
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
SELECT run(format('CREATE FOREIGN TABLE kept_far PARTITION OF kept FOR VALUES FROM (%s) TO (%s) SERVER nowhere',
    snowflake_min_id(date_trunc('day', now()) - interval '4 days'), snowflake_min_id(date_trunc('day', now()) - interval '3 days')));
SELECT run(format('ALTER TABLE kept DETACH PARTITION %1$s; DROP TABLE %1$s', of_kept(3)));
SELECT run(format('CREATE TABLE kept_parts PARTITION OF kept FOR VALUES FROM (%s) TO (%s) PARTITION BY RANGE (id)',
    snowflake_min_id(date_trunc('day', now()) - interval '3 days'), snowflake_min_id(date_trunc('day', now()) - interval '2 days')));
-- What belongs to a partition goes with it.
SELECT run(format('ALTER TABLE %1$s ADD CHECK (id > 0); CREATE INDEX ON %1$s ((id %% 7)) WHERE id > 5; CREATE STATISTICS %2$s ON (id %% 2) FROM %1$s',
    of_kept(2), 'kept_statistics'));
CREATE FUNCTION silent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
SELECT run(format('CREATE TRIGGER silent AFTER INSERT ON %1$s FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION silent()', of_kept(2)));
SELECT run(format('CREATE POLICY own ON %1$s USING (id > 0)', of_kept(2)));
SET client_min_messages = error; -- the warning has the name, and so the day
SELECT * FROM maintained('kept', '1 day', '1 day', '1 day', 'drop', dry_run => true);
SELECT * FROM maintained('kept', '1 day', '1 day', '1 day', 'drop');
SELECT * FROM maintained('kept', '1 day', '1 day', '1 day', 'detach', dry_run => true) WHERE action = 'detach';
SELECT maintained('kept', '1 day', '1 day', '1 day', 'detach concurrently');
\echo :LAST_ERROR_SQLSTATE
RESET client_min_messages;
DROP TABLE refers;
DROP VIEW looks;
DROP TABLE holds;
DROP FOREIGN TABLE kept_far;
DROP TABLE kept_parts;
SELECT action, note FROM maintained('kept', '1 day', '1 day', '1 day', 'drop');
DROP TABLE kept;
-- So do those of whose parts others have something, as a sequence of a column; and those of an extension.
CREATE TABLE parts (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
SELECT create_days('parts', 5, 0);
CREATE FUNCTION of_parts(n integer) RETURNS regclass LANGUAGE sql AS $$
    SELECT format('parts_%s', to_char(date_trunc('day', now()) - n * interval '1 day', 'YYYYMMDD'))::regclass $$;
SELECT run(format('CREATE SEQUENCE lent OWNED BY %s.n', of_parts(5)));
CREATE TABLE borrows (n bigint DEFAULT nextval('lent'));
SELECT run(format('ALTER EXTENSION pg_snowflake ADD TABLE %s', of_parts(4)));
SELECT run(format('CREATE VIEW grouped AS SELECT id, n FROM %s GROUP BY id', of_parts(3)));
SELECT run(format('CREATE SEQUENCE own OWNED BY %1$s.n; ALTER TABLE %1$s ALTER n SET DEFAULT nextval(''own'')', of_parts(2)));
SET client_min_messages = error;
SELECT action, note FROM maintained('parts', '1 day', '0 days', '1 day', 'drop');
SELECT action, note FROM maintained('parts', '1 day', '0 days', '1 day', 'detach', dry_run => true);
RESET client_min_messages;
SELECT run(format('ALTER EXTENSION pg_snowflake DROP TABLE %s', of_parts(4)));
-- Foreign keys that refer to the whole table keep all of its partitions.
CREATE TABLE referred (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT create_days('referred', 2, 0);
CREATE TABLE referring (id bigint REFERENCES referred);
SET client_min_messages = error;
SELECT * FROM maintained('referred', '1 day', '1 day', '1 day', 'drop');
RESET client_min_messages;

-- A partition of the time ahead whose bounds are no times.
CREATE TABLE numbered (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE numbered_next PARTITION OF numbered FOR VALUES FROM (1) TO (4611686018427387903);
SELECT * FROM maintained('numbered', '1 day', '10 days');
CREATE TABLE odd (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT run(format('CREATE TABLE odd_one PARTITION OF odd FOR VALUES FROM (%s) TO (%s)', snowflake_min_id(now() + interval '1 day') + 1,
    snowflake_min_id(now() + interval '2 days')));
\set VERBOSITY terse
SELECT * FROM maintained('odd', '1 day', '3 days');
\set VERBOSITY default
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM maintained('odd', '1 hour', '1 hour');
-- A name that is taken, and rows in the default partition.
CREATE TABLE named (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT run(format('CREATE TABLE named_%s ()', to_char(now() + interval '1 day', 'YYYYMMDD')));
\set VERBOSITY sqlstate
SELECT snowflake_maintain_partitions('named', '1 day', '1 day');
CREATE TABLE rest (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
CREATE TABLE rest_default PARTITION OF rest DEFAULT;
INSERT INTO rest DEFAULT VALUES;
SELECT snowflake_maintain_partitions('rest', '1 day', '1 day');
SELECT snowflake_maintain_partitions('rest', '1 day', '1 day', dry_run => true);
BEGIN READ ONLY;
SELECT snowflake_maintain_partitions('rest', '1 day', '1 day', dry_run => true);
ROLLBACK;
\set VERBOSITY default

-- What cannot be meant.
CREATE TABLE plain_table (id bigint PRIMARY KEY);
SELECT snowflake_maintain_partitions('plain_table', '1 day', '1 day');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_maintain_partitions(0, '1 day', '1 day');
SELECT snowflake_maintain_partitions(NULL, '1 day', '1 day');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_maintain_partitions('events', NULL, '1 day');
SELECT snowflake_maintain_partitions('events', '1 day', NULL);
SELECT snowflake_maintain_partitions('events', '1 day', '1 day', expired => NULL);
SELECT snowflake_maintain_partitions('events', '1.5 s', '1 day');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_maintain_partitions('events', '1 day', '-1 day');
SELECT snowflake_maintain_partitions('events', '1 day', '1 day', '1 month -1 day');
SELECT snowflake_maintain_partitions('events', '1 day', '1 day', expired => 'delete');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_maintain_partitions('events', '1 day', '1 day', expired => 'DROP');
\set VERBOSITY terse
SELECT action, count(*) > 100 AS many, min(note) ~ '^[0-9]+ more partitions are made by the next calls, as one call can lock [0-9]+$' AS says
FROM snowflake_maintain_partitions('months', '1 hour', '200 days', dry_run => true) GROUP BY action;
SELECT snowflake_maintain_partitions('months', '1 second', '2 days');
SELECT snowflake_maintain_partitions('months', '1 hour', '1 hour', default_rows => 'keep');
SELECT snowflake_maintain_partitions('months', '1 hour', '1 hour', default_rows => NULL);
SELECT snowflake_maintain_partitions('months', '3000 years', '1 year');
\set VERBOSITY sqlstate
SELECT snowflake_maintain_partitions('months', '1 month', '1000 years');
SELECT snowflake_maintain_partitions('months', '1 month', '178000000 years');
\set VERBOSITY default

-- Only for the owner, whatever else is wrong; and as the owner.
CREATE ROLE regress_snowflake_keeper;
CREATE ROLE regress_snowflake_guest;
GRANT ALL ON months TO regress_snowflake_guest;
SET ROLE regress_snowflake_guest;
SELECT snowflake_maintain_partitions('months', NULL, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_maintain_partitions('months', '1 day', '1 day', dry_run => true);
RESET ROLE;
CREATE SCHEMA owned AUTHORIZATION regress_snowflake_keeper;
GRANT USAGE ON SCHEMA owned TO regress_snowflake_guest;
SET ROLE regress_snowflake_keeper;
CREATE TABLE owned.days (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
GRANT SELECT ON owned.days TO regress_snowflake_guest;
RESET ROLE;
SELECT create_days('owned.days', 4, 0);
-- One of another role stays, as the owner of the table has no right to it.
SELECT run(format('ALTER TABLE owned.days_%s OWNER TO regress_snowflake_guest', to_char(now() - interval '2 days', 'YYYYMMDD')));
SET client_min_messages = error;
SELECT * FROM maintained('owned.days', '1 day', '1 day', '1 day', 'detach');
RESET client_min_messages;
SELECT relowner::regrole, bool_and(has_table_privilege('regress_snowflake_guest', oid, 'SELECT')) AS readable, count(*)
FROM pg_class WHERE relnamespace = 'owned'::regnamespace AND relkind = 'r' GROUP BY 1;
REVOKE CREATE ON SCHEMA owned FROM regress_snowflake_keeper;
ALTER SCHEMA owned OWNER TO CURRENT_USER;
SELECT count(*) FROM maintained('owned.days', '1 day', '5 days');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
SELECT count(*) FROM maintained('owned.days', '1 day', '5 days', dry_run => true);
\set VERBOSITY default

-- Nothing is done, and nothing locked, in a transaction that only reads; but a dry run is.
BEGIN READ ONLY;
SELECT count(*) FROM maintained('months', '1 month', '5 months', dry_run => true);
SELECT snowflake_maintain_partitions('months', '1 month', '5 months');
ROLLBACK;
-- Nothing stays locked where there is nothing to do.
BEGIN;
SELECT count(*) FROM maintained('months', '1 month', '2 months', '1 year');
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'months'::regclass;
SELECT count(*) > 0 AS more FROM maintained('months', '1 month', '5 months', '1 year');
SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'months'::regclass AND mode = 'AccessExclusiveLock';
ROLLBACK;

SET client_min_messages = error;
DROP SCHEMA owned CASCADE;
DROP OWNED BY regress_snowflake_keeper, regress_snowflake_guest;
DROP ROLE regress_snowflake_keeper, regress_snowflake_guest;
