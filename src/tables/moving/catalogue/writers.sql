-- The roles that may insert rows of a table ($1), with whether they may execute a function ($2). A default is evaluated as whoever inserts,
-- which may be a role that others take on. For PUBLIC, whether all roles may.
WITH RECURSIVE :grantees
SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END,
    coalesce(CASE role WHEN 0 THEN is_public OR NOT EXISTS (SELECT FROM pg_roles m WHERE m.oid >= 16384
            AND NOT has_function_privilege(m.oid, next, 'EXECUTE'))
        ELSE has_function_privilege(role, next, 'EXECUTE') END, true)
FROM (
    SELECT role FROM grantees
    UNION SELECT oid FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, 'pg_write_all_data', 'USAGE')
) writers
LEFT JOIN (
    SELECT oid AS next, EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0) AS is_public
    FROM pg_proc WHERE oid = $2
) function ON true
ORDER BY 1
