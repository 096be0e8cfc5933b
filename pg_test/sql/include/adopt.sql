-- The columns of a table with their types, defaults and identities; and what is true of all IDs.
CREATE FUNCTION columns(VARIADIC tables regclass[]) RETURNS TABLE (col text, type text, identity "char", "default" text)
LANGUAGE sql AS $$
    SELECT attrelid::regclass || '.' || quote_ident(attname), format_type(atttypid, atttypmod), attidentity, pg_get_expr(adbin, adrelid)
    FROM unnest(tables) WITH ORDINALITY t (tbl, place) JOIN pg_attribute ON attrelid = tbl AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum ORDER BY place, attnum $$;
-- A plan without what differs from run to run.
CREATE FUNCTION plan(tbl regclass, col name DEFAULT NULL, views text DEFAULT 'refuse')
RETURNS TABLE (kind text, statement text, locks text, rewrites text, note text) LANGUAGE sql AS $$
    SELECT kind, statement, locks, rewrites, regexp_replace(note, '\d{16,}', 'ID', 'g')
    FROM snowflake_adopt_plan(tbl, col, views) $$;
CREATE FUNCTION adopt(tbl regclass, col name DEFAULT NULL, views text DEFAULT 'refuse')
RETURNS TABLE (new boolean, now boolean, highest_before bigint) LANGUAGE sql AS $$
    SELECT first_id > coalesce(highest_before, 0) AND first_id <= snowflake_next() AND first_id = snowflake_min_id(adopted_at),
        abs(extract(epoch FROM clock_timestamp() - adopted_at)) < 600, highest_before
    FROM snowflake_adopt(tbl, col, views) $$;
