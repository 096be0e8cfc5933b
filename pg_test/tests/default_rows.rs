//! `snowflake_partition_default_rows()`, of the library and of the extension in SQL: rows of a default partition come into partitions of
//! their own, each whole and once, whatever the tables look like and whoever uses them meanwhile.

use fastrand::Rng;
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::hosted::{self, DATABASE};
use snowflake_test::{Cluster, millis, value, variable};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// A server with the database [`DATABASE`] of role `owner`: with the library, or with the extension in SQL.
fn servers() -> [Cluster; 2] {
    let with_library = Cluster::options().start();
    hosted::create_database(&with_library, DATABASE);
    with_library.client_of("postgres", DATABASE).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    with_library.client_of("postgres", DATABASE).batch_execute("GRANT CREATE ON SCHEMA public TO owner").unwrap();
    [with_library, hosted::server()]
}

/// Whether an owner may disable a partition's copy of a trigger of its table.
fn disables_copies(client: &mut Client) -> bool {
    value(client, "SELECT current_setting('server_version_num')::integer >= 150000")
}

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

/// Keys from before a table had IDs read as times of the layout's first moments, however young their rows are. No retention takes them, wherever they
/// are: in the default partition, in one that it became, in one by dates, or in the first one.
#[test]
fn keys_from_before_are_of_no_age() {
    const YOUNG: &str = "INSERT INTO events (what) SELECT 'young' FROM generate_series(1, 1000)";
    const NEW: &str = "INSERT INTO events (what) VALUES ('new')";
    const OLD: &str = "INSERT INTO events SELECT snowflake_min_id(now() - interval '200 days') + n, 'old' FROM generate_series(1, 10) AS n";
    for (cluster, is_library) in servers().into_iter().zip([true, false]) {
        for (first, takes_old) in [
            ("DEFAULT", true),
            ("FOR VALUES FROM (MINVALUE) TO (OLDER)", false),
            ("FOR VALUES FROM (0) TO (OLDER)", false),
            ("FOR VALUES FROM (-10) TO (OLDER)", false),
        ] {
            let mut client = owner(&cluster);
            let older: i64 =
                value(&mut client, "SELECT snowflake_min_id(date_trunc('day', now() - interval '150 days', 'UTC'))");
            let first = first.replace("OLDER", &older.to_string());
            client
                .batch_execute(&format!(
                    "DROP TABLE IF EXISTS events CASCADE; CREATE TABLE events (id bigserial PRIMARY KEY, what text) PARTITION BY RANGE (id);
                     CREATE TABLE events_first PARTITION OF events {first}; {YOUNG}"
                ))
                .unwrap();
            if !takes_old {
                client.batch_execute("CREATE TABLE events_rest PARTITION OF events DEFAULT").unwrap();
            }
            client.batch_execute("SELECT * FROM snowflake_adopt('events')").unwrap();
            client.batch_execute(NEW).unwrap();
            client.batch_execute(OLD).unwrap();
            // What else is known of them: those are from before.
            client.batch_execute("SELECT snowflake_declare_keys('events')").unwrap();
            let maintain = |more: &str| {
                format!(
                    "SELECT partition, action, note FROM snowflake_maintain_partitions('events', '1 day', '2 days', retention => '90 days', expired => 'drop'{more})"
                )
            };
            let count = |client: &mut Client, what: &str| {
                value::<i64>(client, &format!("SELECT count(*) FROM events WHERE what = '{what}'"))
            };
            if is_library {
                let moving = ", default_rows => 'move'";
                // The plan of a job that moves says what becomes of what it moves.
                let plan: Vec<String> = client
                    .query(&maintain(&format!("{moving}, dry_run => true")), &[])
                    .unwrap()
                    .iter()
                    .map(|row| {
                        format!("{} {}", row.get::<_, &str>(1), row.get::<_, Option<&str>>(2).unwrap_or_default())
                    })
                    .collect();
                assert!(!takes_old || plan.iter().any(|step| step.contains("older than rows are kept")), "{plan:#?}");
                client.batch_execute(&maintain(moving)).unwrap();
            } else {
                client.batch_execute("CALL snowflake_partition_default_rows('events', '1 day')").unwrap();
            }
            client.batch_execute(&maintain("")).unwrap();
            assert_eq!(count(&mut client, "young"), 1000, "{first}, of the library: {is_library}");
            assert_eq!(count(&mut client, "new"), 1);
            // Those that are old go, where no young ones are beside them.
            assert_eq!(count(&mut client, "old"), if takes_old { 0 } else { 10 }, "{first}");
            if !takes_old {
                let kept: String = value(
                    &mut client,
                    "SELECT note FROM snowflake_maintain_partitions('events', '1 day', '2 days', retention => '90 days', \
                     expired => 'drop', dry_run => true) WHERE partition ~ 'events_first'",
                );
                let bounds = first.contains("-10");
                assert_eq!(kept.contains("its bounds do not say"), bounds, "{kept}");
                assert_eq!(kept.contains("of which nothing says that they are snowflake IDs"), !bounds, "{kept}");
                client.batch_execute("DELETE FROM events WHERE what = 'young'").unwrap();
                client.batch_execute(&maintain("")).unwrap();
                assert_eq!(count(&mut client, "old"), if bounds { 10 } else { 0 }, "{first}");
            }
        }
    }
}

/// Where row security hides rows from the owner of their table, the extension in SQL cannot see whether they are young. The library can.
#[test]
fn rows_that_are_hidden_from_their_owner() {
    const HIDE: &str = "ALTER TABLE events_first ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        ALTER TABLE events_rest ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY";
    const SHOW: &str =
        "ALTER TABLE events_first NO FORCE ROW LEVEL SECURITY; ALTER TABLE events_rest NO FORCE ROW LEVEL SECURITY";
    for (cluster, is_library) in servers().into_iter().zip([true, false]) {
        let mut client = owner(&cluster);
        client
            .batch_execute(&format!(
                "CREATE TABLE events (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
                 CREATE TABLE events_first PARTITION OF events FOR VALUES FROM (MINVALUE)
                    TO (snowflake_min_id(date_trunc('day', now() - interval '90 days', 'UTC')));
                 CREATE TABLE events_rest PARTITION OF events DEFAULT; INSERT INTO events VALUES (5, 'young');
                 SELECT snowflake_declare_keys('events'); {HIDE}"
            ))
            .unwrap();
        let maintain = |expired: &str, more: &str| {
            format!(
                "SELECT note FROM snowflake_maintain_partitions('events', '1 day', '1 day', retention => '30 days', expired => '{expired}'{more})"
            )
        };
        let expected = if is_library {
            "it has keys below 15099494400000, of which nothing says that they are snowflake IDs"
        } else {
            "row security hides its rows from its owner, so it may have keys that are no snowflake IDs"
        };
        for (expired, more) in [("drop", ", dry_run => true"), ("drop", ""), ("detach", "")] {
            let kept = format!("{} WHERE action = 'keep'", maintain(expired, more));
            let note: String = value(&mut client, &kept);
            assert!(note.starts_with(expected), "{note}");
        }
        client.batch_execute(SHOW).unwrap();
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM events"), 1);
        // Those of the default partition are in the way, seen or not.
        client
            .batch_execute(&format!("INSERT INTO events SELECT snowflake_min_id(now() + interval '10 days'); {HIDE}"))
            .unwrap();
        let further = maintain("drop", "").replace("'1 day', '1 day'", "'1 day', '20 days'");
        refused(&mut client, &further, "23514");
        if !is_library {
            let dry = further.replace("'drop')", "'drop', dry_run => true) WHERE action = 'create' LIMIT 1");
            let note: String = value(&mut client, &dry);
            assert!(note.starts_with("it fails if the default partition has rows of it"), "{note}");
        }
        client.batch_execute(&format!("{SHOW}; DELETE FROM events")).unwrap();
        client.batch_execute(&maintain("drop", "")).unwrap();
        assert!(value::<bool>(&mut client, "SELECT to_regclass('events_first') IS NULL"));
    }
}

/// With objects of a release that lacks the procedure, the hint begins with the update.
#[test]
fn the_hint_names_the_update_where_the_procedure_is_missing() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake VERSION '0.2.0';
             CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             CREATE TABLE rest PARTITION OF events DEFAULT; INSERT INTO events DEFAULT VALUES",
        )
        .unwrap();
    let call =
        "SELECT snowflake_create_partitions('events', '1 day', now() - interval '1 day', now() + interval '2 days')";
    for (update, has_procedure) in [("", false), ("ALTER EXTENSION pg_snowflake UPDATE", true)] {
        client.batch_execute(update).unwrap();
        let error = refused(&mut client, call, "23514");
        let hint = error.hint().unwrap();
        assert_eq!(hint.contains("there: CALL snowflake_partition_default_rows("), has_procedure, "{hint}");
        assert_eq!(hint.contains("there: ALTER EXTENSION pg_snowflake UPDATE; CALL"), !has_procedure, "{hint}");
    }
}

/// What a default partition holds whose columns are in another order.
const IN_ANOTHER_ORDER: &str = "
    CREATE TABLE events (id bigint PRIMARY KEY, a text, b text, g integer GENERATED ALWAYS AS (length(a)) STORED) PARTITION BY RANGE (id);
    CREATE TABLE rest (b text, gone integer, g integer GENERATED ALWAYS AS (length(a)) STORED, id bigint NOT NULL, a text);
    ALTER TABLE rest DROP COLUMN gone;
    ALTER TABLE events ATTACH PARTITION rest DEFAULT;
    INSERT INTO events SELECT snowflake_min_id('2026-01-01 12:00+00'::timestamptz + n * interval '1 h'), 'a' || n, 'b' || n
        FROM generate_series(1, 48) AS n;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a trigger ran'; END $$;
    CREATE TRIGGER t BEFORE INSERT OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION refuse();
    CREATE TRIGGER own AFTER DELETE ON rest FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    ALTER TABLE rest ENABLE ALWAYS TRIGGER own;";

/// What the error says to do, does it, and the call goes through.
#[test]
fn the_hint_of_the_error_moves_rows_column_by_column() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client.batch_execute(IN_ANOTHER_ORDER).unwrap();
        client.batch_execute("SELECT snowflake_declare_keys('events')").unwrap();
        client.batch_execute("CREATE TABLE before AS TABLE events").unwrap();
        let create =
            "SELECT snowflake_create_partitions('events', '1 day', '2026-01-01 00:00+00', '2026-02-01 00:00+00')";
        let hint = refused(&mut client, create, "23514").hint().unwrap().to_owned();
        let call = &hint[hint.find("CALL ").unwrap()..hint.find("; then").unwrap()].replace("...", "'1 day'");
        let owners_disable = disables_copies(&mut client);
        if !owners_disable {
            let hint = refused(&mut client, call, "0A000").hint().unwrap().to_owned();
            assert!(hint.starts_with("Drop the triggers"), "{hint}");
            client.batch_execute("DROP TRIGGER t ON events").unwrap();
        }
        client.batch_execute(call).unwrap();
        let differing = "SELECT count(*) FROM ((TABLE before EXCEPT ALL TABLE events) UNION ALL (TABLE events EXCEPT ALL TABLE before)) AS d";
        assert_eq!(value::<i64>(&mut client, differing), 0);
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM rest"), 0);
        let enabled: String = value(
            &mut client,
            "SELECT string_agg(tgname || tgenabled::text, ' ' ORDER BY tgname, tgrelid) FROM pg_trigger WHERE NOT tgisinternal",
        );
        assert_eq!(enabled, if owners_disable { "ownA tO tO tO tO tO" } else { "ownA" });
        assert_eq!(client.query(create, &[]).unwrap().len(), 28);
    }
}

/// Where all rows are of one partition, the default partition becomes that one.
#[test]
fn a_default_partition_becomes_the_partition() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client.batch_execute("CREATE TABLE events (id bigint PRIMARY KEY, a text) PARTITION BY RANGE (id)").unwrap();
        client
            .batch_execute(
                "CREATE TABLE rest PARTITION OF events DEFAULT;
                 INSERT INTO events SELECT snowflake_min_id('2026-01-01 00:00+00'::timestamptz + n * interval '1 h'), 'a' || n
                    FROM generate_series(1, 48) AS n;
                 SELECT snowflake_declare_keys('events')",
            )
            .unwrap();
        let file = "SELECT pg_relation_filenode(oid) FROM pg_class WHERE relname = ";
        let before: u32 = value(&mut client, &format!("{file} 'rest'"));
        client.batch_execute("CALL snowflake_partition_default_rows('events', '1 month', dry_run => true)").unwrap();
        assert_eq!(value::<u32>(&mut client, &format!("{file} 'rest'")), before);
        client.batch_execute("CALL snowflake_partition_default_rows('events', '1 month')").unwrap();
        assert_eq!(value::<u32>(&mut client, &format!("{file} 'events_20260101'")), before);
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM events_20260101"), 48);
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM rest"), 0);
        // What somebody has made of the default partition is not given away.
        client
            .batch_execute(
                "INSERT INTO events VALUES (snowflake_min_id('2027-01-01 00:00+00')); CREATE VIEW looks AS TABLE rest",
            )
            .unwrap();
        client.batch_execute("CALL snowflake_partition_default_rows('events', '1 month')").unwrap();
        assert!(value::<bool>(&mut client, "SELECT pg_get_viewdef('looks') LIKE '%FROM rest;'"));
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM events_20270101"), 1);
    }
}

#[test]
fn what_cannot_be_moved_is_refused() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        let table = "CREATE TABLE events (id bigint PRIMARY KEY, a text) PARTITION BY RANGE (id);
            CREATE TABLE rest PARTITION OF events DEFAULT; INSERT INTO events SELECT snowflake_min_id('2026-01-01 00:00+00');
            SELECT snowflake_declare_keys('events')";
        let call = "CALL snowflake_partition_default_rows('events', '1 day')";
        for (change, code, message) in [
            (
                "CREATE TABLE of (event bigint CONSTRAINT \"to it\" REFERENCES events)",
                "2BP01",
                "rows to which foreign key \"to it\" of table public.of refers cannot be moved",
            ),
            ("CREATE RULE r AS ON DELETE TO rest DO INSTEAD NOTHING", "42809", "rows of public.rest cannot be moved"),
            (
                "ALTER TABLE rest ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
                "42501",
                "query would be affected by row-level security policy for table \"rest\"",
            ),
            ("CREATE TABLE events_20260101 ()", "42P07", "relation \"events_20260101\" already exists"),
        ] {
            client.batch_execute(&format!("{table}; {change}")).unwrap();
            assert_eq!(refused(&mut client, call, code).message(), message);
            assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM rest").max(1), 1);
            client.batch_execute("DROP TABLE events CASCADE; DROP TABLE IF EXISTS of, events_20260101").unwrap();
        }
        client.batch_execute(table).unwrap();
        let calls = [
            ("events', '1 month 1 day", "22023", "every must be one or more months, or one or more whole seconds"),
            ("events', '-1 day", "22023", "every must be one or more months, or one or more whole seconds"),
            ("events', '0.5 s", "22023", "every must be one or more months, or one or more whole seconds"),
            ("rest', '1 day", "42809", "table \"rest\" is not partitioned by a range of a bigint column"),
        ];
        for (arguments, code, message) in calls {
            let call = format!("CALL snowflake_partition_default_rows('{arguments}')");
            assert_eq!(refused(&mut client, &call, code).message(), message);
        }
        let mut superuser = cluster.client_of("postgres", DATABASE);
        let error = refused(&mut superuser, call, "42501");
        assert_eq!(error.message(), "table public.events belongs to role owner, and the caller is role postgres");
        let mut other = owner(&cluster);
        other.batch_execute("BEGIN; SELECT FROM events").unwrap();
        client.batch_execute("SET lock_timeout = '50ms'").unwrap();
        refused(&mut client, call, "55P03");
        other.batch_execute("COMMIT").unwrap();
        client.batch_execute("SET default_transaction_isolation = serializable").unwrap();
        client.batch_execute(call).unwrap();
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM rest"), 0);
    }
}

/// A random table with a default partition, both called `t`s in a schema, with 300 rows. `n` is the number of a row.
fn random_table(draw: &mut Rng, schema: &str) -> String {
    let mut columns = vec![
        "\"the Id\" bigint NOT NULL".to_owned(),
        "n bigint NOT NULL".to_owned(),
        "a text DEFAULT 'none'".to_owned(),
        "\"B \"\"b\" numeric CONSTRAINT positive CHECK (\"B \"\"b\" > -1)".to_owned(),
        "g text GENERATED ALWAYS AS (a || '!') STORED".to_owned(),
        "f integer".to_owned(),
    ];
    draw.shuffle(&mut columns);
    let parent = columns.join(", ");
    draw.shuffle(&mut columns);
    columns.insert(draw.usize(0..=columns.len()), "gone integer".to_owned());
    let rest = columns.join(", ");
    let deferred = *draw.choice(&["", " DEFERRABLE INITIALLY DEFERRED"]).unwrap();
    let unique = *draw
        .choice(&[
            "",
            "CREATE UNIQUE INDEX ON t (n, \"the Id\");",
            "ALTER TABLE t ADD UNIQUE (n, \"the Id\") DEFERRABLE INITIALLY DEFERRED;",
        ])
        .unwrap();
    let own = *draw
        .choice(&["", "CREATE INDEX ON \"t rest\" (a) WHERE n % 2 = 0;", "COMMENT ON TABLE \"t rest\" IS 'mine';"])
        .unwrap();
    let piece = *draw.choice(&["1 day", "3 hours", "1 week"]).unwrap();
    let day = draw.u32(1..20);
    let mut script = format!(
        "CREATE SCHEMA {schema}; SET search_path = {schema}, public;
         CREATE TABLE others (id integer PRIMARY KEY); INSERT INTO others SELECT generate_series(0, 9); CREATE TABLE fired (n bigint);
         CREATE TABLE t ({parent}, PRIMARY KEY (\"the Id\"), FOREIGN KEY (f) REFERENCES others{deferred}) PARTITION BY RANGE (\"the Id\");
         CREATE TABLE \"t rest\" ({rest}); ALTER TABLE \"t rest\" DROP COLUMN gone;
         ALTER TABLE t ATTACH PARTITION \"t rest\" DEFAULT; {unique} {own}
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO {schema}.fired VALUES (NEW.n); RETURN NULL; END $$;
         CREATE TRIGGER noted AFTER INSERT OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note(); "
    );
    if draw.bool() {
        script += &format!(
            "SELECT snowflake_create_partitions('t', '{piece}', '2026-01-{day:02} 00:00+00', '2026-01-{:02} 00:00+00');",
            day + 3
        );
    }
    script += "SELECT snowflake_declare_keys('t');";
    script + &format!("{}; SET search_path = public", insert(schema, "generate_series(0, 299)"))
}

/// Inserts rows of these numbers, of the times of January 2026.
fn insert(schema: &str, numbers: &str) -> String {
    format!(
        "INSERT INTO {schema}.t (\"the Id\", n, a, \"B \"\"b\", f)
         SELECT snowflake_min_id('2026-01-01 00:00+00'::timestamptz + n * 7919 % 44640 * interval '1 min') + n % 4000, n, 'a' || n, n, n % 10
         FROM {numbers} AS numbers (n)"
    )
}

/// What readers see of a table: each row once, and as it was written.
fn look(client: &mut Client, schema: &str) -> Result<i64, postgres::Error> {
    let query = format!(
        "SELECT count(*), count(DISTINCT n), count(*) FILTER (WHERE a <> 'a' || n OR g <> a || '!' OR \"B \"\"b\" <> n OR f <> n % 10)
         FROM {schema}.t"
    );
    let row = client.query_one(&query, &[])?;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(2)), (row.get(1), 0), "{schema}");
    Ok(row.get(0))
}

/// Random tables, which are written and read meanwhile; calls are cancelled and ended, and made again.
#[test]
fn random_tables_in_use() {
    let seed = std::env::var("SNOWFLAKE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("SNOWFLAKE_TEST_SEED={seed}");
    let mut draw = Rng::with_seed(seed);
    let tables = variable("TABLES").unwrap_or(4) as usize;
    for cluster in servers() {
        if !disables_copies(&mut cluster.client()) {
            cluster.client().batch_execute("ALTER ROLE owner SUPERUSER").unwrap();
        }
        for table in 0..tables {
            let schema = format!("s{table}");
            let script = random_table(&mut draw, &schema);
            owner(&cluster).batch_execute(&script).unwrap_or_else(|error| panic!("{error:?}: {script}"));
            let every = *draw.choice(&["6 hours", "1 day", "3 days", "1 week", "1 month"]).unwrap();
            let call = format!("CALL snowflake_partition_default_rows('{schema}.t', '{every}')");
            let pauses: Vec<u64> = (0..6).map(|_| draw.u64(0..60)).collect();
            in_use(&cluster, &schema, &call, &pauses);
            let mut client = owner(&cluster);
            let left: i64 = value(&mut client, &format!("SELECT count(*) FROM {schema}.\"t rest\""));
            assert_eq!(left, 0, "{every}: {script}");
            let fired = format!("SELECT count(*) = (SELECT count(*) FROM {schema}.t) FROM {schema}.fired");
            assert!(value::<bool>(&mut client, &fired), "{every}: {script}");
            // All partitions are alike, and nothing is left of a call.
            let off = format!(
                "SELECT count(*) FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid WHERE relnamespace = '{schema}'::regnamespace
                 AND tgname = 'noted' AND tgenabled <> 'O'"
            );
            assert_eq!(value::<i64>(&mut client, &off), 0);
            client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).unwrap();
        }
    }
}

/// Calls while three sessions write and two read. After each pause, the call that goes on is cancelled, or its session ended.
fn in_use(cluster: &Cluster, schema: &str, call: &str, pauses: &[u64]) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let stop = &stop;
            scope.spawn(move || {
                let mut client = owner(cluster);
                let mut n = 1000 + writer;
                while !stop.load(Ordering::Relaxed) {
                    client.batch_execute(&insert(schema, &format!("(VALUES ({n}), ({}))", n + 3))).unwrap();
                    n += 6;
                    thread::sleep(millis(2));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = owner(cluster);
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) {
                    let now = look(&mut client, schema).unwrap();
                    assert!(now >= seen, "{now} rows, and {seen} before");
                    seen = now;
                }
            });
        }
        let stopped = StopAtEnd(&stop);
        for (round, pause) in pauses.iter().enumerate() {
            let mut client = owner(cluster);
            client.batch_execute("SET lock_timeout = '60s'").unwrap();
            let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
            let ending = scope.spawn(move || {
                thread::sleep(millis(*pause));
                let how = if round % 2 == 0 { "pg_cancel_backend" } else { "pg_terminate_backend" };
                cluster.client_of("postgres", DATABASE).query_one(&format!("SELECT {how}($1)"), &[&pid]).unwrap();
            });
            if let Err(error) = client.batch_execute(call) {
                let code = error.code().map_or("closed", |code| code.code());
                assert!(["57014", "57P01", "closed"].contains(&code), "{error:?}");
            }
            ending.join().unwrap();
        }
        owner(cluster).batch_execute(call).unwrap();
        drop(stopped);
    });
    // Rows that came into a gap after that.
    owner(cluster).batch_execute(call).unwrap();
    assert!(look(&mut owner(cluster), schema).unwrap() > 300);
}

/// Others stop, however a test ends.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Rows without a time stay, and the call says how many they are.
#[test]
fn rows_whose_keys_are_no_ids_stay_and_are_counted() {
    for cluster in servers() {
        let mut client = owner(&cluster);
        client
            .batch_execute(
                "CREATE TABLE \"E v\" (\"Id\" bigint) PARTITION BY RANGE (\"Id\");
                 CREATE TABLE rest PARTITION OF \"E v\" DEFAULT;
                 INSERT INTO \"E v\" VALUES (-1), (-9223372036854775808), (NULL), (9223372036854775807), (9223372036854775806),
                     (snowflake_min_id('2026-01-01 00:00+00')); SELECT snowflake_declare_keys('\"E v\"')",
            )
            .unwrap();
        let (tell, told) = mpsc::channel();
        let mut calling = postgres::Config::new()
            .host_path(cluster.socket())
            .user("owner")
            .dbname(DATABASE)
            .notice_callback(move |notice| tell.send(notice.message().to_owned()).unwrap())
            .connect(postgres::NoTls)
            .unwrap();
        let [made, last] =
            ["20260101", "20930906"].map(|day| format!("partition \"E v_{day}\" is made, 1 rows were moved"));
        let (made, last, stay) = (&*made, &*last, "rows that stay in the default partition: 4");
        calling.batch_execute("CALL snowflake_partition_default_rows('\"E v\"', '1 day', dry_run => true)").unwrap();
        assert_eq!(told.try_iter().last().as_deref(), Some(stay));
        for expected in [&[made, last, stay][..], &[stay]] {
            calling.batch_execute("CALL snowflake_partition_default_rows('\"E v\"', '1 day')").unwrap();
            assert_eq!(told.try_iter().collect::<Vec<String>>(), expected);
        }
        calling.batch_execute("DELETE FROM rest").unwrap();
        calling.batch_execute("CALL snowflake_partition_default_rows('\"E v\"', '1 day')").unwrap();
        assert_eq!(told.try_iter().count(), 0);
    }
}

/// A job can be told to do the same; without that, such rows are an error.
#[test]
fn a_job_moves_default_rows_where_it_is_told_to() {
    let [cluster, _] = servers();
    let mut client = owner(&cluster);
    client
        .batch_execute(
            "CREATE SCHEMA \"The Shop\"; CREATE TABLE \"The Shop\".\"E v\" (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
             CREATE TABLE \"The Shop\".rest PARTITION OF \"The Shop\".\"E v\" DEFAULT;
             INSERT INTO \"The Shop\".\"E v\" SELECT snowflake_min_id(date_trunc('day', now(), 'UTC') + n * interval '1 h'), n FROM generate_series(-30, 30) n;
             SELECT snowflake_declare_keys('\"The Shop\".\"E v\"')",
        )
        .unwrap();
    let call = |more: &str| {
        format!(
            "SELECT action, count(*) FROM snowflake_maintain_partitions('\"The Shop\".\"E v\"', '1 day', '3 days'{more}) GROUP BY 1 ORDER BY 1"
        )
    };
    let mut run = |more: &str| {
        let rows = client.query(&call(more), &[]).unwrap();
        rows.iter()
            .map(|row| format!("{} {}", row.get::<_, String>(0), row.get::<_, i64>(1)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(run(", default_rows => 'move', dry_run => true"), "create 4, move 4");
    assert_eq!(run(", default_rows => 'move'"), "create 2, move 4");
    assert_eq!(run(", default_rows => 'move'"), "");
    let rows = "SELECT concat_ws(' ', count(*), count(DISTINCT id), sum(n), (SELECT count(*) FROM \"The Shop\".rest)) FROM \"The Shop\".\"E v\"";
    assert_eq!(value::<String>(&mut client, rows), "61 61 0 0");
    client.batch_execute("DROP TABLE \"The Shop\".\"E v\"; CREATE TABLE \"The Shop\".\"E v\" (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE \"The Shop\".rest PARTITION OF \"The Shop\".\"E v\" DEFAULT; INSERT INTO \"The Shop\".\"E v\" SELECT snowflake_min_id(now());
        SELECT snowflake_declare_keys('\"The Shop\".\"E v\"')").unwrap();
    refused(&mut client, &call(""), "23514");
    refused(&mut client, &call(", default_rows => 'refuse'"), "23514");
    // Whose code would run as the caller is told so.
    refused(&mut cluster.client_of("postgres", DATABASE), &call(", default_rows => 'move'"), "42501");
    let mut other = owner(&cluster);
    other.batch_execute("BEGIN; SELECT FROM \"The Shop\".\"E v\"").unwrap();
    client.batch_execute("SET lock_timeout = '50ms'").unwrap();
    refused(&mut client, &call(", default_rows => 'move'"), "55P03");
    other.batch_execute("COMMIT").unwrap();
    client.batch_execute(&call(", default_rows => 'move'")).unwrap();
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM \"The Shop\".rest"), 0);
}
