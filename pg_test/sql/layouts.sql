-- Layouts that a query names: built in, or in notation.
SET datestyle = ISO;
SET intervalstyle = postgres;
SET timezone = 'UTC';
CREATE EXTENSION pg_snowflake;
SELECT name, layout, tick, workers, ids_per_second, makes_ids, fits_double FROM snowflake_layouts();
SELECT name, first_time, last_time FROM snowflake_layouts();
SELECT name, source FROM snowflake_layouts();

-- Published IDs. What each means, and who says so: core/tests/vectors.rs.
CREATE TABLE published (layout text, id bigint);
INSERT INTO published VALUES
    ('twitter', 1541815603606036480), ('twitter', 210462857140252672), ('twitter', 20),
    ('discord', 175928847299117063), ('discord', 0), ('discord', 862026798833074178),
    ('instagram', 1787135824035452364), ('instagram', 908540701891980503),
    ('mastodon', 103270115826048975),
    ('sonyflake', 100663298), ('sonyflake', 476467565690880001),
    ('timestamp=29 worker=21 sequence=13 tick=1s epoch=2016-09-19T16:00:00Z', 180363646902239241),
    ('cosid', 295913926632165376), ('yitter', 129053495681099),
    ('tsid', 38390726480144748), ('tsid', 38358284406638839),
    ('cockroach', 235191684988928001);
SELECT layout, id, (snowflake_decode(id, layout)).* FROM published;
SELECT count(*) AS wrong
FROM published, LATERAL (SELECT (snowflake_decode(id, layout)).*) p
WHERE snowflake_encode(p.timestamp, p.worker_id, p.sequence, p.datacenter_id, layout) IS DISTINCT FROM id
   OR snowflake_timestamp(id, layout) <> p.timestamp
   OR snowflake_worker(id, layout) IS DISTINCT FROM p.worker_id
   OR snowflake_datacenter(id, layout) IS DISTINCT FROM p.datacenter_id
   OR snowflake_sequence(id, layout) IS DISTINCT FROM p.sequence
   OR id NOT BETWEEN snowflake_min_id(p.timestamp, layout) AND snowflake_max_id(p.timestamp, layout)
   OR id <= snowflake_max_id_before(p.timestamp, layout)
   OR NOT snowflake_between(id, p.timestamp, p.timestamp + interval '1 s', layout)
   OR snowflake_between(id, '-infinity', p.timestamp, layout);

-- Random IDs of every layout.
SELECT name, count(*) FILTER (WHERE snowflake_encode(p.timestamp, p.worker_id, p.sequence, p.datacenter_id, name) IS DISTINCT FROM id) AS wrong
FROM snowflake_layouts(),
     LATERAL (SELECT floor(random() * snowflake_max_id(last_time, name))::bigint AS id FROM generate_series(1, 1000)) ids,
     LATERAL (SELECT (snowflake_decode(id, name)).*) p
GROUP BY name ORDER BY name;

-- NULL.
SELECT snowflake_timestamp(1, NULL) IS NULL AS t, snowflake_encode(now(), 1, 1, 1, NULL) IS NULL AS e,
       snowflake_decode(1, NULL) IS NULL AS d, snowflake_between(1, now(), now(), NULL) IS NULL AS b;

-- What is no layout, no ID of it, no part of it, no time of it.
SELECT snowflake_timestamp(1, 'twiter');
SELECT snowflake_worker(1, '');
SELECT snowflake_decode(1, 'timestamp=41 worker=10 sequence=1o');
SELECT snowflake_sequence(1, 'timestamp=41 worker=11 sequence=12');
SELECT snowflake_min_id(now(), 'tick=1ms');
DO $$ BEGIN PERFORM snowflake_worker(1, 'x'); EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE '%', SQLSTATE; END $$;
SELECT snowflake_timestamp(9007199254740992, 'cosid-js');
SELECT snowflake_timestamp(-1, 'discord');
SELECT snowflake_encode('2026-01-01 00:00+00', 64, 0, NULL, 'yitter');
SELECT snowflake_encode('2026-01-01 00:00+00', 1, 1, NULL, 'cockroach');
SELECT snowflake_encode('2026-01-01 00:00+00', 1, 1, NULL, 'twitter');
SELECT snowflake_encode('2026-01-01 00:00+00', 1, 1, NULL, 'baidu');
SELECT snowflake_min_id('2010-01-01 00:00+00', 'discord');
SELECT snowflake_between(1, '2010-01-01 00:00+00', 'infinity', 'discord');

-- A constant layout is inlined as the server's is, and the bounds of a range are constants.
CREATE TABLE messages (id bigint PRIMARY KEY);
EXPLAIN (VERBOSE, COSTS OFF) SELECT (snowflake_decode(id, 'discord')).* FROM messages;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF)
SELECT * FROM messages WHERE snowflake_between(id, '2021-07-06 00:00+00', '2021-07-07 00:00+00', 'discord');
CREATE INDEX ON messages (snowflake_timestamp(id, 'discord'));
