\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- Not STRICT, so that the planner can inline it. Both bounds are the highest ID before an instant, a number from -1 to
-- the layout's highest ID. So no number is between them that is no ID of the layout.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN id > snowflake_max_id_before(since) AND id <= snowflake_max_id_before(until);

CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3
    RETURN id > snowflake_max_id_before(since, layout) AND id <= snowflake_max_id_before(until, layout);
