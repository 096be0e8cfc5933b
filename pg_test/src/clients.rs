//! A server for the programs in `examples/`. It counts the INSERT statements that it executes, COPY included: clients that send
//! many rows as one statement and those that send a statement for each look alike otherwise.

use crate::{Cluster, Options, hostile};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

/// Makes `test.insert_statements()`, which returns how many INSERT statements were executed since its last call, in tables
/// that were created since.
const COUNTED: &str = "
    CREATE SCHEMA test;
    CREATE SEQUENCE test.inserts MINVALUE 0 START 0;
    CREATE FUNCTION test.count_insert() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS
        $$ BEGIN PERFORM nextval('test.inserts'); RETURN NULL; END $$;
    CREATE FUNCTION test.insert_statements() RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog AS
        $$ DECLARE n bigint := nextval('test.inserts'); BEGIN PERFORM setval('test.inserts', 0, false); RETURN n; END $$;
    CREATE FUNCTION test.count_inserts() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
        DECLARE created regclass;
        BEGIN
            FOR created IN
                SELECT objid FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE TABLE'
            LOOP
                EXECUTE format('CREATE TRIGGER inserts AFTER INSERT ON %s EXECUTE FUNCTION test.count_insert()', created);
            END LOOP;
        END $$;
    CREATE EVENT TRIGGER count_inserts ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
        EXECUTE FUNCTION test.count_inserts();";

/// Not the default one, so that an example which takes that for granted fails.
const LAYOUT: &str = "pg_snowflake.layout = 'timestamp=39 worker=12 sequence=12 tick=10ms epoch=2023-01-01T00:00:00Z'";

/// A server that counts INSERT statements in the database `postgres`. Databases that a program creates
/// have the extension, too. It listens on the loopback as well, as not every client knows sockets.
pub fn server() -> Cluster {
    counting(Cluster::options())
}

/// The same, where the world is [hostile](crate::hostile).
pub fn hostile_server() -> Cluster {
    counting(Cluster::options().hostile())
}

fn counting(options: Options) -> Cluster {
    let cluster = options.set(LAYOUT).listening().start();
    cluster.client().batch_execute(COUNTED).unwrap();
    cluster.client_of("postgres", "template1").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    cluster
}

/// No statement that stands in an example ran code of others, on a [`hostile_server`].
///
/// # Panics
/// Where one did, with the statement.
pub fn check_statements(server: &Cluster) {
    let mut careless = hostile::sprung(server);
    careless.retain(|found| found.split_once(": ").is_some_and(|(_, statement)| is_ours(statement)));
    assert_eq!(careless, BTreeSet::new());
}

/// Whether a statement stands in an example, and was not made by a library. Those of libraries are theirs.
fn is_ours(statement: &str) -> bool {
    static SOURCES: LazyLock<String> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let mut places = vec![folder];
        let mut sources = String::new();
        while let Some(place) = places.pop() {
            match place.is_dir() {
                true => places.extend(hostile::entries(&place)),
                false => sources.push_str(&words(&std::fs::read_to_string(place).unwrap_or_default())),
            }
        }
        sources
    });
    // What a driver puts in place of a parameter, and the rest of the line, are not compared.
    let statement = words(statement);
    let beginning: String = statement.chars().take_while(|&c| c != '$').take(40).collect();
    SOURCES.contains(beginning.trim())
}

/// The words of a text, with one blank between two.
fn words(text: &str) -> String {
    text.split_whitespace().flat_map(|word| [word, " "]).collect()
}
