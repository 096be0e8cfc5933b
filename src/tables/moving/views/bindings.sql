-- What a view ($1, its name) depends on by its rule: each object with its part, the object alone, and its OID.
SELECT DISTINCT pg_describe_object(refclassid, refobjid, refobjsubid), pg_describe_object(refclassid, refobjid, 0),
    refobjid
FROM pg_rewrite r JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = r.oid
WHERE ev_class = to_regclass($1) AND NOT (refclassid = 'pg_class'::regclass AND refobjid = ev_class) ORDER BY 1
