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
ALTER SYSTEM SET pg_snowflake.worker_id = 2;
CREATE OR REPLACE FUNCTION snowflake_next() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
DROP EXTENSION pg_snowflake;

-- What the database remembers is not its to see or change, though its calls do so.
SELECT * FROM snowflake_reservation;
SELECT nextval('snowflake_reservation');
SELECT setval('snowflake_reservation', 1);
SELECT * FROM snowflake_layout;
DELETE FROM snowflake_layout;
SELECT snowflake_adopt_layout();
SELECT snowflake_adoptable_layout();
SELECT * FROM snowflake_status();
SELECT * FROM snowflake_status;
SELECT snowflake_server_layout();
RESET ROLE;

-- Who watches the server may look at its state, and no more.
GRANT pg_monitor TO regress_snowflake_nobody;
SET ROLE regress_snowflake_nobody;
SELECT worker_id FROM snowflake_status;
SELECT worker_id FROM snowflake_status();
SELECT * FROM snowflake_reservation;
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
SELECT (elsewhere.snowflake_decode(0)).sequence, elsewhere.snowflake_between(0, '-infinity', 'infinity');
REASSIGN OWNED BY regress_snowflake_nobody TO postgres;
DROP OWNED BY regress_snowflake_nobody;
DROP ROLE regress_snowflake_nobody;
