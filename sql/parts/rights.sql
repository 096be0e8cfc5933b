-- Privileges, whatever default privileges said when the extension was created or updated. Nobody else may change the record, or IDs could be made
-- twice, nor call what is for administrators. Everybody may call what is part of other functions.
CREATE FUNCTION _snowflake.set_privileges() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_set_privileges';
SELECT _snowflake.set_privileges();
DROP FUNCTION _snowflake.set_privileges();
