//! What the catalogue says of views that depend on columns, and what makes such views again.

use super::catalogue::{Result, Unread, flag, oid, rows, text, texts};
use crate::postgres::encoding::Text;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_moving::{Column, View};

/// What must be the same after a view was made again, of the relation `c`. Stands for `STATE`.
const STATE: &str = "
    concat_ws(' / ', relkind, relowner::regrole, reltablespace, relam,
        (SELECT string_agg(acl::text, ' ' ORDER BY acl::text)
            FROM unnest(coalesce(relacl, acldefault('r', relowner))) acl),
        (SELECT string_agg(option, ' ' ORDER BY option) FROM unnest(reloptions) option),
        (SELECT string_agg('toast.' || option, ' ' ORDER BY option)
            FROM pg_class t, unnest(t.reloptions) option WHERE t.oid = c.reltoastrelid),
        obj_description(c.oid, 'pg_class'),
        (SELECT string_agg(concat_ws(' ', attname,
                (SELECT string_agg(acl::text, ' ' ORDER BY acl::text) FROM unnest(attacl) acl),
                col_description(attrelid, attnum)), ', ' ORDER BY attnum)
            FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
        (SELECT string_agg(concat_ws(' ', pg_get_indexdef(indexrelid), obj_description(indexrelid, 'pg_class')),
                ', ' ORDER BY indexrelid::regclass::text)
            FROM pg_index WHERE indrelid = c.oid))";

/// The state of a relation ($1, its name).
const STATE_OF: &str = "SELECT STATE FROM pg_class c WHERE c.oid = to_regclass($1)";

/// What a view ($1, its name) depends on by its rule: each object with its part, the object alone, and its OID.
const BINDINGS: &str = "
    SELECT DISTINCT pg_describe_object(refclassid, refobjid, refobjsubid), pg_describe_object(refclassid, refobjid, 0),
        refobjid
    FROM pg_rewrite r JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = r.oid
    WHERE ev_class = to_regclass($1) AND NOT (refclassid = 'pg_class'::regclass AND refobjid = ev_class) ORDER BY 1";

/// What of a view cannot be made again, of `c`. Stands for `BLOCKERS`.
const BLOCKERS: &str = "
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
        ORDER BY 1)";

/// The statement that creates a view without rows, of `c`. Stands for `DEFINITION`.
const DEFINITION: &str = "
    concat('CREATE ', kind, name,
        CASE relkind WHEN 'm' THEN
            (SELECT ' USING ' || quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam) END,
        (SELECT ' WITH (' || string_agg(of || quote_ident(option_name) || ' = ' || quote_literal(option_value), ', ') || ')'
            FROM (
                SELECT '' AS of, option_name, option_value FROM pg_options_to_table(reloptions)
                UNION ALL
                SELECT 'toast.', o.option_name, o.option_value
                FROM pg_class t, pg_options_to_table(t.reloptions) o WHERE t.oid = c.reltoastrelid
            ) options),
        CASE relkind WHEN 'm' THEN
            (SELECT ' TABLESPACE ' || quote_ident(spcname) FROM pg_database JOIN pg_tablespace s
                ON s.oid = CASE reltablespace WHEN 0 THEN dattablespace ELSE reltablespace END
                WHERE datname = current_database()) END,
        ' AS ', rtrim(pg_get_viewdef(view), ';'),
        CASE relkind WHEN 'm' THEN ' WITH NO DATA' END)";

/// Further statements for it. Stands for `DETAILS`.
const DETAILS: &str = "
    ARRAY(
        SELECT statement FROM (
            SELECT 1 AS step, 0::int2 AS place, '' AS item,
                format('ALTER %s%s OWNER TO %s', kind, name, owner) AS statement
            WHERE owner <> quote_ident(current_user)
            UNION ALL
            SELECT 2, 0::int2, indexrelid::regclass::text, pg_get_indexdef(indexrelid)
            FROM pg_index WHERE indrelid = view
            UNION ALL
            SELECT 3, 0::int2, indexrelid::regclass::text, format('COMMENT ON INDEX %I.%I IS %s', nspname, i.relname,
                quote_literal(obj_description(indexrelid, 'pg_class')))
            FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_namespace n ON n.oid = i.relnamespace
            WHERE indrelid = view AND obj_description(indexrelid, 'pg_class') IS NOT NULL
            UNION ALL
            -- What ALTER DEFAULT PRIVILEGES gives to a new view.
            SELECT DISTINCT 4, 0::int2, grantee::text, format('REVOKE ALL ON %s FROM %s', name,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
            FROM pg_default_acl, aclexplode(defaclacl) WHERE GIVEN AND grantee <> relowner
            UNION ALL
            SELECT 4, 0::int2, '', format('REVOKE ALL ON %s FROM %s', name, owner) WHERE ODD
            UNION ALL
            SELECT 5, 0::int2, grantee::text, format('GRANT %s ON %s TO %s%s',
                string_agg(privilege_type, ', ' ORDER BY privilege_type), name,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
            FROM aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE grantee <> relowner OR ODD
            GROUP BY grantee, is_grantable
            UNION ALL
            SELECT 6, attnum, grantee::text, format('GRANT %s ON %s TO %s%s',
                string_agg(format('%s (%I)', privilege_type, attname), ', ' ORDER BY privilege_type), name,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
            FROM pg_attribute, aclexplode(attacl) WHERE attrelid = view AND attnum > 0
            GROUP BY attnum, attname, grantee, is_grantable
            UNION ALL
            SELECT 7, 0::int2, '', format('COMMENT ON %s%s IS %s', kind, name,
                quote_literal(obj_description(view, 'pg_class')))
            WHERE obj_description(view, 'pg_class') IS NOT NULL
            UNION ALL
            SELECT 8, attnum, '', format('COMMENT ON COLUMN %s.%I IS %s', name, attname,
                quote_literal(col_description(view, attnum)))
            FROM pg_attribute
            WHERE attrelid = view AND attnum > 0 AND col_description(view, attnum) IS NOT NULL
        ) details ORDER BY step, place, item)";

/// The privileges that ALTER DEFAULT PRIVILEGES gives to a new view. Stands for `GIVEN`.
const GIVEN: &str = "(defaclobjtype = 'r' AND defaclrole = relowner AND defaclnamespace IN (0, relnamespace))";

/// Whether a new view's owner has other privileges on it than this one's has. Stands for `ODD`.
const ODD: &str = "
    (NOT coalesce(relacl, acldefault('r', relowner)) @> acldefault('r', relowner) OR EXISTS (SELECT FROM pg_default_acl
        WHERE GIVEN AND defaclnamespace = 0 AND NOT defaclacl @> acldefault('r', relowner)))";

/// The views that depend on columns ($1, tables, and $2, numbers), also by way of other views.
const VIEWS: &str = "
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
        BLOCKERS, DEFINITION, DETAILS, relkind = 'm' AND relispopulated,
        CASE relkind WHEN 'm' THEN pg_total_relation_size(view) ELSE 0 END, STATE, relowner
    FROM named c ORDER BY view";

/// The views that depend on columns.
pub fn views(client: &SpiClient, columns: &[&Column]) -> Result<Vec<View>> {
    let tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
    let numbers: Vec<i16> = columns.iter().map(|column| column.number).collect();
    let query = VIEWS
        .replace("BLOCKERS", BLOCKERS)
        .replace("DEFINITION", DEFINITION)
        .replace("DETAILS", DETAILS)
        .replace("ODD", ODD)
        .replace("GIVEN", GIVEN)
        .replace("STATE", STATE);
    let mut views = rows(client, &query, &[tables.into(), numbers.into()], |row| {
        let reads: Vec<pg_sys::Oid> = row.get(6)?.unwrap_or_default();
        Ok(View {
            oid: oid(row, 1)?,
            name: text(row, 2)?,
            description: text(row, 3)?,
            is_materialized: flag(row, 4)?,
            owner: oid(row, 13)?,
            is_owned: flag(row, 5)?,
            reads: reads.into_iter().map(|oid| snowflake_moving::Oid(oid.to_u32())).collect(),
            blockers: texts(row, 7)?,
            definition: text(row, 8)?,
            details: texts(row, 9)?,
            is_populated: flag(row, 10)?,
            bytes: row.get(11)?.ok_or(Unread::Gone)?,
            state: text(row, 12)?,
            bindings: Vec::new(),
        })
    })?;
    let found: Vec<Vec<String>> = views.iter().map(|view| bindings(client, view, &views)).collect::<Result<_>>()?;
    views.iter_mut().zip(found).for_each(|(view, bindings)| view.bindings = bindings);
    Ok(views)
}

/// What a view depends on by its rule. Views that are made again (`all`) are known by their names, everything else by its
/// OID: a name may mean something else afterwards.
fn bindings(client: &SpiClient, view: &View, all: &[View]) -> Result<Vec<String>> {
    rows(client, BINDINGS, &[Text(view.name.clone()).into()], |row| {
        let (part, whole, number) = (text(row, 1)?, text(row, 2)?, oid(row, 3)?.0);
        let is_made_again = all.iter().any(|view| view.description == whole);
        Ok(if is_made_again { part } else { format!("{part} (OID {number})") })
    })
}

/// The state and the bindings of a view that was made again; no state where there is no such view.
pub fn now(client: &SpiClient, view: &View, all: &[View]) -> Result<(Vec<String>, Vec<String>)> {
    let query = STATE_OF.replace("STATE", STATE);
    let state = rows(client, &query, &[Text(view.name.clone()).into()], |row| text(row, 1))?;
    Ok((state, bindings(client, view, all)?))
}
