-- Functions in whose source one of the tables ($1), or a sequence of one of their columns, is named.
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = prolang
WHERE lanname NOT IN ('c', 'internal') AND p.oid >= 16384 AND prosqlbody IS NULL AND EXISTS (
    SELECT FROM pg_class
    WHERE prosrc ~* (E'\\m' || regexp_replace(relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || E'\\M')
        AND (oid = ANY ($1) OR relkind = 'S' AND oid IN (SELECT objid FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = ANY ($1)
                AND deptype IN ('a', 'i')))
) AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
ORDER BY 1
