-- Every object of the extension, with all that callers and the planner see of it. A new object is added here, too.
CREATE EXTENSION pg_snowflake;
SELECT pg_describe_object(classid, objid, 0) AS object, obj_description(objid, classid::regclass::name) AS comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake')
  AND deptype = 'e'
  -- From PostgreSQL 18 on, array types depend on the extension, too.
  AND pg_describe_object(classid, objid, 0) NOT SIMILAR TO 'type %\[\]'
ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";

SELECT p.oid::regprocedure AS function, l.lanname AS lang, provolatile AS v, proparallel AS p, proisstrict AS strict,
       proretset AS set, procost AS cost, prorows AS rows, prosecdef AS definer, proacl IS NULL AS public
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
ORDER BY objid;

SELECT attname, atttypid::regtype FROM pg_attribute
WHERE attrelid = 'snowflake_parts'::regclass ORDER BY attnum;

SELECT name, setting, unit, context, vartype, boot_val, min_val, max_val FROM pg_settings
WHERE name LIKE 'pg_snowflake.%' ORDER BY name COLLATE "C";
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'pg_snowflake.%' ORDER BY name COLLATE "C";

SELECT extname, extrelocatable, extconfig::regclass[] AS dumped FROM pg_extension WHERE extname = 'pg_snowflake';

-- Nothing is left behind.
DROP EXTENSION pg_snowflake;
SELECT count(*) FROM pg_class WHERE relname LIKE 'snowflake%' OR relnamespace::regnamespace::text = '_snowflake';
SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%snowflake%';
SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT count(*) FROM pg_type WHERE typname LIKE '%snowflake%';
