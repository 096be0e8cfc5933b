-- The column ($1, $2) and all that hold the same values, and what stands in the way of another type of each; $3 is snowflake_next().
WITH RECURSIVE reached (relation, number) AS (
    SELECT $1::oid, $2::int2
    UNION
    SELECT next.* FROM reached r, LATERAL (
        SELECT conrelid, from_key FROM pg_constraint, unnest(conkey, confkey) AS keys (from_key, to_key)
        WHERE contype = 'f' AND confrelid = r.relation AND to_key = r.number
        UNION ALL
        SELECT inhrelid, heir.attnum FROM pg_attribute own JOIN pg_inherits ON inhparent = own.attrelid
        JOIN pg_attribute heir ON heir.attrelid = inhrelid AND heir.attname = own.attname
        WHERE own.attrelid = r.relation AND own.attnum = r.number
        UNION ALL
        SELECT inhparent, parent.attnum FROM pg_attribute own JOIN pg_inherits ON inhrelid = own.attrelid
        JOIN pg_attribute parent ON parent.attrelid = inhparent AND parent.attname = own.attname
        WHERE own.attrelid = r.relation AND own.attnum = r.number AND NOT parent.attisdropped
    ) next
)
SELECT relation, quote_ident(attname), :width, format_type(atttypid, atttypmod),
    ARRAY(SELECT inhparent FROM pg_inherits JOIN pg_attribute p ON p.attrelid = inhparent AND p.attname = a.attname
        WHERE inhrelid = relation AND NOT p.attisdropped ORDER BY inhseqno),
    ARRAY(
        SELECT DISTINCT CASE classid
            WHEN 'pg_rewrite'::regclass THEN (
                SELECT CASE WHEN relkind IN ('v', 'm') THEN pg_describe_object('pg_class'::regclass, ev_class, 0)
                    ELSE pg_describe_object(classid, objid, 0) END
                FROM pg_rewrite w JOIN pg_class v ON v.oid = ev_class WHERE w.oid = objid)
            WHEN 'pg_attrdef'::regclass THEN 'generated ' || (
                SELECT pg_describe_object('pg_class'::regclass, adrelid, adnum)
                FROM pg_attrdef f WHERE f.oid = objid)
            ELSE pg_describe_object(classid, objid, 0) END
        FROM pg_depend
        WHERE refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
            AND (classid IN ('pg_rewrite'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass,
                    'pg_proc'::regclass, 'pg_publication_rel'::regclass)
                OR classid = 'pg_attrdef'::regclass AND EXISTS (SELECT FROM pg_attrdef f JOIN pg_attribute g
                    ON g.attrelid = adrelid AND g.attnum = adnum WHERE f.oid = objid AND attgenerated <> ''))
        UNION ALL
        -- Up to PostgreSQL 14, it is the generated column itself that depends.
        SELECT 'generated ' || pg_describe_object(classid, objid, objsubid) FROM pg_depend
        JOIN pg_attribute g ON g.attrelid = objid AND g.attnum = objsubid AND attgenerated <> ''
        WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = relation
            AND refobjsubid = number
        UNION ALL
        -- PostgreSQL makes these again from their text, with the new type of the column, and so may choose another of
        -- several functions or operators of the same name; it runs that at once.
        SELECT DISTINCT concat(pg_describe_object(has.classid, has.objid, 0), ', which uses ',
            pg_describe_object(used.refclassid, used.refobjid, 0), ', one of several of that name')
        FROM pg_depend has JOIN pg_depend used ON used.classid = has.classid AND used.objid = has.objid
        WHERE has.refclassid = 'pg_class'::regclass AND has.refobjid = relation AND has.refobjsubid = number
            AND has.classid IN ('pg_constraint'::regclass, 'pg_class'::regclass, 'pg_statistic_ext'::regclass)
            AND (used.refclassid = 'pg_proc'::regclass AND EXISTS (SELECT FROM pg_proc one JOIN pg_proc other
                    ON other.proname = one.proname AND other.pronamespace = one.pronamespace AND other.oid <> one.oid
                    WHERE one.oid = used.refobjid)
                OR used.refclassid = 'pg_operator'::regclass AND EXISTS (SELECT FROM pg_operator one
                    JOIN pg_operator other ON other.oprname = one.oprname
                    AND other.oprnamespace = one.oprnamespace AND other.oid <> one.oid
                    WHERE one.oid = used.refobjid))
        UNION ALL
        -- One that is not the default is named where the index is made again.
        SELECT concat(pg_describe_object('pg_class'::regclass, indexrelid, 0), ', whose operator class ', opcname, ' is not for bigint')
        FROM pg_index, unnest(indkey::int2[], indclass::oid[]) AS keys (key, class) JOIN pg_opclass o ON o.oid = class
        WHERE indrelid = relation AND key = number AND NOT opcdefault AND opcintype IN ('int2'::regtype, 'int4'::regtype)
        UNION ALL
        SELECT concat('foreign table ', c.oid::regclass, ', as the table on the other server keeps its type') WHERE c.relkind = 'f'
        UNION ALL
        SELECT 'the partition key of table ' || relation::regclass FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = relation AND objsubid = number
            AND refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = 0 AND deptype = 'i'
        UNION ALL
        SELECT 'the type ' || reloftype::regtype || ' that table ' || c.oid::regclass || ' is of'
        WHERE reloftype <> 0
        UNION ALL
        SELECT pg_describe_object(classid, objid, objsubid) || ', which has the table''s rows as its type'
        FROM pg_depend WHERE refclassid = 'pg_type'::regclass AND classid = 'pg_class'::regclass AND objsubid > 0
            AND refobjid IN (c.reltype, (SELECT typarray FROM pg_type t WHERE t.oid = c.reltype))
        ORDER BY 1), number,
    pg_get_expr(adbin, adrelid),
    EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid
        AND refclassid = 'pg_proc'::regclass AND refobjid = $3)
FROM reached JOIN pg_attribute a ON attrelid = relation AND attnum = number AND NOT attisdropped
JOIN pg_class c ON c.oid = relation
LEFT JOIN pg_attrdef d ON adrelid = relation AND adnum = number
ORDER BY relation = $1 AND number = $2 DESC, relation, number
