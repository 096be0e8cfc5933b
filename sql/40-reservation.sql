-- What a database remembers of its IDs. Nobody is granted anything on these two relations; the functions read and
-- write them past their privileges. Dumps carry both.

-- Not a source of numbers: its value is the instant, in milliseconds since 1970, up to which IDs may have been made.
-- It begins above all that this server has reserved, and at the clock, for the IDs that were made before the extension
-- was dropped and created again.
CREATE SEQUENCE snowflake_reservation AS bigint NO CYCLE;
REVOKE ALL ON SEQUENCE snowflake_reservation FROM PUBLIC;
COMMENT ON SEQUENCE snowflake_reservation IS
    'instant up to which snowflake IDs of this database are reserved; not for use';
CREATE FUNCTION snowflake_begin_reservation(relation regclass) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100
    AS 'MODULE_PATHNAME', 'snowflake_begin_reservation_wrapper';
SELECT snowflake_begin_reservation('snowflake_reservation');
DROP FUNCTION snowflake_begin_reservation(regclass);
SELECT pg_catalog.pg_extension_config_dump('snowflake_reservation', '');

-- No key: a restored dump brings a row of its own beside the one from here, and all must say the same.
CREATE TABLE snowflake_layout (layout text NOT NULL);
REVOKE ALL ON TABLE snowflake_layout FROM PUBLIC;
COMMENT ON TABLE snowflake_layout IS
    'layout of the snowflake IDs of this database';
COMMENT ON COLUMN snowflake_layout.layout IS
    'layout in full notation, with tick and epoch';
SELECT pg_catalog.pg_extension_config_dump('snowflake_layout', '');

CREATE FUNCTION snowflake_server_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_server_layout_wrapper';
COMMENT ON FUNCTION snowflake_server_layout() IS
    'layout that the settings of this server make, in full notation';
INSERT INTO snowflake_layout VALUES (snowflake_server_layout());

CREATE FUNCTION snowflake_adoptable_layout() RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_adoptable_layout_wrapper';
REVOKE ALL ON FUNCTION snowflake_adoptable_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adoptable_layout() IS
    'layout of this server, if no snowflake IDs were made in this database yet';

CREATE FUNCTION snowflake_adopt_layout() RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE COST 1000
BEGIN ATOMIC
    DELETE FROM snowflake_layout;
    INSERT INTO snowflake_layout VALUES (snowflake_adoptable_layout()) RETURNING layout;
END;
REVOKE ALL ON FUNCTION snowflake_adopt_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adopt_layout() IS
    'makes the layout of this server that of this database, if no snowflake IDs were made in it yet';
