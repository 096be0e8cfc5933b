-- The objects of the extension, with all that callers and the planner see of them.
SELECT pg_describe_object(classid, objid, 0) AS object, obj_description(objid, classid::regclass::name) AS comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake')
  AND deptype = 'e'
  -- From PostgreSQL 18 on, array types depend on the extension, too.
  AND pg_describe_object(classid, objid, 0) NOT SIMILAR TO 'type %\[\]'
ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";

SELECT p.oid::regprocedure AS function, l.lanname AS lang, provolatile AS v, proparallel AS p, proisstrict AS strict,
       proretset AS set, procost AS cost, prorows AS rows, prosecdef AS definer, proacl IS NULL AS public,
       CASE lanname WHEN 'c' THEN prosrc END AS symbol
FROM pg_proc p JOIN pg_language l ON l.oid = prolang
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'pg_snowflake'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Who else than the owner was granted anything, by name.
SELECT objid::regclass AS relation, relkind, grantee::regrole, privilege_type
FROM pg_depend JOIN pg_extension e ON refobjid = e.oid AND extname = 'pg_snowflake' AND deptype = 'e'
JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
LEFT JOIN LATERAL aclexplode(relacl) ON grantee <> relowner
ORDER BY objid::regclass::text COLLATE "C";
SELECT objid::regprocedure AS function, grantee::regrole, privilege_type
FROM pg_depend JOIN pg_extension e ON refobjid = e.oid AND extname = 'pg_snowflake' AND deptype = 'e'
JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid,
LATERAL aclexplode(proacl) WHERE grantee <> proowner
ORDER BY objid::regprocedure::text COLLATE "C";

SELECT attname, atttypid::regtype FROM pg_attribute
WHERE attrelid = 'snowflake_parts'::regclass ORDER BY attnum;

SELECT extname, extrelocatable, extconfig::regclass[] AS dumped FROM pg_extension WHERE extname = 'pg_snowflake';
