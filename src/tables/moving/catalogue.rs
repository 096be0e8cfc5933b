//! What the catalogue says of a table, for the plans of [`snowflake_moving`]. All queries run with a `search_path` of
//! `pg_catalog` alone, so no object of another schema can be taken for one of PostgreSQL's, and all names that they
//! return are qualified; and without row-level security, which would hide values.

use crate::postgres::encoding::{self, Text};
use crate::postgres::{own, restricted};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{self, SpiClient, SpiHeapTupleData};
use snowflake_moving::target::{Candidate, Table, TableKind};
use snowflake_moving::{
    Column, Facts, ForeignKey, Oid, Options, Position, Relation, Role, Sequence, Source, Values, Width, Writer,
};

/// A function without arguments ($1), as a statement writes its call.
const CALL: &str = "
    SELECT quote_ident(nspname) || '.' || quote_ident(proname) || '()'
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE p.oid = $1";

/// A relation ($1).
const TABLE: &str = "
    SELECT relkind::text, oid < 16384, relpersistence = 't' AND relnamespace <> pg_my_temp_schema(), relispartition,
        ARRAY(SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid ORDER BY inhseqno)
    FROM pg_class c WHERE oid = $1";

/// The columns of a table ($1); $2 is `snowflake_next()`.
const COLUMNS: &str = "
    SELECT attnum, attname::text, WIDTH, format_type(atttypid, atttypmod),
        WIDTH = 8 AND atttypid <> 'int8'::regtype, attgenerated <> '',
        EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey)),
        attidentity <> '', pg_get_expr(adbin, adrelid),
        EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid
            AND refclassid = 'pg_proc'::regclass AND refobjid = $2),
        EXISTS (SELECT FROM pg_depend JOIN pg_class s ON s.oid = refobjid AND relkind = 'S'
            WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_class'::regclass),
        attnotnull, attidentity = 'a'
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum";

/// The bytes of a column's integer, also where it is a domain over `bigint`; else NULL. Stands for `WIDTH`.
const WIDTH: &str = "
    (CASE atttypid WHEN 'int2'::regtype THEN 2 WHEN 'int4'::regtype THEN 4 WHEN 'int8'::regtype THEN 8 ELSE (
        WITH RECURSIVE base (type) AS (
            SELECT typbasetype FROM pg_type WHERE oid = atttypid AND typtype = 'd'
            UNION ALL SELECT typbasetype FROM base JOIN pg_type ON oid = type AND typtype = 'd'
        ) SELECT 8 FROM base WHERE type = 'int8'::regtype
    ) END)";

/// The column ($1, $2) and all that hold the same values, and what stands in the way of another type of each; $3 is
/// `snowflake_next()`.
const REACHED: &str = "
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
    SELECT relation, quote_ident(attname), WIDTH, format_type(atttypid, atttypmod),
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
    ORDER BY relation = $1 AND number = $2 DESC, relation, number";

/// The foreign keys on either side of tables ($1). Those that partitions have from their table are left out.
const FOREIGN_KEYS: &str = "
    SELECT quote_ident(conname), conrelid, confrelid,
        ARRAY(SELECT quote_ident(attname) FROM unnest(conkey) WITH ORDINALITY AS keys (number, place)
            JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place),
        ARRAY(SELECT quote_ident(attname) FROM unnest(confkey) WITH ORDINALITY AS keys (number, place)
            JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place),
        pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint'),
        EXISTS (SELECT FROM pg_trigger WHERE tgconstraint = pg_constraint.oid AND tgenabled <> 'O'),
        ARRAY(SELECT quote_ident(attname) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
            WHERE indexrelid = conindid AND attnum <> ALL (confkey))
    FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND (conrelid = ANY ($1) OR confrelid = ANY ($1))
    ORDER BY conrelid, conname";

/// Tables ($1).
const RELATIONS: &str = "
    SELECT c.oid, quote_ident(nspname) || '.' || quote_ident(relname), pg_has_role(relowner, 'USAGE'), relispartition,
        CASE WHEN relkind = 'r' THEN pg_total_relation_size(c.oid) ELSE 0 END,
        relowner, relowner::regrole::text, relowner = quote_ident(current_user)::regrole,
        has_schema_privilege(relowner, relnamespace, 'CREATE'),
        ARRAY(
            WITH RECURSIVE heirs (heir) AS (
                SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid
                UNION SELECT inhrelid FROM heirs JOIN pg_inherits ON inhparent = heir
            )
            SELECT format('%s to %s', heir::regclass, h.relowner::regrole) FROM heirs JOIN pg_class h ON h.oid = heir
            WHERE h.relowner <> c.relowner ORDER BY 1),
        relpersistence = 'u',
        ARRAY(
            WITH RECURSIVE parts (part) AS (
                SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid AND c.relkind = 'p'
                UNION SELECT inhrelid FROM parts JOIN pg_inherits ON inhparent = part
            )
            SELECT quote_ident(s.nspname) || '.' || quote_ident(p.relname)
            FROM parts JOIN pg_class p ON p.oid = part JOIN pg_namespace s ON s.oid = p.relnamespace ORDER BY part)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = ANY ($1) ORDER BY c.oid";

/// The sequences of a column ($1, $2), what uses them beside its default, which partitions and heirs may have, too, and what makes
/// them again. A new sequence has the privileges that ALTER DEFAULT PRIVILEGES says.
const SEQUENCES: &str = r"
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
        s.oid, coalesce((SELECT expression = format('nextval(''%s''::regclass)', replace(s.oid::regclass::text, '''', '''''')) FROM own), false),
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
    WHERE relkind = 'S' AND (o.oid IS NOT NULL OR s.oid IN (SELECT oid FROM used)) ORDER BY s.oid";

/// The roles (0 for PUBLIC) that may insert rows of a table ($1), its partitions and heirs, and of views that PostgreSQL writes through.
/// Stands for `GRANTEES`.
const GRANTEES: &str = "
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
    )";

/// These roles, with whether they may execute a function ($2). A role that nobody is logged in as may be one that gathers others: then
/// these count.
const WRITERS: &str = "
    WITH RECURSIVE GRANTEES
    SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END,
        coalesce(CASE role WHEN 0 THEN is_public ELSE has_function_privilege(role, next, 'EXECUTE') END
            OR (role = 0 OR NOT rolcanlogin AND EXISTS (SELECT FROM pg_roles m
                    WHERE m.rolcanlogin AND NOT m.rolsuper AND pg_has_role(m.oid, role, 'MEMBER')))
                AND role <> (SELECT relowner FROM pg_class WHERE oid = $1)
                AND NOT EXISTS (SELECT FROM pg_roles m WHERE m.rolcanlogin AND (role = 0 OR pg_has_role(m.oid, role, 'MEMBER'))
                    AND NOT has_function_privilege(m.oid, next, 'EXECUTE')), true)
    FROM (
        SELECT role FROM grantees
        UNION SELECT oid FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, 'pg_write_all_data', 'USAGE')
    ) writers
    LEFT JOIN pg_roles r ON r.oid = role
    LEFT JOIN (
        SELECT oid AS next, EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0) AS is_public
        FROM pg_proc WHERE oid = $2
    ) function ON true
    ORDER BY 1";

/// Those of them that may not have a value of a sequence ($2), but for the owner of the table.
const CLOSED_TO: &str = "
    WITH RECURSIVE GRANTEES
    SELECT CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END
    FROM grantees JOIN pg_class s ON s.oid = $2 WHERE role <> (SELECT relowner FROM pg_class WHERE oid = $1) AND CASE role
        WHEN 0 THEN NOT EXISTS (SELECT FROM aclexplode(coalesce(relacl, acldefault('s', relowner)))
            WHERE grantee = 0 AND privilege_type IN ('USAGE', 'UPDATE'))
        ELSE NOT has_sequence_privilege(role, $2, 'USAGE, UPDATE') END
    ORDER BY 1";

/// Where a sequence is.
const POSITION: &str = "SELECT last_value, is_called FROM ";

/// Functions in whose source one of the tables ($1), or a sequence of one of their columns, is named.
const MENTIONS: &str = r"
    SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = prolang
    WHERE lanname NOT IN ('c', 'internal') AND p.oid >= 16384 AND prosqlbody IS NULL AND EXISTS (
        SELECT FROM pg_class
        WHERE prosrc ~* (E'\\m' || regexp_replace(relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || E'\\M')
            AND (oid = ANY ($1) OR relkind = 'S' AND oid IN (SELECT objid FROM pg_depend
                WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = ANY ($1)
                    AND deptype IN ('a', 'i')))
    ) AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
    ORDER BY 1";

/// The CHECK constraints on columns of tables ($1), with the tables' OIDs and the columns' names.
const CHECKS: &str = "
    SELECT conrelid, quote_ident(attname), quote_ident(conname), pg_get_expr(conbin, conrelid)
    FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
    WHERE contype = 'c' AND coninhcount = 0 AND conrelid = ANY ($1) ORDER BY conrelid, conname, attnum";

/// The constraints of domains that columns ($1, tables, and $2, numbers) are of: the domain with the constraint, and the expression.
const DOMAIN_CHECKS: &str = "
    WITH RECURSIVE base (type) AS (
        SELECT atttypid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
        JOIN pg_attribute ON attrelid = relation AND attnum = number
        UNION SELECT typbasetype FROM base JOIN pg_type ON oid = type AND typtype = 'd'
    )
    SELECT DISTINCT type::regtype || ': ' || pg_get_constraintdef(c.oid), pg_get_expr(conbin, 0)
    FROM base JOIN pg_constraint c ON contypid = type AND contype = 'c' ORDER BY 1";

/// What PostgreSQL leaves out of indexes and statistics on columns ($1, tables, and $2, numbers) that it makes again: statements.
const LEFT_OUT: &str = "
    WITH dependent AS (
        SELECT DISTINCT classid, objid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
        JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
        UNION
        -- Those of a key or a unique constraint depend on this.
        SELECT 'pg_class'::regclass, indexrelid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
        JOIN pg_index ON indrelid = relation AND number = ANY (indkey)
    )
    SELECT format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', nspname, relname, attnum, attstattarget)
    FROM dependent JOIN pg_class i ON classid = 'pg_class'::regclass AND i.oid = objid AND relkind IN ('i', 'I')
    JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_attribute ON attrelid = i.oid AND coalesce(attstattarget, -1) >= 0
    UNION ALL
    SELECT format('ALTER STATISTICS %I.%I SET STATISTICS %s', nspname, stxname, stxstattarget)
    FROM dependent JOIN pg_statistic_ext s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid
    JOIN pg_namespace n ON n.oid = stxnamespace WHERE coalesce(stxstattarget, -1) >= 0
    ORDER BY 1";

/// The publications that tables ($1) are in.
const PUBLICATIONS: &str = "
    SELECT DISTINCT quote_ident(pubname) FROM pg_publication_tables JOIN pg_namespace n ON nspname = schemaname
    JOIN pg_class c ON relname = tablename AND relnamespace = n.oid WHERE c.oid = ANY ($1) ORDER BY 1";

/// Why the catalogue could not be read.
pub enum Unread {
    /// Something was there, and is not any more: others have dropped it meanwhile.
    Gone,
    /// A query of the extension's own failed.
    Query(spi::Error),
}

impl From<spi::Error> for Unread {
    fn from(error: spi::Error) -> Self {
        Self::Query(error)
    }
}

/// What was read.
pub type Result<T> = std::result::Result<T, Unread>;

/// A column that was chosen.
pub struct Chosen {
    /// Its table.
    pub table: pg_sys::Oid,
    /// Its number.
    pub number: i16,
    /// Where its values come from.
    pub source: Source,
    /// Whether it is NOT NULL.
    pub is_not_null: bool,
}

/// What there is to choose a column from.
pub struct Choice {
    /// For [`snowflake_moving::target::choose`].
    pub table: Table,
    /// The same for each of the table's columns.
    pub columns: Vec<Chosen>,
}

/// Runs queries of this module, and statements that were made of definitions of the catalogue.
pub fn look<T>(queries: impl FnOnce() -> T) -> T {
    restricted::with(&[restricted::SAFE_PATH, (c"row_security", c"off"), (c"default_tablespace", c"")], queries)
}

/// What a relation and its columns are; `None` where it does not exist.
pub fn choice(client: &SpiClient, table: pg_sys::Oid) -> Result<Option<Choice>> {
    let found = rows(client, TABLE, &[table.into()], |row| {
        Ok(Table {
            kind: match &*text(row, 1)? {
                "r" | "p" => TableKind::Table,
                "v" => TableKind::Other("a view"),
                "m" => TableKind::Other("a materialized view"),
                "f" => TableKind::Other("a foreign table"),
                "S" => TableKind::Other("a sequence"),
                "i" | "I" => TableKind::Other("an index"),
                "c" => TableKind::Other("a composite type"),
                _ => TableKind::Other("a TOAST table"),
            },
            is_system: flag(row, 2)?,
            is_others_temporary: flag(row, 3)?,
            is_partition: flag(row, 4)?,
            parents: texts(row, 5)?,
            columns: Vec::new(),
        })
    })?;
    let Some(mut found) = found.into_iter().next() else { return Ok(None) };
    let (next, _) = next(client)?;
    let mut columns = Vec::new();
    found.columns = rows(client, &COLUMNS.replace("WIDTH", WIDTH), &[table.into(), next.into()], |row| {
        let (is_identity, is_generated) = (flag(row, 8)?, flag(row, 6)?);
        let expression = maybe_text(row, 9)?;
        let makes_ids = flag(row, 10)?;
        // `nextval` of a name that is no regclass depends on no sequence.
        let by_sequence = flag(row, 11)? || expression.as_ref().is_some_and(|text| text.starts_with("nextval("));
        columns.push(Chosen {
            table,
            number: row.get(1)?.unwrap_or_default(),
            source: match expression {
                _ if is_identity => Source::Identity { is_always: flag(row, 13)? },
                _ if makes_ids => Source::Snowflake,
                Some(expression) => Source::Default(expression),
                None => Source::Given,
            },
            is_not_null: flag(row, 12)?,
        });
        Ok(Candidate {
            name: text(row, 2)?,
            width: width(row, 3)?,
            type_name: text(row, 4)?,
            is_bigint_domain: flag(row, 5)?,
            is_generated,
            is_primary: flag(row, 7)?,
            is_numbered: !is_generated && (is_identity || makes_ids || by_sequence),
        })
    })?;
    Ok(Some(Choice { table: found, columns }))
}

/// All facts of a column but its values, and the views that depend on it.
pub fn facts(client: &SpiClient, chosen: &Chosen) -> Result<Facts> {
    let (number, next) = next(client)?;
    let column = [chosen.table.into(), chosen.number.into()];
    let reached = [chosen.table.into(), chosen.number.into(), number.into()];
    let columns = rows(client, &REACHED.replace("WIDTH", WIDTH), &reached, |row| {
        let parents: Vec<pg_sys::Oid> = row.get(5)?.unwrap_or_default();
        Ok(Column {
            relation: oid(row, 1)?,
            number: row.get(7)?.unwrap_or_default(),
            name: text(row, 2)?,
            width: width(row, 3)?,
            type_name: text(row, 4)?,
            parents: parents.into_iter().map(|oid| Oid(oid.to_u32())).collect(),
            dependents: texts(row, 6)?,
            default: maybe_text(row, 8)?,
            makes_ids: flag(row, 9)?,
        })
    })?;
    let mut tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
    let foreign_keys = rows(client, FOREIGN_KEYS, &[tables.clone().into()], |row| {
        let (from, to) = (texts(row, 4)?, texts(row, 5)?);
        Ok(ForeignKey {
            name: text(row, 1)?,
            from: oid(row, 2)?,
            to: oid(row, 3)?,
            columns: from.into_iter().zip(to).collect(),
            definition: text(row, 6)?,
            comment: maybe_text(row, 7)?,
            is_disabled: flag(row, 8)?,
            included: texts(row, 9)?,
        })
    })?;
    let mentions = rows(client, MENTIONS, &[tables.clone().into()], |row| text(row, 1))?;
    let publications = rows(client, PUBLICATIONS, &[tables.clone().into()], |row| text(row, 1))?;
    let checks = rows(client, CHECKS, &[tables.clone().into()], |row| {
        Ok((oid(row, 1)?, text(row, 2)?, format!("{}: {}", text(row, 3)?, text(row, 4)?)))
    })?;
    let is_reached = |relation: &Oid, name: &str| columns.iter().any(|it| it.relation == *relation && it.name == name);
    let checks = checks.into_iter().filter(|(relation, name, _)| is_reached(relation, name)).map(|(.., check)| check);
    let mut checks: Vec<String> = checks.collect();
    checks.dedup();

    tables.extend(foreign_keys.iter().flat_map(|key| [key.from, key.to]).map(|oid| pg_sys::Oid::from(oid.0)));
    let relations = rows(client, RELATIONS, &[tables.into()], |row| {
        Ok(Relation {
            oid: oid(row, 1)?,
            name: text(row, 2)?,
            owner: Role { oid: oid(row, 6)?, name: text(row, 7)?, is_caller: flag(row, 8)?, may_create: flag(row, 9)? },
            is_owned: flag(row, 3)?,
            heirs_of_others: texts(row, 10)?,
            is_partition: flag(row, 4)?,
            has_unlogged_sequences: cfg!(since_pg15) && flag(row, 11)?,
            partitions: texts(row, 12)?,
            bytes: row.get(5)?.ok_or(Unread::Gone)?,
        })
    })?;
    let mut sequences = rows(client, SEQUENCES, &column, sequence)?;
    let read_writer = |row: &SpiHeapTupleData| Ok(Writer { name: text(row, 1)?, may_make_ids: flag(row, 2)? });
    let writers =
        rows(client, &WRITERS.replace("GRANTEES", GRANTEES), &[chosen.table.into(), number.into()], read_writer)?;
    if chosen.source == Source::Snowflake {
        let query = CLOSED_TO.replace("GRANTEES", GRANTEES);
        for sequence in &mut sequences {
            let arguments = [chosen.table.into(), pg_sys::Oid::from(sequence.oid.0).into()];
            sequence.closed_to = rows(client, &query, &arguments, |row| text(row, 1))?;
        }
    }
    let numbers = |columns: &[&Column]| {
        let tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
        let numbers: Vec<i16> = columns.iter().map(|column| column.number).collect();
        [tables.into(), numbers.into()]
    };
    let widened: Vec<&Column> = columns.iter().filter(|column| column.width != Some(Width::Eight)).collect();
    let left_out = rows(client, LEFT_OUT, &numbers(&widened), |row| text(row, 1))?;
    let source = chosen.source.clone();
    let (values, views, refused_by) = (None, Vec::new(), Vec::new());
    let facts = Facts {
        relations,
        columns,
        foreign_keys,
        writers,
        source,
        sequences,
        values,
        next,
        mentions,
        publications,
        views,
        checks,
        refused_by,
        left_out,
    };
    facts.whole().ok_or(Unread::Gone)
}

fn sequence(row: &SpiHeapTupleData) -> Result<Sequence> {
    let number = |column| -> Result<i64> { Ok(row.get(column)?.unwrap_or_default()) };
    let grantors: Vec<pg_sys::Oid> = row.get(18)?.unwrap_or_default();
    Ok(Sequence {
        oid: oid(row, 5)?,
        name: text(row, 1)?,
        is_owned_by_key: flag(row, 2)?,
        is_identity: flag(row, 3)?,
        is_default: flag(row, 6)?,
        users: texts(row, 4)?,
        callers: texts(row, 7)?,
        closed_to: Vec::new(),
        options: Options {
            width: width(row, 8)?.unwrap_or(Width::Eight),
            start: number(9)?,
            increment: number(10)?,
            min: number(11)?,
            max: number(12)?,
            cache: number(13)?,
            cycles: flag(row, 14)?,
        },
        position: None,
        is_unlogged: flag(row, 15)?,
        comment: maybe_text(row, 16)?,
        grants: texts(row, 17)?.into_iter().zip(grantors.into_iter().map(|oid| Oid(oid.to_u32()))).collect(),
    })
}

/// Where a sequence is, for a role that may know it. On a standby, nobody can know that of an unlogged one.
pub fn position(client: &SpiClient, sequence: &Sequence) -> Result<Option<Position>> {
    const MAY_READ: &str = "SELECT has_sequence_privilege($1::oid, 'SELECT')";
    let oid = pg_sys::Oid::from(sequence.oid.0);
    // SAFETY: looks at shared memory.
    let is_lost = sequence.is_unlogged && unsafe { pg_sys::RecoveryInProgress() };
    if is_lost || rows(client, MAY_READ, &[oid.into()], known_flag)? != [true] {
        return Ok(None);
    }
    let query = POSITION.to_owned() + &sequence.name;
    let read =
        |row: &SpiHeapTupleData| Ok(Position { last: row.get(1)?.unwrap_or_default(), is_called: flag(row, 2)? });
    Ok(rows(client, &query, &[], read)?.pop())
}

/// Whether the caller may read the key ($1, $2) of a table, and all its rows.
const READABLE: &str = "SELECT has_column_privilege($1, $2, 'SELECT') AND NOT row_security_active($1)";

/// Whether the caller may know the values of a column.
pub fn may_read(client: &SpiClient, chosen: &Chosen) -> Result<bool> {
    Ok(rows(client, READABLE, &[chosen.table.into(), chosen.number.into()], known_flag)? == [true])
}

/// The lowest and the highest value of the key.
pub fn values(client: &SpiClient, facts: &Facts) -> Result<Option<Values>> {
    let (table, column) = facts.key_names();
    let query = format!("SELECT min({column})::int8, max({column})::int8 FROM {table}");
    let found = rows(client, &query, &[], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok(found.first().and_then(|&(lowest, highest)| Some(Values { lowest: lowest?, highest: highest? })))
}

/// The constraints of the columns' domains that a value does not pass. They may call anything.
pub fn refused_by(client: &SpiClient, facts: &Facts, value: i64) -> Result<Vec<String>> {
    // A domain over another type is in the way itself.
    let columns: Vec<&Column> = facts.columns.iter().filter(|column| column.width == Some(Width::Eight)).collect();
    let tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
    let numbers: Vec<i16> = columns.iter().map(|column| column.number).collect();
    let checks =
        rows(client, DOMAIN_CHECKS, &[tables.into(), numbers.into()], |row| Ok((text(row, 1)?, text(row, 2)?)))?;
    let mut refused_by = Vec::new();
    for (name, expression) in checks {
        // The word VALUE of a domain's constraint is the name of a column here.
        let query = format!("SELECT ({expression}) IS FALSE FROM (SELECT $1::pg_catalog.int8 AS value) v");
        if rows(client, &query, &[value.into()], |row| flag(row, 1))? == [true] {
            refused_by.push(name);
        }
    }
    Ok(refused_by)
}

/// The lowest value of the key that is this one or above it.
pub fn next_above(client: &SpiClient, facts: &Facts, start: i64) -> Result<Option<i64>> {
    let (table, column) = facts.key_names();
    let query = format!("SELECT min({column})::int8 FROM {table} WHERE {column} >= $1");
    Ok(rows(client, &query, &[start.into()], |row| Ok(row.get(1)?))?.first().copied().flatten())
}

/// `snowflake_next()`: its OID, and its call as a statement writes it.
fn next(client: &SpiClient) -> Result<(pg_sys::Oid, String)> {
    let Some(next) = own::next(client)? else { return Ok((pg_sys::InvalidOid, String::new())) };
    let call = rows(client, CALL, &[next.into()], |row| text(row, 1))?;
    Ok((next, call.into_iter().next().unwrap_or_default()))
}

/// Runs a query, and reads all its rows. In a transaction that has changed something, as [`super::carry_out`] makes it,
/// each query takes a snapshot of its own, and sees what was committed before a lock was granted.
pub(super) fn rows<'a, T>(
    client: &SpiClient<'a>,
    query: &str,
    arguments: &[DatumWithOid],
    mut read: impl FnMut(&SpiHeapTupleData<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    client.select(&*encoding::statement(query), None, arguments)?.map(|row| read(&row)).collect()
}

/// A text that is never NULL, but of an object that is not there any more.
pub(super) fn text(row: &SpiHeapTupleData, column: usize) -> Result<String> {
    maybe_text(row, column)?.ok_or(Unread::Gone)
}

fn maybe_text(row: &SpiHeapTupleData, column: usize) -> Result<Option<String>> {
    Ok(row.get::<Text>(column)?.map(|text| text.0))
}

/// Texts of which none is ever NULL, as above; none at all may be.
pub(super) fn texts(row: &SpiHeapTupleData, column: usize) -> Result<Vec<String>> {
    let texts = row.get::<Vec<Option<Text>>>(column)?.unwrap_or_default();
    texts.into_iter().map(|text| text.map(|text| text.0).ok_or(Unread::Gone)).collect()
}

pub(super) fn flag(row: &SpiHeapTupleData, column: usize) -> Result<bool> {
    Ok(row.get(column)?.unwrap_or_default())
}

/// What a function says of a privilege, which is NULL of an object that is not there any more.
fn known_flag(row: &SpiHeapTupleData) -> Result<bool> {
    row.get(1)?.ok_or(Unread::Gone)
}

pub(super) fn oid(row: &SpiHeapTupleData, column: usize) -> Result<Oid> {
    Ok(Oid(row.get::<pg_sys::Oid>(column)?.ok_or(Unread::Gone)?.to_u32()))
}

fn width(row: &SpiHeapTupleData, column: usize) -> Result<Option<Width>> {
    Ok(match row.get::<i32>(column)? {
        Some(2) => Some(Width::Two),
        Some(4) => Some(Width::Four),
        Some(8) => Some(Width::Eight),
        _ => None,
    })
}
