-- A part of others, behind WITH RECURSIVE: the roles (0 for PUBLIC) that may insert rows of a table ($1), its partitions and heirs; of views
-- that PostgreSQL writes through; or of what has a rule that inserts.
tree (relation) AS (
    SELECT $1::oid UNION SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = relation
), ways (relation, privilege) AS (
    SELECT relation, 'INSERT' FROM tree
    UNION
    SELECT ev_class, CASE ev_type WHEN '2' THEN 'UPDATE' WHEN '4' THEN 'DELETE' ELSE 'INSERT' END
    FROM ways
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = objid JOIN pg_class c ON c.oid = relation JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_class v ON v.oid = ev_class
    WHERE CASE ev_type WHEN '1' THEN pg_relation_is_updatable(ev_class, false) & 8 <> 0
        ELSE strpos(pg_get_ruledef(w.oid), format('INSERT INTO %I.%I ', nspname, c.relname)) > 0 END
        -- It writes as its owner, and anybody can create one.
        AND CASE privilege WHEN 'DELETE' THEN has_table_privilege(v.relowner, relation, privilege)
            ELSE has_any_column_privilege(v.relowner, relation, privilege) END
), grantees (role) AS (
    SELECT grantee FROM ways JOIN pg_class c ON c.oid = relation,
        aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE privilege_type = privilege
    UNION
    SELECT grantee FROM ways JOIN pg_attribute ON attrelid = relation, aclexplode(attacl)
    WHERE privilege_type = privilege AND NOT attisdropped
)
