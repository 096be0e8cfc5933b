-- Text forms.

-- The digits of a form, its width where it is fixed, bits after the number, and whether letters are read in either case. No row for a
-- form that does not exist.
CREATE FUNCTION _snowflake.form(
    form text, OUT digits text, OUT width integer, OUT padding integer, OUT any_case boolean
) RETURNS SETOF record
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    base64 CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
BEGIN
    RETURN QUERY SELECT f.digits, f.width, f.padding, f.any_case FROM (VALUES
        ('decimal', '0123456789', 19, 0, false),
        ('hex', '0123456789abcdef', 16, 0, true),
        ('base32', '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 13, 0, true),
        ('base36', '0123456789abcdefghijklmnopqrstuvwxyz', NULL, 0, true),
        ('base58', '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', 11, 0, false),
        ('base58-bwmarrin', '123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ', NULL, 0, false),
        ('base62', '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 11, 0, false),
        ('base64url', base64, 11, 2, false),
        ('shortcode', base64, NULL, 0, false)
    ) AS f (name, digits, width, padding, any_case) WHERE f.name = form;
    IF NOT FOUND THEN
        RAISE invalid_parameter_value USING MESSAGE = format('"%s" is not a text form', _snowflake.shortened(form)),
            HINT = 'Use one of decimal, hex, base32, base36, base58, base58-bwmarrin, base62, base64url, shortcode.';
    END IF;
END $$;

CREATE FUNCTION _snowflake.to_text(id bigint, form text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    f record;
    number numeric;
    base integer;
    said text := '';
BEGIN
    SELECT * INTO f FROM _snowflake.form(form);
    IF id < 0 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('%s has no text form', id),
            DETAIL = 'IDs range from 0 to 9223372036854775807.', HINT = 'Leave such numbers out, for example with WHERE id >= 0.';
    END IF;
    number := id::numeric * (1 << f.padding);
    base := length(f.digits);
    WHILE number > 0 OR length(said) < coalesce(f.width, 1) LOOP
        said := substr(f.digits, (number % base)::integer + 1, 1) || said;
        number := div(number, base);
    END LOOP;
    RETURN said;
END $$;

CREATE FUNCTION _snowflake.from_text("text" text, form text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    f record;
    number numeric := 0;
    digit integer;
    digits integer[] := '{}';
    c text;
    problem text;
    code text := '22P02';
BEGIN
    SELECT * INTO f FROM _snowflake.form(form);
    IF octet_length("text") > 64 THEN
        problem := 'The text has more than 64 bytes, and an ID at most 19 characters';
    ELSE
        FOR i IN 1..length("text") LOOP
            c := substr("text", i, 1);
            digit := strpos(f.digits, c) - 1;
            IF digit < 0 AND f.any_case THEN
                c := translate(c, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ');
                IF form = 'base32' THEN
                    c := translate(c, 'OIL', '011');
                END IF;
                digit := greatest(strpos(f.digits, c),
                    strpos(f.digits, translate(c, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'))) - 1;
            END IF;
            IF digit < 0 THEN
                problem := format('Character %s, "%s", is no digit of the form', i, substr("text", i, 1));
                EXIT;
            END IF;
            digits := digits || digit;
            number := number * length(f.digits) + digit;
        END LOOP;
    END IF;
    IF problem IS NULL THEN
        IF length("text") <> f.width THEN
            problem := format('The text has %s characters, and the form %s', length("text"), f.width);
        ELSIF f.width IS NULL AND length("text") <> 1 AND coalesce(digits[1], 0) = 0 THEN
            problem := 'The form has at least one digit, and no leading zeros';
        ELSIF number % (1 << f.padding) <> 0 THEN
            problem := 'The last character has bits below the number';
        ELSIF div(number, 1 << f.padding) > 9223372036854775807 THEN
            problem := 'The number is above 9223372036854775807';
            code := '22003';
        END IF;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = code,
            MESSAGE = format('"%s" is not a snowflake ID in the form %s', _snowflake.shortened("text"), form),
            DETAIL = problem || '.', HINT = 'Give the form that it was written in, one of decimal, hex, base32, base36, base58, '
                'base58-bwmarrin, base62, base64url, shortcode.';
    END IF;
    RETURN div(number, 1 << f.padding);
END $$;
