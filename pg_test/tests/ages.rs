//! Whose a key is: `snowflake_maintain_partitions()` lets no row go whose age it does not know, of the library and of the extension in SQL.
//! The first tests have histories that lost rows of today; the last one makes up others.

use fastrand::Rng;
use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::dump::{Dump, Format, psql};
use snowflake_test::hosted::{self, DATABASE};
use snowflake_test::programs::output;
use snowflake_test::{Cluster, Stop, run, value, variable};
use std::collections::BTreeMap;
use std::thread;

/// A server whose clock can be set, with the database [`DATABASE`] of role `owner`: with the library, or with the extension in SQL.
fn servers() -> [Cluster; 2] {
    let library = Cluster::options().with_clock().set("pg_snowflake.max_jump = '1000d'").start();
    hosted::create_database(&library, DATABASE);
    library
        .client_of("postgres", DATABASE)
        .batch_execute("CREATE EXTENSION pg_snowflake; GRANT CREATE ON SCHEMA public TO owner")
        .unwrap();
    [library, hosted::server()]
}

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

fn is_library(client: &mut Client) -> bool {
    value(client, "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_snowflake')")
}

/// A nightly job: partitions of a day, for rows that are kept for 90 days; with rows of the default partition.
fn job(client: &mut Client, table: &str) -> Vec<[String; 3]> {
    let is_library = is_library(client);
    if !is_library {
        client.batch_execute(&format!("CALL snowflake_partition_default_rows('{table}', '1 day')")).unwrap();
    }
    let moving = if is_library { ", default_rows => 'move'" } else { "" };
    let call = format!(
        "SELECT partition, action, coalesce(note, '') FROM snowflake_maintain_partitions('{table}', '1 day', ahead => '2 days',
             retention => '90 days', expired => 'drop'{moving})"
    );
    let rows = client.query(&call, &[]).unwrap_or_else(|error| panic!("{table}: {error:?}"));
    rows.iter().map(|row| [row.get(0), row.get(1), row.get(2)]).collect()
}

fn count(client: &mut Client, table: &str) -> i64 {
    value(client, &format!("SELECT count(*) FROM {table}"))
}

/// Keys as other generators make them, as expressions of SQL. `n` is a sequence.
const GENERATORS: [(&str, &str); 12] = [
    (
        "yitter",
        "((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1582136402000) << 12 | (nextval('n') & 4095)",
    ),
    ("Mastodon", "(extract(epoch FROM clock_timestamp()) * 1000)::bigint << 16 | (nextval('n') & 65535)"),
    ("microseconds", "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 8 + (nextval('n') & 7)"),
    ("milliseconds", "(extract(epoch FROM clock_timestamp()) * 1000)::bigint * 1024 + (nextval('n') & 1023)"),
    ("seconds", "extract(epoch FROM clock_timestamp())::bigint << 32 | (nextval('n') & 65535)"),
    (
        "Twitter",
        "((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1288834974657) << 22 | (nextval('n') & 4095)",
    ),
    (
        "Discord",
        "((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 22 | (nextval('n') & 4095)",
    ),
    (
        "Instagram",
        "((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (nextval('n') & 1023)",
    ),
    (
        "Sonyflake",
        "((extract(epoch FROM clock_timestamp()) * 100)::bigint - 140952960000) << 24 | (nextval('n') & 255)",
    ),
    ("Baidu", "(extract(epoch FROM clock_timestamp())::bigint - 1577836800) << 35 | (nextval('n') & 8191)"),
    ("a sequence", "nextval('n')"),
    ("a hash", "abs(hashint8extended(nextval('n'), 1)) >> 3"),
];

/// A table whose keys a generator makes, with a default partition.
fn table_of(generator: &str) -> String {
    format!(
        "CREATE SEQUENCE IF NOT EXISTS n; DROP TABLE IF EXISTS t CASCADE;
         CREATE TABLE t (id bigint PRIMARY KEY DEFAULT {generator}, n bigint, at timestamptz DEFAULT clock_timestamp()) PARTITION BY RANGE (id);
         CREATE TABLE t_rest PARTITION OF t DEFAULT;"
    )
}

/// Rows of today stay where another generator made their keys, whether the table was adopted since or not.
#[test]
fn keys_of_other_generators_stay() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        for (name, generator) in GENERATORS {
            for adopts in [true, false] {
                client.batch_execute(&table_of(generator)).unwrap();
                client.batch_execute("INSERT INTO t (n) SELECT generate_series(1, 5)").unwrap();
                let adopted = adopts && client.batch_execute("SELECT * FROM snowflake_adopt('t')").is_ok();
                if adopted {
                    client.batch_execute("INSERT INTO t (n) SELECT generate_series(6, 9)").unwrap();
                }
                let expected = if adopted { 9 } else { 5 };
                for _ in 0..2 {
                    job(&mut client, "t");
                    assert_eq!(count(&mut client, "t"), expected, "{name}, adopted: {adopted}");
                }
                assert_eq!(count(&mut client, "t_rest"), 5, "{name}, adopted: {adopted}");
            }
        }
        // Partitions by whole months of the other one's times, too.
        client
            .batch_execute(
                "DROP TABLE t; CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
                 SELECT snowflake_create_partitions('t', '1 month', '2024-01-01 00:00+00', '2024-07-01 00:00+00');
                 INSERT INTO t SELECT snowflake_min_id('2024-02-03 00:00+00') + n FROM generate_series(1, 5) AS n;
                 ALTER TABLE t ALTER id SET DEFAULT snowflake_next()",
            )
            .unwrap();
        let kept: Vec<_> = job(&mut client, "t").into_iter().filter(|step| step[1] == "keep").collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert!(kept[0][2].contains("snowflake_declare_keys()"), "{kept:?}");
        assert_eq!(count(&mut client, "t"), 5);
        let finding = "SELECT max(finding) FROM snowflake_preflight() WHERE subject = 'partitions'";
        let found: Option<String> = value(&mut client, finding);
        assert!(
            found.unwrap().starts_with("nothing says of 1 partition of public.t that their keys are snowflake IDs")
        );
        // Its owner knows better.
        client.batch_execute("SELECT snowflake_declare_keys('t')").unwrap();
        assert_eq!(value::<Option<String>>(&mut client, finding), None);
        job(&mut client, "t");
        assert_eq!(count(&mut client, "t"), 0);
    }
}

/// What is ours, and old, goes; and a released table's keys are not ours, also once it is adopted again.
#[test]
fn released_and_adopted_again() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client.batch_execute(&table_of("snowflake_next()")).unwrap();
        job(&mut client, "t");
        client.batch_execute("INSERT INTO t (n) SELECT generate_series(1, 5)").unwrap();
        client.batch_execute("SELECT snowflake_release('t')").unwrap();
        client.batch_execute("INSERT INTO t (n) SELECT generate_series(6, 8)").unwrap();
        cluster.step_clock(&format!("+{}s", 100 * 86_400));
        let mut client = owner(&cluster);
        client.batch_execute("INSERT INTO t (n) VALUES (9)").unwrap();
        let kept: Vec<_> = job(&mut client, "t").into_iter().filter(|step| step[1] == "keep").collect();
        assert!(!kept.is_empty() && kept.iter().all(|step| step[2].contains("is not snowflake_next()")), "{kept:?}");
        assert_eq!(count(&mut client, "t"), 9);
        client.batch_execute("SELECT * FROM snowflake_adopt('t'); INSERT INTO t (n) VALUES (10)").unwrap();
        job(&mut client, "t");
        client.batch_execute("INSERT INTO t (n) VALUES (11)").unwrap();
        assert_eq!(count(&mut client, "t"), 11);
        cluster.step_clock(&format!("+{}s", 200 * 86_400));
        let mut client = owner(&cluster);
        job(&mut client, "t");
        // The last two are ours; the first five are beside others.
        assert_eq!(
            value::<String>(&mut client, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM t"),
            "1 2 3 4 5 6 7 8 9"
        );
    }
}

/// A mark goes with its partition: through a dump, a new name, and another place; by hand it is set and removed.
#[test]
fn marks_go_with_partitions() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client.batch_execute(&table_of("snowflake_next()")).unwrap();
        job(&mut client, "t");
        client.batch_execute("INSERT INTO t (n) SELECT generate_series(1, 5)").unwrap();
        let first: String = value(&mut client, "SELECT tableoid::regclass::text FROM t LIMIT 1");
        client
            .batch_execute(&format!(
                "COMMENT ON TABLE {first} IS NULL; SELECT snowflake_declare_keys('t', now() - interval '1 day');
                 ALTER TABLE {first} RENAME TO one"
            ))
            .unwrap();
        let bounds: String =
            value(&mut client, "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'one'");
        client
            .batch_execute(&format!(
                "ALTER TABLE t DETACH PARTITION one; CREATE SCHEMA other; ALTER TABLE one SET SCHEMA other;
                 ALTER TABLE t ATTACH PARTITION other.one {bounds}"
            ))
            .unwrap();
        let marks = "SELECT count(*) FROM pg_description WHERE description LIKE '%[pg_snowflake: keys from % on are IDs of timestamp=41%]'";
        assert_eq!(value::<i64>(&mut client, marks), 4, "three days, and the default partition");
        client.batch_execute("SELECT snowflake_declare_keys('t', 'infinity')").unwrap();
        assert_eq!(value::<i64>(&mut client, marks), 0);
        client
            .batch_execute(
                "COMMENT ON TABLE other.one IS 'of the user'; SELECT snowflake_declare_keys('t', '-infinity')",
            )
            .unwrap();
        assert_eq!(value::<i64>(&mut client, marks), 4);
        if is_library(&mut client) {
            let dump = Dump::new(&cluster, DATABASE, Format::Plain);
            cluster.client().batch_execute("CREATE DATABASE there").unwrap();
            dump.restore(&cluster, "there");
            client = cluster.client_of("owner", "there");
            assert_eq!(value::<i64>(&mut client, marks), 4);
        }
        let comment: String = value(&mut client, "SELECT obj_description('other.one'::regclass, 'pg_class')");
        assert!(comment.starts_with("of the user\n[pg_snowflake: keys from "), "{comment}");
        let database: String = value(&mut client, "SELECT current_database()::text");
        cluster.step_clock(&format!("+{}s", 100 * 86_400));
        let mut client = cluster.client_of("owner", &database);
        job(&mut client, "t");
        assert_eq!(count(&mut client, "t"), 0);
    }
}

/// Of a database that made IDs before that was on record: partitions that its jobs have made go on; others wait for their owner.
#[test]
fn partitions_of_an_earlier_release() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_jump = '1000d'").start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake VERSION '0.3.0';
             CREATE TABLE by_job (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             CREATE TABLE at_once (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             CREATE TABLE moved (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('at_once', '1 day', now(), now() + interval '20 days')",
        )
        .unwrap();
    client.batch_execute("ALTER TABLE moved ALTER id SET DEFAULT snowflake_next()").unwrap();
    for day in 0..4 {
        cluster.step_clock(&format!("+{}s", day * 86_400));
        let mut client = cluster.client();
        for table in ["by_job", "moved"] {
            client
                .batch_execute(&format!("SELECT snowflake_maintain_partitions('{table}', '1 day', '0 days')"))
                .unwrap();
            client.batch_execute(&format!("INSERT INTO {table} DEFAULT VALUES")).unwrap();
        }
        client.batch_execute("INSERT INTO at_once DEFAULT VALUES").unwrap();
    }
    cluster.step_clock(&format!("+{}s", 100 * 86_400));
    let mut client = cluster.client();
    // The library of today has marked them.
    client.batch_execute("DELETE FROM pg_description WHERE description LIKE '[pg_snowflake: %'").unwrap();
    let update = output(psql(&cluster, "postgres", "postgres").args(["-c", "ALTER EXTENSION pg_snowflake UPDATE"]));
    assert!(update.errors.contains("WARNING:  old partitions may not expire any more"), "{update:?}");
    assert!(update.errors.contains("Tables: public.at_once, public.by_job, public.moved."), "{update:?}");
    for (table, left) in [("by_job", 1), ("at_once", 4), ("moved", 4)] {
        let call = format!("SELECT snowflake_maintain_partitions('{table}', '1 day', '0 days', '30 days', 'drop')");
        client.batch_execute(&call).unwrap();
        let rows = count(&mut client, table);
        assert!(rows <= left && (left == 1 || rows == left), "{table}: {rows}");
        client.batch_execute(&format!("SELECT snowflake_declare_keys('{table}'); {call}")).unwrap();
        assert_eq!(count(&mut client, table), 0, "{table}");
    }
}

/// Partitions by the times of another layout's IDs.
#[test]
fn an_archive_in_another_layout() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client
            .batch_execute(
                "CREATE TABLE messages (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
                 CREATE TABLE messages_rest PARTITION OF messages DEFAULT;
                 SELECT snowflake_create_partitions('messages', '1 month', '2020-01-01 00:00+00', '2020-04-01 00:00+00', layout => 'discord');
                 INSERT INTO messages SELECT snowflake_min_id('2020-02-03 00:00+00', 'discord') + n FROM generate_series(1, 5) AS n;
                 INSERT INTO messages SELECT snowflake_min_id('2020-05-03 00:00+00', 'discord') + n FROM generate_series(1, 5) AS n;
                 INSERT INTO messages SELECT snowflake_min_id(now(), 'discord') + n FROM generate_series(1, 2) AS n;
                 SELECT snowflake_declare_keys('messages', layout => 'discord')",
            )
            .unwrap();
        client
            .batch_execute("CALL snowflake_partition_default_rows('messages', '1 month', layout => 'discord')")
            .unwrap();
        let names =
            "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relname ~ '^messages_[0-9]+$'";
        assert!(
            value::<String>(&mut client, names)
                .starts_with("messages_20200101 messages_20200201 messages_20200301 messages_20200501 ")
        );
        client
            .batch_execute(
                "SELECT snowflake_maintain_partitions('messages', '1 month', '1 month', retention => '1 year', expired => 'drop', layout => 'discord')",
            )
            .unwrap();
        assert_eq!(count(&mut client, "messages"), 2);
        // By the database's own layout, they are of no age.
        client
            .batch_execute("SELECT snowflake_maintain_partitions('messages', '7 days', '1 month', retention => '1 day', expired => 'drop')")
            .unwrap();
        assert_eq!(count(&mut client, "messages"), 2);
    }
}

/// Where server and database have different layouts, nothing expires; nor where a table's marks are of another layout, as after a restore.
#[test]
fn another_layout_of_the_server_or_of_a_dump() {
    let [cluster, _] = servers();
    let mut client = owner(&cluster);
    client.batch_execute(&table_of("snowflake_next()")).unwrap();
    job(&mut client, "t");
    client.batch_execute("INSERT INTO t (n) VALUES (1)").unwrap();
    let file = cluster.new_file("t.sql");
    run(cluster.program("pg_dump").args(["--dbname", DATABASE, "-t", "t*", "-t", "n", "--file"]).arg(&file));
    let offset = format!("+{}s", 100 * 86_400);
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", "pg_snowflake.epoch = '2020-01-01T00:00:00Z'");
    cluster.start();
    cluster.step_clock(&offset);
    let mut client = owner(&cluster);
    let kept: Vec<_> = job(&mut client, "t").into_iter().filter(|step| step[1] == "keep").collect();
    assert!(!kept.is_empty(), "the retention looks at old ones");
    assert!(kept.iter().all(|step| step[2] == "the layout of this server is not that of the database"), "{kept:?}");
    assert_eq!(count(&mut client, "t"), 1);
    // A database with the server's layout takes the table in.
    hosted::create_database(&cluster, "there");
    cluster
        .client_of("postgres", "there")
        .batch_execute("CREATE EXTENSION pg_snowflake; GRANT CREATE ON SCHEMA public TO owner")
        .unwrap();
    run(psql(&cluster, "postgres", "there").args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
    let mut client = cluster.client_of("owner", "there");
    let kept: Vec<_> = job(&mut client, "t").into_iter().filter(|step| step[1] == "keep").collect();
    assert!(kept.iter().any(|step| step[2].starts_with("its keys are IDs of the layout \"timestamp=41")), "{kept:?}");
    assert_eq!(count(&mut client, "t"), 1);
}

/// A column that gets other keys cannot be declared; nor by somebody else.
#[test]
fn what_cannot_be_declared() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client.batch_execute(&table_of("nextval('n')")).unwrap();
        let error = refused(&mut client, "SELECT snowflake_declare_keys('t')", "55000");
        assert_eq!(error.message(), "keys of table public.t cannot be declared to be snowflake IDs");
        assert_eq!(
            error.detail().unwrap(),
            "That is because the default of column \"id\" is not snowflake_next(), so its keys may come from elsewhere."
        );
        refused(&mut client, "SELECT snowflake_declare_keys(NULL)", "22004");
        refused(&mut client, "SELECT snowflake_declare_keys('t_rest')", "42809");
        cluster.client_of("postgres", DATABASE).batch_execute("CREATE ROLE guest LOGIN").unwrap();
        refused(&mut cluster.client_of("guest", DATABASE), "SELECT snowflake_declare_keys('t')", "42501");
    }
}

/// A job says that it can make nothing, where a partition has all the time to come.
#[test]
fn a_partition_without_an_upper_bound_is_named() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client
            .batch_execute(
                "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
                 CREATE TABLE t_all PARTITION OF t FOR VALUES FROM (0) TO (MAXVALUE); INSERT INTO t DEFAULT VALUES",
            )
            .unwrap();
        let steps = job(&mut client, "t");
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert_eq!(&steps[0][..2], ["public.t_all", "keep"]);
        assert!(steps[0][2].starts_with("it has no upper bound"), "{steps:?}");
        // The clock is far from one that only begins later.
        client
            .batch_execute(
                "DROP TABLE t; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
                 CREATE TABLE t_far PARTITION OF t FOR VALUES FROM (9000000000000000000) TO (MAXVALUE)",
            )
            .unwrap();
        assert!(job(&mut client, "t").iter().all(|step| step[1] == "create"));
    }
}

/// A domain may have the default of the keys.
#[test]
fn the_default_of_a_domain_counts() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client
            .batch_execute(
                "CREATE DOMAIN key AS bigint DEFAULT snowflake_next(); CREATE SEQUENCE n; CREATE DOMAIN number AS bigint DEFAULT nextval('n');
                 CREATE TABLE t (id key PRIMARY KEY, n bigint) PARTITION BY RANGE (id);
                 CREATE TABLE other (id number PRIMARY KEY, n bigint) PARTITION BY RANGE (id)",
            )
            .unwrap();
        job(&mut client, "t");
        job(&mut client, "other");
        refused(&mut client, "SELECT snowflake_declare_keys('other')", "55000");
        client.batch_execute("INSERT INTO t (n) VALUES (1)").unwrap();
        // Nothing says that the domain has always had it: what came before the first job stays.
        client.batch_execute("CREATE TABLE early (id key PRIMARY KEY, n bigint) PARTITION BY RANGE (id)").unwrap();
        client.batch_execute("CREATE TABLE early_rest PARTITION OF early DEFAULT").unwrap();
        client.batch_execute("INSERT INTO early (n) VALUES (1)").unwrap();
        job(&mut client, "early");
        assert_eq!(count(&mut client, "early_rest"), 1);
        cluster.step_clock(&format!("+{}s", 100 * 86_400));
        job(&mut owner(&cluster), "t");
        assert_eq!(count(&mut owner(&cluster), "t"), 0);
    }
}

/// Two jobs, and a migration, on a default partition with many keys of before: each waits for the other, and none in a circle.
#[test]
fn jobs_and_migrations_meet_without_a_deadlock() {
    let [cluster, _] = servers();
    let mut client = owner(&cluster);
    client.batch_execute(&table_of("nextval('n')")).unwrap();
    client
        .batch_execute(
            "INSERT INTO t (n) SELECT generate_series(1, 300000); ALTER TABLE t_rest DROP CONSTRAINT t_rest_pkey",
        )
        .unwrap_or_else(|_| client.batch_execute("INSERT INTO t (n) SELECT generate_series(1, 300000)").unwrap());
    client
        .batch_execute("SELECT * FROM snowflake_adopt('t'); INSERT INTO t (n) SELECT generate_series(1, 100)")
        .unwrap();
    for round in 0..3 {
        thread::scope(|scope| {
            for session in 0..3 {
                let cluster = &cluster;
                scope.spawn(move || {
                    let mut client = owner(cluster);
                    match session {
                        2 => client.batch_execute(&format!("ALTER TABLE t ADD COLUMN more_{round} integer")).unwrap(),
                        _ => drop(job(&mut client, "t")),
                    }
                });
            }
        });
        client.batch_execute("INSERT INTO t (id, n) SELECT snowflake_min_id(now() + interval '10 days') + n, n FROM generate_series(1, 9) AS n ON CONFLICT DO NOTHING").unwrap();
    }
    assert!(!cluster.log().contains("deadlock detected"));
}

/// Thousands of old partitions go in pieces that fit the lock table, night by night; those of tomorrow are there after the first.
#[test]
fn thousands_of_partitions_go_in_pieces() {
    let cluster = Cluster::options()
        .with_clock()
        .set("max_locks_per_transaction = 10")
        .set("pg_snowflake.max_jump = '1000d'")
        .start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next(), a integer, b text) PARTITION BY RANGE (id);
             CREATE INDEX ON t (a); CREATE INDEX ON t (b)",
        )
        .unwrap();
    // In pieces, too.
    for day in 0..60 {
        let hours = format!(
            "SELECT count(*) FROM snowflake_create_partitions('t', '1 hour', date_trunc('day', now(), 'UTC') + interval '{day} days',
                 date_trunc('day', now(), 'UTC') + interval '{} days')",
            day + 1
        );
        client.batch_execute(&hours).unwrap();
    }
    cluster.step_clock(&format!("+{}s", 200 * 86_400));
    let mut client = cluster.client();
    let call = "SELECT action, count(*), max(note) FROM snowflake_maintain_partitions('t', '1 hour', '2 hours', retention => '90 days', expired => 'drop') GROUP BY 1";
    let mut nights = 0;
    loop {
        let done: BTreeMap<String, (i64, Option<String>)> =
            client.query(call, &[]).unwrap().iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        assert_eq!(done.contains_key("create"), nights == 0, "{done:?}");
        nights += 1;
        if !done.contains_key("later") {
            break;
        }
        assert!(done["drop"].0 > 10, "{done:?}");
    }
    assert!(nights > 2, "{nights}");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass"), 3);
}

/// The row numbers that a table has, and since when each, in seconds of the clock that is right.
type Rows = BTreeMap<i64, f64>;

/// Dumps a table, drops it, and restores it.
fn restore_one(cluster: &Cluster, table: &str) {
    let file = cluster.new_file(&format!("{table}.sql"));
    let parts = format!("{table}_*");
    run(cluster.program("pg_dump").args(["--dbname", DATABASE, "-t", table, "-t", &parts, "--file"]).arg(&file));
    owner(cluster).batch_execute(&format!("DROP TABLE {table}")).unwrap();
    run(psql(cluster, "postgres", DATABASE).args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
}

/// Random tables of random histories. After each job, no row is gone that is younger than what is kept, and each row that is in a marked
/// partition has an ID whose time is its own.
#[test]
fn random_histories() {
    let seed = variable("SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("SEED={seed}");
    let tables = variable("TABLES").unwrap_or(6);
    for cluster in servers() {
        let mut draw = Rng::with_seed(seed);
        let mut known: Vec<Rows> = (0..tables).map(|_| Rows::new()).collect();
        let origins: Vec<usize> = (0..tables).map(|_| draw.usize(0..2 * GENERATORS.len())).collect();
        owner(&cluster).batch_execute("CREATE SEQUENCE n").unwrap();
        for (table, &origin) in origins.iter().enumerate() {
            let default = GENERATORS.get(origin).map_or("snowflake_next()", |(_, expression)| expression);
            let parts = *draw
                .choice(&[
                    "CREATE TABLE @_rest PARTITION OF @ DEFAULT;",
                    "CREATE TABLE @_rest PARTITION OF @ DEFAULT;
                     SELECT snowflake_create_partitions('@', '1 month', now() - interval '100 days', now() + interval '10 days');",
                    "CREATE TABLE @_rest PARTITION OF @ DEFAULT;
                     SELECT snowflake_create_partitions('@', '1 day', '2024-01-01 00:00+00', '2024-01-20 00:00+00');",
                    "CREATE TABLE @_rest PARTITION OF @ DEFAULT; CREATE TABLE @_first PARTITION OF @
                     FOR VALUES FROM (MINVALUE) TO (1000000);",
                ])
                .unwrap();
            let script = format!(
                "CREATE TABLE @ (id bigint PRIMARY KEY DEFAULT {default}, n bigint, at timestamptz DEFAULT clock_timestamp())
                     PARTITION BY RANGE (id); {parts}"
            );
            owner(&cluster).batch_execute(&script.replace('@', &format!("t{table}"))).unwrap();
        }
        let (mut offset, mut number, mut history) = (0_i64, 0_i64, Vec::new());
        for _ in 0..14 {
            offset += draw.i64(1..40 * 86_400);
            cluster.step_clock(&format!("+{offset}s"));
            let mut client = owner(&cluster);
            let now: f64 = value(&mut client, "SELECT extract(epoch FROM clock_timestamp())::double precision");
            for (table, rows) in known.iter_mut().enumerate() {
                let (act, import, behind) = (draw.u32(0..9), draw.usize(0..GENERATORS.len() - 1), draw.u32(1..300));
                let what = match act {
                    0 => format!("SELECT * FROM snowflake_adopt('t{table}')"),
                    1 => format!("SELECT snowflake_release('t{table}')"),
                    _ => String::new(),
                };
                // It may be refused, with its reasons.
                let done = client.batch_execute(&what).is_ok();
                if act == 3 {
                    restore_one(&cluster, &format!("t{table}"));
                }
                if act == 4 {
                    // It is set right again before the job runs.
                    cluster.step_clock(&format!("{:+}s", offset - i64::from(behind) * 86_400));
                }
                history.push((table, act, done, number));
                let mut add = |client: &mut Client, columns: &str, values: &str| {
                    for _ in 0..draw.u32(1..5) {
                        number += 1;
                        let insert = format!(
                            "INSERT INTO t{table} ({columns}) VALUES ({})",
                            values.replace("NUMBER", &number.to_string())
                        );
                        if client.batch_execute(&insert).is_ok() {
                            rows.insert(number, now);
                        }
                    }
                };
                add(&mut client, "n", "NUMBER");
                if act == 2 {
                    // Not the last: whoever gives a row a key of the last weeks by chance says that it is of then.
                    let (_, other) = GENERATORS[import];
                    add(&mut client, "id, n", &format!("{other}, NUMBER"));
                }
                if act == 4 {
                    cluster.step_clock(&format!("+{offset}s"));
                }
                let steps = job(&mut client, &format!("t{table}"));
                assert!(steps.iter().all(|step| step[1] != "keep" || !step[2].is_empty()), "SEED={seed}: {steps:?}");
                let left: Vec<i64> = client
                    .query(&format!("SELECT n FROM t{table}"), &[])
                    .unwrap()
                    .iter()
                    .map(|row| row.get(0))
                    .collect();
                let gone: Vec<(i64, f64)> = rows
                    .iter()
                    .filter(|(n, _)| !left.contains(n))
                    .map(|(&n, &at)| (n, (now - at) / 86_400.0))
                    .collect();
                assert!(
                    gone.iter().all(|&(_, days)| days > 90.0),
                    "SEED={seed}, t{table} of {:?}: {gone:?}: {steps:?}",
                    origins[table]
                );
                rows.retain(|n, _| left.contains(n));
                let elsewhere = format!(
                    "SELECT string_agg(concat_ws(' ', n, id, at, c.relname, mark), ', ') FROM t{table} AS t JOIN pg_class AS c ON c.oid = t.tableoid AND pg_get_expr(relpartbound, 0) <> 'DEFAULT',
                         regexp_match(obj_description(c.oid, 'pg_class'), 'keys from (-?[0-9]+) on') AS mark
                     WHERE CASE WHEN mark IS NOT NULL AND id >= greatest(mark[1]::bigint, 0) THEN snowflake_timestamp(id) < at - interval '1 day' END"
                );
                let found: Option<String> = value(&mut client, &elsewhere);
                assert_eq!(found, None, "SEED={seed}, t{table} of {:?}, {history:?}", origins[table]);
            }
        }
        // What is ours alone, and old, has gone.
        offset += 100 * 86_400;
        cluster.step_clock(&format!("+{offset}s"));
        let mut client = owner(&cluster);
        client.batch_execute(&table_of("snowflake_next()")).unwrap();
        wait_for("rows of ours", || client.batch_execute("INSERT INTO t (n) VALUES (1)").is_ok());
        job(&mut client, "t");
        cluster.step_clock(&format!("+{}s", offset + 100 * 86_400));
        let mut client = owner(&cluster);
        job(&mut client, "t");
        assert_eq!(count(&mut client, "t"), 0);
    }
}
