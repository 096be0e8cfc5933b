-- Privileges that do not depend on default privileges. Only the owner may change the record, as IDs could be made twice otherwise; functions for
-- administrators are for them alone; and everybody may call functions that are part of others.
CREATE FUNCTION _snowflake.set_privileges() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_set_privileges';
SELECT _snowflake.set_privileges();
DROP FUNCTION _snowflake.set_privileges();
