-- A part of others: what of a view cannot be made again, of c.
ARRAY(
    SELECT DISTINCT pg_describe_object(classid, objid, objsubid)
    FROM pg_depend LEFT JOIN pg_rewrite w ON w.oid = objid
    WHERE refclassid = 'pg_class'::regclass AND refobjid = view
        AND NOT (classid = 'pg_rewrite'::regclass AND rulename = '_RETURN'
            AND ev_class IN (SELECT d.view FROM dependent d))
        AND NOT (classid = 'pg_type'::regclass AND deptype = 'i')
        AND NOT (classid = 'pg_class'::regclass AND objid = reltoastrelid)
        AND NOT (classid = 'pg_class'::regclass
            AND objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = view))
    UNION ALL
    SELECT DISTINCT pg_describe_object(classid, objid, objsubid) || ', which has the view''s rows as its type'
    FROM pg_depend WHERE refclassid = 'pg_type'::regclass
        AND refobjid IN (reltype, (SELECT typarray FROM pg_type t WHERE t.oid = reltype))
        AND NOT (classid = 'pg_type'::regclass AND deptype = 'i')
    UNION ALL
    SELECT pg_describe_object(refclassid, refobjid, 0) FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND objid = view AND objsubid = 0 AND deptype IN ('e', 'x')
    UNION ALL
    SELECT format('its owner, %s, who may not create objects in schema %s', relowner::regrole, relnamespace::regnamespace)
    WHERE NOT has_schema_privilege(relowner, relnamespace, 'CREATE')
    UNION ALL
    SELECT DISTINCT 'its security label' FROM pg_seclabel
    WHERE classoid = 'pg_class'::regclass AND objoid = view
    UNION ALL
    -- PostgreSQL looks for a function of that name which takes a bigint.
    SELECT DISTINCT pg_describe_object(has.refclassid, has.refobjid, 0) || ', which would be given a bigint'
    FROM pg_rewrite w JOIN pg_depend has ON has.classid = 'pg_rewrite'::regclass AND has.objid = w.oid
    JOIN pg_proc p ON has.refclassid = 'pg_proc'::regclass AND p.oid = has.refobjid
    JOIN pg_depend reads ON reads.classid = 'pg_rewrite'::regclass AND reads.objid = w.oid
        AND reads.refclassid = 'pg_class'::regclass
    JOIN unnest($1::oid[], $2::int2[]) roots (relation, number)
        ON relation = reads.refobjid AND number = reads.refobjsubid
    WHERE w.ev_class = view AND ARRAY['int2'::regtype, 'int4'::regtype]::oid[] && proargtypes::oid[]
        AND ev_action::text ~ format('[{](FUNCEXPR :funcid|AGGREF :aggfnoid) %s [^{}]*:args [(]([{][^{}]*[}] )*'
            || '([{]TARGETENTRY :expr )?[{]VAR :varno [0-9]+ :varattno %s :vartype (21|23) ', p.oid, number)
    UNION ALL
    SELECT 'its being temporary' WHERE relpersistence = 't'
    UNION ALL
    SELECT DISTINCT 'a privilege that ' || grantor::regrole || ' has granted' FROM (
        SELECT grantor FROM aclexplode(relacl)
        UNION ALL SELECT grantor FROM pg_attribute, aclexplode(attacl) WHERE attrelid = view
    ) granted WHERE grantor <> relowner
    UNION ALL
    SELECT 'the settings of ' || pg_describe_object('pg_class'::regclass, attrelid, attnum)
    FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
    WHERE (attrelid = view OR attrelid IN (SELECT indexrelid FROM pg_index WHERE indrelid = view))
        AND attnum > 0
        AND (coalesce(attstattarget, -1) <> -1 OR attoptions::text LIKE '%n_distinct%' OR attcompression <> ''
            OR relkind = 'm' AND attrelid = view AND attstorage <> typstorage)
    UNION ALL
    SELECT pg_describe_object('pg_class'::regclass, indexrelid, 0)
        || ', which is clustered, invalid or in another tablespace'
    FROM pg_index JOIN pg_class i ON i.oid = indexrelid
    WHERE indrelid = view AND (indisclustered OR NOT indisvalid OR i.reltablespace <> 0)
    ORDER BY 1)
