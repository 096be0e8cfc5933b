-- Functions that run for a row of the tables ($1), with what calls them, and those in whose source one of these, or a sequence of one of
-- their columns, is named. The statement has sessions compile a function of PL/pgSQL again, and changes nothing. The last column has the tables
-- whose rows are NEW and OLD in the function.
WITH RECURSIVE types (type) AS (
    SELECT atttypid FROM pg_attribute WHERE attrelid = ANY ($1) AND NOT attisdropped
    UNION SELECT typbasetype FROM types JOIN pg_type ON oid = type AND typtype = 'd'
), called (function, caller) AS (
    SELECT tgfoid, pg_describe_object('pg_trigger'::regclass, oid, 0) FROM pg_trigger WHERE tgrelid = ANY ($1) AND NOT tgisinternal
    UNION
    SELECT refobjid, pg_describe_object(classid, objid, objsubid) FROM pg_depend
    WHERE refclassid = 'pg_proc'::regclass AND (
        classid = 'pg_attrdef'::regclass AND objid IN (SELECT oid FROM pg_attrdef WHERE adrelid = ANY ($1))
        OR classid = 'pg_constraint'::regclass AND objid IN (SELECT oid FROM pg_constraint WHERE conrelid = ANY ($1)
            UNION ALL SELECT c.oid FROM pg_constraint c JOIN types ON contypid = type)
        OR classid = 'pg_class'::regclass AND objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ($1))
        OR classid = 'pg_policy'::regclass AND objid IN (SELECT oid FROM pg_policy WHERE polrelid = ANY ($1))
        OR classid = 'pg_rewrite'::regclass AND objid IN (SELECT oid FROM pg_rewrite WHERE ev_class = ANY ($1)))
), named (function) AS (
    SELECT p.oid FROM pg_proc p WHERE prosqlbody IS NULL AND EXISTS (
        SELECT FROM pg_class
        WHERE prosrc ~* (E'\\m' || regexp_replace(relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || E'\\M')
            AND (oid = ANY ($1) OR relkind = 'S' AND oid IN (SELECT objid FROM pg_depend
                WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = ANY ($1)
                    AND deptype IN ('a', 'i')))
    ) AND p.oid NOT IN (SELECT objid FROM pg_depend WHERE classid = 'pg_proc'::regclass AND deptype = 'e')
)
SELECT p.oid, p.oid::regprocedure::text, ARRAY(SELECT caller FROM called c WHERE c.function = p.oid ORDER BY 1), prosrc,
    lanname = 'plpgsql',
    CASE WHEN lanname = 'plpgsql' AND pg_has_role(proowner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
    THEN CASE prokind
        WHEN 'p' THEN format('ALTER PROCEDURE %s SECURITY %s', p.oid::regprocedure, CASE WHEN prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
        ELSE format('ALTER FUNCTION %s COST %s', p.oid::regprocedure, procost) END
    END, proowner, ARRAY(SELECT DISTINCT tgrelid FROM pg_trigger WHERE tgfoid = p.oid AND tgrelid = ANY ($1))
FROM pg_proc p JOIN pg_language l ON l.oid = prolang
WHERE p.oid IN (SELECT function FROM called UNION SELECT function FROM named) AND lanname NOT IN ('c', 'internal') AND p.oid >= 16384
ORDER BY 2
