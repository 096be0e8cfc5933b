-- The state of the server's IDs. The counts are the server's: other sessions may add to them.
CREATE EXTENSION pg_snowflake;

SELECT snowflake_next() > 0 AS made;
SELECT worker_id, datacenter_id, layout, layout = snowflake_server_layout() AS of_server,
       reserved_until > clock_timestamp() AS reserved, reserved_until < clock_timestamp() + interval '1 min' AS not_far,
       abs(extract(epoch FROM last_time - clock_timestamp())) < 10 AS last, lead < interval '10 s' AS leads,
       previous_until IS NULL AS unchanged, clock_leaps, clock_leap, started_at < clock_timestamp() AS started, started_after, reservations > 0 AS counted
FROM snowflake_status();
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT epoch, layout_end FROM snowflake_status();

-- An error is counted.
SELECT errors AS before FROM snowflake_status() \gset
SELECT snowflake_database_layout(), snowflake_database_layout() = snowflake_server_layout() AS same;
CREATE FUNCTION put_on_record(text) RETURNS void LANGUAGE sql AS $$
    SELECT setval('_snowflake.layout', CASE $1 WHEN 'twitter' THEN 4295659718092 ELSE 4295664258048 END);
    SELECT setval('_snowflake.epoch', CASE $1 WHEN 'twitter' THEN 1288834974657000 ELSE 1704067200000000 END);
$$;
SELECT put_on_record('twitter');
SELECT snowflake_database_layout();
\c -
SELECT snowflake_next();
SELECT (snowflake_decode(1541815603606036480)).*;
SELECT errors > :before AS counted FROM snowflake_status();
SELECT snowflake_adopt_layout();
SELECT put_on_record('default');
SELECT snowflake_next() > 0 AS made;

-- A record that is no layout.
SELECT setval('_snowflake.layout', 1);
\c -
SELECT snowflake_next();
SELECT snowflake_timestamp(0);
SELECT snowflake_adopt_layout();
SELECT snowflake_next() > 0 AS made;

-- Back to an ID, where there is nothing beyond it, or a row above it.
SELECT snowflake_rewind(-1);
SELECT snowflake_rewind(snowflake_max_id('2090-01-01'));
CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_next());
INSERT INTO rows VALUES (382304429472247813);
SELECT snowflake_rewind(0);
DROP TABLE rows;
DROP FUNCTION put_on_record(text);

-- Without the extension, or with half of it, its functions say so.
DROP EXTENSION pg_snowflake;
CREATE FUNCTION stray() RETURNS bigint LANGUAGE c AS '$libdir/pg_snowflake', 'snowflake_next';
SELECT stray();
