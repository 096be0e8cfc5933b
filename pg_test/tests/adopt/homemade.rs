//! Keys of functions that many have copied: Instagram's, and Mastodon's. As examples/moving-in says,
//! with a layout of their form the keys keep their times.

use postgres::Client;
use snowflake_test::hosted::{self, DATABASE};
use snowflake_test::{Cluster, value};

/// As Instagram published it, but for the epoch, which everybody chooses for himself.
const INSTAGRAM: &str = "CREATE SEQUENCE table_id_seq;
    CREATE FUNCTION next_id(OUT result bigint) LANGUAGE plpgsql AS $$
    DECLARE
        our_epoch bigint := 1546300800000;
        seq_id bigint;
        now_millis bigint;
        shard_id int := 5;
    BEGIN
        SELECT nextval('table_id_seq') % 1024 INTO seq_id;
        SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
        result := (now_millis - our_epoch) << 23;
        result := result | (shard_id << 10);
        result := result | (seq_id);
    END $$;
    CREATE TABLE keys (id bigint PRIMARY KEY DEFAULT next_id(), made timestamptz DEFAULT clock_timestamp())";

/// As Mastodon has it.
const MASTODON: &str = "CREATE SEQUENCE keys_id_seq;
    CREATE FUNCTION timestamp_id(table_name text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        time_part bigint;
        sequence_base bigint;
        tail bigint;
    BEGIN
        time_part := ((date_part('epoch', clock_timestamp()) * 1000))::bigint << 16;
        sequence_base := ('x' || substr(md5(table_name || 'secret' || time_part::text), 1, 4))::bit(16)::bigint;
        tail := ((sequence_base + nextval(table_name || '_id_seq')) & 65535);
        RETURN time_part | tail;
    END $$;
    CREATE TABLE keys (id bigint PRIMARY KEY DEFAULT timestamp_id('keys'), made timestamptz DEFAULT clock_timestamp())";

/// Each with the layout that examples/moving-in names, and its call in a default.
const FORMS: [(&str, &str, &str); 2] = [
    (INSTAGRAM, "timestamp=40 worker=13 sequence=10 tick=1ms epoch=2019-01-01T00:00:00Z", "public.next_id()"),
    (
        MASTODON,
        "timestamp=47 worker=6 sequence=10 tick=1ms epoch=1970-01-01T00:00:00Z",
        "public.timestamp_id('keys'::text)",
    ),
];

/// Adopts keys of the function: all have the times of their rows, and the plan says who could make an
/// ID again.
fn adopts(client: &mut Client, function: &str, call: &str, whom: &str) {
    client.batch_execute(function).unwrap();
    client.batch_execute("INSERT INTO keys SELECT FROM generate_series(1, 500)").unwrap();
    client.batch_execute("SELECT pg_sleep(0.01)").unwrap();
    let note = |client: &mut Client, like: &str| -> String {
        let query = "SELECT note FROM snowflake_adopt_plan('keys') WHERE kind = 'note' AND note LIKE $1";
        client.query_one(query, &[&like]).unwrap().get(0)
    };
    let times = note(client, "public.keys.id has values from %");
    assert!(
        times.contains(&format!("Their times are true only if {call} makes IDs of this database's layout:")),
        "{times}"
    );
    let again = note(client, "clients that still call %");
    assert_eq!(
        again,
        format!(
            "clients that still call {call} for public.keys.id can make an ID again that this {whom} has made, if that \
             has its worker ID: let nobody call it, or give this {whom} another number"
        )
    );
    client.batch_execute("SELECT * FROM snowflake_adopt('keys')").unwrap();
    client.batch_execute("INSERT INTO keys SELECT FROM generate_series(1, 500)").unwrap();
    let wrong = "SELECT count(*) FROM keys WHERE snowflake_timestamp(id) NOT BETWEEN made - interval '1 s' AND made + interval '1 s'";
    assert_eq!(value::<i64>(client, wrong), 0);
    assert_eq!(value::<i64>(client, "SELECT count(*) FROM keys"), 1000);
}

#[test]
fn keys_keep_their_times() {
    for (function, layout, call) in FORMS {
        let cluster =
            Cluster::options().set(&format!("pg_snowflake.layout = '{layout}'\npg_snowflake.worker_id = 6")).start();
        adopts(&mut cluster.client(), function, call, "server");
    }
}

#[test]
fn keys_keep_their_times_in_the_extension_in_sql() {
    for (function, layout, call) in FORMS {
        let cluster = hosted::options().create();
        cluster.start();
        hosted::create_database(&cluster, DATABASE);
        hosted::run_script(&cluster, DATABASE);
        let mut owner = cluster.client_of("owner", DATABASE);
        owner.query(&format!("SELECT snowflake_configure(6, layout => '{layout}')"), &[]).unwrap();
        adopts(&mut owner, function, call, "database");
    }
}

/// Keys that clients made themselves could be IDs, too. Those that were only counted could not.
#[test]
fn keys_of_clients() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE given (id bigint PRIMARY KEY); INSERT INTO given SELECT snowflake_min_id('2025-01-01') + n FROM generate_series(1, 9) n; \
             CREATE TABLE counted (id bigint PRIMARY KEY); INSERT INTO counted SELECT n FROM generate_series(1, 9) n",
        )
        .unwrap();
    let mut notes = |table: &str| -> String {
        let query = format!("SELECT string_agg(note, E'\\n') FROM snowflake_adopt_plan('{table}') WHERE kind = 'note'");
        value(&mut client, &query)
    };
    let of_clients = notes("given");
    assert!(
        of_clients.contains("Their times are true only if they are IDs of this database's layout:"),
        "{of_clients}"
    );
    assert!(
        of_clients.contains("clients that go on making values of public.given.id can make an ID again"),
        "{of_clients}"
    );
    let counted = notes("counted");
    assert!(counted.contains("They have no true times:") && !counted.contains("again"), "{counted}");
}
