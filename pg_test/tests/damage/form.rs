//! A sequence's page that has another form than PostgreSQL gives it. Whatever is damaged outside of the tuple's data, a call says so or does
//! as with an intact page, and changes nothing but these data.
//!
//! Each case has a database of its own, so that one restart of the server is enough for all.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, Installation, Stop, variable};
use std::fs::{self, File};
use std::path::PathBuf;

const PAGE: usize = 8192;
/// Where the tuple begins, as PostgreSQL puts it.
const TUPLE: usize = 8136;
/// Where its header ends, and the data begin.
const DATA: usize = TUPLE + 24;
/// Where the data end.
const END: usize = DATA + 17;
/// Where the special space begins.
const SPECIAL: usize = 8184;

/// Bytes that are put somewhere on the page.
type Damage = Vec<(usize, Vec<u8>)>;

fn bytes(place: usize, bytes: &[u8]) -> Damage {
    vec![(place, bytes.to_vec())]
}

fn number(place: usize, number: u16) -> Damage {
    bytes(place, &number.to_ne_bytes())
}

/// A line pointer, on a machine whose lowest byte comes first.
fn line_pointer(offset: u32, state: u32, length: u32) -> Damage {
    bytes(24, &(offset | state << 15 | length << 17).to_le_bytes())
}

/// What makes a page useless.
fn damages() -> Vec<(&'static str, Damage)> {
    let tuple = u32::try_from(TUPLE).unwrap();
    vec![
        ("flags that nobody knows", number(10, 8)),
        ("no line pointer", number(12, 24)),
        ("half a line pointer", number(12, 26)),
        ("two line pointers", number(12, 32)),
        ("line pointers all over the tuple", number(12, 8136)),
        ("free space over the tuple", number(14, 8184)),
        ("free space over half the tuple", number(14, 8160)),
        ("free space that ends unaligned", number(14, 8137)),
        ("free space before the line pointer", number(14, 16)),
        ("an upper end past the page", number(14, 0xfff8)),
        ("no special space", number(16, 8192)),
        ("special space over the tuple", number(16, 8136)),
        ("special space unaligned", number(16, 8183)),
        ("special space past the page", number(16, 0xfff8)),
        ("a page of another size", number(18, 16384 | 4)),
        ("a page of another version", number(18, 8192 | 3)),
        ("a tuple in the page's header", line_pointer(0, 1, 41)),
        ("a tuple in the free space", line_pointer(4096, 1, 41)),
        ("a tuple one byte off", line_pointer(tuple + 1, 1, 41)),
        ("a tuple eight bytes later", line_pointer(tuple + 8, 1, 41)),
        ("a tuple eight bytes before", line_pointer(tuple - 8, 1, 41)),
        ("a tuple over the special space", line_pointer(8184, 1, 41)),
        ("a tuple at the end of the page", line_pointer(8191, 1, 41)),
        ("a tuple past the page", line_pointer(0x7fff, 1, 41)),
        ("an unused line pointer", line_pointer(tuple, 0, 41)),
        ("a line pointer that leads to another", line_pointer(tuple, 2, 41)),
        ("a dead line pointer", line_pointer(tuple, 3, 41)),
        ("no tuple", line_pointer(tuple, 1, 0)),
        ("a header alone", line_pointer(tuple, 1, 24)),
        ("a tuple without its last column", line_pointer(tuple, 1, 40)),
        ("a tuple that is too long", line_pointer(tuple, 1, 56)),
        ("a tuple past the page's end", line_pointer(tuple, 1, 0x7fff)),
        ("no header of the tuple", bytes(TUPLE + 22, &[0])),
        ("an unaligned header", bytes(TUPLE + 22, &[25])),
        ("a longer header", bytes(TUPLE + 22, &[40])),
        ("a header past the page", bytes(TUPLE + 22, &[255])),
        ("no columns", number(TUPLE + 18, 0)),
        ("two columns", number(TUPLE + 18, 2)),
        ("NULLs", number(TUPLE + 20, 0x0901)),
        ("neither true nor false", bytes(DATA + 16, &[2])),
        ("another number", bytes(SPECIAL, &[0x18])),
        ("no number", bytes(SPECIAL, &[0; 8])),
        ("zeros", bytes(0, &[0; PAGE])),
    ]
}

/// What no reader looks at.
fn indifferent() -> Vec<(&'static str, Damage)> {
    vec![
        ("nothing", Vec::new()),
        ("an old position in the log", bytes(0, &[0; 8])),
        ("flags that PostgreSQL knows", number(10, 7)),
        ("a transaction that prunes", bytes(20, &[3, 0, 0, 0])),
        ("a transaction that inserted", bytes(TUPLE, &[7, 0, 0, 0])),
        ("a place of the next version", bytes(TUPLE + 12, &[0xff; 6])),
        ("bytes behind the data", bytes(END, &[0xff; 7])),
    ]
}

/// A database for each case, with this damage in the file of one of its sequences.
struct Cases {
    cluster: Cluster,
    files: Vec<PathBuf>,
    /// The pages, damaged.
    before: Vec<Vec<u8>>,
}

impl Cases {
    fn new(cluster: Cluster, sequence: impl Fn(usize) -> &'static str, damages: &[Damage]) -> Self {
        let mut client = cluster.client();
        let mut files = Vec::new();
        for case in 0..damages.len() {
            client.batch_execute(&format!("CREATE DATABASE c{case} TEMPLATE template")).unwrap();
            let path = format!("SELECT pg_relation_filepath('_snowflake.{}')", sequence(case));
            let row = cluster.client_of("postgres", &format!("c{case}")).query_one(&path, &[]).unwrap();
            files.push(cluster.data().join(row.get::<_, String>(0)));
        }
        drop(client);
        cluster.stop(Stop::Fast);
        let mut before = Vec::new();
        for (file, damage) in files.iter().zip(damages) {
            let mut page = fs::read(file).unwrap();
            assert_eq!(page.len(), PAGE);
            for (place, bytes) in damage {
                page[*place..][..bytes.len()].copy_from_slice(bytes);
            }
            fs::write(file, &page).unwrap();
            before.push(page);
        }
        cluster.start();
        Self { cluster, files, before }
    }

    fn client(&self, case: usize) -> Client {
        self.cluster.client_of("postgres", &format!("c{case}"))
    }

    /// Stops the server. In each page, nothing but the tuple's data, the position in the log and the checksum may have changed, and nothing
    /// at all where `is_damaged`.
    fn end(self, is_damaged: &[bool]) {
        self.cluster.stop(Stop::Fast);
        assert!(!self.cluster.log().contains("PANIC") && !self.cluster.log().contains("terminated by signal"));
        for (case, file) in self.files.iter().enumerate() {
            let (mut before, mut after) = (self.before[case].clone(), fs::read(file).unwrap());
            if !is_damaged[case] {
                for page in [&mut before, &mut after] {
                    page[..10].fill(0);
                    page[DATA..END].fill(0);
                }
            }
            let place = (0..PAGE).find(|place| before[*place] != after[*place]);
            assert_eq!(place, None, "case {case}: a byte has changed");
        }
    }
}

/// A cluster with the database `template`, in which an ID was made, or none.
fn cluster(with_ids: bool) -> Cluster {
    let options = Cluster::options().set("autovacuum = off");
    // With checksums, PostgreSQL sees all of it itself.
    let is_default = Installation::under_test().major() >= 18;
    let cluster = if is_default { options.initdb("--no-data-checksums") } else { options }.start();
    cluster.database("template");
    if with_ids {
        cluster.client_of("postgres", "template").query_one("SELECT snowflake_next()", &[]).unwrap();
    }
    cluster
}

fn is_ours(error: &postgres::error::DbError, sequence: &str) -> bool {
    error.message() == format!("sequence _snowflake.{sequence} is damaged") && error.hint().is_some()
}

/// PostgreSQL itself sees it when it reads the page from disk.
fn is_of_postgres(error: &postgres::error::DbError) -> bool {
    error.message().starts_with("invalid page in block 0 of relation")
}

#[test]
fn a_page_of_another_form_is_neither_read_nor_written() {
    let (damages, indifferent) = (damages(), indifferent());
    let all: Vec<Damage> = damages.iter().chain(&indifferent).map(|(_, damage)| damage.clone()).collect();
    let cases = Cases::new(cluster(true), |_| "reservation", &all);
    let mut ours = 0;
    for (case, (name, _)) in damages.iter().enumerate() {
        let mut client = cases.client(case);
        for query in ["SELECT snowflake_next()", "SELECT snowflake_rewind(snowflake_min_id(now()))"] {
            let error = refused(&mut client, query, "XX001");
            assert!(is_ours(&error, "reservation") || is_of_postgres(&error), "{name}: {query}: {error:?}");
            ours += usize::from(is_ours(&error, "reservation"));
        }
    }
    assert!(ours > 40, "PostgreSQL saw nearly all of them");
    let mut ids = Vec::new();
    for (case, (name, _)) in indifferent.iter().enumerate() {
        let mut client = cases.client(damages.len() + case);
        let next = client.query_one("SELECT snowflake_next()", &[]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        ids.push(next.get::<_, i64>(0));
    }
    snowflake_test::check::rising(&ids);
    cases.end(&(0..all.len()).map(|case| case < damages.len()).collect::<Vec<_>>());
}

/// The layout is read in every transaction, and written when another one is adopted.
#[test]
fn so_it_is_with_the_layout() {
    let damages = damages();
    let all: Vec<Damage> = damages.iter().map(|(_, damage)| damage.clone()).collect();
    let sequence = |case: usize| ["layout", "epoch"][case % 2];
    let cases = Cases::new(cluster(false), sequence, &all);
    for (case, (name, _)) in damages.iter().enumerate() {
        let mut client = cases.client(case);
        for query in ["SELECT snowflake_timestamp(1)", "SELECT snowflake_next()", "SELECT snowflake_adopt_layout()"] {
            let error = refused(&mut client, query, "XX001");
            assert!(is_ours(&error, sequence(case)) || is_of_postgres(&error), "{name}: {query}: {error:?}");
        }
    }
    cases.end(&vec![true; all.len()]);
}

/// One to three bits anywhere but in the tuple's data: `SEED=7 CASES=200`.
#[test]
fn bits_that_flip_do_no_harm() {
    let (seed, count) = (variable("SEED").unwrap_or(1), variable("CASES").unwrap_or(60));
    let mut draw = fastrand::Rng::with_seed(seed);
    let cluster = cluster(true);
    // The page as it is, but for those bits.
    let whole = {
        let mut client = cluster.client_of("postgres", "template");
        let path: String =
            client.query_one("SELECT pg_relation_filepath('_snowflake.reservation')", &[]).unwrap().get(0);
        client.batch_execute("CHECKPOINT").unwrap();
        fs::read(cluster.data().join(path)).unwrap()
    };
    // Not in the page's position in the log, before which PostgreSQL writes no page: it waits for a log that never comes.
    let places: Vec<usize> = (8..28).chain(TUPLE..DATA).chain(END..PAGE).collect();
    let damages: Vec<Damage> = (0..count)
        .map(|_| {
            let mut damage: Damage = Vec::new();
            for _ in 0..draw.usize(1..=3) {
                let place = places[draw.usize(..places.len())];
                damage.push((place, vec![whole[place] ^ 1 << draw.u32(..8)]));
            }
            damage
        })
        .collect();
    let cases = Cases::new(cluster, |_| "reservation", &damages);
    let mut is_damaged = Vec::new();
    for (case, damage) in damages.iter().enumerate() {
        let mut client = cases.client(case);
        let outcome = client.query_one("SELECT snowflake_next()", &[]);
        is_damaged.push(outcome.is_err());
        if let Err(error) = outcome {
            let error = error.as_db_error().unwrap();
            let is_known = is_ours(error, "reservation") || is_of_postgres(error);
            assert!(error.code().code() == "XX001" && is_known, "SEED={seed}, {damage:?}: {error:?}");
        }
    }
    assert!(is_damaged.contains(&true) && is_damaged.contains(&false));
    cases.end(&is_damaged);
}

/// PostgreSQL's own errors are clear, and of the same class: a file without a block, and a page whose checksum is wrong.
#[test]
fn postgres_sees_a_file_without_pages_and_a_wrong_checksum() {
    let cluster = Cluster::options().initdb("--data-checksums").start();
    let mut client = cluster.client();
    let next = "SELECT snowflake_next()";
    client.query_one(next, &[]).unwrap();
    let path: String = client.query_one("SELECT pg_relation_filepath('_snowflake.reservation')", &[]).unwrap().get(0);
    let file = cluster.data().join(path);
    drop(client);
    cluster.stop(Stop::Fast);
    let whole = fs::read(&file).unwrap();

    File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
    cluster.start();
    let error = refused(&mut cluster.client(), next, "XX001");
    assert!(error.message().starts_with("could not read block"), "{error:?}");
    cluster.stop(Stop::Fast);

    let mut damaged = whole.clone();
    for (place, bytes) in line_pointer(4096, 1, 41) {
        damaged[place..][..bytes.len()].copy_from_slice(&bytes);
    }
    fs::write(&file, &damaged).unwrap();
    cluster.start();
    let mut client = cluster.client();
    assert!(is_of_postgres(&refused(&mut client, next, "XX001")));
    // Somebody has PostgreSQL read on.
    client.batch_execute("SET ignore_checksum_failure = on").unwrap();
    assert!(is_ours(&refused(&mut client, next, "XX001"), "reservation"));
    drop(client);
    cluster.stop(Stop::Fast);
    assert_eq!(fs::read(&file).unwrap(), damaged);

    fs::write(&file, &whole).unwrap();
    cluster.start();
    cluster.client().query_one(next, &[]).unwrap();
}
