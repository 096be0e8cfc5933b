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
