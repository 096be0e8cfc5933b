//! What a database has on record about its IDs does not get in the way: an owner who is no superuser can dump and
//! restore it, a publication of all tables leaves it out, and a TRUNCATE of all tables leaves it alone. A record that
//! is lost is an error with a hint.

use postgres::Client;
use snowflake_test::check::{no_errors, refused};
use snowflake_test::dump::{self, pg_restore, psql};
use snowflake_test::programs::{Output, output};
use snowflake_test::query::{ORDERS, batch, next};
use snowflake_test::{Cluster, Installation, Options, Stop, check, ids};
use std::path::{Path, PathBuf};
use std::process::Command;

const OTHER_LAYOUT: &str = "pg_snowflake.layout = 'timestamp=41 worker=9 sequence=13'";

fn options() -> Options {
    Cluster::options().patient()
}

/// A running server without the extension, with a role `owner` that owns the database `shop`, and so may create objects
/// there.
fn server(options: Options) -> Cluster {
    let cluster = options.create();
    cluster.start();
    cluster.client().batch_execute("CREATE ROLE owner LOGIN").unwrap();
    cluster.client().batch_execute("CREATE DATABASE shop OWNER owner").unwrap();
    cluster
}

/// The same with its clock set back by some seconds. The database waits until the clock is near what it has on record.
fn server_behind() -> Cluster {
    let cluster = server(options());
    cluster.step_clock("-8s");
    cluster
}

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", "shop")
}

fn insert(client: &mut Client) -> Vec<i64> {
    ids(&client.query("INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 1000) RETURNING id", &[]).unwrap())
}

fn stored(client: &mut Client) -> Vec<i64> {
    ids(&client.query("SELECT id FROM orders ORDER BY id", &[]).unwrap())
}

/// The owner creates the extension and a table, and fills it. Returns its IDs.
fn shop_of_an_owner(cluster: &Cluster) -> Vec<i64> {
    let mut client = owner(cluster);
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    client.batch_execute(ORDERS).unwrap();
    insert(&mut client)
}

/// What a database has on record: reservation, layout, epoch; and whether IDs were made.
#[derive(Debug, PartialEq)]
struct Record(i64, i64, i64, bool);

fn record(client: &mut Client) -> Record {
    let query = "SELECT r.last_value, l.last_value, e.last_value, r.is_called \
                 FROM _snowflake.reservation r, _snowflake.layout l, _snowflake.epoch e";
    let row = client.query_one(query, &[]).unwrap();
    Record(row.get(0), row.get(1), row.get(2), row.get(3))
}

// Programs.

/// The program succeeded and wrote nothing.
#[track_caller]
fn nothing(said: &Output) {
    assert_eq!(*said, Output { output: String::new(), errors: String::new(), success: true });
}

/// The server's errors that a program wrote, without the place in the query.
fn errors(said: &Output) -> Vec<&str> {
    let messages = said.errors.lines().filter_map(|line| line.split_once("ERROR:  "));
    messages.map(|(_, message)| message.split(" at character ").next().unwrap()).collect()
}

/// A dump of the database `shop` by its owner. pg_dump writes no message.
fn dump(cluster: &Cluster, name: &str, arguments: &[&str]) -> PathBuf {
    let file = cluster.socket().join(format!("{name}.dump"));
    let mut command = cluster.program("pg_dump");
    nothing(&output(command.args(["--username=owner", "--dbname=shop", "--file"]).arg(&file).args(arguments)));
    file
}

const CUSTOM: &[&str] = &["--format=custom"];

/// `pg_restore` of a file into `shop`.
fn restore(cluster: &Cluster, role: &str, file: &Path) -> Command {
    let mut command = pg_restore(cluster, role, "shop");
    command.arg(file);
    command
}

/// psql with a script. It writes values without decoration, and errors in one line.
fn script(cluster: &Cluster, role: &str, database: &str, file: &Path) -> Command {
    let mut command = psql(cluster, role, database);
    command.args(["--tuples-only", "--no-align", "--set=VERBOSITY=terse", "--file"]).arg(file);
    command
}

/// The database `shop` has the old record and the old rows, and its new IDs are above the old ones.
fn goes_on(new: &Cluster, remembered: &Record, before: &[i64]) {
    let mut client = owner(new);
    let restored = record(&mut client);
    assert_eq!((restored.1, restored.2, restored.3), (remembered.1, remembered.2, true));
    assert!(restored.0 >= remembered.0, "{restored:?} {remembered:?}");
    assert_eq!(stored(&mut client), before);
    let after = insert(&mut client);
    check::rising(&[before, &after].concat());
}

// Dumps by an owner.

#[test]
fn an_owner_dumps_and_restores_an_archive() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    let remembered = record(&mut owner(&old));
    let file = dump(&old, "dump", CUSTOM);
    old.stop(Stop::Fast);

    let new = server_behind();
    nothing(&output(restore(&new, "owner", &file).arg("--exit-on-error")));
    goes_on(&new, &remembered, &before);
}

#[test]
fn an_owner_dumps_and_restores_a_script() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    let remembered = record(&mut owner(&old));
    let file = dump(&old, "dump", &[]);
    old.stop(Stop::Fast);

    let new = server_behind();
    let said = output(script(&new, "owner", "shop", &file).arg("--set=ON_ERROR_STOP=1"));
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    // The answers of set_config() and of the four calls of setval().
    let answers: Vec<&str> = said.output.lines().filter(|line| !line.is_empty()).collect();
    let Record(_, layout, epoch, _) = remembered;
    assert_eq!(answers.len(), 4, "{said:?}");
    for value in [layout, epoch] {
        assert!(answers.contains(&value.to_string().as_str()), "{said:?}");
    }
    goes_on(&new, &remembered, &before);
}

/// The database is the owner's, the extension a superuser's.
#[test]
fn an_owner_dumps_a_database_whose_extension_a_superuser_created() {
    let old = server(options());
    old.client_of("postgres", "shop").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut client = owner(&old);
    client.batch_execute(ORDERS).unwrap();
    let before = insert(&mut client);
    let remembered = record(&mut client);
    let file = dump(&old, "dump", CUSTOM);

    // The owner restores it, and so creates the extension.
    let new = server_behind();
    nothing(&output(restore(&new, "owner", &file).arg("--exit-on-error")));
    goes_on(&new, &remembered, &before);
}

/// Where a superuser has created the extension, the owner can restore all but the record: pg_restore fails, and says
/// so. A superuser can restore the record afterwards.
#[test]
fn a_restore_by_an_owner_into_the_extension_of_a_superuser_says_what_is_missing() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    let remembered = record(&mut owner(&old));
    let file = dump(&old, "dump", CUSTOM);
    old.stop(Stop::Fast);

    let new = server(options());
    new.client_of("postgres", "shop").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let said = output(&mut restore(&new, "owner", &file));
    assert!(!said.success, "{said:?}");
    assert_eq!(
        errors(&said),
        [
            "must be owner of extension pg_snowflake",
            "permission denied for sequence epoch",
            "permission denied for sequence layout",
            "permission denied for sequence reservation",
            "permission denied for sequence since",
        ],
        "{}",
        said.errors
    );
    assert!(!record(&mut owner(&new)).3, "nothing of the record came over");
    assert_eq!(stored(&mut owner(&new)), before, "all else did");

    // The superuser restores what is missing from the same file.
    let (list, entries) = dump::list(&new, &file, &["SEQUENCE SET _snowflake"]);
    assert_eq!(entries, 4);
    new.step_clock("-8s");
    nothing(&output(restore(&new, "postgres", &file).args(["--exit-on-error", "--use-list"]).arg(&list)));
    goes_on(&new, &remembered, &before);
}

/// The dump is restored into the database that it came from, which has made more IDs since. The extension is dropped
/// and created.
#[test]
fn an_owner_goes_back_to_a_dump_that_cleans_up_first() {
    let cluster = server(options());
    let before = shop_of_an_owner(&cluster);
    let remembered = record(&mut owner(&cluster));
    let file = dump(&cluster, "shop", CUSTOM);
    let lost = insert(&mut owner(&cluster));
    cluster.step_clock("-8s");
    nothing(&output(restore(&cluster, "owner", &file).args(["--exit-on-error", "--clean", "--if-exists"])));
    goes_on(&cluster, &remembered, &before);
    check::rising(&[lost, insert(&mut owner(&cluster))].concat());
}

// Other dumps.

#[test]
fn a_dump_of_all_databases_is_restored_into_a_fresh_server() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    old.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let remembered = record(&mut owner(&old));
    let file = old.socket().join("dump");
    nothing(&output(old.program("pg_dumpall").arg("--file").arg(&file)));
    old.stop(Stop::Fast);

    let new = options().create();
    new.step_clock("-8s");
    new.start();
    let said = output(&mut script(&new, "postgres", "postgres", &file));
    // This is not about pg_snowflake: the new server has a superuser of that name.
    assert_eq!(errors(&said), ["role \"postgres\" already exists"], "{}", said.errors);
    assert_eq!(said.errors.lines().count(), 1, "{}", said.errors);
    goes_on(&new, &remembered, &before);
    assert_eq!(record(&mut new.client()).1, remembered.1);
}

#[test]
fn a_dump_of_one_table_needs_the_extension() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    let remembered = record(&mut owner(&old));
    let table = dump(&old, "table", &["--table=orders"]);
    let both = dump(&old, "both", &["--table=orders", "--extension=pg_snowflake"]);
    old.stop(Stop::Fast);

    let new = server_behind();
    let without = output(script(&new, "owner", "shop", &table).arg("--set=ON_ERROR_STOP=1"));
    assert_eq!(errors(&without), ["function public.snowflake_next() does not exist"], "{}", without.errors);
    let with = output(script(&new, "owner", "shop", &both).arg("--set=ON_ERROR_STOP=1"));
    assert!(with.success && with.errors.is_empty(), "{with:?}");
    goes_on(&new, &remembered, &before);
}

#[test]
fn the_schema_and_the_data_are_dumped_one_after_the_other() {
    let old = server(options());
    let before = shop_of_an_owner(&old);
    let remembered = record(&mut owner(&old));
    let schema = dump(&old, "schema", &["--schema-only"]);
    let data = dump(&old, "data", &["--data-only"]);
    old.stop(Stop::Fast);

    let new = server_behind();
    let said = |file| output(script(&new, "owner", "shop", file).arg("--set=ON_ERROR_STOP=1"));
    let after_schema = said(&schema);
    assert!(after_schema.success && after_schema.errors.is_empty(), "{after_schema:?}");
    let empty = record(&mut owner(&new));
    assert_eq!((empty.1, empty.2, empty.3), (remembered.1, remembered.2, false), "that of a new database");
    let after_data = said(&data);
    assert!(after_data.success && after_data.errors.is_empty(), "{after_data:?}");
    goes_on(&new, &remembered, &before);
}

// Publications.

/// From 19 on, sequences can be published, too: those of the record with them.
#[test]
fn a_publication_of_all_sequences_has_the_record() {
    if Installation::under_test().major() < 19 {
        return;
    }
    let publisher = Cluster::options().set("wal_level = logical").start();
    let mut client = publisher.client();
    client
        .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_snowflake; CREATE PUBLICATION p FOR ALL SEQUENCES")
        .unwrap();
    let sequences =
        "SELECT string_agg(schemaname || '.' || sequencename, ' ' ORDER BY sequencename) FROM pg_publication_sequences";
    let record = "_snowflake.epoch _snowflake.layout _snowflake.reservation";
    assert_eq!(client.query_one(sequences, &[]).unwrap().get::<_, String>(0), record);
}

/// Publishes all tables to a subscriber with this table, and returns both.
fn replicate(subscriber: Cluster, table: &str) -> (Cluster, Cluster) {
    let publisher = Cluster::options().set("wal_level = logical").start();
    let mut client = publisher.client();
    client.batch_execute(ORDERS).unwrap();
    insert(&mut client);
    client.batch_execute("CREATE PUBLICATION p FOR ALL TABLES").unwrap();
    let tables = "SELECT string_agg(schemaname || '.' || tablename, ' ') FROM pg_publication_tables";
    assert_eq!(client.query_one(tables, &[]).unwrap().get::<_, String>(0), "public.orders");

    let mut subscribed = subscriber.client();
    subscribed.batch_execute(table).unwrap();
    let host = publisher.socket().display();
    let subscription = format!("CREATE SUBSCRIPTION s CONNECTION 'host={host} user=postgres' PUBLICATION p");
    subscribed.batch_execute(&subscription).unwrap();
    let content = "SELECT count(*) || coalesce(md5(string_agg(id || note, ' ' ORDER BY id)), '') FROM orders";
    let content = |client: &mut Client| client.query_one(content, &[]).unwrap().get::<_, String>(0);
    let initial = content(&mut client);
    check::wait_for("the initial copy", || content(&mut subscribed) == initial);
    insert(&mut client);
    client.batch_execute("UPDATE orders SET note = 'm' WHERE id % 2 = 0; DELETE FROM orders WHERE id % 7 = 0").unwrap();
    let changed = content(&mut client);
    check::wait_for("the changes", || content(&mut subscribed) == changed);
    no_errors(&publisher);
    no_errors(&subscriber);
    (publisher, subscriber)
}

#[test]
fn a_publication_of_all_tables_reaches_a_subscriber_without_the_extension() {
    let subscriber = Cluster::options().not_preloaded().create();
    subscriber.start();
    replicate(subscriber, "CREATE TABLE orders (id bigint PRIMARY KEY, note text)");
}

#[test]
fn a_publication_of_all_tables_leaves_the_record_of_a_subscriber_alone() {
    let subscriber = Cluster::options().set("pg_snowflake.worker_id = 2").set(OTHER_LAYOUT).start();
    let own = record(&mut subscriber.client());
    let (publisher, subscriber) = replicate(subscriber, ORDERS);
    let mut client = subscriber.client();
    assert_eq!(record(&mut client), own);
    assert_ne!(record(&mut publisher.client()).1, own.1);
    let relations = "SELECT string_agg(srrelid::regclass::text, ' ') FROM pg_subscription_rel";
    assert_eq!(client.query_one(relations, &[]).unwrap().get::<_, String>(0), "orders");
    // The subscriber can make IDs of its own.
    assert!(next(&mut client) > 0);
}

// TRUNCATE.

const TRUNCATE_ALL: &str = "DO $$ BEGIN EXECUTE (
    SELECT 'TRUNCATE ' || string_agg(c.oid::regclass::text, ', ') || ' RESTART IDENTITY CASCADE'
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema')); END $$";

#[test]
fn a_truncate_of_everything_leaves_the_record_alone() {
    let cluster = options().start();
    let mut client = cluster.client();
    client.batch_execute(ORDERS).unwrap();
    client.batch_execute("CREATE TABLE lines (number serial, order_id bigint REFERENCES orders)").unwrap();
    let before = insert(&mut client);
    let remembered = record(&mut client);
    client.batch_execute(TRUNCATE_ALL).unwrap();
    assert!(stored(&mut client).is_empty());
    let kept = record(&mut client);
    assert_eq!((kept.1, kept.2, kept.3), (remembered.1, remembered.2, true));
    assert!(kept.0 >= remembered.0);
    let after = insert(&mut client);
    check::rising(&[before.as_slice(), &after].concat());
    client.batch_execute(TRUNCATE_ALL).unwrap();
    drop(client);

    // The layout is still checked.
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", &format!("{OTHER_LAYOUT}\n"));
    cluster.start();
    let error = refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "the layout of this server is not the layout of this database");
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", "pg_snowflake.layout = 'default'\n");
    cluster.step_clock("-8s");
    cluster.start();
    let last = insert(&mut cluster.client());
    check::rising(&[before, after, last].concat());
}

// No record.

const NEEDS_THE_RECORD: [&str; 3] =
    ["SELECT snowflake_next()", "SELECT snowflake_timestamp(1)", "SELECT snowflake_min_id(now())"];

/// Statements that put a value on record that is no layout.
const NO_RECORDS: [&str; 5] = [
    "SELECT setval('_snowflake.layout', 0)",
    "SELECT setval('_snowflake.layout', 0, false)",
    "SELECT setval('_snowflake.layout', 1)",
    "SELECT setval('_snowflake.layout', 1234567890123456789)",
    "ALTER SEQUENCE _snowflake.layout RESTART",
];

fn is_no_record(client: &mut Client, query: &str) {
    let error = refused(client, query, "55000");
    assert_eq!(error.message(), "the layout of this database is not on record");
    let hint = error.hint().unwrap();
    assert!(hint.contains("Restore both from a dump") && hint.contains("snowflake_adopt_layout()"), "{hint}");
}

#[test]
fn no_record_is_an_error_until_the_layout_is_adopted() {
    let cluster = options().start();
    let mut list = batch(&mut cluster.client(), 10);
    let remembered = record(&mut cluster.client());
    for no_record in NO_RECORDS {
        // With IDs, only its owner can give it up.
        if no_record.contains("setval") {
            let error = cluster.client().batch_execute(no_record).unwrap_err();
            let message = error.as_db_error().unwrap().message();
            assert_eq!(message, "sequence _snowflake.layout cannot be set: the layout of this database is in use");
            check::rising(&batch(&mut cluster.client(), 2));
        }
        cluster.client().batch_execute(&format!("ALTER SEQUENCE _snowflake.layout RESTART; {no_record}")).unwrap();
        let mut client = cluster.client();
        NEEDS_THE_RECORD.iter().for_each(|query| is_no_record(&mut client, query));
        client.batch_execute("SELECT snowflake_adopt_layout()").unwrap();
        let adopted = record(&mut client);
        assert_eq!((adopted.1, adopted.2, adopted.3), (remembered.1, remembered.2, true), "{no_record}");
        list.extend(batch(&mut client, 10));
        client.batch_execute("SELECT snowflake_timestamp(1), snowflake_min_id(now())").unwrap();
    }
    check::rising(&list);
}

#[test]
fn no_record_is_an_error_on_a_standby_until_the_layout_is_adopted_on_the_primary() {
    let primary = options().start();
    let standby = primary.standby();
    let mut session = standby.client();
    let decode = "SELECT snowflake_timestamp(1)";
    session.batch_execute(decode).unwrap();
    primary.client().batch_execute(NO_RECORDS[0]).unwrap();
    standby.catch_up_with(&primary);
    for client in [&mut session, &mut standby.client()] {
        for query in &NEEDS_THE_RECORD[1..] {
            is_no_record(client, query);
        }
    }
    primary.client().batch_execute("SELECT snowflake_adopt_layout()").unwrap();
    standby.catch_up_with(&primary);
    for client in [&mut session, &mut standby.client()] {
        client.batch_execute(decode).unwrap();
    }
}

// The type snowflake_id.

/// Rows go over from a column of bigint to one of the type, and from one of the type to bigint.
#[test]
fn a_publication_reaches_columns_of_the_other_type() {
    let of_type = ORDERS.replace("id bigint", "id snowflake_id");
    assert_ne!(of_type, ORDERS);
    let (publisher, subscriber) = replicate(Cluster::options().set("pg_snowflake.worker_id = 2").start(), &of_type);
    let (mut from, mut to) = (publisher.client(), subscriber.client());
    from.batch_execute("CREATE TABLE back (id snowflake_id PRIMARY KEY); INSERT INTO back VALUES (7)").unwrap();
    to.batch_execute("CREATE TABLE back (id bigint PRIMARY KEY)").unwrap();
    // Not in the transaction of another statement.
    to.batch_execute("ALTER SUBSCRIPTION s REFRESH PUBLICATION").unwrap();
    let there = "SELECT coalesce(sum(id), 0)::bigint FROM back";
    check::wait_for("the row", || to.query_one(there, &[]).unwrap().get::<_, i64>(0) == 7);
}

/// Tables, casts and partitions of the type are dumped and restored, in both formats.
#[test]
fn a_dump_has_columns_of_the_type() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE parts (id snowflake_id PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             SELECT snowflake_maintain_partitions('parts', '1 day', '1 day');
             CREATE TABLE refers (id bigint REFERENCES parts, list snowflake_id[] DEFAULT '{1,2}', zero snowflake_id DEFAULT 0);
             CREATE VIEW seen AS SELECT COALESCE(id, 0) AS id, id::numeric AS n FROM parts WHERE id > 5;
             INSERT INTO parts SELECT FROM generate_series(1, 50); INSERT INTO refers (id) SELECT id FROM parts",
        )
        .unwrap();
    let all = "SELECT md5(string_agg(concat(p.id, n, list, zero), ' ' ORDER BY p.id)) || pg_typeof(min(s.id)::snowflake_id) || count(*) \
               FROM parts p JOIN seen s USING (id) JOIN refers USING (id)";
    let before: String = client.query_one(all, &[]).unwrap().get(0);
    for format in [dump::Format::Custom, dump::Format::Plain] {
        let name = format!("{format:?}").to_lowercase();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        dump::Dump::new(&cluster, "postgres", format).restore(&cluster, &name);
        let restored: String = cluster.client_of("postgres", &name).query_one(all, &[]).unwrap().get(0);
        assert_eq!(restored, before, "{name}");
    }
}
