//! A hostile world: a database in which a role, mallory, has made objects with the names of PostgreSQL's own, in `public` and in the schemas
//! that sessions find as `"$user"`. They match better than PostgreSQL's own, wherever that would convert an operand or an argument; so a name
//! that is looked up on such a `search_path` may find hers, even behind `pg_catalog`. Each writes into the log who has run it.
//!
//! Which objects there are is taken from the catalog, for every operator, function, type and relation of `pg_catalog` whose name stands in a
//! text of this repository: a new text needs no new trap.
//!
//! How to use it: [`Options::hostile`](crate::Options::hostile) makes a server whose databases are all such worlds; [`fill`] makes one of a
//! database. Run there what is to be tried, then look that nothing has [`sprung`]. [`put_first`] makes it worse.

use crate::programs::Installation;
use crate::{Cluster, Stop};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// What a database is filled with.
const WORLD: &str = include_str!("hostile/world.sql");

/// To whom `"$user"` is hostile, beside `public`: the role that owns databases in tests.
const USERS: [&str; 1] = ["owner"];

/// Folders and files of the repository that have texts for PostgreSQL.
const TEXTS: [&str; 8] = ["core/src", "registry/src", "moving/src", "src", "sql", "examples", "scripts", "docs"];

/// What is no text of ours in them.
const LEFT_OUT: [&str; 4] = ["node_modules", "venv", "bench", "target"];

/// A stopped cluster whose databases are hostile, made once in a program.
pub(crate) fn template(installation: &Installation) -> Arc<Cluster> {
    static TEMPLATES: LazyLock<Mutex<HashMap<Installation, Arc<Cluster>>>> = LazyLock::new(Mutex::default);
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || {
        let cluster = Cluster::options().on(installation.clone()).not_preloaded().create();
        cluster.start();
        fill(&cluster, "template1", &USERS);
        for statement in ["DROP DATABASE postgres", "CREATE DATABASE postgres"] {
            cluster.client_of("postgres", "template1").batch_execute(statement).unwrap();
        }
        cluster.stop(Stop::Fast);
        Arc::new(cluster)
    };
    templates.entry(installation.clone()).or_insert_with(make).clone()
}

/// Makes one database hostile to these users, who may be superusers: its schema `public`, and a schema with the name of each. What is there
/// already stays as it is.
///
/// # Panics
/// Where the database has been made hostile before.
pub fn fill(cluster: &Cluster, database: &str, users: &[&str]) {
    let mut superuser = cluster.client_of("postgres", database);
    superuser
        .batch_execute(
            "SET search_path = pg_catalog, pg_temp; \
             DO $$ BEGIN CREATE ROLE mallory LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; \
             CREATE TEMP TABLE words (word text); CREATE TEMP TABLE schemas AS SELECT name 'public' AS name",
        )
        .unwrap();
    for user in users {
        let schema = format!("CREATE SCHEMA IF NOT EXISTS {user}; INSERT INTO schemas VALUES ('{user}')");
        superuser.batch_execute(&schema).unwrap();
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

/// What ran as somebody else than mallory so far, as whom, and by which statement: `operator * as owner: SELECT 1.5 * 2`. Where a function of a
/// session runs it, the statement is that of the session.
pub fn sprung(cluster: &Cluster) -> BTreeSet<String> {
    let log = cluster.log();
    let mut found = BTreeSet::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, what)) = line.split_once("LOG:  sprung: ") else { continue };
        while lines.next_if(|next| !next.contains("LOG:  ") && !next.contains("STATEMENT:  ")).is_some() {}
        let mut statement = String::new();
        while let Some(next) = lines.next_if(|next| next.contains("STATEMENT:  ") || next.starts_with('\t')) {
            statement.push_str(next.split_once("STATEMENT:  ").map_or(next, |(_, text)| text));
            statement.push('\n');
        }
        found.insert(format!("{what}: {}", statement.trim_end()));
    }
    found
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

/// What stands in a folder, but for what is no text of ours.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
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
