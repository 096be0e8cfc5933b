\echo Use "CREATE EXTENSION pg_snowflake" to load this file. \quit

-- Reading the parts of an ID, and composing an ID from parts. These functions work without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is an SQL function that calls them. It is not STRICT, so that the planner can
-- inline it: (snowflake_decode(id)).* costs as much as the accessors.

CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
COMMENT ON TYPE snowflake_parts IS
    'parts of a snowflake ID; a part that its layout does not have is NULL';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of a snowflake ID, rounded down to a tick of its layout';

CREATE FUNCTION snowflake_datacenter(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_datacenter';
COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
    'datacenter of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_worker';
COMMENT ON FUNCTION snowflake_worker(bigint) IS
    'worker of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION snowflake_sequence(bigint) IS
    'sequence number of a snowflake ID within its tick';

CREATE FUNCTION snowflake_decode(id bigint) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN ROW (
        snowflake_timestamp(id),
        snowflake_datacenter(id),
        snowflake_worker(id),
        snowflake_sequence(id)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of a snowflake ID';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer DEFAULT 0,
    datacenter_id integer DEFAULT NULL
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'composes a snowflake ID from its parts, for tests and for existing rows; does not ensure that it is unique';

-- The same functions for a layout that the caller names: a built-in one, or one in the notation of pg_snowflake.layout.

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_in';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of a snowflake ID of the given layout, rounded down to a tick';

CREATE FUNCTION snowflake_datacenter(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_datacenter_in';
COMMENT ON FUNCTION snowflake_datacenter(bigint, text) IS
    'datacenter of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_worker_in';
COMMENT ON FUNCTION snowflake_worker(bigint, text) IS
    'worker of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sequence_in';
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
    'sequence number of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_decode(id bigint, layout text) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 8
    RETURN ROW (
        snowflake_timestamp(id, layout),
        snowflake_datacenter(id, layout),
        snowflake_worker(id, layout),
        snowflake_sequence(id, layout)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of a snowflake ID of the given layout';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer,
    datacenter_id integer,
    layout text
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_encode_in';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'composes a snowflake ID of the given layout from its parts; does not ensure that it is unique';

-- The built-in layouts.

CREATE FUNCTION snowflake_layouts() RETURNS TABLE (
    name text,
    layout text,
    tick interval,
    first_time timestamptz,
    last_time timestamptz,
    workers bigint,
    ids_per_second bigint,
    makes_ids boolean,
    fits_double boolean,
    source text
)
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 ROWS 16
    AS 'MODULE_PATHNAME', 'snowflake_layouts';
COMMENT ON FUNCTION snowflake_layouts() IS
    'built-in layouts of snowflake IDs; ids_per_second is the highest rate of one worker';

-- Lowest and highest IDs of a range of time. With them, a query by time can use an index on the ID. They have a result
-- for every instant: where no ID is at or before it, the highest such ID is -1, and where none is at or after it, the
-- lowest such ID is the highest bigint.

CREATE FUNCTION snowflake_min_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one';

CREATE FUNCTION snowflake_max_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'highest snowflake ID whose time is at or before the given one';

CREATE FUNCTION snowflake_max_id_before(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before';
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz) IS
    'highest snowflake ID whose time is before the given one';

-- Not STRICT, so that the planner can inline it. Each time is used once: a subquery that is used twice is not inlined.
-- The lower bound is compared with >=, because by > PostgreSQL would also read the partition that ends where the range
-- begins; the upper one with <=, because the lowest ID at or after 'infinity' would be out of range for bigint.
CREATE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN id >= snowflake_min_id(since) AND id <= snowflake_max_id_before(until);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether the time of a snowflake ID is at or after since and before until; can use an index on the ID';

-- The same functions for a layout that the caller names.

CREATE FUNCTION snowflake_min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_in';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'lowest snowflake ID of the given layout whose time is at or after the given one';

CREATE FUNCTION snowflake_max_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is at or before the given one';

CREATE FUNCTION snowflake_max_id_before(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_in';
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is before the given one';

CREATE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3
    RETURN id >= snowflake_min_id(since, layout) AND id <= snowflake_max_id_before(until, layout);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS
    'whether the time of a snowflake ID of the given layout is at or after since and before until; can use an index on the ID';

-- Making snowflake IDs.

CREATE FUNCTION snowflake_next() RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_next';
COMMENT ON FUNCTION snowflake_next() IS
    'next snowflake ID of this server';

-- PARALLEL RESTRICTED: in FROM, each parallel worker would return as many IDs as the caller has asked for.
CREATE FUNCTION snowflake_next(count integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1 ROWS 1000
    AS 'MODULE_PATHNAME', 'snowflake_next_many';
COMMENT ON FUNCTION snowflake_next(integer) IS
    'the given number of next snowflake IDs of this server, in ascending order';

-- The record that a database keeps of its IDs: three sequences, used as variables that hold one number each.
--
-- Sequences, because pg_dump writes each as one setval(), which on restore overwrites the number that CREATE EXTENSION stored; and
-- because FOR ALL TABLES publications, TRUNCATE, and tools that map tables to models leave sequences alone.
-- Everybody may read them, so that the owner of a database can dump it. They belong to the role that creates the extension, so
-- that this role can restore a dump.

CREATE SCHEMA _snowflake;
COMMENT ON SCHEMA _snowflake IS
    'pg_snowflake''s internal record of the IDs of this database';
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;

CREATE SEQUENCE _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.reservation OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'internal: upper bound of the times of the snowflake IDs of this database, in milliseconds since 1970';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');

CREATE SEQUENCE _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.layout OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.layout IS
    'internal: fields and tick of the layout of this database, encoded as a number; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.layout', '');

CREATE SEQUENCE _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.epoch OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'internal: epoch of the layout of this database, in microseconds since 1970; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');

-- Stores the server's layout in the record. If the library is preloaded, also creates the replication origin that the server's
-- reservation is stored in.
CREATE FUNCTION _snowflake.prepare() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_prepare';
SELECT _snowflake.prepare();
DROP FUNCTION _snowflake.prepare();

CREATE FUNCTION snowflake_server_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_server_layout';
COMMENT ON FUNCTION snowflake_server_layout() IS
    'layout that this server is configured with, in full notation';

CREATE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_database_layout';
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

CREATE FUNCTION snowflake_adopt_layout() RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_adopt_layout';
REVOKE ALL ON FUNCTION snowflake_adopt_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adopt_layout() IS
    'sets the layout of this database to that of this server; refused if snowflake IDs were made in the database';

CREATE FUNCTION snowflake_rewind(last_id bigint) RETURNS timestamptz
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_rewind';
REVOKE ALL ON FUNCTION snowflake_rewind(bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_rewind(bigint) IS
    'continues with snowflake IDs after last_id, or of the current time if that is later; for a server whose clock was ahead when it made IDs; no ID above last_id may be in use anywhere';

-- The state of the server's IDs, for monitoring. A function rather than a view, since tools that compare a database with a model
-- would want to drop a view that is not in the model.

CREATE FUNCTION snowflake_status() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    previous_worker_id integer,
    previous_datacenter_id integer,
    previous_until timestamptz,
    layout text,
    epoch timestamptz,
    layout_end timestamptz,
    clock_source text,
    last_time timestamptz,
    lead interval,
    reserved_until timestamptz,
    started_at timestamptz,
    started_after text,
    reservations bigint,
    waits bigint,
    wait_time interval,
    clock_steps bigint,
    largest_clock_step interval,
    clock_leaps bigint,
    clock_leap interval,
    errors bigint,
    registry text,
    lease text,
    granted_until timestamptz,
    registry_error text
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_status_0_2_0';
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_status() IS
    'state of the snowflake IDs of this server, and counters since its start; does not make an ID';

-- IDs as text. The forms and their numbers of characters:
--
-- * in the C collation, these sort as the IDs do: decimal (19), hex (16), base32 (13; Crockford's alphabet), base58 (11;
--   Bitcoin's alphabet), base62 (11)
-- * these do not: base64url (11), base36 and base58-bwmarrin (variable; those of the Go package bwmarrin/snowflake), shortcode
--   (variable; that of Instagram)

CREATE FUNCTION snowflake_to_text(id bigint, form text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_to_text';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'writes a snowflake ID in the given text form';

CREATE FUNCTION snowflake_from_text("text" text, form text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_from_text';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'reads a snowflake ID that is written in the given text form';

-- How long ago an ID was made.

CREATE FUNCTION snowflake_age(id bigint) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id);
COMMENT ON FUNCTION snowflake_age(bigint) IS
    'time from a snowflake ID to the start of the transaction';

CREATE FUNCTION snowflake_age(id bigint, layout text) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id, layout);
COMMENT ON FUNCTION snowflake_age(bigint, text) IS
    'time from a snowflake ID of the given layout to the start of the transaction';

-- Partitions by ID time.

CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz
) RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_create_partitions';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

-- For pg_partman 5, for a partition key of type text that holds IDs in decimal form.

CREATE FUNCTION snowflake_time_encoder(at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_to_text(snowflake_min_id(at), 'decimal');
COMMENT ON FUNCTION snowflake_time_encoder(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one, in decimal form; for p_time_encoder of pg_partman';

CREATE FUNCTION snowflake_time_decoder("text" text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_timestamp(snowflake_from_text("text", 'decimal'));
COMMENT ON FUNCTION snowflake_time_decoder(text) IS
    'time of a snowflake ID in decimal form; for p_time_decoder of pg_partman';

-- Bounds of ranges of time for the planner, which replaces comparisons of an ID's time by comparisons of the ID. Those
-- of a timestamp or a date are STABLE, because they use the session's time zone, as PostgreSQL's operators do that
-- compare these types with timestamptz.

CREATE FUNCTION _snowflake.min_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz) IS
    'internal: lowest snowflake ID whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.min_id(timestamp) IS
    'internal: lowest snowflake ID whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date';
COMMENT ON FUNCTION _snowflake.min_id(date) IS
    'internal: lowest snowflake ID whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.max_id(timestamp) IS
    'internal: highest snowflake ID whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date';
COMMENT ON FUNCTION _snowflake.max_id(date) IS
    'internal: highest snowflake ID whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp) IS
    'internal: highest snowflake ID whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date';
COMMENT ON FUNCTION _snowflake.max_id_before(date) IS
    'internal: highest snowflake ID whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- The same functions for a layout that the caller names.

CREATE FUNCTION _snowflake.min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamp, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date_in';
COMMENT ON FUNCTION _snowflake.min_id(date, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date_in';
COMMENT ON FUNCTION _snowflake.max_id(date, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date_in';
COMMENT ON FUNCTION _snowflake.max_id_before(date, text) IS
    'internal: highest snowflake ID of the layout whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- The workers of all servers, as the registry has them.

CREATE FUNCTION snowflake_workers() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    state text,
    granted_from timestamptz,
    granted_until timestamptz,
    host text,
    port integer,
    data_directory text,
    cluster_name text,
    system_identifier bigint,
    is_this_server boolean
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_workers';
REVOKE ALL ON FUNCTION snowflake_workers() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_workers() TO pg_monitor;
COMMENT ON FUNCTION snowflake_workers() IS
    'worker IDs that servers have leased from the registry, and who has them; asks the registry';

-- Existing tables: from a sequence or an identity to snowflake IDs, and back. The plans say what would be done, as rows: what
-- stands in the way (kind 'obstacle'), the statements in order, and what one should know ('note').

CREATE FUNCTION snowflake_adopt_plan(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_plan';
COMMENT ON FUNCTION snowflake_adopt_plan(regclass, name, text) IS
    'what snowflake_adopt() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_adopt';
COMMENT ON FUNCTION snowflake_adopt(regclass, name, text) IS
    'gives an existing column the default snowflake_next(), and makes it and all columns that refer to it bigint; new IDs are at or above first_id, old numbers below it';

CREATE FUNCTION snowflake_adopt_all_plan(
    tables regclass[],
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all_plan';
COMMENT ON FUNCTION snowflake_adopt_all_plan(regclass[], text) IS
    'what snowflake_adopt_all() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt_all(
    tables regclass[],
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    tbl regclass,
    col text,
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all';
COMMENT ON FUNCTION snowflake_adopt_all(regclass[], text) IS
    'does for several tables what snowflake_adopt() does for one, by one plan that locks and rewrites each table once; leaves out those that make snowflake IDs already';

CREATE FUNCTION snowflake_release_plan(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_release_plan';
COMMENT ON FUNCTION snowflake_release_plan(regclass, name, bigint, boolean) IS
    'what snowflake_release() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode; does nothing';

CREATE FUNCTION snowflake_release(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000
    AS 'MODULE_PATHNAME', 'snowflake_release';
COMMENT ON FUNCTION snowflake_release(regclass, name, bigint, boolean) IS
    'gives a column whose default is snowflake_next() back what it had before, or else a sequence or an identity; returns the next value, where it is known';

-- What is required, checked before the first ID is made. Each row answers one question; what is not given is not compared.

CREATE FUNCTION snowflake_preflight(
    layout text DEFAULT NULL,
    epoch timestamptz DEFAULT NULL,
    servers integer DEFAULT NULL,
    datacenters integer DEFAULT NULL,
    leases boolean DEFAULT NULL,
    ids_per_second double precision DEFAULT NULL,
    years integer DEFAULT 20,
    javascript boolean DEFAULT NULL,
    oldest_row timestamptz DEFAULT NULL,
    keys regclass[] DEFAULT NULL,
    key_column name DEFAULT NULL
) RETURNS TABLE (
    subject text,
    verdict text,
    finding text,
    advice text
)
    LANGUAGE c STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_preflight';
COMMENT ON FUNCTION snowflake_preflight(text, timestamptz, integer, integer, boolean, double precision, integer, boolean, timestamptz, regclass[], name) IS
    'checks a layout and the settings of this server before the first snowflake ID is made: until when IDs last, how many servers and IDs a second there is room for, which rows can have IDs, whether existing keys sort below; changes nothing';
