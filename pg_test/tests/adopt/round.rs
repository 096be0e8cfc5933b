//! There and back: all tables of a database get snowflake IDs, rows are written, and all are released. Then the schema is what it was, as
//! text, but for columns that are wider now, as the plans have said.

use super::schema::{difference, rows, schema};
use postgres::Client;
use snowflake_test::{Cluster, value};

/// What became of the tables of a database.
#[derive(Debug, Default)]
pub struct Round {
    /// Those that got IDs, and were released.
    pub moved: Vec<String>,
    /// Those without a column for IDs, with what was said of it.
    pub unfit: Vec<String>,
    /// Those with something in the way, with what it was.
    pub hindered: Vec<String>,
    /// How many rows were written, with the old keys and with IDs.
    pub written: usize,
}

/// How tables are adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// One call for each.
    Each,
    /// One call for all.
    Together,
}

const TABLES: &str = "
    SELECT quote_ident(nspname) || '.' || quote_ident(relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema') AND relpersistence <> 't'
        AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
    ORDER BY 1";

/// # Panics
/// With all that was not as it should be.
pub fn there_and_back(cluster: &Cluster, database: &str, calls: Calls) -> Round {
    let mut client = cluster.client_of("postgres", database);
    client.batch_execute("SET lock_timeout = '10s'").unwrap();
    let tables: Vec<String> = client.query(TABLES, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let mut round = Round::default();
    // Those that refer to others come after them.
    let mut rest = tables.clone();
    for _ in 0..4 {
        let count = rest.len();
        rest.retain(|table| write(&mut client, table).is_none());
        round.written += count - rest.len();
    }
    let (before, rows_before) = (schema(cluster, database), rows(cluster, database));
    let fit = sorted_out(&mut client, &tables, &mut round);
    let first: i64 = value(&mut client, "SELECT snowflake_next()");
    let mut wrong = Vec::new();
    match calls {
        Calls::Together if fit.is_empty() => {}
        Calls::Together => {
            let all: Vec<String> = fit.iter().map(|table| text(table)).collect();
            let all =
                format!("SELECT count(*) FROM snowflake_adopt_all(ARRAY[{}]::regclass[], 'recreate')", all.join(", "));
            assert_eq!(value::<i64>(&mut client, &all), i64::try_from(fit.len()).unwrap(), "{database}");
            round.moved.extend(fit);
        }
        Calls::Each => {
            for table in &fit {
                // What hinders one may have come by another.
                let adopt = format!("SELECT snowflake_adopt({}, views => 'recreate')", text(table));
                match client.batch_execute(&adopt) {
                    Ok(()) => round.moved.push(table.clone()),
                    Err(error) => wrong.push(format!("{adopt}: {error:?}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{database}: {wrong:#?}");
    assert_eq!(rows(cluster, database), rows_before, "{database}");
    for table in &round.moved {
        let written = write(&mut client, table);
        round.written += usize::from(written.is_some());
        if let Some(key) = written.filter(|&key| key < first) {
            wrong.push(format!("{table} got {key} and no ID"));
        }
    }
    // What plans say of who may use a sequence again.
    let mut granted = Vec::new();
    for table in &round.moved {
        let start = start(&mut client, table).map_or("NULL".to_owned(), |start| start.to_string());
        let release =
            format!("SELECT snowflake_release({}, {}, start => {start})", text(table), column_text(&mut client, table));
        let plan = release.replace("snowflake_release(", "statement FROM snowflake_release_plan(")
            + " WHERE statement LIKE 'GRANT %'";
        granted.extend(client.query(&plan, &[]).unwrap().iter().map(|row| row.get::<_, String>(0)));
        if let Err(error) = client.batch_execute(&release) {
            wrong.push(format!("{release}: {error:?}"));
        }
    }
    let (gone, new) = difference(&before, &schema(cluster, database));
    let (gone_wide, new_wide): (Vec<String>, Vec<String>) = (widened(&gone), widened(&new));
    let (missing, mut added) = difference(&gone_wide, &new_wide);
    let is_title = |line: &str| line == "--" || line.starts_with("-- Name: SEQUENCE ") && line.contains("Type: ACL");
    let is_planned =
        |line: &str| granted.iter().any(|grant: &String| line.starts_with(&grant[..grant.find(" TO ").unwrap()]));
    added.retain(|line| !(is_planned(line) || !granted.is_empty() && is_title(line)));
    if !missing.is_empty() || !added.is_empty() {
        wrong.push(format!("the schema differs: gone {gone:#?}, new {new:#?}"));
    }
    assert!(wrong.is_empty(), "{database}: {}", wrong.join("\n"));
    for table in &round.moved {
        // The row may be refused by what keys of others there are; never by a key that is there already.
        round.written += usize::from(write(&mut client, table).is_some());
    }
    round
}

/// Lines with all columns as wide as IDs are, without the casts in views that this makes needless.
fn widened(lines: &[String]) -> Vec<String> {
    let wide = |line: &String| {
        let line = line.replace("integer", "bigint").replace("smallint", "bigint");
        // PostgreSQL casts a NULL in a UNION itself, and keeps the name that the column had by its type.
        let line = line.replace("::bigint AS int4", "").replace("::bigint", "");
        without_name_of_not_null(line.trim_end_matches(',')).replace(['(', ')'], "")
    };
    let mut lines: Vec<String> = lines.iter().map(wide).collect();
    lines.sort();
    lines
}

/// From PostgreSQL 18 on, ALTER TYPE gives the NOT NULL of partitions the name that the table's has, where they had one of their own, and
/// it cannot be renamed then. So the usual names are left out.
fn without_name_of_not_null(line: &str) -> String {
    let parts =
        line.split_once(" CONSTRAINT ").and_then(|(before, rest)| Some((before, rest.split_once(" NOT NULL")?)));
    match parts {
        Some((before, (name, after))) if name.ends_with("_not_null") => format!("{before} NOT NULL{after}"),
        _ => line.to_owned(),
    }
}

/// Those that can be adopted. What the plan says of the others is what happens.
fn sorted_out(client: &mut Client, tables: &[String], round: &mut Round) -> Vec<String> {
    let mut fit = Vec::new();
    for table in tables {
        let plan = format!(
            "SELECT coalesce(string_agg(note, '; ') FILTER (WHERE kind = 'obstacle'), '') FROM snowflake_adopt_plan({}, views => 'recreate')",
            text(table)
        );
        match client.query_one(&plan, &[]) {
            Err(error) => {
                let error = error.as_db_error().unwrap_or_else(|| panic!("{table}: {error:?}"));
                assert!(["42702", "42804", "42809"].contains(&error.code().code()), "{table}: {error:?}");
                round.unfit.push(format!("{table}: {}", error.message()));
            }
            Ok(row) => match row.get::<_, String>(0) {
                obstacles if obstacles.is_empty() => match found_by_the_row(client, table) {
                    None => fit.push(table.clone()),
                    Some(found) => round.hindered.push(format!("{table}: {found}")),
                },
                obstacles => {
                    let adopt = format!("SELECT snowflake_adopt({}, views => 'recreate')", text(table));
                    snowflake_test::check::refused(client, &adopt, "55000");
                    round.hindered.push(format!("{table}: {obstacles}"));
                }
            },
        }
    }
    fit
}

/// What the plan does not show, and the row that is tried does: something that runs for rows cannot take an ID.
fn found_by_the_row(client: &mut Client, table: &str) -> Option<String> {
    let adopt = format!("SELECT snowflake_adopt({}, views => 'recreate')", text(table));
    let mut transaction = client.transaction().unwrap();
    let error = transaction.batch_execute(&adopt).err();
    transaction.rollback().unwrap();
    let error = error?;
    let error = error.as_db_error().unwrap_or_else(|| panic!("{adopt}: {error:?}"));
    assert!(error.message().ends_with("could not be written any more"), "{adopt}: {error:?}");
    Some(format!("{}: {}", error.message(), error.detail().unwrap_or_default()))
}

fn text(table: &str) -> String {
    format!("E'{}'", table.replace('\\', "\\\\").replace('\'', "''"))
}

/// The column that makes IDs, as a literal.
fn column_text(client: &mut Client, table: &str) -> String {
    let column = "SELECT quote_literal(attname) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum \
                  WHERE pg_get_expr(adbin, adrelid) LIKE '%snowflake_next()' AND adrelid = ";
    value(client, &format!("{column}{}::regclass", text(table)))
}

/// The value that comes next, where the column has a sequence of its own that rises.
fn start(client: &mut Client, table: &str) -> Option<i64> {
    let sequence = format!(
        "SELECT objid::regclass::text, seqincrement FROM pg_attrdef JOIN pg_depend ON refobjid = adrelid AND refobjsubid = adnum \
         JOIN pg_sequence ON seqrelid = objid WHERE refclassid = 'pg_class'::regclass AND classid = 'pg_class'::regclass \
         AND deptype = 'a' AND pg_get_expr(adbin, adrelid) LIKE '%snowflake_next()' AND adrelid = {}::regclass \
         AND coalesce(obj_description(objid), '') NOT LIKE '%snowflake_release() drops this sequence]' \
         AND coalesce(obj_description(objid), '') NOT LIKE '%[snowflake_adopt: DEFAULT %' LIMIT 1",
        text(table)
    );
    let found = client.query_opt(&sequence, &[]).unwrap()?;
    let (sequence, increment): (String, i64) = (found.get(0), found.get(1));
    let next = format!("SELECT last_value + CASE WHEN is_called THEN {increment} ELSE 0 END FROM {sequence}");
    (increment > 0).then(|| value(client, &next))
}

/// Writes a row, without running triggers. Returns its key; `None` where the row is refused.
fn write(client: &mut Client, table: &str) -> Option<i64> {
    const COLUMNS: &str = "
        SELECT quote_ident(attname), typcategory::text, coalesce(information_schema._pg_char_max_length(typ.oid, atttypmod), 0),
            attnotnull AND NOT atthasdef AND attidentity = '' AND attgenerated = '',
            attnum = ANY (coalesce((SELECT indkey FROM pg_index WHERE indrelid = attrelid AND indisprimary), '')),
            (SELECT format('(SELECT %I FROM %s LIMIT 1)', p.attname, confrelid::regclass)
                FROM pg_constraint, unnest(conkey, confkey) AS k (own, other)
                JOIN pg_attribute p ON p.attnum = other JOIN pg_attribute f ON f.attnum = own
                WHERE p.attrelid = confrelid AND f.attrelid = conrelid AND f.attname = a.attname
                AND contype = 'f' AND array_length(conkey, 1) = 1
                AND (conrelid = a.attrelid OR conrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = a.attrelid))
                ORDER BY pg_constraint.oid LIMIT 1),
            attidentity <> '' OR (SELECT pg_get_expr(adbin, adrelid) ~ '(nextval|snowflake_next)[(]' FROM pg_attrdef
                WHERE adrelid = attrelid AND adnum = attnum)
        FROM pg_attribute a JOIN pg_type typ ON typ.oid = atttypid WHERE attnum > 0 AND NOT attisdropped AND attrelid = ";
    let columns = client.query(&format!("{COLUMNS}{}::regclass", text(table)), &[]).unwrap();
    let highest = "SELECT coalesce((SELECT sum(n_tup_ins) FROM pg_stat_xact_user_tables), 0)::bigint + (random() * 20000)::bigint";
    let number: i64 = value(client, highest);
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns.iter().filter(|column| column.get(3)) {
        let (name, category, length): (String, String, i32) = (column.get(0), column.get(1), column.get(2));
        names.push(name);
        if let Some(of_parent) = column.get(5) {
            values.push(of_parent);
            continue;
        }
        values.push(match &*category {
            "N" => number.to_string(),
            "S" if length == 1 => "'x'".to_owned(),
            "S" => format!(
                "'{}'",
                number.to_string().chars().take(if length > 0 { length as usize } else { 9 }).collect::<String>()
            ),
            "B" => "true".to_owned(),
            "D" => "'2026-01-15'".to_owned(),
            "T" => "'1 s'".to_owned(),
            "U" => "'0cc175b9c0f1b6a831c399e269772661'".to_owned(),
            _ => "NULL".to_owned(),
        });
    }
    let values = if names.is_empty() {
        "DEFAULT VALUES".to_owned()
    } else {
        format!("({}) VALUES ({})", names.join(", "), values.join(", "))
    };
    let keys: Vec<String> = columns.iter().filter(|column| column.get(4)).map(|column| column.get(0)).collect();
    let key = match &*keys {
        [key] => format!("CASE WHEN {key}::text ~ '^-?[0-9]{{1,18}}$' THEN {key}::text::bigint END"),
        _ => "NULL::bigint".to_owned(),
    };
    client.batch_execute("SET session_replication_role = replica").unwrap();
    let row = client.query_one(&format!("INSERT INTO {table} {values} RETURNING {key}"), &[]);
    client.batch_execute("RESET session_replication_role").unwrap();
    match row {
        Ok(row) => Some(row.get::<_, Option<i64>>(0).unwrap_or(i64::MAX)),
        Err(error) => {
            // A key that the default has made is a new one.
            let error = error.as_db_error().unwrap_or_else(|| panic!("{table}: {error:?}"));
            let is_key =
                error.code().code() == "23505" && error.constraint().is_some_and(|name| name.ends_with("_pkey"));
            let is_counted =
                columns.iter().any(|column| column.get::<_, bool>(4) && column.get::<_, Option<bool>>(6) == Some(true));
            assert!(!is_key || !is_counted, "{table}: {error:?}");
            // For an ID, there is a partition: the plan has seen to it.
            let is_of_id =
                error.detail().is_some_and(|detail| detail.chars().filter(char::is_ascii_digit).count() > 15);
            assert!(!error.message().starts_with("no partition of relation") || !is_of_id, "{table}: {error:?}");
            None
        }
    }
}
