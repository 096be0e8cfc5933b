-- What a call costs, and what the alternatives would: psql --file measure.sql, after opaque-ids.sql, in a database that can be lost.
-- Each line is the time of 200,000 calls in one query, less that of the same query without the call.
SET search_path = pg_catalog, pg_temp;
SELECT quote_ident(nspname) AS pgcrypto FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pgcrypto' \gset
DROP SCHEMA IF EXISTS alternatives CASCADE;
CREATE SCHEMA alternatives;

-- 64 bits by 3DES, the only cipher of such blocks that OpenSSL 3 has without its legacy provider.
CREATE FUNCTION alternatives.by_3des(id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ('x' || encode(:pgcrypto.encrypt(int8send(id), '\x000102030405060708090a0b0c0d0e0f1011121314151617', '3des-ecb/pad:none'), 'hex'))::bit(64)::bigint;

-- 64 bits by rounds over HMAC-SHA256. With halves of 32 bits, 4 rounds can be told from chance after some 2^16 pairs, so there are 8.
CREATE FUNCTION alternatives.by_rounds(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    high bigint := (id >> 32) & 4294967295;
    low bigint := id & 4294967295;
    mixed bytea;
BEGIN
    FOR round IN 1..8 LOOP
        mixed := alternatives.hmac(int8send(low << 8 | round), '\x000102030405060708090a0b0c0d0e0f');
        SELECT low, high # (get_byte(mixed, 0)::bigint << 24 | get_byte(mixed, 1) << 16 | get_byte(mixed, 2) << 8 | get_byte(mixed, 3))
            INTO high, low;
    END LOOP;
    RETURN high << 32 | low;
END $$;
CREATE FUNCTION alternatives.hmac(bytea, bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN :pgcrypto.hmac($1, $2, 'sha256');

CREATE FUNCTION alternatives.micros(call text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    best interval := '1 hour';
    begun timestamptz;
BEGIN
    FOR attempt IN 1..5 LOOP
        begun := clock_timestamp();
        EXECUTE format('SELECT count(%s) FROM generate_series(381956810342400000, 381956810342599999) AS id', call);
        best := least(best, clock_timestamp() - begun);
    END LOOP;
    RETURN extract(epoch FROM best) * 1000000 / 200000;
END $$;
WITH calls (what, call) AS (VALUES
    ('nothing', 'id'),
    ('public_id', 'opaque.public_id(id, ''order'')'),
    ('internal_id', 'opaque.internal_id(''00000000-0000-0000-0000-000000000000''::uuid, ''order'' || id % 1)'),
    ('64 bits, 3DES', 'alternatives.by_3des(id)'),
    ('64 bits, 8 rounds of HMAC', 'alternatives.by_rounds(id)')
), measured AS (SELECT what, alternatives.micros(call) AS micros FROM calls)
SELECT what, round(micros - (SELECT micros FROM measured WHERE what = 'nothing'), 2) AS "microseconds per call" FROM measured;
DROP SCHEMA alternatives CASCADE;
