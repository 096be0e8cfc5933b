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
