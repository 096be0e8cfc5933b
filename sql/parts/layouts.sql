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
