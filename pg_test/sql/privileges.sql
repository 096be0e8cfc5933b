-- A role without any privileges can make and read IDs, and can change nothing.
CREATE EXTENSION pg_snowflake;
CREATE ROLE regress_snowflake_nobody LOGIN;
SET ROLE regress_snowflake_nobody;
SELECT snowflake_next() > 0 AS makes, count(*) FROM snowflake_next(3);
SELECT (snowflake_decode(0)).sequence, snowflake_encode('2024-01-01 00:00+00', 0), snowflake_between(0, '-infinity', 'infinity');
SHOW pg_snowflake.worker_id;

-- Only how long it waits is its own to say.
SET pg_snowflake.max_wait = '1s';
SHOW pg_snowflake.max_wait;
SET pg_snowflake.worker_id = 2;
SET pg_snowflake.datacenter_id = 2;
SET pg_snowflake.layout = 'twitter';
SET pg_snowflake.epoch = '2010-01-01T00:00:00Z';
SET pg_snowflake.max_burst = 0;
SET pg_snowflake.max_lead = 0;
SET pg_snowflake.sequence_spread = 1;
-- Messages of PostgreSQL's own, which differ between majors.
\set VERBOSITY sqlstate
ALTER SYSTEM SET pg_snowflake.worker_id = 2;
CREATE OR REPLACE FUNCTION snowflake_next() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
\set VERBOSITY default
DROP EXTENSION pg_snowflake;

-- What the database remembers is to be dumped by whoever may dump the database, and to be changed by nobody.
SELECT last_value >= 0 AS readable FROM _snowflake.reservation;
SELECT last_value > 0 AS readable FROM _snowflake.layout;
SELECT last_value > 0 AS readable FROM _snowflake.epoch;
SELECT nextval('_snowflake.reservation');
SELECT setval('_snowflake.reservation', 1);
SELECT setval('_snowflake.layout', 1);
CREATE TABLE _snowflake.other ();
SELECT snowflake_rewind(0);
SELECT snowflake_adopt_layout();
SELECT * FROM snowflake_status();
SELECT snowflake_server_layout(), snowflake_database_layout();
RESET ROLE;

-- Who watches the server may look at its state, and no more.
GRANT pg_monitor TO regress_snowflake_nobody;
SET ROLE regress_snowflake_nobody;
SELECT worker_id FROM snowflake_status();
SELECT snowflake_rewind(0);
RESET ROLE;
REVOKE pg_monitor FROM regress_snowflake_nobody;

-- Nor can a superuser, within a session.
SET pg_snowflake.worker_id = 2;
SET pg_snowflake.layout = 'twitter';

-- Where the extension lives in another schema and the role has no search_path to it, its own functions still find each other.
DROP EXTENSION pg_snowflake;
CREATE SCHEMA ids;
GRANT USAGE ON SCHEMA ids TO regress_snowflake_nobody;
CREATE EXTENSION pg_snowflake SCHEMA ids;
SET ROLE regress_snowflake_nobody;
SELECT (ids.snowflake_decode(0)).sequence, ids.snowflake_between(0, '-infinity', 'infinity');
RESET ROLE;
CREATE SCHEMA elsewhere;
ALTER EXTENSION pg_snowflake SET SCHEMA elsewhere;

-- Who may create objects in a database may create the extension there, and restore what a dump says of it.
DROP EXTENSION pg_snowflake;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_snowflake_nobody', current_database()) \gexec
GRANT CREATE ON SCHEMA public TO regress_snowflake_nobody;
SET ROLE regress_snowflake_nobody;
CREATE EXTENSION pg_snowflake;
SELECT snowflake_next() > 0 AS made;
SELECT setval('_snowflake.epoch', 1704067200000000), setval('_snowflake.reservation', 1) > 0 AS set;
SELECT snowflake_next() > 0 AS made;
SELECT snowflake_adopt_layout();
SELECT snowflake_rewind(0);
DROP EXTENSION pg_snowflake;
RESET ROLE;
REASSIGN OWNED BY regress_snowflake_nobody TO CURRENT_USER;
DROP OWNED BY regress_snowflake_nobody;
DROP ROLE regress_snowflake_nobody;
