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
