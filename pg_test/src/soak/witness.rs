//! The registry's own history of grants, which no server of the soak has a hand in: the WAL of PostgreSQL, the revisions that etcd keeps, the commands in the append-only file of Redis.

use crate::check::wait_for;
use crate::history::Grant;
use crate::registries::{Kind, Server, Setup};
use crate::value;
use postgres::Client;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// From then on, PostgreSQL keeps the WAL with all versions of a worker's record. Not by a trigger: servers use no table that has one. Records
/// from before are written once more as they stand.
const KEPT: [&str; 3] = [
    "CREATE PUBLICATION history FOR TABLE snowflake_registry.workers WITH (publish = 'insert, update')",
    "SELECT pg_create_logical_replication_slot('history', 'pgoutput')",
    "UPDATE snowflake_registry.workers SET worker = worker",
];

/// A registry that forgets nothing of it.
pub(super) fn setup(kind: Kind) -> Setup {
    let setup = Setup::of(kind);
    match kind {
        Kind::Postgres => setup.argument("wal_level = logical"),
        // It would write its file anew when that is long.
        Kind::Redis => setup.argument("--auto-aof-rewrite-percentage").argument("0"),
        Kind::Etcd => setup,
    }
}

/// Has the registry keep its history, where it does not by itself, once servers have leased from it, and before they make IDs: the grants
/// that they have then are in the history as they stand.
pub(super) fn begin(server: &Server) {
    if server.kind() != Kind::Postgres {
        return;
    }
    let mut client = server.cluster().client();
    let are_there = "SELECT to_regclass('snowflake_registry.workers') IS NOT NULL";
    wait_for("a server has made its tables", || value(&mut client, are_there));
    KEPT.into_iter().for_each(|statement| client.batch_execute(statement).unwrap());
}

/// All versions of all records of a namespace, those of each worker in their order.
pub(super) fn grants(server: &Server, namespace: &str) -> Vec<Grant> {
    match server.kind() {
        Kind::Postgres => of_postgres(&mut server.cluster().client(), namespace),
        Kind::Etcd => of_etcd(server, namespace),
        Kind::Redis => of_redis(server, namespace, 0),
    }
}

/// Messages of logical replication: https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html.
pub(super) fn of_postgres(client: &mut Client, namespace: &str) -> Vec<Grant> {
    client.batch_execute("SET timezone = 'UTC'; SET datestyle = 'ISO'").unwrap();
    let query = "SELECT data FROM pg_logical_slot_peek_binary_changes('history', NULL, NULL, 'proto_version', '1', \
                 'publication_names', 'history')";
    let messages = client.query(query, &[]).unwrap();
    let mut columns = Vec::new();
    let mut grants = Vec::new();
    for message in messages.iter().map(|row| row.get::<_, &[u8]>(0)) {
        match message {
            [b'R', rest @ ..] => columns = names(&rest[4..]),
            // The key from before is the same, and is left out.
            [b'I' | b'U', _, _, _, _, b'N', row @ ..] => grants.extend(of_row(&columns, row, namespace)),
            [b'B' | b'C' | b'O' | b'Y', ..] => {}
            other => panic!("another message: {other:?}"),
        }
    }
    grants
}

/// So many bytes.
fn taken<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

/// A number of so many bytes.
fn big_endian(rest: &mut &[u8], count: usize) -> usize {
    taken(rest, count).iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// A text up to a NUL.
fn text(rest: &mut &[u8]) -> String {
    let length = rest.iter().position(|byte| *byte == 0).expect("a NUL");
    let text = String::from_utf8(taken(rest, length).to_vec()).unwrap();
    taken(rest, 1);
    text
}

/// The names of a table's columns, after its number.
fn names(mut rest: &[u8]) -> Vec<String> {
    let _schema_and_table = (text(&mut rest), text(&mut rest));
    let _replica_identity = taken(&mut rest, 1);
    let name = |rest: &mut &[u8]| {
        let _is_of_key = taken(rest, 1);
        let name = text(rest);
        let _type_and_length = taken(rest, 8);
        name
    };
    (0..big_endian(&mut rest, 2)).map(|_| name(&mut rest)).collect()
}

/// The grant that a row of these columns stands for, if it is one of this namespace.
fn of_row(columns: &[String], mut rest: &[u8], namespace: &str) -> Option<Grant> {
    assert_eq!(big_endian(&mut rest, 2), columns.len());
    let mut value = || match taken(&mut rest, 1) {
        b"n" => None,
        b"t" => {
            let length = big_endian(&mut rest, 4);
            Some(String::from_utf8(taken(&mut rest, length).to_vec()).unwrap())
        }
        other => panic!("a value of the kind {other:?}"),
    };
    let values: Vec<Option<String>> = columns.iter().map(|_| value()).collect();
    let of = |name: &str| values[columns.iter().position(|column| column == name).unwrap()].clone();
    let instant = |name: &str| {
        let text = of(name).unwrap();
        let utc = text.strip_suffix("+00").map(|text| text.replace(' ', "T") + "Z");
        utc.as_deref().and_then(micros).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    (of("namespace").as_deref() == Some(namespace)).then(|| Grant {
        worker: of("worker").unwrap().parse().unwrap(),
        owner: of("token"),
        from: instant("granted_from"),
        until: instant("granted_until"),
        directory: of("data_directory").unwrap(),
    })
}

/// etcd tells a watcher all that was stored since its first revision, and goes on with what is stored now. The last is our own, with a
/// value that no earlier reading has stored.
fn of_etcd(server: &Server, namespace: &str) -> Vec<Grant> {
    const LAST: &str = "/pg_snowflake/last";
    let last = format!("{:032x}", fastrand::u128(..));
    server.etcdctl(&["put", LAST, &last]);
    let mut watch = Command::new("etcdctl");
    watch.arg(format!("--endpoints=http://{}", server.address())).env("ETCDCTL_API", "3");
    let mut watch =
        watch.args(["watch", "--prefix", "--rev=1", "/pg_snowflake/"]).stdout(Stdio::piped()).spawn().unwrap();
    // An action, a key, and a value that is one line.
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut grants = Vec::new();
    loop {
        let mut next = || lines.next().expect("etcdctl ended early");
        let (action, key, record) = (next(), next(), next());
        assert_eq!(action, "PUT", "{key}");
        if key == LAST {
            if record == last {
                break;
            }
            continue;
        }
        if let Some(worker) = key.strip_prefix(&format!("/pg_snowflake/{namespace}/workers/")) {
            grants.push(of_json(worker, &record));
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    grants
}

/// From this byte of the file on.
pub(super) fn of_redis(server: &Server, namespace: &str, from: usize) -> Vec<Grant> {
    let mut grants = Vec::new();
    let key = format!("pg_snowflake:{namespace}");
    for command in commands(server, from).iter().filter(|command| command[0].eq_ignore_ascii_case("hset")) {
        for pair in command[2..].chunks(2).filter(|_| command[1] == key) {
            let worker = pair[0].strip_prefix("worker:").filter(|worker| !worker.contains(':'));
            grants.extend(worker.map(|worker| of_json(worker, &pair[1])));
        }
    }
    grants
}

/// Whether Redis has one file to which it appends its commands: a replica makes it anew once it is in step.
pub(super) fn is_appended(server: &Server) -> bool {
    let names = std::fs::read_dir(server.directory().join("appendonlydir")).into_iter().flatten();
    let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter().filter(|name| name.ends_with(".aof")).count() == 1
        && !names.iter().any(|name| name.starts_with("temp"))
}

/// The file to which Redis appends its commands.
fn appended(server: &Server) -> Vec<u8> {
    let mut parts: Vec<_> = std::fs::read_dir(server.directory().join("appendonlydir"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "aof"))
        .collect();
    parts.sort();
    let [part] = &parts[..] else { panic!("one part, as it is not rewritten: {parts:?}") };
    std::fs::read(part).unwrap()
}

/// How many bytes have been appended.
pub(super) fn length_of_redis(server: &Server) -> usize {
    appended(server).len()
}

/// The commands that were appended from this byte on. The file has each as an array of strings: `*3 $4 HSET $3 key ...`, each string after its
/// length.
pub(super) fn commands(server: &Server, from: usize) -> Vec<Vec<String>> {
    let bytes = appended(server);
    let mut all = Vec::new();
    let mut rest = &bytes[from..];
    while let Some(count) = number(&mut rest, b'*') {
        let mut command = Vec::new();
        for _ in 0..count {
            let length = number(&mut rest, b'$').expect("a string");
            command.push(String::from_utf8(rest[..length].to_vec()).unwrap());
            rest = &rest[length + 2..];
        }
        all.push(command);
    }
    assert!(rest.is_empty(), "{} bytes are no command", rest.len());
    all
}

/// A line that begins with this sign, and is a number.
fn number(rest: &mut &[u8], sign: u8) -> Option<usize> {
    let end = rest.iter().position(|byte| *byte == b'\r')?;
    let number = std::str::from_utf8(rest[..end].strip_prefix(&[sign])?).ok()?.parse().ok()?;
    *rest = &rest[end + 2..];
    Some(number)
}

fn of_json(worker: &str, record: &str) -> Grant {
    let record: serde_json::Value = serde_json::from_str(record).unwrap_or_else(|error| panic!("{record}: {error}"));
    let text = |key: &str| record[key].as_str().map(str::to_owned);
    let instant = |key: &str| text(key).as_deref().and_then(micros).unwrap_or_else(|| panic!("{key} of {record}"));
    Grant {
        worker: worker.parse().unwrap(),
        owner: text("owner"),
        from: instant("granted_from"),
        until: instant("granted_until"),
        directory: text("data_directory").unwrap(),
    }
}

/// Microseconds since 1970 of `2026-01-01T00:00:00.105Z`.
fn micros(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, sign: char| -> Option<Vec<i64>> { text.split(sign).map(|n| n.parse().ok()).collect() };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let ([year, month, day], [hour, minute, second]) = (date[..].try_into().ok()?, time[..].try_into().ok()?);
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    // Years that begin in March have their leap day at the end.
    let (year, month): (i64, i64) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day
            - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn instants_are_counted_from_1970() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros("1969-12-31T23:59:59.5Z"), Some(-500_000));
        assert_eq!(micros("2024-01-01T00:00:00Z"), Some(1_704_067_200_000_000));
        assert_eq!(micros("2024-02-29T12:34:56.000105Z"), Some(1_709_210_096_000_105));
        assert_eq!(micros("2026-11-23T03:40:00.105Z"), Some(1_795_405_200_105_000));
        assert_eq!(micros("yesterday"), None);
    }
}
