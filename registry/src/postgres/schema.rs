//! What a database has in the place of our tables, and whether it can be used.
//!
//! Whoever owns a table decides which code runs when it is read and written, as the role that does: triggers, rules, policies, defaults,
//! checks, indexes on expressions, domains. So a schema that somebody else has made under our name is refused, and a table that has
//! such code is, whoever owns it.

use super::identity::{Shown, look_at_shown};
use super::statements::{EQUAL, Part};
use crate::net::Fault;
use postgres_protocol::escape::{escape_identifier as identifier, escape_literal as literal};

/// A role that may do whatever this one may, or may become it: a superuser, the role itself, a member of it, one who makes members of it. Not
/// the other way around: whoever may make roles can make the role that connects a member of one of his. The role `pg_database_owner` stands
/// for the owner of the database.
fn acts_as(owner: &str, role: &str) -> String {
    // From 16 on, a member may be one that cannot become the role.
    format!(
        "pg_catalog.pg_has_role(CASE WHEN pg_catalog.pg_get_userbyid({owner}) {EQUAL} 'pg_database_owner' THEN \
         (SELECT own.datdba FROM pg_catalog.pg_database AS own WHERE own.datname {EQUAL} pg_catalog.current_database()) ELSE {owner} END, \
         {role}, CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 160000 \
         THEN 'MEMBER' ELSE 'USAGE, SET, MEMBER WITH ADMIN OPTION' END)"
    )
}

/// Whether this role is trusted with what the registry's role does: it may act as that anyway, or as the owner of the database. As a
/// superuser, only a superuser is.
fn is_trusted(owner: &str) -> String {
    let (current, session) = (acts_as(owner, "CURRENT_USER"), acts_as(owner, "SESSION_USER"));
    let of_database = acts_as(owner, "trusted.datdba");
    let is_superuser = is_superuser();
    format!(
        "({current} AND {session} OR NOT {is_superuser} AND EXISTS (SELECT FROM pg_catalog.pg_database AS trusted \
         WHERE trusted.datname {EQUAL} pg_catalog.current_database() AND {of_database}))"
    )
}

/// Whether we are a superuser, or can become one: as a member of such a role, or of one that may run programs or read or write files of the
/// server.
fn is_superuser() -> String {
    let can_become = |role: &str| format!("pg_catalog.pg_has_role({role}, r.oid, 'MEMBER')");
    let (current, session) = (can_become("CURRENT_USER"), can_become("SESSION_USER"));
    format!(
        "EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE (r.rolsuper OR r.rolname {EQUAL} ANY (ARRAY['pg_execute_server_program', \
         'pg_write_server_files', 'pg_read_server_files']::pg_catalog.name[])) AND ({current} OR {session}))"
    )
}

/// The tables of ours that are there, as `c`.
fn our_tables() -> String {
    let names: Vec<String> = TABLES.iter().map(|table| format!("'{}'", table.name)).collect();
    format!(
        "pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid {EQUAL} c.relnamespace \
         AND n.nspname {EQUAL} 'snowflake_registry' AND c.relname {EQUAL} ANY (ARRAY[{}]::pg_catalog.name[])",
        names.join(", ")
    )
}

/// How many statements [`look`] has.
pub(super) const LOOK_COUNT: usize = 5;

/// Reads what there is: the server and the database; the schema; the tables that have our names; their columns; who but the owner may do
/// what with them. What quotes names has none here, as the setting `quote_all_identifiers` decides on them. No table is locked for that: to
/// show a default with its table would, and a lock on the tables of segments must not hold up leases.
pub(super) fn look() -> String {
    let (of_schema, of_table, tables) = (is_trusted("n.nspowner"), is_trusted("c.relowner"), our_tables());
    let (is_superuser, shown) = (is_superuser(), look_at_shown());
    let code: Vec<String> = CODE.iter().map(|(_, condition)| condition.replace('=', EQUAL)).collect();
    let code = code.join(", ");
    format!(
        "SELECT pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::boolean, \
           CURRENT_USER, pg_catalog.pg_get_userbyid(d.datdba), \
           {is_superuser}, {shown} \
         FROM pg_catalog.pg_database AS d WHERE d.datname {EQUAL} pg_catalog.current_database(); \
         SELECT pg_catalog.pg_get_userbyid(n.nspowner), {of_schema} FROM pg_catalog.pg_namespace AS n \
         WHERE n.nspname {EQUAL} 'snowflake_registry'; \
         SELECT c.relname, pg_catalog.pg_get_userbyid(c.relowner), {of_table}, \
           (SELECT pg_catalog.string_agg(a.attname::pg_catalog.text, ' ' ORDER BY a.attname) \
            FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a \
            ON a.attrelid {EQUAL} i.indrelid AND a.attnum {EQUAL} ANY (i.indkey) \
            WHERE i.indrelid {EQUAL} c.oid AND i.indisprimary AND i.indisvalid AND i.indimmediate), {code}, {}, {} \
         FROM {tables}; \
         SELECT c.relname, a.attname, pg_catalog.replace(pg_catalog.format_type(a.atttypid, a.atttypmod), '\"', ''), \
           (SELECT l.collname FROM pg_catalog.pg_collation AS l JOIN pg_catalog.pg_namespace AS s \
            ON s.oid {EQUAL} l.collnamespace AND s.nspname {EQUAL} 'pg_catalog' WHERE l.oid {EQUAL} a.attcollation), \
           a.attnotnull, \
           (SELECT CASE WHEN a.attgenerated {EQUAL} '' THEN \
             pg_catalog.replace(pg_catalog.left(pg_catalog.pg_get_expr(d.adbin, 0), 100), '\"', '') ELSE 'generated' END \
            FROM pg_catalog.pg_attrdef AS d \
            WHERE d.adrelid {EQUAL} a.attrelid AND d.adnum {EQUAL} a.attnum), \
           a.attidentity OPERATOR(pg_catalog.<>) '', \
           EXISTS (SELECT FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_namespace AS s ON s.oid {EQUAL} t.typnamespace \
             WHERE t.oid {EQUAL} a.atttypid AND t.typtype {EQUAL} 'b' AND s.nspname {EQUAL} 'pg_catalog') \
         FROM {tables} JOIN pg_catalog.pg_attribute AS a ON a.attrelid {EQUAL} c.oid \
         WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped ORDER BY a.attnum LIMIT 500; {}",
        shape(),
        triggers(),
        look_at_grants()
    )
}

/// The triggers of a table, and the tables that have a foreign key to it.
fn triggers() -> String {
    format!(
        "(SELECT pg_catalog.string_agg(DISTINCT CASE WHEN x.tgconstrrelid {EQUAL} 0 THEN pg_catalog.concat('trigger ', x.tgname) \
         ELSE pg_catalog.concat('foreign key with ', x.tgconstrrelid::pg_catalog.regclass) END, ', ') \
         FROM pg_catalog.pg_trigger AS x WHERE x.tgrelid {EQUAL} c.oid)"
    )
}

/// Reads who but the owner may do something with the schema, which has no name here, and with each table.
fn look_at_grants() -> String {
    let (is_trusted, tables) = (is_trusted("g.grantee"), our_tables());
    let may = |privilege: &str| format!("pg_catalog.bool_or(g.privilege_type {EQUAL} ANY (ARRAY[{privilege}]))");
    let (triggers, creates) = (may("'TRIGGER', 'REFERENCES'"), may("'CREATE'"));
    let (uses, deletes) = (may("'SELECT', 'INSERT', 'UPDATE'"), may("'DELETE', 'TRUNCATE'"));
    format!(
        "SELECT g.object, CASE WHEN NOT g.grantee {EQUAL} 0 THEN pg_catalog.pg_get_userbyid(g.grantee) END, \
           CASE WHEN g.grantee {EQUAL} 0 THEN false ELSE {is_trusted} END, {triggers}, {creates}, {uses}, {deletes} FROM \
           (SELECT '' AS object, x.grantee, x.privilege_type FROM pg_catalog.pg_namespace AS n \
            CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) AS x \
            WHERE n.nspname {EQUAL} 'snowflake_registry' AND NOT x.grantee {EQUAL} n.nspowner \
            UNION ALL SELECT c.relname, x.grantee, x.privilege_type FROM {tables} \
            CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS x WHERE NOT x.grantee {EQUAL} c.relowner \
            UNION ALL SELECT c.relname, x.grantee, x.privilege_type FROM {tables} \
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid {EQUAL} c.oid \
            CROSS JOIN LATERAL pg_catalog.aclexplode(a.attacl) AS x WHERE NOT x.grantee {EQUAL} c.relowner) AS g \
         GROUP BY g.object, g.grantee ORDER BY g.grantee, g.object LIMIT 500"
    )
}

/// What of a table changes when it becomes another one, gets another owner, a column, a check, a rule, a trigger, its first child, or row-level
/// security. `relhastriggers` stays after the last trigger, so another one would not show; rules and children are the owner's.
fn shape() -> String {
    format!(
        "pg_catalog.concat_ws(' ', c.oid, n.nspowner, c.relowner, c.relkind, c.relpersistence, c.relnatts, c.relchecks, c.relhasrules, \
         c.relhassubclass, c.relrowsecurity, c.relforcerowsecurity, \
         EXISTS (SELECT FROM pg_catalog.pg_trigger AS x WHERE x.tgrelid {EQUAL} c.oid))"
    )
}

/// What stands in the error of [`Found::guard`], in the place of a number.
pub(super) const CHANGED: &str = "snowflake_registry has changed";

const TRIGGERS: &str = "has a trigger, or a foreign key";

/// What a table may have that runs code, or that makes it another thing than a table, with the condition for it.
const CODE: [(&str, &str); 8] = [
    (
        "is no plain table",
        "NOT (c.relkind = 'r' AND c.relpersistence = 'p') OR c.relispartition OR NOT c.reloftype = 0",
    ),
    (
        "has parents or children",
        "EXISTS (SELECT FROM pg_catalog.pg_inherits AS x WHERE x.inhrelid = c.oid OR x.inhparent = c.oid)",
    ),
    (TRIGGERS, "EXISTS (SELECT FROM pg_catalog.pg_trigger AS x WHERE x.tgrelid = c.oid)"),
    ("has a rule", "EXISTS (SELECT FROM pg_catalog.pg_rewrite AS x WHERE x.ev_class = c.oid)"),
    (
        "has row-level security",
        "c.relrowsecurity OR c.relforcerowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_policy AS x WHERE x.polrelid = c.oid)",
    ),
    (
        "has a constraint of its own",
        "EXISTS (SELECT FROM pg_catalog.pg_constraint AS x WHERE x.conrelid = c.oid AND NOT (x.contype = 'p' OR x.contype = 'n'))",
    ),
    (
        "has an index that is unique, partial or on an expression",
        "EXISTS (SELECT FROM pg_catalog.pg_index AS x WHERE x.indrelid = c.oid AND NOT x.indisprimary \
         AND (x.indisunique OR x.indisexclusion OR x.indexprs IS NOT NULL OR x.indpred IS NOT NULL))",
    ),
    ("has statistics of its own", "EXISTS (SELECT FROM pg_catalog.pg_statistic_ext AS x WHERE x.stxrelid = c.oid)"),
];

/// A table as we make it.
struct OurTable {
    name: &'static str,
    /// The columns of its primary key, by name.
    key: &'static str,
    /// Each with its name, type and collation, and whether it must have a value.
    columns: &'static [(&'static str, &'static str, bool)],
}

const KEY: &str = "text C";
const TEXT: &str = "text default";
const INSTANT: &str = "timestamp with time zone";
const NUMBER: &str = "numeric(20,0)";

const TABLES: [OurTable; 4] = [
    OurTable {
        name: "namespaces",
        key: "namespace",
        columns: &[
            ("namespace", KEY, true),
            ("format", "integer", true),
            ("layout", TEXT, true),
            ("life", TEXT, true),
            ("leases_from", INSTANT, false),
            ("written_at", INSTANT, true),
        ],
    },
    OurTable {
        name: "workers",
        key: "namespace worker",
        columns: &[
            ("namespace", KEY, true),
            ("worker", "bigint", true),
            ("version", "bigint", true),
            ("format", "integer", true),
            ("token", "uuid", false),
            ("granted_from", INSTANT, true),
            ("granted_until", INSTANT, true),
            ("host", TEXT, true),
            ("data_directory", TEXT, true),
            ("port", "integer", true),
            ("cluster_name", TEXT, true),
            ("system_identifier", NUMBER, true),
            ("process", TEXT, true),
            ("written_at", INSTANT, true),
        ],
    },
    OurTable {
        name: "segments",
        key: "namespace tag",
        columns: &[
            ("namespace", KEY, true),
            ("tag", KEY, true),
            ("version", "bigint", true),
            ("format", "integer", true),
            ("next", NUMBER, true),
            ("floor", NUMBER, true),
            ("first", NUMBER, true),
            ("last", NUMBER, true),
            ("state", TEXT, true),
            ("smallest", NUMBER, true),
            ("largest", NUMBER, true),
            ("written_at", INSTANT, true),
        ],
    },
    OurTable {
        name: "segment_holders",
        key: "namespace tag worker",
        columns: &[
            ("namespace", KEY, true),
            ("worker", "bigint", true),
            ("tag", KEY, true),
            ("format", "integer", true),
            ("run", TEXT, true),
            ("current_first", NUMBER, true),
            ("current_end", NUMBER, true),
            ("after_first", NUMBER, true),
            ("after_end", NUMBER, true),
            ("granted_at", INSTANT, true),
            ("used", NUMBER, true),
            ("used_in", NUMBER, true),
        ],
    },
];

/// The columns of a row as text.
pub(super) type TextRow = Vec<Option<String>>;

/// What [`look`] has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether it is a standby, or read-only for us.
    pub takes_no_changes: bool,
    /// The role that we are.
    role: String,
    database_owner: String,
    is_superuser: bool,
    /// What the server shows of its identity.
    pub shown: Shown,
    schema: Option<Owner>,
    tables: Vec<Table>,
    grants: Vec<Grant>,
}

/// What a role that is not the owner may do with the schema or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    /// A table; empty for the schema.
    object: String,
    /// The role; everybody, where there is none.
    to: Option<String>,
    is_trusted: bool,
    /// Whether it may make triggers, or foreign keys from elsewhere.
    triggers: bool,
    /// Whether it may make tables in the schema.
    creates: bool,
    /// Whether it may read or write rows, or some of their columns.
    uses: bool,
    /// Whether it may take rows away.
    deletes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    name: String,
    is_trusted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    name: String,
    owner: Owner,
    /// The columns of its primary key, by name.
    key: String,
    shape: String,
    /// Which of [`CODE`] it has.
    code: Vec<&'static str>,
    /// Its triggers and foreign keys, in words.
    triggers: Option<String>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    /// With the collation, where it has one.
    of_type: String,
    is_required: bool,
    default: Option<String>,
    is_identity: bool,
    /// Whether its type is one of PostgreSQL's own, and no domain.
    is_built_in: bool,
}

impl Found {
    /// Reads the results of [`look`].
    pub fn read(results: &[Vec<TextRow>]) -> Result<Self, Fault> {
        let unclear = || Fault::Unclear("the catalog cannot be read".to_owned());
        let [database, schema, tables, columns, grants] = results else { return Err(unclear()) };
        let text = |row: &TextRow, column: usize| row.get(column).cloned().flatten();
        let name = |row: &TextRow, column: usize| text(row, column).ok_or_else(unclear);
        let is_true = |row: &TextRow, column: usize| match text(row, column).as_deref() {
            Some("t") => Ok(true),
            Some("f") => Ok(false),
            _ => Err(unclear()),
        };
        let owner = |row: &TextRow, column: usize| {
            Ok::<_, Fault>(Owner { name: name(row, column)?, is_trusted: is_true(row, column + 1)? })
        };
        let column = |row: &TextRow| {
            let collation = text(row, 3).map(|collation| format!(" {collation}")).unwrap_or_default();
            Ok::<_, Fault>(Column {
                name: name(row, 1)?,
                of_type: name(row, 2)? + &collation,
                is_required: is_true(row, 4)?,
                default: text(row, 5),
                is_identity: is_true(row, 6)?,
                is_built_in: is_true(row, 7)?,
            })
        };
        let table = |row: &TextRow| {
            let mut code = Vec::new();
            for (number, (what, _)) in CODE.iter().enumerate() {
                if is_true(row, 4 + number)? {
                    code.push(*what);
                }
            }
            let of_table = columns.iter().filter(|column| text(column, 0) == text(row, 0));
            Ok::<_, Fault>(Table {
                name: name(row, 0)?,
                owner: owner(row, 1)?,
                key: text(row, 3).unwrap_or_default(),
                shape: name(row, 4 + CODE.len())?,
                triggers: text(row, 5 + CODE.len()),
                code,
                columns: of_table.map(column).collect::<Result<_, _>>()?,
            })
        };
        let grant = |row: &TextRow| {
            Ok::<_, Fault>(Grant {
                object: name(row, 0)?,
                to: text(row, 1),
                is_trusted: is_true(row, 2)?,
                triggers: is_true(row, 3)?,
                creates: is_true(row, 4)?,
                uses: is_true(row, 5)?,
                deletes: is_true(row, 6)?,
            })
        };
        let database = database.first().ok_or_else(unclear)?;
        let is_shown = |column: usize| text(database, column).as_deref() == Some("t");
        Ok(Self {
            takes_no_changes: is_true(database, 0)?,
            role: name(database, 1)?,
            database_owner: name(database, 2)?,
            is_superuser: is_true(database, 3)?,
            shown: Shown { system: is_shown(4), timeline: is_shown(5) },
            schema: schema.first().map(|row| owner(row, 0)).transpose()?,
            tables: tables.iter().map(table).collect::<Result<_, _>>()?,
            grants: grants.iter().map(grant).collect::<Result<_, _>>()?,
        })
    }

    /// A statement that fails, and with it its message, where a table that was found is not what it was: somebody else may have made
    /// another one. It looks at less than [`look`], so that each message can begin with it.
    pub fn guard(&self) -> String {
        let tables = our_tables();
        let same = self.tables.iter().map(|table| {
            let (name, shape, of_table) = (literal(&table.name), shape(), literal(&table.shape));
            format!(" AND EXISTS (SELECT FROM {tables} WHERE c.relname {EQUAL} {name} AND {shape} {EQUAL} {of_table})")
        });
        let same: String = same.collect();
        format!("SELECT (CASE WHEN true{same} THEN '0' ELSE '{CHANGED}' END)::pg_catalog.int4")
    }

    /// A statement that locks those tables which these statements name, as writing them does: nobody can make a trigger from there on, and one
    /// that is not committed yet is waited for. `None` where they name none that is there.
    pub fn lock(&self, statements: &str) -> Option<String> {
        let names = self.tables.iter().map(|table| format!("snowflake_registry.{}", table.name));
        let named: Vec<String> = names.filter(|name| statements.contains(&format!("{name} "))).collect();
        (!named.is_empty()).then(|| format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", named.join(", ")))
    }

    /// Whether the schema is there.
    pub fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// Whether this table is there.
    pub fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }

    /// Whether all tables of this part are there.
    pub fn has(&self, part: Part) -> bool {
        part.tables().iter().all(|name| self.has_table(name))
    }

    /// That all that is there is as we make it, and belongs to somebody who is trusted.
    ///
    /// # Errors
    /// [`Fault::Untrusted`], which says whose it is.
    pub fn check(&self) -> Result<(), Fault> {
        let schema = self.schema.as_ref().filter(|owner| !owner.is_trusted);
        let mut owned: Vec<String> = schema
            .iter()
            .map(|owner| format!("schema snowflake_registry belongs to role \"{}\"", owner.name))
            .collect();
        let mut strange = Vec::new();
        for table in &self.tables {
            let name = &table.name;
            if !table.owner.is_trusted && schema != Some(&table.owner) {
                owned.push(format!("table {name} belongs to role \"{}\"", table.owner.name));
            }
            strange.extend(table.strange().into_iter().map(|what| format!("table {name} {what}")));
        }
        let remedy = match (owned.is_empty(), strange.is_empty()) {
            (true, true) => return Ok(()),
            (true, false) => "remove what is named here".to_owned(),
            (false, _) if self.is_superuser => format!(
                "connect as a role that is not a superuser and cannot become one; or look at what it has, then ALTER SCHEMA \
                 snowflake_registry OWNER TO {}, and each of its tables",
                identifier(&self.role)
            ),
            (false, _) => format!(
                "look at what it has; then ALTER SCHEMA snowflake_registry OWNER TO {}, and each of its tables, and GRANT to each role \
                 that servers connect as USAGE on the schema, and SELECT, INSERT, UPDATE on the tables",
                identifier(&self.database_owner)
            ),
        };
        Err(Fault::Untrusted { what: few(owned.into_iter().chain(strange).collect()), remedy })
    }
}

impl Found {
    /// Statements that take away what default privileges have given to others of what was not there before.
    pub fn revocations(&self, before: &Self) -> Vec<String> {
        let is_new = |object: &str| match object {
            "" => !before.has_schema(),
            table => !before.has_table(table),
        };
        let revocation = |grant: &Grant| {
            let from = grant.to.as_deref().map_or("PUBLIC".to_owned(), identifier);
            format!("REVOKE ALL ON {} FROM {from} CASCADE", grant.object())
        };
        self.grants.iter().filter(|grant| is_new(&grant.object)).map(revocation).collect()
    }

    /// Who may do more than the registry needs.
    pub fn exposures(&self) -> Vec<String> {
        let role = &self.role;
        let mut found = Vec::new();
        if self.is_superuser {
            found.push(format!(
                "The registry's role \"{role}\" is a superuser in the registry, or can become one. It needs none of that: connect as a role that \
                 owns the schema snowflake_registry, or that was granted its tables."
            ));
        }
        for grant in &self.grants {
            let who = grant.to.as_deref().map_or("Everybody".to_owned(), |role| format!("Role \"{role}\""));
            let from = grant.to.as_deref().map_or("PUBLIC".to_owned(), identifier);
            let object = grant.object();
            let mut expose = |what: &str, privileges: &str| {
                found.push(format!("{who} may {what}: REVOKE {privileges} ON {object} FROM {from}."));
            };
            if grant.is_trusted {
                continue;
            }
            if grant.triggers {
                let what =
                    format!("make triggers in the registry, whose code would run as \"{role}\", or foreign keys");
                expose(&what, "TRIGGER, REFERENCES");
            }
            if grant.creates {
                expose("make tables in the place of the registry's", "CREATE");
            }
            if grant.to.is_none() && (grant.uses || grant.deletes) && !grant.object.is_empty() {
                expose("read or change leases in the registry", "ALL");
            } else if grant.deletes {
                expose("take leases out of the registry", "DELETE, TRUNCATE");
            }
        }
        found
    }
}

impl Grant {
    fn object(&self) -> String {
        match self.object.as_str() {
            "" => "SCHEMA snowflake_registry".to_owned(),
            table => format!("TABLE snowflake_registry.{table}"),
        }
    }
}

impl Table {
    /// What it has, or lacks, that ours do not.
    fn strange(&self) -> Vec<String> {
        let Some(ours) = TABLES.iter().find(|ours| ours.name == self.name) else { return Vec::new() };
        let described = |what: &&str| match &self.triggers {
            Some(triggers) if *what == TRIGGERS => format!("{what} ({triggers})"),
            _ => (*what).to_owned(),
        };
        let mut strange: Vec<String> = self.code.iter().map(described).collect();
        if self.key != ours.key {
            strange.push(format!("does not have the primary key ({})", ours.key.replace(' ', ", ")));
        }
        for (name, of_type, is_required) in ours.columns {
            match self.columns.iter().find(|column| column.name == *name) {
                Some(column) if column.of_type == *of_type && column.is_required == *is_required => {}
                Some(_) => strange.push(format!("has a column {name} of another kind")),
                None => strange.push(format!("has no column {name}")),
            }
        }
        for column in &self.columns {
            let is_ours = ours.columns.iter().any(|(name, ..)| column.name == *name);
            // A later version may add a column; one that stays empty runs nothing.
            if column.has_code() || !is_ours && (column.is_required || !column.is_built_in) {
                strange.push(format!("has a column {} that runs code, or needs a value", column.name));
            }
        }
        strange
    }
}

impl Column {
    fn has_code(&self) -> bool {
        let is_ours = self.name == "written_at" && self.default.as_deref() == Some("now()");
        self.is_identity || self.default.is_some() && !is_ours
    }
}

/// The first of these, and how many there are more.
fn few(mut all: Vec<String>) -> String {
    const MOST: usize = 3;
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    match more {
        0 => all.join("; "),
        _ => format!("{}; and {more} more", all.join("; ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn row(values: &[&str]) -> TextRow {
        values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
    }

    /// What a client sees where it, `ids`, has made everything.
    pub fn ours() -> Vec<Vec<TextRow>> {
        let table = |table: &OurTable| {
            row(&[&[table.name, "ids", "t", table.key][..], &["f"; CODE.len()], &["1", ""]].concat())
        };
        let column = |table: &'static str, (name, of_type, is_required): &(&str, &str, bool)| {
            let (of_type, collation) = match of_type.strip_prefix("text ") {
                Some(collation) => ("text", collation),
                None => (*of_type, ""),
            };
            let default = if *name == "written_at" { "now()" } else { "" };
            row(&[table, name, of_type, collation, if *is_required { "t" } else { "f" }, default, "f", "t"])
        };
        let columns = TABLES.iter().flat_map(|table| table.columns.iter().map(|of_table| column(table.name, of_table)));
        vec![
            vec![row(&["f", "ids", "admin", "f", "t", "t"])],
            vec![row(&["ids", "t"])],
            TABLES.iter().map(table).collect(),
            columns.collect(),
            vec![],
        ]
    }

    fn objection(found: &[Vec<TextRow>]) -> String {
        match Found::read(found).unwrap().check() {
            Err(Fault::Untrusted { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn our_own_tables_are_taken() {
        let found = Found::read(&ours()).unwrap();
        assert_eq!(found.check(), Ok(()));
        assert!(found.has(Part::Leases) && found.has(Part::Segments) && found.has_schema());
        assert_eq!((found.exposures(), found.revocations(&found)), (Vec::new(), Vec::new()));
        // Nothing is there yet, or not all.
        let mut none = ours();
        none[1..].iter_mut().for_each(Vec::clear);
        let none = Found::read(&none).unwrap();
        assert_eq!(none.check(), Ok(()));
        assert!(!none.has_schema() && !none.has(Part::Leases));
        let mut some = ours();
        some[2].truncate(2);
        some[3].retain(|column| !column[0].as_ref().unwrap().contains("segment"));
        let some = Found::read(&some).unwrap();
        assert_eq!((some.check(), some.has(Part::Leases), some.has(Part::Segments)), (Ok(()), true, false));
    }

    #[test]
    fn whose_it_is_comes_first() {
        let mut found = ours();
        found[1][0] = row(&["mallory", "f"]);
        found[2][1] =
            row(&[&["workers", "mallory", "f", "namespace worker", "f", "f"][..], &["t"; 6], &["1", "trigger trap"]]
                .concat());
        found[2][2] = row(&[&["segments", "eve", "f", "namespace tag"][..], &["f"; CODE.len()], &["1", ""]].concat());
        assert_eq!(
            objection(&found),
            "schema snowflake_registry belongs to role \"mallory\"; table segments belongs to role \"eve\"; table workers has a \
             trigger, or a foreign key (trigger trap); and 5 more"
        );
    }

    #[test]
    fn each_difference_is_seen() {
        for (number, (what, _)) in CODE.iter().enumerate() {
            let mut found = ours();
            found[2][0][4 + number] = Some("t".to_owned());
            assert_eq!(objection(&found), format!("table namespaces {what}"));
        }
        for (place, value, what) in [
            (
                1,
                Some("other"),
                "has no column format; table namespaces has a column other that runs code, or needs a value",
            ),
            (2, Some("bigint"), "has a column format of another kind"),
            (3, Some("C"), "has a column format of another kind"),
            (4, Some("f"), "has a column format of another kind"),
            (5, Some("now()"), "has a column format that runs code, or needs a value"),
            (6, Some("t"), "has a column format that runs code, or needs a value"),
        ] {
            let mut found = ours();
            found[3][1][place] = value.map(str::to_owned);
            assert_eq!(objection(&found), format!("table namespaces {what}"), "{place}");
        }
        let mut found = ours();
        found[2][0][3] = None;
        assert_eq!(objection(&found), "table namespaces does not have the primary key (namespace)");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for place in 0..LOOK_COUNT {
            let mut found = ours();
            found.remove(place);
            assert!(matches!(Found::read(&found), Err(Fault::Unclear(_))));
            if let Some(row) = ours()[place].first() {
                // What a server shows of its identity, a primary key, a collation and a default may be missing.
                let may_be_empty = |column: usize| matches!((place, column), (0, 4 | 5) | (2, 3 | 13) | (3, 3 | 5));
                for column in (0..row.len()).filter(|column| !may_be_empty(*column)) {
                    let mut found = ours();
                    found[place][0][column] = None;
                    let read = Found::read(&found);
                    assert!(!matches!(read.map(|found| found.check()), Ok(Ok(()))), "{place} {column}");
                }
            }
        }
    }
}
