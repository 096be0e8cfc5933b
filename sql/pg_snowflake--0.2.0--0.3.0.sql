\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.3.0'" to load this file. \quit

-- Segments: plain numbers by tag, unique over all servers of a registry's namespace.

CREATE FUNCTION snowflake_segment_create(
    tag text,
    first bigint DEFAULT 1,
    last bigint DEFAULT 9223372036854775807,
    smallest_range bigint DEFAULT NULL,
    largest_range bigint DEFAULT NULL
) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_create';
REVOKE ALL ON FUNCTION snowflake_segment_create(text, bigint, bigint, bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_create(text, bigint, bigint, bigint, bigint) IS
    'creates a segment in the registry; one that was dropped goes on above what was used; returns its next number';

CREATE FUNCTION snowflake_segment_next(tag text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_segment_next';
REVOKE ALL ON FUNCTION snowflake_segment_next(text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_next(text) IS
    'next number of a segment, unique over all servers of the registry''s namespace';

-- PARALLEL RESTRICTED: in FROM, each parallel worker would return as many numbers as the caller has asked for.
CREATE FUNCTION snowflake_segment_next(tag text, count integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1 ROWS 1000
    AS 'MODULE_PATHNAME', 'snowflake_segment_next_many';
REVOKE ALL ON FUNCTION snowflake_segment_next(text, integer) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_next(text, integer) IS
    'the given number of next numbers of a segment, in ascending order';

CREATE FUNCTION snowflake_segment_raise(tag text, above bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_raise';
REVOKE ALL ON FUNCTION snowflake_segment_raise(text, bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_raise(text, bigint) IS
    'has later numbers of a segment be above this one, on other servers within a minute; returns its next number';

CREATE FUNCTION snowflake_segment_drop(tag text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_drop';
REVOKE ALL ON FUNCTION snowflake_segment_drop(text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_drop(text) IS
    'drops a segment, on other servers within a minute; the registry keeps what was used; returns the number from which it would go on';

CREATE FUNCTION snowflake_segments(all_servers boolean DEFAULT true) RETURNS TABLE (
    tag text,
    state text,
    first bigint,
    last bigint,
    next_granted bigint,
    worker_id integer,
    datacenter_id integer,
    host text,
    is_this_server boolean,
    as_of timestamptz,
    current_from bigint,
    current_until bigint,
    after_from bigint,
    after_until bigint,
    held bigint,
    range_size bigint,
    per_second double precision,
    lasts interval
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_segments';
REVOKE ALL ON FUNCTION snowflake_segments(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_segments(boolean) TO pg_monitor;
COMMENT ON FUNCTION snowflake_segments(boolean) IS
    'segments, and which servers hold which ranges, how fast they are used and for how long they last; asks the registry, unless only this server is meant';
-- Partitions by ID time.

CREATE FUNCTION snowflake_maintain_partitions(
    parent regclass,
    every interval,
    ahead interval,
    retention interval DEFAULT NULL,
    expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    AS 'MODULE_PATHNAME', 'snowflake_maintain_partitions';
COMMENT ON FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean) IS
    'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention';

-- A type of IDs that PostgreSQL's JSON functions write as text, since JavaScript cannot hold all bigint. Its values are stored, sorted and
-- indexed as bigint, by the operators of bigint: it has none of its own.

CREATE TYPE snowflake_id;

CREATE FUNCTION _snowflake.id_in(cstring) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_in';
COMMENT ON FUNCTION _snowflake.id_in(cstring) IS
    'reads a snowflake_id';

CREATE FUNCTION _snowflake.id_out(snowflake_id) RETURNS cstring
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_out';
COMMENT ON FUNCTION _snowflake.id_out(snowflake_id) IS
    'writes a snowflake_id';

CREATE FUNCTION _snowflake.id_recv(internal) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_recv';
COMMENT ON FUNCTION _snowflake.id_recv(internal) IS
    'reads a snowflake_id in binary form';

CREATE FUNCTION _snowflake.id_send(snowflake_id) RETURNS bytea
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_send';
COMMENT ON FUNCTION _snowflake.id_send(snowflake_id) IS
    'writes a snowflake_id in binary form';

CREATE TYPE snowflake_id (
    INPUT = _snowflake.id_in,
    OUTPUT = _snowflake.id_out,
    RECEIVE = _snowflake.id_recv,
    SEND = _snowflake.id_send,
    LIKE = bigint,
    CATEGORY = 'N'
);
COMMENT ON TYPE snowflake_id IS
    'a bigint that JSON functions write as text, for IDs that JavaScript reads';

-- To bigint wherever one is expected, so that all operators and functions of bigint take it. Back only where a value is stored: an
-- implicit cast both ways would leave the type of COALESCE and CASE to the order of their arguments.
CREATE CAST (snowflake_id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS snowflake_id) WITHOUT FUNCTION AS ASSIGNMENT;

-- Small literals are integer: COALESCE(id, 0), and bounds of partitions. Drivers send small numbers as smallint.
CREATE FUNCTION _snowflake.id_from(integer) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_integer';
COMMENT ON FUNCTION _snowflake.id_from(integer) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (integer AS snowflake_id) WITH FUNCTION _snowflake.id_from(integer) AS IMPLICIT;

CREATE FUNCTION _snowflake.id_from(smallint) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_smallint';
COMMENT ON FUNCTION _snowflake.id_from(smallint) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (smallint AS snowflake_id) WITH FUNCTION _snowflake.id_from(smallint) AS IMPLICIT;

-- As bigint has them. They are no implicit ones, as abs(id) would be ambiguous.
CREATE FUNCTION _snowflake.id_from(numeric) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_numeric';
COMMENT ON FUNCTION _snowflake.id_from(numeric) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (numeric AS snowflake_id) WITH FUNCTION _snowflake.id_from(numeric) AS ASSIGNMENT;

CREATE FUNCTION _snowflake.id_to_numeric(snowflake_id) RETURNS numeric
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_to_numeric';
COMMENT ON FUNCTION _snowflake.id_to_numeric(snowflake_id) IS
    'the number of a snowflake_id, for the cast';
CREATE CAST (snowflake_id AS numeric) WITH FUNCTION _snowflake.id_to_numeric(snowflake_id) AS ASSIGNMENT;

-- The functions of JSON look for this cast.
CREATE FUNCTION _snowflake.id_to_json(snowflake_id) RETURNS json
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_to_json';
COMMENT ON FUNCTION _snowflake.id_to_json(snowflake_id) IS
    'a snowflake_id as text in JSON, for the cast';
CREATE CAST (snowflake_id AS json) WITH FUNCTION _snowflake.id_to_json(snowflake_id);

-- The record.

-- Takes from others what the default privileges of the role that created the extension have given them of it, but for reading: who sets the record can
-- have IDs made twice.
CREATE FUNCTION _snowflake.close_record() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_close_record';
SELECT _snowflake.close_record();
DROP FUNCTION _snowflake.close_record();
