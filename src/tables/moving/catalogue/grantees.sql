-- A part of others, behind WITH RECURSIVE: the roles (0 for PUBLIC) that may insert rows of a table ($1), its partitions and heirs, and of
-- views that PostgreSQL writes through.
tree (relation) AS (
    SELECT $1::oid UNION SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = relation
), ways (relation) AS (
    SELECT relation FROM tree
    UNION
    SELECT ev_class FROM ways
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = objid JOIN pg_class v ON v.oid = ev_class AND relkind = 'v'
    WHERE pg_relation_is_updatable(ev_class, false) & 8 <> 0
), grantees (role) AS (
    SELECT grantee FROM ways JOIN pg_class c ON c.oid = relation,
        aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE privilege_type = 'INSERT'
    UNION
    SELECT grantee FROM ways JOIN pg_attribute ON attrelid = relation, aclexplode(attacl) WHERE privilege_type = 'INSERT'
)
