//! PostgreSQL, without TLS, which asks nobody for a password.

use super::{Ended, FakeKind, Flood, Session};
use crate::common::{WORKER, holding, record, tag, tag_record};
use snowflake_core::lease::Record;
use snowflake_core::segment::{Holding, State, TagRecord};

/// A message of the server.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn row_description(columns: usize) -> Vec<u8> {
    let column = [b"c\0".as_slice(), &[0, 0, 0, 0, 0, 0], &25_u32.to_be_bytes(), &[255; 6], &[0, 0]].concat();
    message(b'T', &[&u16::try_from(columns).unwrap().to_be_bytes()[..], &column.repeat(columns)].concat())
}

/// Stands for no value.
const NULL: &str = "\0";

fn row(values: &[&str]) -> Vec<u8> {
    let value = |value: &&str| match *value {
        NULL => vec![0xff; 4],
        value => [&u32::try_from(value.len()).unwrap().to_be_bytes()[..], value.as_bytes()].concat(),
    };
    let values: Vec<u8> = [u16::try_from(values.len()).unwrap().to_be_bytes().to_vec()]
        .into_iter()
        .chain(values.iter().map(value))
        .collect::<Vec<_>>()
        .concat();
    message(b'D', &values)
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn rows(tag: &str, values: &[&str]) -> Vec<u8> {
    [row_description(values.len()), row(values), complete(tag)].concat()
}

/// The row of a record.
fn of_record(record: &Record, version: u64) -> Vec<u8> {
    let Record { owner, granted_from, granted_until, holder } = record;
    let token = format!("{:032x}", owner.unwrap().0);
    let values = [
        WORKER.0.to_string(),
        version.to_string(),
        "1".to_owned(),
        token,
        granted_from.to_string(),
        granted_until.to_string(),
        holder.host.clone(),
        holder.data_directory.clone(),
        holder.port.to_string(),
        holder.cluster_name.clone(),
        holder.system_identifier.to_string(),
        holder.process.clone(),
    ];
    rows("SELECT 1", &values.each_ref().map(String::as_str))
}

/// The row of a tag's record.
fn of_tag(number: u64, version: u64) -> Vec<u8> {
    let TagRecord { next, floor, first, last, state, bounds } = tag_record(number);
    assert_eq!(state, State::Live);
    let name = tag().as_str().to_owned();
    let numbers = [next, floor, first, last].map(|number| number.to_string());
    let sizes = [bounds.smallest, bounds.largest].map(|number| number.to_string());
    let values =
        [&[name, version.to_string(), "1".to_owned()], &numbers[..], &["live".to_owned()], &sizes[..]].concat();
    rows("SELECT 1", &values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The row of what a server holds of it.
fn of_holding(number: u64) -> Vec<u8> {
    let Holding { run, current, after, granted_at, used } = holding(number);
    let (start, run) = ([tag().as_str().to_owned(), WORKER.0.to_string(), "1".to_owned()], format!("{run:016x}"));
    let ranges = [current.first, current.end, after.first, after.end].map(|number| number.to_string());
    let used = [granted_at.to_string(), used.count.to_string(), used.length.0.to_string()];
    let values = [&start[..], &[run], &ranges[..], &used[..]].concat();
    rows("SELECT 1", &values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The columns of each kind.
type Columns = &'static [(&'static str, &'static str)];

/// What a client sees of tables that are as it makes them, where it looks at them.
fn of_look() -> Vec<u8> {
    const TABLES: [(&str, &str, Columns); 4] = [
        (
            "namespaces",
            "namespace",
            &[
                ("C", "namespace"),
                ("integer", "format"),
                ("text", "layout life"),
                ("?instant", "leases_from"),
                ("instant", "written_at"),
            ],
        ),
        (
            "workers",
            "namespace worker",
            &[
                ("C", "namespace"),
                ("bigint", "worker version"),
                ("integer", "format port"),
                ("?uuid", "token"),
                ("instant", "granted_from granted_until written_at"),
                ("text", "host data_directory cluster_name process"),
                ("number", "system_identifier"),
            ],
        ),
        (
            "segments",
            "namespace tag",
            &[
                ("C", "namespace tag"),
                ("bigint", "version"),
                ("integer", "format"),
                ("number", "next floor first last smallest largest"),
                ("text", "state"),
                ("instant", "written_at"),
            ],
        ),
        (
            "segment_holders",
            "namespace tag worker",
            &[
                ("C", "namespace tag"),
                ("bigint", "worker"),
                ("integer", "format"),
                ("text", "run"),
                ("number", "current_first current_end after_first after_end used used_in"),
                ("instant", "granted_at"),
            ],
        ),
    ];
    let table =
        |(name, key, _): &(&str, &str, _)| row(&[&[*name, "ids", "t", *key][..], &["f"; 8], &["1", NULL]].concat());
    let mut columns = Vec::new();
    for (table, _, kinds) in TABLES {
        for (kind, names) in kinds {
            let (of_type, collation) = match kind.trim_start_matches('?') {
                "C" => ("text", "C"),
                "text" => ("text", "default"),
                "instant" => ("timestamp with time zone", NULL),
                "number" => ("numeric(20,0)", NULL),
                other => (other, NULL),
            };
            let is_required = if kind.starts_with('?') { "f" } else { "t" };
            for name in names.split(' ') {
                columns.extend(row(&[table, name, of_type, collation, is_required, NULL, "f", "t"]));
            }
        }
    }
    [
        rows("SELECT 1", &["f", "ids", "ids", "f"]),
        rows("SELECT 1", &["ids", "t"]),
        [row_description(14), TABLES.iter().flat_map(table).collect(), complete("SELECT 4")].concat(),
        [row_description(8), columns, complete("SELECT 44")].concat(),
        [row_description(7), complete("SELECT 0")].concat(),
    ]
    .concat()
}

/// Its answer to a query, but for the end of it.
fn of_query(session: &Session, query: &str, guard: &[u8]) -> Vec<u8> {
    let mut state = session.state.lock().unwrap();
    let in_transaction = |parts: Vec<Vec<u8>>| {
        [complete("BEGIN"), complete("SET").repeat(4), guard.to_vec(), parts.concat(), complete("COMMIT")].concat()
    };
    if query.contains("pg_is_in_recovery") {
        return of_look();
    }
    if query.contains("'fsync'") {
        return rows("SELECT 1", &["on", "on", "", "0"]);
    }
    let namespace = || rows("SELECT 1", &["1", "twitter", "00000000000000ff", NULL]);
    if query.contains("INTO snowflake_registry.namespaces") {
        state.changes += 1;
        state.namespace = b"twitter".to_vec();
        return in_transaction(vec![complete("SELECT 0"), rows("INSERT 0 1", &["1"]), namespace()]);
    }
    let tag_number = |stored: &[u8]| stored.first().map(|number| u64::from(*number));
    if query.contains("INTO snowflake_registry.segment_holders") {
        // What the server holds names the number before.
        let number = (1..10).rev().find(|number| query.contains(&format!("{},", tag_record(*number).next))).unwrap();
        let stored = [u8::try_from(number).unwrap()];
        state.store_tag(&stored, &stored);
        let version = state.version_of_tag;
        let changed = rows("SELECT 1", &[&version.to_string()]);
        return in_transaction(vec![namespace(), changed, of_tag(number, version)]);
    }
    if query.contains("FROM snowflake_registry.segment_holders") {
        return tag_number(&state.holder).map_or([row_description(10), complete("SELECT 0")].concat(), of_holding);
    }
    if query.contains("FROM snowflake_registry.segments") {
        let none = [row_description(10), complete("SELECT 0")].concat();
        return tag_number(&state.tag).map_or(none, |number| of_tag(number, state.version_of_tag));
    }
    if query.contains("RETURNING version") {
        // Which record it is, its end says.
        let number = (1..10).find(|number| query.contains(&record(*number).granted_until.to_string())).unwrap();
        state.store(&[u8::try_from(number).unwrap()]);
        let version = state.versions;
        let tag = if query.contains("UPDATE") { "UPDATE 1" } else { "INSERT 0 1" };
        return in_transaction(vec![
            namespace(),
            rows(tag, &[&version.to_string()]),
            of_record(&record(number), version),
        ]);
    }
    if query.contains("snowflake_registry.namespaces") {
        return match state.namespace.is_empty() {
            true => [row_description(4), complete("SELECT 0")].concat(),
            false => namespace(),
        };
    }
    match state.stored.first() {
        Some(number) => of_record(&record(i64::from(*number)), state.versions),
        None => [row_description(12), complete("SELECT 0")].concat(),
    }
}

pub const KIND: FakeKind = FakeKind {
    serve,
    first_version: 1,
    floods,
    // No TLS; a message of 65,535 bytes.
    endless: b"NR\0\0\xff\xff",
};

fn floods() -> Vec<Flood> {
    let start = |text: &str| text.as_bytes().to_vec();
    let column = [b"c\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[255; 6], &[0, 0]].concat();
    let columns = |count: u16| message(b'T', &[&count.to_be_bytes()[..], &column.repeat(count.into())].concat());
    let row = |count: u16| message(b'D', &[&count.to_be_bytes()[..], &[255; 4].repeat(count.into())].concat());
    vec![
        ("rows without an end", columns(11), row(11)),
        ("rows without columns", columns(0), row(0)),
        ("rows of many columns", columns(3000), row(3000)),
        ("a message without an end", start("D\x7f\0\0\0"), start("x")),
        ("an error of that length", start("E\x7f\0\0\0"), start("x")),
        ("statements without an end", Vec::new(), message(b'C', b"SET\0")),
        ("notices without an end", Vec::new(), message(b'N', b"SWARNING\0C01000\0Mx\0\0")),
        ("parameters without an end", Vec::new(), message(b'S', b"a\0b\0")),
    ]
}

fn serve(mut session: Session) -> Ended {
    loop {
        let length = session.read(4)?;
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let body = session.read(length - 4)?;
        match &body[..4] {
            // SSLRequest.
            [4, 210, 22, 47] => session.answer(b"N")?,
            _ => break,
        }
    }
    let ready = message(b'Z', b"I");
    let start = [
        message(b'R', &[0; 4]),
        message(b'S', b"server_version\x0017.2\0"),
        message(b'S', b"client_encoding\0UTF8\0"),
        message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]),
        ready.clone(),
    ];
    session.answer(&start.concat())?;
    loop {
        let head = session.read(5)?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let body = session.read(length - 4)?;
        if head[0] != b'Q' {
            return Ok(());
        }
        let query = String::from_utf8_lossy(&body);
        // The statement that looks whether they are names tables, too.
        let asked = query.split_once("(CASE WHEN true").map_or(&*query, |(_, rest)| rest.split_once("; ").unwrap().1);
        let lock = if query.contains("LOCK TABLE") { complete("LOCK TABLE") } else { Vec::new() };
        let guard = match query.contains("has changed") {
            true => [lock, rows("SELECT 1", &["0"])].concat(),
            false => Vec::new(),
        };
        let answer = of_query(&session, asked, &guard);
        // The path comes first in each; then, within a transaction where there is one, whether the tables are what they were.
        let guard = if query.contains("BEGIN") { Vec::new() } else { guard };
        session.answer(&[complete("SET"), guard, answer, ready.clone()].concat())?;
    }
}
