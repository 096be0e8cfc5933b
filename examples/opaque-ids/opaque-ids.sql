-- IDs that tell nothing: see README.md beside this file.
--
--   psql --set ON_ERROR_STOP=1 --file opaque-ids.sql
--
-- All is in a schema of its own, and belongs to whoever runs this, who should not be the role of the application.
BEGIN;
-- Names are PostgreSQL's own or qualified: what others have made in public is not found, nor bound to in the bodies below.
SET LOCAL search_path = pg_catalog, pg_temp;
CREATE SCHEMA opaque;
CREATE EXTENSION IF NOT EXISTS pgcrypto SCHEMA opaque;
SELECT quote_ident(nspname) AS pgcrypto FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pgcrypto' \gset

-- The newest key makes public IDs. All of them are tried where one is read.
CREATE TABLE opaque.keys (
    number integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    key bytea NOT NULL CHECK (octet_length(key) = 32)
);
INSERT INTO opaque.keys (key) VALUES (:pgcrypto.gen_random_bytes(32));

-- What is encrypted is one block of AES: the eight bytes of the ID, and eight that stand for what it is of, such as 'order'. The bodies are
-- in SQL's own form, in which names are looked up when the function is created, by the search_path above: the caller's changes nothing.
CREATE FUNCTION opaque.public_id(id bigint, kind text) RETURNS uuid
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    BEGIN ATOMIC
        SELECT encode(:pgcrypto.encrypt(int8send(id) || substring(sha256(convert_to(kind, 'UTF8')) FROM 1 FOR 8), k.key, 'aes-ecb/pad:none'), 'hex')::uuid
        FROM opaque.keys AS k ORDER BY k.number DESC LIMIT 1;
    END;
COMMENT ON FUNCTION opaque.public_id(bigint, text) IS
    'the public form of an ID of this kind';

CREATE FUNCTION opaque.internal_id(public uuid, kind text) RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    BEGIN ATOMIC
        SELECT ('x' || encode(substring(b.block FROM 1 FOR 8), 'hex'))::bit(64)::bigint
        FROM opaque.keys AS k, LATERAL (SELECT :pgcrypto.decrypt(uuid_send(public), k.key, 'aes-ecb/pad:none') AS block) AS b
        WHERE substring(b.block FROM 9) = substring(sha256(convert_to(kind, 'UTF8')) FROM 1 FOR 8)
        ORDER BY k.number DESC LIMIT 1;
    END;
COMMENT ON FUNCTION opaque.internal_id(uuid, text) IS
    'the ID of a public one of this kind; NULL where it is none';

-- Whoever may call them can turn IDs both ways. Nobody may at first: GRANT EXECUTE ... TO the role of the application.
REVOKE ALL ON FUNCTION opaque.public_id(bigint, text), opaque.internal_id(uuid, text) FROM PUBLIC;
COMMIT;
