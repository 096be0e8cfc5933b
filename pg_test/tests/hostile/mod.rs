//! Tables of an attacker, of which others take care: superusers, the owner of the database, their jobs. Every function that takes a
//! table is called over a schema in which everything has code ([`SCHEMA`]). None of it may run as the caller.

mod bindings;
mod extension;
mod roles;
mod shown;
mod world;

use postgres::Client;
use snowflake_test::Cluster;
use snowflake_test::check::refused;
use snowflake_test::query::value;

const SCHEMA: &str = include_str!("schema.sql");

/// What is in the schema, each with a word that its code says.
const TRAPS: [&str; 12] = [
    "default",
    "domain",
    "generated column",
    "check",
    "operator",
    "cast",
    "index",
    "predicate",
    "predicate of an heir",
    "policy",
    "view",
    "trigger",
];

/// A server with a database `prey` of the role `landlord`, in which mallory may create objects. The landlord is a member of her
/// role, and so may do to her tables whatever she may.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    cluster
        .client()
        .batch_execute("CREATE ROLE landlord LOGIN; CREATE ROLE mallory LOGIN; GRANT mallory TO landlord")
        .unwrap();
    cluster.client().batch_execute("CREATE DATABASE prey OWNER landlord").unwrap();
    cluster.client_of("postgres", "prey").batch_execute("GRANT CREATE ON DATABASE prey TO mallory").unwrap();
    cluster.client_of("landlord", "prey").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    cluster
}

fn prey() -> Cluster {
    let cluster = server();
    cluster.client_of("mallory", "prey").batch_execute(SCHEMA).unwrap();
    cluster
}

/// What ran as somebody else than mallory.
fn sprung(cluster: &Cluster) -> Vec<String> {
    cluster.log().lines().filter(|line| line.contains("LOG:  sprung: ")).map(str::to_owned).collect()
}

/// Whether a piece of code ran at all.
fn ran(cluster: &Cluster, kind: &str) -> bool {
    cluster.log().contains(&format!("LOG:  ran: {kind};"))
}

/// All calls that concern tables.
const CALLS: [&str; 36] = [
    "SELECT count(*) FROM snowflake_preflight(keys => '{evil.orders,evil.events,evil.heirs,evil.lines}')",
    "SELECT count(*) FROM snowflake_create_partitions('evil.events', '1 day', '2026-01-01', '2026-01-04')",
    "SELECT count(*) FROM snowflake_declare_keys('evil.events', '-infinity')",
    "SELECT count(*) FROM snowflake_maintain_partitions('evil.events', '1 day', '1 day', '1 day', 'drop')",
    OF_DEFAULT_ROWS[0],
    OF_DEFAULT_ROWS[1],
    OF_DEFAULT_ROWS[2],
    OF_DEFAULT_ROWS[3],
    OF_DEFAULT_ROWS[4],
    OF_DEFAULT_ROWS[5],
    OF_DEFAULT_ROWS[6],
    OF_DEFAULT_ROWS[7],
    OF_DEFAULT_ROWS[8],
    "SELECT count(*) FROM _snowflake.family_of('evil.events')",
    "SELECT _snowflake.triggers('evil.events', 8, NULL)",
    "SELECT _snowflake.is_plain_partition('evil.events', 'evil.events_default')",
    "SELECT _snowflake.privileges('evil.events'::regclass, 'evil.events_default'::regclass)",
    "SELECT count(*) FROM snowflake_adopt_plan('evil.orders')",
    "SELECT count(*) FROM snowflake_adopt_plan('evil.orders', 'id', 'recreate')",
    "SELECT count(*) FROM snowflake_adopt_all_plan('{evil.orders, evil.plain}', 'recreate')",
    "SELECT count(*) FROM snowflake_adopt('evil.orders')",
    "SELECT count(*) FROM snowflake_adopt('evil.orders', views => 'recreate')",
    "SELECT count(*) FROM snowflake_release_plan('evil.orders')",
    "SELECT snowflake_release('evil.orders', start => 1000)",
    "SELECT count(*) FROM snowflake_adopt('evil.orders', 'id')",
    "SELECT snowflake_release('evil.orders')",
    "SELECT count(*) FROM snowflake_release_plan('evil.events', start => 1)",
    "SELECT snowflake_release('evil.events')",
    "SELECT count(*) FROM snowflake_adopt_plan('evil.events')",
    "SELECT count(*) FROM snowflake_adopt('evil.events')",
    "SELECT snowflake_release('evil.plain', identity => true)",
    "SELECT count(*) FROM snowflake_adopt('evil.plain')",
    "SELECT count(*) FROM snowflake_release_plan('evil.plain')",
    "SELECT snowflake_release('evil.plain')",
    "SELECT count(*) FROM snowflake_adopt_all('{evil.orders, evil.plain}', 'recreate')",
    "SELECT snowflake_rewind(0)",
];

/// These run as their caller, so for the owner only.
const OF_DEFAULT_ROWS: [&str; 9] = [
    "CALL snowflake_partition_default_rows('evil.events', '1 day')",
    "SELECT _snowflake.partition_default_rows('evil.events', '1 day', false, 0)",
    "SELECT _snowflake.check_default_partition('evil.events', 'evil.events_default')",
    "SELECT count(*) FROM snowflake_maintain_partitions('evil.events', '1 day', '1 day', default_rows => 'move')",
    "SELECT _snowflake.hold('evil.events')",
    "SELECT _snowflake.lowest_key('evil.events', 'id', 0, 1)",
    "SELECT count(*) FROM _snowflake.count_keys('evil.events', 'id', 0, 1)",
    "SELECT _snowflake.known_from('evil.events', NULL)",
    "SELECT _snowflake.mark('evil.events', 0, NULL)",
];

/// Those that do not succeed: of tables of others; views are in the way; rows are above, and only a superuser may.
const REFUSED: [(&str, &[&str]); 6] = [
    (OF_DEFAULT_ROWS[0], &["42501"]),
    (OF_DEFAULT_ROWS[1], &["42501"]),
    (OF_DEFAULT_ROWS[2], &["42501"]),
    (OF_DEFAULT_ROWS[3], &["42501"]),
    ("SELECT count(*) FROM snowflake_adopt('evil.orders')", &["55000"]),
    ("SELECT snowflake_rewind(0)", &["55000", "42501"]),
];

fn calls(cluster: &Cluster, caller: &str) {
    let mut client = cluster.client_of(caller, "prey");
    // Only a superuser can create one, but its function may be anybody's.
    let mut superuser = cluster.client_of("postgres", "prey");
    superuser.batch_execute("CREATE EVENT TRIGGER trap ON ddl_command_end EXECUTE FUNCTION evil.on_ddl()").unwrap();
    for call in CALLS {
        match (client.query(call, &[]), REFUSED.iter().find(|(refused, _)| *refused == call)) {
            (Ok(_), None) => {}
            (Err(error), Some((_, states))) if states.contains(&error.code().unwrap().code()) => {}
            (result, _) => panic!("{caller}: {call}: {result:?}"),
        }
        assert_eq!(sprung(cluster), [""; 0], "{caller}: {call}");
        let settings = "SELECT current_setting('search_path') || current_setting('application_name')";
        assert_eq!(value::<String>(&mut client, settings), "\"$user\", public", "{caller}: {call}");
    }
    superuser.batch_execute("DROP EVENT TRIGGER trap").unwrap();
}

/// The traps work: whoever reads and changes the tables by PostgreSQL's own statements runs into them.
#[test]
fn the_traps_are_set() {
    let cluster = prey();
    assert_eq!(sprung(&cluster), [""; 0]);
    let mut client = cluster.client_of("postgres", "prey");
    client
        .batch_execute(
            "SELECT min(id) FROM evil.orders; INSERT INTO evil.orders DEFAULT VALUES; UPDATE evil.orders SET n = 3; \
             TABLE evil.view; TABLE evil.orders",
        )
        .unwrap();
    let found = sprung(&cluster).join("\n");
    for kind in ["default", "domain", "generated column", "check", "predicate", "view", "trigger", "operator", "cast"] {
        assert!(found.contains(&format!("sprung: {kind} as postgres")), "{kind}: {found}");
    }
    TRAPS.iter().for_each(|kind| assert!(ran(&cluster, kind) || *kind == "policy", "{kind} never ran"));
}

#[test]
fn nothing_runs_as_the_superuser_who_calls() {
    let cluster = prey();
    calls(&cluster, "postgres");
    // Not for lack of anything to run.
    for kind in ["check", "predicate", "check of an heir", "check of a referring table", "materialized view", "domain"]
    {
        assert!(ran(&cluster, kind), "{kind} never ran");
    }
    belongs_to_mallory(&cluster);
}

#[test]
fn nothing_runs_as_the_owner_of_the_database_who_calls() {
    let cluster = prey();
    calls(&cluster, "landlord");
    belongs_to_mallory(&cluster);
}

/// What was made belongs to whom the table belongs: else, autovacuum would run its expressions as the caller.
fn belongs_to_mallory(cluster: &Cluster) {
    let mut client = cluster.client_of("postgres", "prey");
    let others =
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'evil'::regnamespace AND relowner <> 'mallory'::regrole";
    assert_eq!(value::<i64>(&mut client, others), 0);
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'evil.events'::regclass";
    // The default one, the present day and the next; those of January are gone.
    assert_eq!(value::<i64>(&mut client, partitions), 3);
    // Before 14.3, PostgreSQL's own maintenance ran code of others as its caller: CVE-2022-1552.
    let version: i32 = value(&mut client, "SELECT current_setting('server_version_num')::integer");
    if version >= 140_003 {
        client.batch_execute("VACUUM ANALYZE").unwrap();
        client.batch_execute("REINDEX DATABASE prey").unwrap();
    }
    assert_eq!(sprung(cluster), [""; 0]);
}

/// A function that is added and takes a table must be among the calls.
#[test]
fn all_functions_that_take_tables_are_called() {
    let cluster = server();
    let functions: Vec<String> = cluster
        .client_of("postgres", "prey")
        .query(
            "SELECT DISTINCT proname::text FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid \
             JOIN pg_extension e ON refobjid = e.oid AND deptype = 'e' AND extname = 'pg_snowflake' \
             WHERE proargtypes::oid[] && ARRAY['regclass', 'regclass[]', 'oid', 'oid[]', 'regproc', 'name']::regtype[]::oid[]",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(functions.len() >= 6, "{functions:?}");
    for function in functions {
        assert!(CALLS.iter().any(|call| call.contains(&format!("{function}("))), "{function} is not called");
    }
}

fn obstacle(client: &mut Client, call: &str, part: &str) {
    let error = refused(client, call, "55000");
    let detail = error.detail().unwrap_or_default();
    assert!(detail.contains(part), "{error:?}");
}

/// A statement on a table makes foreign keys again, and reads the tables of others for that.
#[test]
fn tables_of_others_at_the_other_end_of_a_foreign_key_are_refused() {
    let cluster = prey();
    let mut client = cluster.client_of("postgres", "prey");
    client
        .batch_execute(
            "CREATE TABLE public.parents (id serial PRIMARY KEY); INSERT INTO parents DEFAULT VALUES; \
             GRANT REFERENCES, SELECT ON parents TO mallory; GRANT USAGE ON SCHEMA public TO mallory",
        )
        .unwrap();
    let spy = "CREATE TABLE evil.spy (parent_id integer REFERENCES public.parents, CHECK (evil.num('check', parent_id) > 0)); \
               CREATE INDEX ON evil.spy (parent_id) WHERE evil.yes('predicate'); INSERT INTO evil.spy VALUES (1); \
               CREATE TABLE evil.target (id serial PRIMARY KEY); INSERT INTO evil.target DEFAULT VALUES; \
               CREATE INDEX ON evil.target (id) WHERE evil.yes('predicate'); GRANT REFERENCES, SELECT ON evil.target TO PUBLIC";
    cluster.client_of("mallory", "prey").batch_execute(spy).unwrap();
    let belongs = "evil.spy to mallory: a statement on both would run functions of one as the other";
    obstacle(&mut client, "SELECT snowflake_adopt('parents')", belongs);
    client.batch_execute("SELECT * FROM snowflake_adopt_plan('parents')").unwrap();
    // Of its own table, the superuser runs into it by himself.
    let before = sprung(&cluster).len();
    client.batch_execute("CREATE TABLE public.children (id integer REFERENCES evil.target)").unwrap();
    client.batch_execute("SELECT * FROM snowflake_adopt_plan('evil.target')").unwrap();
    obstacle(
        &mut client,
        "SELECT snowflake_adopt('evil.target')",
        "evil.target belongs to mallory, and public.children to postgres",
    );
    assert_eq!(sprung(&cluster).len(), before);
    // Of the table at the other end, only a partition is hers.
    client
        .batch_execute(
            "CREATE TABLE public.regions (id integer PRIMARY KEY) PARTITION BY RANGE (id); \
             CREATE TABLE evil.region PARTITION OF regions DEFAULT; INSERT INTO regions VALUES (1); \
             CREATE TABLE public.shops (id integer PRIMARY KEY REFERENCES regions); INSERT INTO shops VALUES (1); \
             ALTER TABLE evil.region OWNER TO mallory",
        )
        .unwrap();
    cluster
        .client_of("mallory", "prey")
        .batch_execute("CREATE INDEX ON evil.region (id) WHERE evil.yes('predicate')")
        .unwrap();
    obstacle(
        &mut client,
        "SELECT snowflake_adopt('shops')",
        "public.shops belongs to postgres, and evil.region to mallory",
    );
    assert_eq!(sprung(&cluster).len(), before);
}

/// Partitions and heirs of another owner, one of whom may be the caller.
#[test]
fn a_tree_of_several_owners_is_refused_and_not_read() {
    let cluster = prey();
    let mut client = cluster.client_of("postgres", "prey");
    client
        .batch_execute(
            "CREATE TABLE public.mixed (id bigint PRIMARY KEY) PARTITION BY RANGE (id); \
             CREATE TABLE evil.rest PARTITION OF public.mixed DEFAULT PARTITION BY RANGE (id); \
             CREATE TABLE evil.rest_of_it PARTITION OF evil.rest DEFAULT; \
             ALTER TABLE evil.rest_of_it OWNER TO mallory",
        )
        .unwrap();
    cluster
        .client_of("mallory", "prey")
        .batch_execute(
            "CREATE INDEX ON evil.rest_of_it (id) WHERE evil.yes('predicate'); \
             ALTER TABLE evil.rest_of_it ADD CHECK (evil.num('check', id) IS NOT NULL)",
        )
        .unwrap();
    client.batch_execute("SELECT * FROM snowflake_adopt_plan('mixed')").unwrap();
    obstacle(
        &mut client,
        "SELECT snowflake_adopt('mixed')",
        "public.mixed belongs to postgres, and evil.rest_of_it to mallory",
    );
    let key = "SELECT finding FROM snowflake_preflight(keys => '{mixed}') WHERE subject = 'key'";
    let finding: String = value(&mut client, key);
    assert!(finding.contains("belong to several roles"), "{finding}");
    // PostgreSQL reads the constraints of each table of the default partition as the owner of the table: it would run what is constant in them.
    let create = "SELECT count(*) FROM snowflake_create_partitions('mixed', '1 day', '2026-01-01', '2026-01-03')";
    let error = refused(&mut client, create, "42501");
    assert_eq!(error.message(), "table evil.rest_of_it belongs to role mallory, and table public.mixed does not");
    let maintain = "SELECT * FROM snowflake_maintain_partitions('mixed', '1 day', '1 day', dry_run => true)";
    refused(&mut client, maintain, "42501");
    assert_eq!(sprung(&cluster), [""; 0]);
}

/// Nor do rows show, to whom row-level security hides them.
#[test]
fn what_a_role_may_not_read_it_is_not_told() {
    let cluster = prey();
    cluster.client().batch_execute("CREATE ROLE analyst LOGIN").unwrap();
    let key = "SELECT finding FROM snowflake_preflight(keys => '{evil.plain}') WHERE subject = 'key'";
    let told = |what: &str| {
        let finding: String = value(&mut cluster.client_of("analyst", "prey"), key);
        assert!(finding.contains(what), "{finding}");
    };
    told("may not be read");
    let mut mallory = cluster.client_of("mallory", "prey");
    mallory.batch_execute("INSERT INTO evil.plain VALUES (77); GRANT SELECT ON evil.plain TO analyst").unwrap();
    told("77");
    mallory.batch_execute("ALTER TABLE evil.plain ENABLE ROW LEVEL SECURITY").unwrap();
    told("may not be read");
}
