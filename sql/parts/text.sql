-- IDs as text. The forms and their numbers of characters:
--
-- * in the C collation, these sort as the IDs do: decimal (19), hex (16), base32 (13; Crockford's alphabet), base58 (11;
--   Bitcoin's alphabet), base62 (11)
-- * these do not: base64url (11), base36 and base58-bwmarrin (variable; those of the Go package bwmarrin/snowflake), shortcode
--   (variable; that of Instagram)

CREATE FUNCTION snowflake_to_text(id bigint, form text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_to_text';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'writes a snowflake ID in the given text form';

CREATE FUNCTION snowflake_from_text("text" text, form text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_from_text';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'reads a snowflake ID that is written in the given text form';
