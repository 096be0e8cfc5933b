//! A dump that is restored where the extension is in use: the database keeps its layout, epoch and time, whatever form the
//! dump has and whatever server it came from. What would change that is an error of the restore, and all else is there. In
//! a database that has made no ID, the record of the dump comes along.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::dump::{pg_restore, psql};
use snowflake_test::programs::{Output, output, run};
use snowflake_test::query::{NEXT, next};
use snowflake_test::{Cluster, Installation, Stop, ids, value, variable};
use std::path::{Path, PathBuf};

const DATABASE: &str = "shop";

/// What is dumped. A dump of the schema public would create that, which is there.
const ORDERS: &str = "CREATE TABLE app.orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text)";

/// What `pg_dump` is asked for; whether that brings the record, and rows.
struct Form {
    name: &'static str,
    options: &'static [&'static str],
    has_record: bool,
    has_rows: bool,
}

const fn form(name: &'static str, options: &'static [&'static str], has_record: bool, has_rows: bool) -> Form {
    Form { name, options, has_record, has_rows }
}

/// Those of docs/backups.md, and others.
const FORMS: [Form; 8] = [
    form("all", &[], true, true),
    form("-t", &["--table=app.orders"], false, true),
    form("-t -e", &["--table=app.orders", "--extension=pg_snowflake"], true, true),
    form("-n", &["--schema=app"], false, true),
    form("-n -e", &["--schema=app", "--extension=pg_snowflake"], true, true),
    form("--data-only", &["--data-only"], true, true),
    form("-s", &["--schema-only"], false, false),
    form("--clean -t -e", &["--clean", "--if-exists", "--table=app.orders", "--extension=pg_snowflake"], true, true),
];

/// How a dump is restored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Archive,
    ArchiveAtOnce,
    Script,
    ScriptAtOnce,
}

const WAYS: [Way; 4] = [Way::Archive, Way::ArchiveAtOnce, Way::Script, Way::ScriptAtOnce];

/// A server that dumps come from.
struct Source {
    name: &'static str,
    layout: &'static str,
    /// How far its clock is off.
    clock: &'static str,
}

const OTHER_LAYOUT: &str = "timestamp=41 worker=9 sequence=13 epoch=2015-01-01T00:00:00Z";
const OTHER_EPOCH: &str = "timestamp=41 worker=10 sequence=12 epoch=2015-01-01T00:00:00Z";

const SOURCES: [Source; 6] = [
    Source { name: "the same layout", layout: "default", clock: "+0s" },
    Source { name: "another epoch", layout: OTHER_EPOCH, clock: "+0s" },
    Source { name: "another layout", layout: OTHER_LAYOUT, clock: "+0s" },
    Source { name: "a clock that is ahead", layout: "default", clock: "+7200s" },
    Source { name: "a clock that is behind", layout: "default", clock: "-7200s" },
    Source { name: "another layout, and a clock that is ahead", layout: OTHER_LAYOUT, clock: "+7200s" },
];

impl Source {
    fn is_ahead(&self) -> bool {
        self.clock == "+7200s"
    }

    fn has_layout(&self) -> bool {
        self.layout == "default"
    }

    /// The server, with a database of 300 orders.
    fn start(&self) -> Cluster {
        let cluster = Cluster::options().patient().set(&format!("pg_snowflake.layout = '{}'", self.layout)).create();
        cluster.step_clock(self.clock);
        cluster.start();
        cluster.database(DATABASE);
        let mut client = cluster.client_of("postgres", DATABASE);
        client.batch_execute(&format!("CREATE SCHEMA app; {ORDERS}; {}", fill("app.orders", 300))).unwrap();
        cluster
    }
}

fn fill(table: &str, count: usize) -> String {
    format!("INSERT INTO {table} (note) SELECT 'n' FROM generate_series(1, {count})")
}

/// Whether a way restores an archive.
fn is_archive(way: Way) -> bool {
    matches!(way, Way::Archive | Way::ArchiveAtOnce)
}

fn dump(source: &Cluster, form: &Form, archive: bool) -> PathBuf {
    let file = source.new_file("dump");
    let format = if archive { "--format=custom" } else { "--format=plain" };
    run(source.program("pg_dump").args([format, "--dbname", DATABASE, "--file"]).arg(&file).args(form.options));
    file
}

fn restore(to: &Cluster, database: &str, file: &Path, way: Way) -> Output {
    match way {
        Way::Archive => output(pg_restore(to, "postgres", database).arg(file)),
        Way::ArchiveAtOnce => output(pg_restore(to, "postgres", database).arg("--single-transaction").arg(file)),
        Way::Script => output(psql(to, "postgres", database).arg("--file").arg(file)),
        Way::ScriptAtOnce => {
            let stop = ["--set=ON_ERROR_STOP=1", "--single-transaction", "--file"];
            output(psql(to, "postgres", database).args(stop).arg(file))
        }
    }
}

/// All IDs of a table, and how the database reads them.
fn read(client: &mut Client, table: &str) -> (Vec<i64>, String) {
    let all = ids(&client.query(&format!("SELECT id FROM {table} ORDER BY id"), &[]).unwrap());
    let times = "md5(string_agg(concat(snowflake_timestamp(id), snowflake_worker(id), snowflake_sequence(id)), ' ' ORDER BY id))";
    (all, value(client, &format!("SELECT coalesce({times}, '') FROM {table}")))
}

fn layout(client: &mut Client) -> String {
    value(client, "SELECT snowflake_database_layout()")
}

/// What is on record: layout, epoch, reservation.
fn record(client: &mut Client) -> (i64, i64, i64) {
    let query = "SELECT l.last_value, e.last_value, r.last_value
        FROM _snowflake.layout l, _snowflake.epoch e, _snowflake.reservation r";
    let row = client.query_one(query, &[]).unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// New rows go in, above those that were there, with times of now.
fn goes_on(client: &mut Client, table: &str, before: &[i64], case: &str) {
    client.batch_execute(&fill(table, 200)).unwrap_or_else(|error| panic!("{case}: {error:?}"));
    let (all, _) = read(client, table);
    assert_eq!(all.len(), before.len() + 200, "{case}");
    assert_eq!(&all[..before.len()], before, "{case}: new IDs are above");
    let off = "SELECT extract(epoch FROM snowflake_timestamp(max(id)) - clock_timestamp())::float8 FROM ";
    let off: f64 = value(client, &format!("{off}{table}"));
    assert!(off.abs() < 5.0, "{case}: IDs are {off} s off the clock");
}

// A database in use.

/// A database whose table `sales` has IDs, and which has an empty table for the rows of a dump without one.
const IN_USE: &str = "CREATE TABLE sales (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text,
        at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
    CREATE INDEX ON sales (snowflake_timestamp(id));";

fn in_use(target: &Cluster, database: &str, form: &Form) -> Client {
    target.database(database);
    let mut client = target.client_of("postgres", database);
    client.batch_execute(IN_USE).unwrap();
    client.batch_execute(&fill("sales", 200)).unwrap();
    prepare(&mut client, form);
    client
}

/// Makes what a dump of this form needs.
fn prepare(client: &mut Client, form: &Form) {
    if form.name == "--data-only" || form.options.contains(&"--table=app.orders") {
        client.batch_execute("CREATE SCHEMA app").unwrap();
    }
    if form.name == "--data-only" {
        client.batch_execute(ORDERS).unwrap();
    }
}

/// A dump into a database in use: what is there is read as before, IDs go on, and what is left out is said.
fn keeps_its_record(target: &Cluster, source: &Source, form: &Form, way: Way, file: &Path, database: &str) {
    let case = format!("{}, {}, {way:?}", source.name, form.name);
    let mut client = in_use(target, database, form);
    // A session that has read the record before.
    let mut session = target.client_of("postgres", database);
    let (before, read_before) = read(&mut session, "sales");
    let (layout_before, record_before) = (layout(&mut client), record(&mut client));
    let log = target.log_length();

    let said = restore(target, database, file, way);
    let stops = matches!(way, Way::ArchiveAtOnce | Way::ScriptAtOnce);
    // pg_restore has an option of its own for that.
    let drops_extension = form.options.contains(&"--clean") && !is_archive(way);
    let other = form.has_record && !source.has_layout() && !(drops_extension && stops);
    let ahead = form.has_record && source.has_layout() && source.is_ahead() && !(drops_extension && stops);
    // With one transaction, nothing comes.
    let is_whole = !(stops && (other || ahead || drops_extension));
    let number = |text: &str| said.errors.matches(text).count();
    let is_first = |at_once: usize, all: usize| if stops { at_once } else { all };
    let numbers = if source.layout == OTHER_LAYOUT { is_first(1, 2) } else { 1 };
    let in_use = number("cannot be set: the layout of this database is in use");
    assert_eq!(in_use, if other { numbers } else { 0 }, "{case}: {said:?}");
    let too_far = number("ahead of the clock: this database makes IDs");
    assert_eq!(too_far, usize::from(ahead), "{case}: {said:?}");
    // It drops the extension, which a default uses.
    let dropped = number("cannot drop extension pg_snowflake because other objects depend on it");
    assert_eq!(dropped, usize::from(drops_extension), "{case}: {said:?}");
    assert_eq!(number("ERROR: "), in_use + too_far + dropped, "{case}: {said:?}");
    let fails = in_use + too_far + dropped > 0 && way != Way::Script;
    assert_eq!(said.success, !fails, "{case}: {said:?}");

    assert_eq!(record(&mut client).0, record_before.0, "{case}");
    assert_eq!(record(&mut client).1, record_before.1, "{case}");
    assert!(record(&mut client).2 >= record_before.2, "{case}");
    for client in [&mut client, &mut session, &mut target.client_of("postgres", database)] {
        assert_eq!(layout(client), layout_before, "{case}");
        assert_eq!(read(client, "sales"), (before.clone(), read_before.clone()), "{case}");
    }
    for text in ["cannot be set: the layout", "ahead of the clock: this database"] {
        let is_logged = target.log_since(log).contains(text);
        assert_eq!(is_logged, said.errors.contains(text), "{case}");
    }
    assert!(!target.log_since(log).contains("WARNING"), "{case}");

    goes_on(&mut client, "sales", &before, &case);
    goes_on(&mut session, "sales", &read(&mut target.client_of("postgres", database), "sales").0, &case);
    if is_whole {
        let (orders, _) = read_ids(&mut client);
        assert_eq!(orders.len(), if form.has_rows { 300 } else { 0 }, "{case}");
        if source.has_layout() {
            check::distinct(&[orders, read(&mut client, "sales").0]);
        }
    }
    assert!(!preflight(&mut client).contains("another layout"), "{case}");
    assert!(!target.log_since(0).contains("replaced on record"), "{case}");
}

/// The IDs of `orders` alone: in another layout, not each can be read.
fn read_ids(client: &mut Client) -> (Vec<i64>, ()) {
    (ids(&client.query("SELECT id FROM app.orders ORDER BY id", &[]).unwrap()), ())
}

fn preflight(client: &mut Client) -> String {
    let query = "SELECT string_agg(concat(verdict, ': ', finding), E'\\n') FROM snowflake_preflight() WHERE subject = 'database'";
    value(client, query)
}

/// A dump into a database without IDs, with the extension or without: the record comes along where the dump has it.
fn takes_the_record(
    target: &Cluster,
    source: &Source,
    form: &Form,
    way: Way,
    file: &Path,
    database: &str,
    create: bool,
) {
    let case = format!("{}, {}, {way:?}, created: {create}", source.name, form.name);
    target.client().batch_execute(&format!("CREATE DATABASE {database}")).unwrap();
    let mut client = target.client_of("postgres", database);
    if create {
        client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    }
    prepare(&mut client, form);
    let said = restore(target, database, file, way);
    assert!(!said.errors.contains("ERROR") && !said.errors.contains("WARNING") && said.success, "{case}: {said:?}");
    let (server, here): (String, String) =
        (value(&mut client, "SELECT snowflake_server_layout()"), layout(&mut client));
    let (orders, _) = read_ids(&mut client);
    assert_eq!(orders.len(), if form.has_rows { 300 } else { 0 }, "{case}");
    let comes_along = form.has_record && !source.has_layout();
    assert_eq!(here != server, comes_along, "{case}: {here}");
    if comes_along {
        let error = refused(&mut client, NEXT, "55000");
        assert_eq!(error.message(), "the layout of this server is not the layout of this database", "{case}");
    } else if form.has_record && source.is_ahead() {
        let error = refused(&mut client, NEXT, "55000");
        assert!(error.message().starts_with("the IDs of this database reach up to"), "{case}: {error:?}");
    } else if form.has_record {
        goes_on(&mut client, "app.orders", &orders, &case);
    } else {
        next(&mut client);
    }
}

/// Every form and source, each by one of the ways; by all of them with `ALL=1`.
#[test]
fn a_database_in_use_keeps_its_layout_and_time() {
    let target = Cluster::options().start();
    let all = variable("ALL").is_some();
    let mut case = 0;
    for source in &SOURCES {
        let from = source.start();
        for form in &FORMS {
            for (number, way) in WAYS.into_iter().enumerate() {
                if all || number == case % WAYS.len() {
                    let file = dump(&from, form, is_archive(way));
                    keeps_its_record(&target, source, form, way, &file, &format!("d{case}_{number}"));
                }
            }
            case += 1;
        }
        // So that each form comes by another way the next time.
        case += 1;
    }
}

#[test]
fn a_database_without_ids_takes_the_record_of_a_dump() {
    // A dump may be ahead by what its server had reserved.
    let target = Cluster::options().set("pg_snowflake.max_wait = '3s'").start();
    let all = variable("ALL").is_some();
    let mut case = 0;
    for source in &SOURCES {
        let from = source.start();
        for form in FORMS.iter().filter(|form| !form.options.contains(&"--clean")) {
            let brings_extension = ["all", "-t -e", "-n -e", "-s"].contains(&form.name);
            for (number, way) in WAYS.into_iter().enumerate() {
                if all || number == case % WAYS.len() {
                    let file = dump(&from, form, is_archive(way));
                    for create in [true, false].into_iter().filter(|create| *create || brings_extension) {
                        let database = format!("d{case}_{number}_{create}");
                        takes_the_record(&target, source, form, way, &file, &database, create);
                    }
                }
            }
            case += 1;
        }
        case += 1;
    }
}

/// What is dumped of a database into which the dump of another was restored is the record in use.
#[test]
fn a_dump_of_a_database_that_kept_its_record_has_it() {
    let source = &SOURCES[2];
    let (from, target) = (source.start(), Cluster::options().start());
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    let file = dump(&from, &FORMS[2], true);
    restore(&target, DATABASE, &file, Way::Archive);
    let before = read(&mut client, "sales");
    // At once, before an ID is made.
    let again = dump(&target, &FORMS[0], true);
    target.database("copy");
    target.client_of("postgres", "copy").batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    let said = restore(&target, "copy", &again, Way::ArchiveAtOnce);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    let mut copy = target.client_of("postgres", "copy");
    assert_eq!(read(&mut copy, "sales"), before);
    goes_on(&mut copy, "sales", &before.0, "the copy");
}

/// A database that was restored and has made no ID yet has rows to be read, too.
#[test]
fn a_restored_database_keeps_its_layout_before_its_first_id() {
    let (first, second, target) = (SOURCES[2].start(), SOURCES[0].start(), Cluster::options().start());
    target.client().batch_execute(&format!("CREATE DATABASE {DATABASE}")).unwrap();
    restore(&target, DATABASE, &dump(&first, &FORMS[0], true), Way::ArchiveAtOnce);
    let mut client = target.client_of("postgres", DATABASE);
    let before = (layout(&mut client), read(&mut client, "app.orders"), record(&mut client));
    client.batch_execute("ALTER TABLE app.orders SET SCHEMA public").unwrap();
    let said = restore(&target, DATABASE, &dump(&second, &FORMS[2], true), Way::Archive);
    assert_eq!(said.errors.matches("cannot be set: the layout of this database is in use").count(), 2, "{said:?}");
    assert_eq!((layout(&mut client), read(&mut client, "orders"), record(&mut client)), before);
}

/// The owner of the extension gives the record up, so that the one of a dump counts: docs/reference/errors.md says how.
#[test]
fn a_record_that_its_owner_gives_up_is_replaced() {
    let (from, target) = (SOURCES[2].start(), Cluster::options().start());
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    let file = dump(&from, &FORMS[2], true);
    client.batch_execute("DROP TABLE sales").unwrap();
    let give_up = "ALTER SEQUENCE _snowflake.layout RESTART; ALTER SEQUENCE _snowflake.epoch RESTART;
        ALTER SEQUENCE _snowflake.reservation RESTART";
    client.batch_execute(give_up).unwrap();
    refused(&mut client, NEXT, "55000");
    let said = restore(&target, DATABASE, &file, Way::Archive);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    assert!(layout(&mut client).starts_with("timestamp=41 worker=9 sequence=13"));
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "the layout of this server is not the layout of this database");
}

/// The extension is dropped, and with it the record.
#[test]
fn an_extension_that_is_created_again_keeps_nothing() {
    let (from, target) = (SOURCES[1].start(), Cluster::options().start());
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    client.batch_execute("DROP EXTENSION pg_snowflake CASCADE; CREATE EXTENSION pg_snowflake").unwrap();
    let said = restore(&target, DATABASE, &dump(&from, &FORMS[2], false), Way::ScriptAtOnce);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    assert!(layout(&mut client).ends_with("epoch=2015-01-01T00:00:00Z"));
}

/// With `-s`, and as with logical replication, the record is brought by a command of docs/backups.md.
#[test]
fn a_schema_without_data_gets_the_record_by_itself() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/backups.md")).unwrap();
    assert!(page.contains("    pg_dump --data-only -e pg_snowflake -n _snowflake old | psql new\n"));
    let (from, target) = (SOURCES[2].start(), Cluster::options().start());
    target.client().batch_execute(&format!("CREATE DATABASE {DATABASE}")).unwrap();
    restore(&target, DATABASE, &dump(&from, &FORMS[6], false), Way::ScriptAtOnce);
    let mut client = target.client_of("postgres", DATABASE);
    assert_eq!(layout(&mut client), value::<String>(&mut client, "SELECT snowflake_server_layout()"));
    let alone = form("the record", &["--data-only", "-e", "pg_snowflake", "-n", "_snowflake"], true, false);
    let said = restore(&target, DATABASE, &dump(&from, &alone, false), Way::ScriptAtOnce);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    assert_eq!(record(&mut client), record(&mut from.client_of("postgres", DATABASE)));
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "the layout of this server is not the layout of this database");
}

// Other ways to set the record.

/// The numbers of another layout.
fn other_numbers() -> (i64, i64, i64) {
    let from = SOURCES[2].start();
    record(&mut from.client_of("postgres", DATABASE))
}

/// Sets all three in a way that is not seen: as parameters.
fn set_unseen(client: &mut Client, (layout, epoch, reservation): (i64, i64, i64)) {
    for (name, number) in [("epoch", epoch), ("layout", layout), ("reservation", reservation)] {
        client.query(&format!("SELECT setval('_snowflake.{name}', $1)"), &[&number]).unwrap();
    }
}

#[test]
fn a_record_that_is_set_unseen_does_not_count_and_is_repaired() {
    let (mut numbers, target) = (other_numbers(), Cluster::options().start());
    numbers.2 += 7_200_000;
    let standby = target.standby();
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    let mut session = target.client_of("postgres", DATABASE);
    let (before, known) = (read(&mut session, "sales"), record(&mut client));
    set_unseen(&mut client, numbers);
    assert_eq!(record(&mut client).0, numbers.0);
    // Nobody reads by it, also not where nothing can be repaired.
    standby.catch_up_with(&target);
    for client in [
        &mut client,
        &mut session,
        &mut target.client_of("postgres", DATABASE),
        &mut standby.client_of("postgres", DATABASE),
    ] {
        assert_eq!(read(client, "sales"), before);
        assert!(preflight(client).contains("warning: another layout was put on record"), "{}", preflight(client));
    }
    // A crash does not change that, and neither does a copy of the database.
    target.restart(Stop::Kill);
    target.client().batch_execute(&format!("CREATE DATABASE copy TEMPLATE {DATABASE}")).unwrap();
    for database in [DATABASE, "copy"] {
        let mut client = target.client_of("postgres", database);
        assert_eq!(read(&mut client, "sales"), before);
        let log = target.log_length();
        goes_on(&mut client, "sales", &before.0, database);
        let log = target.log_since(log);
        for text in [
            "the layout of this database was replaced on record, and is set again",
            "ahead of the clock was not taken over",
        ] {
            assert_eq!(log.matches(text).count(), 1, "{log}");
        }
        let now = record(&mut client);
        assert_eq!((now.0, now.1), (known.0, known.1));
        assert!(now.2 >= known.2 && now.2 < numbers.2);
        assert!(!preflight(&mut client).contains("another layout"));
    }
}

/// Where the library is not preloaded, nothing sees the restore.
#[test]
fn a_restore_while_the_library_is_not_loaded_does_not_count() {
    let (from, target) = (SOURCES[5].start(), Cluster::options().start());
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    let before = read(&mut client, "sales");
    drop(client);
    target.stop(Stop::Fast);
    target.append("postgresql.conf", "shared_preload_libraries = ''\n");
    target.start();
    let said = restore(&target, DATABASE, &dump(&from, &FORMS[2], false), Way::Script);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    assert_eq!(read(&mut target.client_of("postgres", DATABASE), "sales"), before);
    target.stop(Stop::Fast);
    target.append("postgresql.conf", "shared_preload_libraries = 'pg_snowflake'\n");
    target.start();
    let mut client = target.client_of("postgres", DATABASE);
    assert_eq!(read(&mut client, "sales"), before);
    goes_on(&mut client, "sales", &before.0, "preloaded again");
}

/// What stays is only the record: sequences of others, other calls, and roles without the right are as ever.
#[test]
fn other_calls_of_setval_are_made() {
    let target = Cluster::options().start();
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    client.batch_execute("CREATE SEQUENCE layout; CREATE SEQUENCE reservation; CREATE ROLE clerk LOGIN").unwrap();
    client.batch_execute("SELECT setval('layout', 5), setval('public.reservation', 6, false)").unwrap();
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM layout"), 5);
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM reservation"), 6);
    let mut clerk = target.client_of("clerk", DATABASE);
    for name in ["layout", "epoch", "reservation"] {
        let statement = format!("SELECT setval('_snowflake.{name}', 1)");
        let error = clerk.batch_execute(&statement).unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{error:?}");
    }
    // The values in use may be set, and small numbers are seen, too.
    let known = record(&mut client);
    client.batch_execute(&format!("SELECT setval('_snowflake.layout', {})", known.0)).unwrap();
    for call in ["setval('_snowflake.epoch', 0)", "setval('layout', 7), setval('_snowflake.layout', 5, false)"] {
        let error = client.batch_execute(&format!("SELECT {call}")).unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert!(message.ends_with("the layout of this database is in use"), "{error:?}");
    }
    assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM layout"), 5);
    // Of what follows another layout, nothing is taken over.
    let far = "SELECT setval('_snowflake.reservation', 4000000000000)";
    client.batch_execute(far).unwrap();
    assert_eq!(record(&mut client), known);
    // Whatever number it is.
    for far in [far, "SELECT setval('_snowflake.reservation', 9223372036854775807)"] {
        let error = client.batch_execute(far).unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert!(message.ends_with("ahead of the clock: this database makes IDs"), "{error:?}");
    }
    client.batch_execute("SELECT setval('_snowflake.reservation', 0, false)").unwrap();
    assert_eq!(record(&mut client), known);
    // A function that has such a call is made without a word.
    let log = target.log_length();
    client
        .batch_execute("CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT setval(''_snowflake.epoch'', 0)'")
        .unwrap();
    assert!(!target.log_since(log).contains("in use"));
}

/// PostgreSQL reads and checks such a sequence as any other.
#[test]
fn a_sequence_that_keeps_a_number_is_an_ordinary_one() {
    let target = Cluster::options().start();
    let mut client = in_use(&target, DATABASE, &FORMS[2]);
    let before = record(&mut client);
    ["CHECKPOINT", "VACUUM", "VACUUM FULL"].iter().for_each(|query| client.batch_execute(query).unwrap());
    for name in ["layout", "epoch"] {
        let row = client.query_one(&format!("SELECT ctid::text, xmax::text FROM _snowflake.{name}"), &[]).unwrap();
        assert_eq!((row.get::<_, String>(0), row.get::<_, String>(1)), ("(0,1)".to_owned(), "0".to_owned()));
    }
    if client.batch_execute("CREATE EXTENSION amcheck").is_ok() && Installation::under_test().major() >= 14 {
        for name in ["layout", "epoch"] {
            let found = client.query(&format!("SELECT msg FROM verify_heapam('_snowflake.{name}')"), &[]);
            assert!(found.is_ok_and(|rows| rows.is_empty()), "{name}");
        }
    }
    assert_eq!(record(&mut client), before);
    // ALTER SEQUENCE gives it a new file. The next ID has it keep its number again.
    client.batch_execute("ALTER SEQUENCE _snowflake.epoch CACHE 2").unwrap();
    let (all, _) = read(&mut client, "sales");
    goes_on(&mut client, "sales", &all, "altered");
    target.restart(Stop::Fast);
    let mut client = target.client_of("postgres", DATABASE);
    let before = read(&mut client, "sales");
    goes_on(&mut client, "sales", &before.0, "altered");
    set_unseen(&mut client, (1, 5, 5));
    assert_eq!(read(&mut client, "sales").0.len(), before.0.len() + 200);
}
