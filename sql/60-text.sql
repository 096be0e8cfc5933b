-- IDs as text. A form is one of: decimal (19 digits), hex (16), base32 (Crockford's, 13), base58 (Bitcoin's alphabet, 11),
-- base62 (11), which all sort under the C collation as the IDs do; base64url (11), base36 and base58-bwmarrin (as
-- bwmarrin's) and shortcode (Instagram's), which do not.

CREATE FUNCTION snowflake_to_text(id bigint, form text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_to_text_wrapper';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'snowflake ID in the given text form';

CREATE FUNCTION snowflake_from_text("text" text, form text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_from_text_wrapper';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'snowflake ID from the given text form';
