-- The roles that may insert rows of a table ($1), but not have a value of a sequence ($2), but for the owner of the table.
WITH RECURSIVE :grantees
SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END
FROM grantees JOIN pg_class s ON s.oid = $2 WHERE role <> (SELECT relowner FROM pg_class WHERE oid = $1) AND CASE role
    WHEN 0 THEN NOT EXISTS (SELECT FROM aclexplode(coalesce(relacl, acldefault('s', relowner)))
        WHERE grantee = 0 AND privilege_type IN ('USAGE', 'UPDATE'))
    ELSE NOT has_sequence_privilege(role, $2, 'USAGE, UPDATE') END
ORDER BY 1
