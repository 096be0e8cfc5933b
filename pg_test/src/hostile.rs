//! A hostile world: a database in which a role, mallory, has made objects with the names of PostgreSQL's own, in `public` and in the schemas
//! that sessions find as `"$user"`. They match better than PostgreSQL's own, wherever that would convert an operand or an argument; so a name
//! that is looked up on such a `search_path` may find hers, even behind `pg_catalog`. Each writes into the log who has run it.
//!
//! Which objects there are is taken from the catalog, for every operator, function, type and relation of `pg_catalog` whose name stands in a
//! text of this repository: a new text needs no new trap.
//!
//! How to use it: make a world in a database, run what is to be tried as its user, then look that nothing has [`sprung`].

use crate::Cluster;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a database is filled with.
const WORLD: &str = include_str!("hostile/world.sql");

/// Folders and files of the repository that have texts for PostgreSQL.
const TEXTS: [&str; 8] = ["core/src", "registry/src", "moving/src", "src", "sql", "examples", "scripts", "docs"];

/// What is no text of ours in them.
const LEFT_OUT: [&str; 4] = ["node_modules", "evidence", "bench", "target"];

/// Makes a database hostile to these users, who may be superusers: its schema `public`, and a schema with the name of each. Creates the role
/// `mallory`, where it is missing. What is there already stays as it is.
///
/// # Panics
/// Where the database has been made hostile before.
pub fn fill(cluster: &Cluster, database: &str, users: &[&str]) {
    let mut superuser = cluster.client_of("postgres", database);
    superuser
        .batch_execute(
            "SET search_path = pg_catalog, pg_temp; CREATE TEMP TABLE schemas (name name); CREATE TEMP TABLE words (word text); \
             INSERT INTO schemas VALUES ('public'); \
             DO $$ BEGIN CREATE ROLE mallory LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        )
        .unwrap();
    for user in users {
        superuser
            .batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{user}\"; INSERT INTO schemas VALUES ('{user}')"))
            .unwrap();
    }
    let words: Vec<&String> = words().iter().collect();
    superuser.execute("INSERT INTO words SELECT unnest($1::text[])", &[&words]).unwrap();
    superuser.batch_execute(WORLD).unwrap();
}

/// Has sessions of a database look for names in its hostile schemas before `pg_catalog`, as its owner can have it: there, even what matches
/// PostgreSQL's own exactly is found first. Tools of PostgreSQL's own fall into such traps, such as the commands of psql that list objects.
pub fn put_first(cluster: &Cluster, database: &str) {
    let statement = format!("ALTER DATABASE \"{database}\" SET search_path = \"$user\", public, pg_catalog");
    cluster.client().batch_execute(&statement).unwrap();
}

/// What ran as somebody else than mallory so far: each object once, with who ran it. What a statement did, the server's log says, after
/// `STATEMENT:`.
pub fn sprung(cluster: &Cluster) -> BTreeSet<String> {
    let log = cluster.log();
    log.lines().filter_map(|line| line.split_once("LOG:  sprung: ")).map(|(_, what)| what.to_owned()).collect()
}

/// The words and operators of all texts of the repository, whatever they mean there.
fn words() -> &'static BTreeSet<String> {
    static WORDS: OnceLock<BTreeSet<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut words = BTreeSet::new();
        for folder in TEXTS {
            let mut places = vec![root.join(folder)];
            while let Some(place) = places.pop() {
                match place.is_dir() {
                    true => places.extend(entries(&place)),
                    // Some are no texts.
                    false => words_of(&fs::read_to_string(&place).unwrap_or_default(), &mut words),
                }
            }
        }
        words
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| !LEFT_OUT.iter().any(|name| path.file_name().unwrap().to_str() == Some(name));
    entries.filter(is_ours).collect()
}

/// The same names in capitals are others to the catalog, and the same to PostgreSQL's parser.
fn words_of(text: &str, words: &mut BTreeSet<String>) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_operator = |c: char| "+-*/<>=~!@#%^&|`?".contains(c);
    words.extend(text.split(|c| !is_word(c)).map(str::to_ascii_lowercase));
    words.extend(text.split(|c| !is_operator(c)).map(str::to_owned));
}
