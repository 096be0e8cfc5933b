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
ALTER SEQUENCE _snowflake.layout RESTART;
\c -
SELECT snowflake_next();
SELECT errors > :before AS counted FROM snowflake_status();
