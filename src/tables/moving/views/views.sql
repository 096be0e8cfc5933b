-- The views that depend on columns ($1, tables, and $2, numbers), also by way of other views.
WITH RECURSIVE dependent (view) AS (
    SELECT ev_class FROM unnest($1::oid[], $2::int2[]) roots (relation, number)
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
        AND classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = objid JOIN pg_class c ON c.oid = ev_class AND relkind IN ('v', 'm')
    UNION
    SELECT ev_class FROM dependent
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = view AND classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = objid JOIN pg_class c ON c.oid = ev_class AND relkind IN ('v', 'm')
    WHERE ev_class <> view
), named AS (
    SELECT c.*, c.oid AS view, quote_ident(nspname) || '.' || quote_ident(relname) AS name,
        CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW ' ELSE 'VIEW ' END AS kind, relowner::regrole::text AS owner
    FROM dependent JOIN pg_class c ON c.oid = view JOIN pg_namespace n ON n.oid = relnamespace
)
SELECT view, name, pg_describe_object('pg_class'::regclass, view, 0), relkind = 'm',
    pg_has_role(relowner, 'USAGE'),
    ARRAY(SELECT DISTINCT refobjid FROM pg_rewrite w
        JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = w.oid
        WHERE ev_class = view AND refclassid = 'pg_class'::regclass AND refobjid <> view
            AND refobjid IN (SELECT d.view FROM dependent d) ORDER BY 1),
    :blockers, :definition, :details, relkind = 'm' AND relispopulated,
    CASE relkind WHEN 'm' THEN pg_total_relation_size(view) ELSE 0 END, :state, relowner
FROM named c ORDER BY view
