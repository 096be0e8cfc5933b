-- IDs as text. The forms themselves: core/tests/text.rs.
CREATE EXTENSION pg_snowflake;
CREATE TABLE forms (form text);
INSERT INTO forms VALUES ('decimal'), ('hex'), ('base32'), ('base36'), ('base58'), ('base58-bwmarrin'), ('base62'), ('base64url'), ('shortcode');
SELECT form, snowflake_to_text(0, form) AS lowest, snowflake_to_text(382304429472247813, form) AS id,
       snowflake_to_text(9223372036854775807, form) AS highest
FROM forms;
SELECT snowflake_from_text('8hgmw4blvlkw', 'base36'), snowflake_from_text('4jgmnx8Js8A', 'base58-bwmarrin'),
       snowflake_from_text('o123456789abc', 'base32'), snowflake_from_text('BjNLpA1AhXM', 'shortcode');

-- Round trips, and order.
CREATE TABLE ids AS SELECT floor(random() * 9223372036854774784)::bigint AS id FROM generate_series(1, 2000)
UNION ALL SELECT i FROM generate_series(0, 200) i;
SELECT count(*) AS wrong FROM ids, forms WHERE snowflake_from_text(snowflake_to_text(id, form), form) <> id;
SELECT form, bool_and(by_text = by_id) AS keeps_order
FROM (SELECT form, row_number() OVER (PARTITION BY form ORDER BY snowflake_to_text(id, form) COLLATE "C", id) AS by_text,
             row_number() OVER (PARTITION BY form ORDER BY id) AS by_id
      FROM ids, forms) places
GROUP BY form ORDER BY form COLLATE "C";

-- NULL, and what is no ID.
SELECT snowflake_to_text(NULL, 'hex') IS NULL AND snowflake_to_text(1, NULL) IS NULL AND snowflake_from_text(NULL, 'hex') IS NULL AS nulls;
SELECT snowflake_to_text(-1, 'hex');
SELECT snowflake_to_text(1, 'base16');
SELECT snowflake_from_text('1', 'hex');
SELECT snowflake_from_text('05772439bb9f907g', 'hex');
SELECT snowflake_from_text('8000000000000000', 'hex');
SELECT snowflake_from_text('0123456789ABU', 'base32');
SELECT snowflake_from_text('08hgmw4blvlkw', 'base36');
SELECT snowflake_from_text('', 'base36');
SELECT snowflake_from_text('zzzzzzzzzzzzzzzzzzzzzzzzz', 'base36');
SELECT snowflake_from_text('ÄÖÜ', 'base62');
DO $$ BEGIN PERFORM snowflake_from_text('x', 'hex'); EXCEPTION WHEN invalid_text_representation THEN RAISE NOTICE '%', SQLSTATE; END $$;
DO $$ BEGIN PERFORM snowflake_from_text('8000000000000000', 'hex'); EXCEPTION WHEN numeric_value_out_of_range THEN RAISE NOTICE '%', SQLSTATE; END $$;

-- IMMUTABLE: a unique index on the text, and a lookup by it.
CREATE TABLE links (id bigint PRIMARY KEY);
CREATE UNIQUE INDEX links_slug ON links (snowflake_to_text(id, 'base62'));
INSERT INTO links VALUES (393826547217232108);
SELECT id FROM links WHERE id = snowflake_from_text('0T5jFDIkmmy', 'base62');
