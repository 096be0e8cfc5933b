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
