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
    lasts interval,
    conflicts bigint,
    waits bigint
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_segments';
REVOKE ALL ON FUNCTION snowflake_segments(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_segments(boolean) TO pg_monitor;
COMMENT ON FUNCTION snowflake_segments(boolean) IS
    'segments, and which servers hold which ranges, how fast they are used and for how long they last; asks the registry, unless only this server is meant';
