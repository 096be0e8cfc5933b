//! The registry's own history of grants, which no server of the soak has a hand in: a trigger in PostgreSQL, the revisions that etcd
//! keeps, the commands in the append-only file of Redis.

use crate::check::wait_for;
use crate::history::Grant;
use crate::registries::{Kind, Server, Setup};
use crate::value;
use postgres::Client;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// From then on, PostgreSQL keeps all versions of a worker's record.
const TRIGGER: &str = "
    BEGIN;
    LOCK TABLE snowflake_registry.workers IN SHARE ROW EXCLUSIVE MODE;
    CREATE TABLE history (number bigserial, worker bigint, token uuid, granted_from timestamptz, granted_until timestamptz,
        data_directory text);
    INSERT INTO history (worker, token, granted_from, granted_until, data_directory)
        SELECT worker, token, granted_from, granted_until, data_directory FROM snowflake_registry.workers;
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO public.history (worker, token, granted_from, granted_until, data_directory)
                VALUES (NEW.worker, NEW.token, NEW.granted_from, NEW.granted_until, NEW.data_directory);
            RETURN NULL;
        END $$;
    CREATE TRIGGER keep AFTER INSERT OR UPDATE ON snowflake_registry.workers FOR EACH ROW EXECUTE FUNCTION keep();
    COMMIT";

/// A registry that forgets nothing of it.
pub(super) fn setup(kind: Kind) -> Setup {
    let setup = Setup::of(kind);
    // Redis would write its file anew when that is long.
    if kind == Kind::Redis { setup.argument("--auto-aof-rewrite-percentage").argument("0") } else { setup }
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
    client.batch_execute(TRIGGER).unwrap();
}

/// All versions of all records, those of each worker in their order.
pub(super) fn grants(server: &Server) -> Vec<Grant> {
    match server.kind() {
        Kind::Postgres => of_postgres(&mut server.cluster().client()),
        Kind::Etcd => of_etcd(server),
        Kind::Redis => of_redis(server),
    }
}

fn of_postgres(client: &mut Client) -> Vec<Grant> {
    let query = "SELECT worker, token::text, (extract(epoch FROM granted_from) * 1000000)::bigint,
        (extract(epoch FROM granted_until) * 1000000)::bigint, data_directory FROM history ORDER BY number";
    let grant = |row: postgres::Row| Grant {
        worker: row.get::<_, i64>(0) as u64,
        owner: row.get(1),
        from: row.get(2),
        until: row.get(3),
        directory: row.get(4),
    };
    client.query(query, &[]).unwrap().into_iter().map(grant).collect()
}

/// etcd tells a watcher all that was stored since its first revision, and goes on with what is stored now. The last is our own.
fn of_etcd(server: &Server) -> Vec<Grant> {
    const LAST: &str = "/pg_snowflake/last";
    server.etcdctl(&["put", LAST, "x"]);
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
            break;
        }
        if let Some((_, worker)) = key.split_once("/workers/") {
            grants.push(of_json(worker, &record));
        }
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    grants
}

/// The file has each command as an array of strings: `*3 $4 HSET $3 key ...`, each string after its length.
fn of_redis(server: &Server) -> Vec<Grant> {
    let mut parts: Vec<_> = std::fs::read_dir(server.directory().join("appendonlydir"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "aof"))
        .collect();
    parts.sort();
    let [part] = &parts[..] else { panic!("one part, as it is not rewritten: {parts:?}") };
    let bytes = std::fs::read(part).unwrap();
    let mut grants = Vec::new();
    let mut rest = &bytes[..];
    while let Some(count) = number(&mut rest, b'*') {
        let mut command = Vec::new();
        for _ in 0..count {
            let length = number(&mut rest, b'$').expect("a string");
            command.push(String::from_utf8(rest[..length].to_vec()).unwrap());
            rest = &rest[length + 2..];
        }
        if command[0].eq_ignore_ascii_case("hset") {
            for pair in command[2..].chunks(2) {
                let worker = pair[0].strip_prefix("worker:").filter(|worker| !worker.contains(':'));
                grants.extend(worker.map(|worker| of_json(worker, &pair[1])));
            }
        }
    }
    assert!(rest.is_empty(), "{} bytes are no command", rest.len());
    grants
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
