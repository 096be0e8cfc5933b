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
