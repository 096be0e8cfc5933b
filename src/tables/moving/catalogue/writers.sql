-- The roles that may insert rows of a table ($1), with whether they may execute a function ($2). A role that nobody is logged in as may be
-- one that gathers others: then these count.
WITH RECURSIVE :grantees
SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END,
    coalesce(CASE role WHEN 0 THEN is_public ELSE has_function_privilege(role, next, 'EXECUTE') END
        OR (role = 0 OR NOT rolcanlogin AND EXISTS (SELECT FROM pg_roles m
                WHERE m.rolcanlogin AND NOT m.rolsuper AND pg_has_role(m.oid, role, 'MEMBER')))
            AND role <> (SELECT relowner FROM pg_class WHERE oid = $1)
            AND NOT EXISTS (SELECT FROM pg_roles m WHERE m.rolcanlogin AND (role = 0 OR pg_has_role(m.oid, role, 'MEMBER'))
                AND NOT has_function_privilege(m.oid, next, 'EXECUTE')), true)
FROM (
    SELECT role FROM grantees
    UNION SELECT oid FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, 'pg_write_all_data', 'USAGE')
) writers
LEFT JOIN pg_roles r ON r.oid = role
LEFT JOIN (
    SELECT oid AS next, EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0) AS is_public
    FROM pg_proc WHERE oid = $2
) function ON true
ORDER BY 1
