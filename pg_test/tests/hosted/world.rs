//! In a hostile world ([`snowflake_test::hostile`]): what the script makes is bound to PostgreSQL's own objects and to its own, and nothing
//! of others runs when the script does, or a function. `hostile::world` does so for the library.

use postgres::Client;
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::{Cluster, Options, hostile};

/// A hostile server.
fn world(options: Options) -> Cluster {
    let cluster = options.hostile().create();
    cluster.start();
    cluster
}

/// Makes a hostile database of the role `owner`. Sessions look names up in `pg_catalog` first, or last.
fn database(cluster: &Cluster, name: &str, first: bool) {
    create_database(cluster, name);
    if !first {
        hostile::put_first(cluster, name);
    }
}

/// A superuser who looks names up in `pg_catalog`.
fn onlooker(cluster: &Cluster, database: &str) -> Client {
    let mut client = cluster.client_of("postgres", database);
    client.batch_execute("SET search_path = pg_catalog, pg_temp").unwrap();
    client
}

/// What belongs to the extension in SQL; where that is, and what it is written in.
const OURS: &str = "SELECT 'pg_proc'::regclass::oid AS class, p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
    WHERE nspname = '_snowflake' OR proname LIKE 'snowflake\\_%'
    UNION SELECT 'pg_class'::regclass, c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = '_snowflake'
    UNION SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typname IN ('snowflake_parts', 'snowflake_id')
    UNION SELECT 'pg_class'::regclass, typrelid FROM pg_type WHERE typname IN ('snowflake_parts', 'snowflake_id')
    UNION SELECT tableoid, oid FROM pg_namespace UNION SELECT tableoid, oid FROM pg_extension UNION SELECT tableoid, oid FROM pg_language";

/// Whatever functions, sequences and types of ours depend on, and neither is ours nor PostgreSQL's own. The catalog has no
/// dependencies on the latter.
fn bound_elsewhere(client: &mut Client) -> Vec<String> {
    let query = format!(
        "WITH ours AS ({OURS})
         SELECT pg_describe_object(classid, objid, objsubid) || ' uses ' || pg_describe_object(refclassid, refobjid, refobjsubid)
         FROM pg_depend WHERE (classid, objid) IN (SELECT class, oid FROM ours) AND classid <> 'pg_namespace'::regclass
         AND classid <> 'pg_extension'::regclass AND classid <> 'pg_language'::regclass
         AND (refclassid, refobjid) NOT IN (SELECT class, oid FROM ours) ORDER BY 1"
    );
    client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

/// Functions whose body is a text, which is read when they run: those that set no `search_path`.
fn read_by_the_callers_path(client: &mut Client) -> Vec<(String, String)> {
    let query = format!(
        "SELECT p.oid::regprocedure::text, prosrc FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
         WHERE p.oid IN (SELECT oid FROM ({OURS}) AS ours WHERE class = 'pg_proc'::regclass) AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL
         AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(proconfig, '{{}}'))"
    );
    client.query(&query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Types that the grammar spells: they are not looked up.
const SPELLED: [&str; 3] = ["bigint", "integer", "boolean"];

/// What a body looks up by the `search_path`: an operator, a function without a schema, a type of a variable.
fn looked_up(body: &str) -> Vec<String> {
    let mut rest = String::new();
    for (number, part) in body.split('\'').enumerate() {
        rest.push_str(if number % 2 == 0 { part } else { "literal" });
    }
    let lines = rest.lines().map(|line| line.split("--").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    for operator in code.split(|c: char| !"+-*/<>=~!@#%^&|`?:".contains(c)).filter(|text| !text.is_empty()) {
        // An assignment, or an option of RAISE.
        if ![":=", "="].contains(&operator) {
            found.push(operator.to_owned());
        }
    }
    for (at, _) in code.match_indices('=').filter(|(at, _)| !code[..*at].ends_with(':')) {
        let option = code[..at].trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if !["MESSAGE", "DETAIL", "HINT"].contains(&option) {
            found.push("=".to_owned());
        }
    }
    for (at, _) in code.match_indices('(') {
        let name = code[..at].rsplit(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).next().unwrap_or_default();
        if !(name.starts_with("pg_catalog.") || name.starts_with("_snowflake.")) {
            found.push(format!("{name}("));
        }
    }
    let declared = code.split("DECLARE").nth(1).and_then(|rest| rest.split("BEGIN").next()).unwrap_or_default();
    for declaration in declared.split(';').filter(|text| !text.trim().is_empty()) {
        let of = declaration.split_whitespace().nth(1).unwrap_or_default();
        if !SPELLED.contains(&of) && !of.starts_with("pg_catalog.") {
            found.push(format!("type {of}"));
        }
    }
    found
}

fn nothing_is_bound_elsewhere(cluster: &Cluster, database: &str) {
    let mut client = onlooker(cluster, database);
    assert_eq!(bound_elsewhere(&mut client), [""; 0]);
    for (function, body) in read_by_the_callers_path(&mut client) {
        assert_eq!(looked_up(&body), [""; 0], "{function} has no SET search_path, and looks up names");
    }
}

fn nothing_sprung(cluster: &Cluster) {
    let sprung = hostile::sprung(cluster);
    assert!(sprung.is_empty(), "{sprung:#?}");
}

/// A call of each function that is called from elsewhere. What is no literal is cast with care.
const CALLS: [&str; 47] = [
    "SELECT snowflake_configure(2)",
    "SELECT snowflake_next()",
    "SELECT * FROM snowflake_next(300)",
    "SELECT snowflake_timestamp(5)",
    "SELECT snowflake_timestamp(5, 'sonyflake')",
    "SELECT snowflake_datacenter(5)",
    "SELECT snowflake_datacenter(5, 'twitter')",
    "SELECT snowflake_worker(5)",
    "SELECT snowflake_worker(5, 'timestamp=41 worker=9 sequence=13 tick=10ms epoch=2024-01-01T00:00:00Z')",
    "SELECT snowflake_sequence(5)",
    "SELECT snowflake_sequence(5, 'twitter')",
    "SELECT (snowflake_decode(5)).*",
    "SELECT (snowflake_decode(5, 'discord')).*",
    "SELECT snowflake_encode('2026-01-01', 3, 4)",
    "SELECT snowflake_encode('2026-01-01', 3, 4, 5, 'twitter')",
    "SELECT * FROM snowflake_layouts()",
    "SELECT snowflake_database_layout()",
    "SELECT snowflake_min_id('2026-01-01')",
    "SELECT snowflake_min_id('2026-01-01', 'twitter')",
    "SELECT snowflake_max_id('2026-01-01')",
    "SELECT snowflake_max_id('2026-01-01', 'baidu')",
    "SELECT snowflake_max_id_before('2026-01-01')",
    "SELECT snowflake_max_id_before('2026-01-01', 'baidu')",
    "SELECT snowflake_between(5, '2026-01-01', '2027-01-01')",
    "SELECT snowflake_between(5, '2026-01-01', '2027-01-01', 'baidu')",
    "SELECT snowflake_age(5)",
    "SELECT snowflake_age(5, 'instagram')",
    "SELECT snowflake_to_text(5, 'base58')",
    "SELECT snowflake_from_text('zzz', 'base36')",
    "SELECT snowflake_time_encoder('2026-01-01')",
    "SELECT snowflake_time_decoder('0264905529753600000')",
    "SELECT snowflake_create_partitions('events', '1 day', '2026-01-01', '2026-01-04')",
    "SELECT snowflake_create_partitions('events', '1 day', '2026-01-02', '2026-01-06')",
    "SELECT snowflake_declare_keys('events', '-infinity') AS partition",
    "CALL snowflake_partition_default_rows('events', '1 day')",
    "SELECT * FROM snowflake_maintain_partitions('events', '1 day', '1 day', '1 day', dry_run => true)",
    "SELECT * FROM snowflake_maintain_partitions('events', '1 day', '2 days', '1 day', 'drop')",
    "SELECT snowflake_status()",
    "SELECT * FROM snowflake_preflight('twitter', '2010-01-01', 3, 2, true, 5.5, 30, true, '2005-01-01')",
    "SELECT * FROM snowflake_preflight(keys => '{keys, identities}')",
    "SELECT * FROM snowflake_adopt_plan('keys') AS partition",
    "SELECT * FROM snowflake_adopt('keys') AS partition; SELECT * FROM snowflake_release_plan('keys')",
    "SELECT snowflake_release('keys') AS partition",
    "SELECT * FROM snowflake_adopt('identities') AS partition",
    "SELECT snowflake_release('identities') AS partition",
    // Errors are made of texts, too.
    "SELECT snowflake_next(-1)",
    "SELECT snowflake_from_text('?', 'hex')",
];

/// By these, operators of the functions' arguments are looked up as well.
const TABLES: &str = "CREATE TABLE events (id bigint, note integer) PARTITION BY RANGE (id);
    CREATE TABLE events_rest PARTITION OF events DEFAULT;
    CREATE INDEX ON events (id);
    INSERT INTO events VALUES (600000000000000000, 1), (700000000000000000, 2);
    CREATE TABLE keys (id bigserial PRIMARY KEY, note integer);
    INSERT INTO keys (note) VALUES (1);
    CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note integer)";

/// Every function is called, with hostile names first on the path.
fn call_all(cluster: &Cluster, database: &str) {
    let functions = "SELECT DISTINCT proname::text FROM pg_proc WHERE proname LIKE 'snowflake\\_%'";
    for row in onlooker(cluster, database).query(functions, &[]).unwrap() {
        let name: String = row.get(0);
        assert!(CALLS.iter().any(|call| call.contains(&format!("{name}("))), "{name} is not called");
    }
    for user in ["owner", "postgres"] {
        let mut client = cluster.client_of(user, database);
        client.batch_execute("SET search_path = owner, postgres, public, pg_catalog").unwrap();
        if user == "owner" {
            client.batch_execute(TABLES).unwrap();
        }
        for call in CALLS {
            let called = client.batch_execute(call);
            let is_refused =
                call.contains("-1") || call.contains('?') || user == "postgres" && call.contains("partition");
            assert_eq!(called.is_err(), is_refused, "{user}: {call}: {called:?}");
            let sprung = hostile::sprung(cluster);
            assert!(sprung.is_empty(), "{user}: {call}: {sprung:?}");
        }
    }
}

#[test]
fn the_script_and_its_update() {
    let cluster = world(hosted::options());
    for (name, first) in [("behind", true), ("before", false)] {
        database(&cluster, name, first);
        run_script(&cluster, name);
        nothing_is_bound_elsewhere(&cluster, name);
        call_all(&cluster, name);
        // Once more, as an update.
        run_script(&cluster, name);
        nothing_is_bound_elsewhere(&cluster, name);
        nothing_sprung(&cluster);
    }
}

#[test]
fn an_extension_of_the_script() {
    let cluster = world(hosted::options().on(hosted::installation()));
    database(&cluster, DATABASE, true);
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("CREATE EXTENSION pg_snowflake VERSION '1'").unwrap();
    nothing_is_bound_elsewhere(&cluster, DATABASE);
    owner.batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();
    nothing_is_bound_elsewhere(&cluster, DATABASE);
    nothing_sprung(&cluster);
    call_all(&cluster, DATABASE);
}

/// What the script of 0.2.0 was bound to is let go of by an update.
#[test]
fn an_update_mends_what_an_earlier_script_was_bound_to() {
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, DATABASE);
    // That of the world returns NULL, with which the script of 0.2.0 could not be run.
    let trap = "CREATE ROLE mallory; \
                CREATE FUNCTION public.trap(float8, integer) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN \
                    IF current_user <> 'mallory' THEN RAISE LOG 'sprung: as %', current_user; END IF; RETURN $1 * $2::float8; END $$; \
                ALTER FUNCTION public.trap OWNER TO mallory; \
                CREATE OPERATOR public.* (FUNCTION = public.trap, LEFTARG = float8, RIGHTARG = integer)";
    cluster.client_of("postgres", DATABASE).batch_execute(trap).unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute(&hosted::first_released()).unwrap();
    let bound = bound_elsewhere(&mut onlooker(&cluster, DATABASE)).join("\n");
    assert!(
        bound.contains("function _snowflake.clock(bigint[]) uses operator public.*(double precision,integer)"),
        "{bound}"
    );
    run_script(&cluster, DATABASE);
    nothing_is_bound_elsewhere(&cluster, DATABASE);
    owner.batch_execute("SELECT snowflake_configure(1); SELECT snowflake_next(), snowflake_min_id(now())").unwrap();
    nothing_sprung(&cluster);
}

/// What looks a function or an operator up is found, so that the tests above mean something.
#[test]
fn names_are_found_in_bodies() {
    let careful = "DECLARE a bigint := pg_catalog.f(1); BEGIN RAISE x USING HINT = 'a + b'; RETURN a; END";
    assert_eq!(looked_up(careful), [""; 0]);
    for (body, found) in [
        ("BEGIN RETURN a + 1; END", "+"),
        ("BEGIN IF a = 1 THEN END", "="),
        ("BEGIN RETURN f(1); END", "f("),
        ("DECLARE a text; BEGIN END", "type text"),
        ("BEGIN RETURN a::text; END", "::"),
    ] {
        assert_eq!(looked_up(body), [found], "{body}");
    }
}
