-- The sequences of a column ($1, $2), what uses them beside its default, which partitions and heirs may have, too, and what makes them
-- again. A new sequence has the privileges that ALTER DEFAULT PRIVILEGES says.
WITH RECURSIVE tree (relation) AS (
    SELECT $1::oid UNION SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = relation
), own AS (
    SELECT attname, pg_get_expr(adbin, adrelid) AS expression
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = $1 AND attnum = $2
), defaults AS (
    SELECT d.oid, adrelid = $1 AS is_own FROM own, tree JOIN pg_attribute a ON attrelid = relation
    JOIN pg_attrdef d ON adrelid = relation AND adnum = attnum
    WHERE a.attname = own.attname AND pg_get_expr(adbin, adrelid) = own.expression
), owned AS (
    SELECT objid AS oid, deptype FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = $1
        AND refobjsubid = $2 AND deptype IN ('a', 'i')
), used AS (
    SELECT refobjid AS oid FROM defaults d JOIN pg_depend ON classid = 'pg_attrdef'::regclass AND objid = d.oid
    WHERE is_own AND refclassid = 'pg_class'::regclass
)
SELECT name, o.oid IS NOT NULL, coalesce(deptype = 'i', false),
    ARRAY(SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
        WHERE refclassid = 'pg_class'::regclass AND refobjid = s.oid AND deptype = 'n'
            AND NOT (classid = 'pg_attrdef'::regclass AND objid IN (SELECT oid FROM defaults)) ORDER BY 1),
    s.oid,
    coalesce((SELECT expression = format('nextval(''%s''::regclass)', replace(s.oid::regclass::text, '''', '''''')) FROM own),
        false),
    ARRAY(SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = prolang
        WHERE lanname NOT IN ('c', 'internal') AND p.oid >= 16384 AND prosqlbody IS NULL
            AND prosrc ~* (E'\\m' || regexp_replace(relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || E'\\M')
            AND NOT EXISTS (SELECT FROM pg_depend
                WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
        ORDER BY 1),
    CASE seqtypid WHEN 'int2'::regtype THEN 2 WHEN 'int4'::regtype THEN 4 ELSE 8 END,
    seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle, relpersistence = 'u', obj_description(s.oid, 'pg_class'),
    statements, roles
FROM pg_class s JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_sequence ON seqrelid = s.oid
LEFT JOIN owned o ON o.oid = s.oid
CROSS JOIN LATERAL (SELECT quote_ident(nspname) || '.' || quote_ident(relname) AS name,
    acldefault('s', relowner) AS usual) AS called
CROSS JOIN LATERAL (
    SELECT array_agg(grantee) AS grantees, coalesce(bool_or(is_odd), false) AS is_odd FROM (
        SELECT DISTINCT grantee, defaclnamespace = 0 AND NOT defaclacl @> acldefault('s', defaclrole) AS is_odd
        FROM pg_default_acl, aclexplode(defaclacl)
        WHERE defaclobjtype = 'S' AND defaclnamespace IN (0, relnamespace)
            AND defaclrole IN (relowner, quote_ident(current_user)::regrole)
    ) d
) AS given
CROSS JOIN LATERAL (
    SELECT array_agg(statement ORDER BY step, place) AS statements, array_agg(role ORDER BY step, place) AS roles FROM (
        SELECT 1 AS step, grantee::bigint AS place, format('REVOKE ALL ON SEQUENCE %s FROM %s', name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS statement, relowner AS role
        FROM unnest(grantees) grantee WHERE grantee <> relowner
        UNION ALL
        SELECT 1, -1, format('REVOKE ALL ON SEQUENCE %s FROM %s', name, relowner::regrole), relowner
        WHERE is_odd OR NOT relacl @> usual
        UNION ALL
        SELECT 2, min(place), format('GRANT %s ON SEQUENCE %s TO %s%s',
            string_agg(privilege_type, ', ' ORDER BY privilege_type), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END), grantor
        FROM aclexplode(coalesce(relacl, usual)) WITH ORDINALITY
            AS acl (grantor, grantee, privilege_type, is_grantable, place)
        WHERE grantee <> relowner OR is_odd OR NOT relacl @> usual
        GROUP BY grantor, grantee, is_grantable
    ) details
) AS privileges
WHERE relkind = 'S' AND (o.oid IS NOT NULL OR s.oid IN (SELECT oid FROM used)) ORDER BY s.oid
