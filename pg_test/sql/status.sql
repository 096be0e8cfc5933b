-- The state of the server's IDs. The counts are the server's: other sessions may add to them.
CREATE EXTENSION pg_snowflake;

-- Before the first ID of a database, nothing is reserved in it.
SELECT reserved_until IS NULL AS unreserved FROM snowflake_status;
SELECT snowflake_next() > 0 AS made;
SELECT worker_id, datacenter_id, layout, layout = snowflake_server_layout() AS of_server,
       reserved_until > clock_timestamp() AS reserved, reserved_until < clock_timestamp() + interval '1 min' AS not_far,
       abs(extract(epoch FROM last_time - clock_timestamp())) < 10 AS last, lead < interval '10 s' AS leads,
       run > 0 AS run, started_at < clock_timestamp() AS started, started_after, reservations > 0 AS counted
FROM snowflake_status;
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT epoch, layout_end FROM snowflake_status();

-- An error is counted.
SELECT errors AS before FROM snowflake_status \gset
SELECT layout FROM snowflake_layout;
UPDATE snowflake_layout SET layout = 'twitter';
\c -
SELECT snowflake_next();
SELECT errors > :before AS counted FROM snowflake_status;
SELECT snowflake_adopt_layout();
UPDATE snowflake_layout SET layout = snowflake_server_layout();
SELECT snowflake_next() > 0 AS made;
INSERT INTO snowflake_layout SELECT layout FROM snowflake_layout;
\c -
SELECT snowflake_next() > 0 AS rows_that_agree;
INSERT INTO snowflake_layout VALUES ('a layout of the future');
\c -
SELECT snowflake_next();

DELETE FROM snowflake_layout WHERE layout = 'a layout of the future';
SELECT snowflake_next() > 0 AS made;

-- Without the extension, or with half of it, its functions say so.
DROP EXTENSION pg_snowflake;
CREATE FUNCTION stray() RETURNS bigint LANGUAGE c AS '$libdir/pg_snowflake', 'snowflake_next';
SELECT stray();
