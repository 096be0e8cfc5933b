-- Which tables that are partitioned by their IDs are published or subscribed to partition by
-- partition: a subscriber knows those that it was told of, and drops the rows of others without a
-- word. `next` is snowflake_next(). src/tables/replicated.rs runs this text, too.

CREATE FUNCTION _snowflake.replicated(next oid)
    RETURNS TABLE (verdict text, finding text, advice text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE parent AS (
        SELECT p.partrelid AS oid, format('%I.%I', n.nspname, c.relname) AS name
        FROM pg_partitioned_table AS p JOIN pg_class AS c ON c.oid = p.partrelid
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE p.partstrat = 'r' AND p.partnatts = 1 AND NOT c.relispartition AND EXISTS (
            SELECT FROM pg_attrdef AS f
                JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
            WHERE f.adrelid = p.partrelid AND f.adnum = p.partattrs[0]
                AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = $1)
    ), tree (parent, relid) AS (
        SELECT oid, oid FROM parent
        UNION ALL
        SELECT parent, inhrelid FROM tree JOIN pg_inherits ON inhparent = relid
    ), part AS (
        SELECT parent, relid, n.nspname, c.relname, c.relkind
        FROM tree JOIN pg_class AS c ON c.oid = relid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    ), published AS (
        SELECT t.pubname, parent FROM pg_publication_tables AS t JOIN part
            ON part.nspname = t.schemaname AND part.relname = t.tablename AND part.relkind = 'r'
        GROUP BY 1, 2
    ), known AS (
        SELECT r.srsubid, s.subname, part.* FROM pg_subscription_rel AS r
            JOIN part ON relid = r.srrelid JOIN pg_subscription AS s ON s.oid = r.srsubid
            JOIN pg_database AS b ON b.oid = s.subdbid AND b.datname = current_database()
    ), subscribed AS (
        SELECT s.subname, s.parent,
            array_agg(format('%I.%I', part.nspname, part.relname) ORDER BY part.relid)
                FILTER (WHERE NOT EXISTS (SELECT FROM known AS k
                    WHERE k.srsubid = s.srsubid AND k.relid = part.relid)) AS lacking
        FROM (
            SELECT srsubid, subname, parent FROM known
            GROUP BY 1, 2, 3 HAVING bool_and(relkind = 'r')
        ) AS s JOIN part ON part.parent = s.parent AND part.relkind = 'r'
        GROUP BY 1, 2
    ), said AS (
        SELECT 1 AS step, parent.name, pubname AS by, 'warning' AS verdict,
            format('publication %I publishes %s partition by partition: subscribers drop the rows '
                'of partitions that are made later, and say nothing', pubname, parent.name) AS finding,
            'Publish it as a whole, by publish_via_partition_root = true: '
                'docs/reference/subscribers.md says how. Or have each subscriber run ALTER '
                'SUBSCRIPTION ... REFRESH PUBLICATION once partitions are made, before they have '
                'rows.' AS advice
        FROM published JOIN parent ON oid = parent
        UNION ALL
        SELECT 2, parent.name, subname, CASE WHEN lacking IS NULL THEN 'warning' ELSE 'problem' END,
            CASE WHEN lacking IS NULL
                THEN format('subscription %I knows %s partition by partition: it drops the rows of '
                    'partitions that are made later, and says nothing', subname, parent.name)
                ELSE format('subscription %I does not know %s of %s: it drops their rows, and says '
                    'nothing', subname, array_to_string(lacking[:3], ', ')
                    || CASE WHEN cardinality(lacking) > 3
                        THEN format(' and %s more', cardinality(lacking) - 3) ELSE '' END,
                    parent.name) END,
            format('Have the other server publish the table as a whole, by '
                'publish_via_partition_root = true: docs/reference/subscribers.md says how. Or run '
                'ALTER SUBSCRIPTION %I REFRESH PUBLICATION once partitions are made there, before '
                'they have rows.', subname)
        FROM subscribed JOIN parent ON oid = parent
    )
    SELECT verdict, finding, advice FROM said ORDER BY step, name, by
    $$;
