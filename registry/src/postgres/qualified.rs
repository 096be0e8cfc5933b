//! That no name in our SQL is looked up by the `search_path`: read from the texts.

use super::identity::Shown;
use super::schema::tests::ours;
use super::schema::{Found, look};
use super::statements::*;
use crate::Namespace;
use snowflake_core::UnixMicros;
use snowflake_core::lease::{Holder, NamespaceRecord, Record, Token, Version, WorkerNumber};
use snowflake_core::segment::{Holding, Range, Sizes, State, Tag, TagRecord, TagWrite, Use};
use std::time::Duration;

/// Everything is shown.
const SHOWN: Shown = Shown { system: true, timeline: true };

/// Every statement, with each kind of value.
fn statements() -> Vec<String> {
    let namespace = Namespace::new("default").unwrap();
    let tag = Tag::new("tag").unwrap();
    let instant = UnixMicros(1_700_000_000_000_001);
    let (bounds, range) = (Sizes { smallest: 10, largest: 100 }, Range { first: 1, end: 2 });
    let tag_record = TagRecord { next: 1, floor: 1, first: 1, last: TagRecord::HIGHEST, state: State::Live, bounds };
    let used = Use { count: 5, length: snowflake_core::Micros(6) };
    let holding = (WorkerNumber(7), Holding { run: 1, current: range, after: range, granted_at: instant, used });
    let mut all = vec![PATH.to_owned(), DURABILITY.to_owned(), time(), look(), begin(Duration::from_secs(1))];
    let found = Found::read(&ours()).unwrap();
    all.extend([found.guard(), found.lock("FROM snowflake_registry.workers WHERE").unwrap()]);
    for part in [Part::Leases, Part::Segments] {
        all.extend(part.create(true).into_iter().chain(part.comments(true)));
    }
    all.extend([
        namespace_of(&namespace, SHOWN),
        record_of(&namespace, WorkerNumber(7)),
        records_of(&namespace),
        segment_of(&namespace, &tag),
        segments_of(&namespace),
        holdings_of(&namespace),
    ]);
    for leases_from in [None, Some(instant)] {
        let registry = leases_from.map(|_| "timeline=00000001 rows=written".to_owned());
        let within =
            NamespaceRecord { layout: "twitter".to_owned(), life: 255, leases_from, here: registry.clone(), registry };
        for expected in [None, Some(Version(8))] {
            let holder = Holder {
                host: "db".to_owned(),
                data_directory: "/d".to_owned(),
                port: 5432,
                cluster_name: String::new(),
                system_identifier: u64::MAX,
                process: "p".to_owned(),
            };
            let owner = expected.map(|_| Token(255));
            let record = Record { owner, granted_from: instant, granted_until: instant, holder };
            let versions = (expected, Version(9));
            all.extend(swap_namespace(&namespace, expected.map(|_| &within), &within, SHOWN));
            all.extend(compare_and_swap(
                &namespace,
                expected.map(|_| &within),
                WorkerNumber(7),
                versions,
                &record,
                SHOWN,
            ));
            let write = TagWrite { tag: tag.clone(), expected, record: tag_record.clone() };
            for holding in [None, Some(&holding)] {
                all.extend(swap_segment(&namespace, &within, &write, Version(9), holding, SHOWN));
            }
        }
    }
    all
}

/// A text without its comments and literals.
fn without_literals(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    lines.join(" ").split('\'').step_by(2).collect()
}

#[test]
fn operators_functions_and_types_are_named_with_their_schema() {
    for statement in statements() {
        let text = without_literals(&statement);
        let bare = text.replace("pg_catalog.count(*)", "");
        let bare = [">", "<>", "=", "<"]
            .iter()
            .fold(bare, |text, name| text.replace(&format!("OPERATOR(pg_catalog.{name})"), ""));
        // The path itself is no operator.
        let bare = bare.replace("search_path =", "").replace("statement_timeout =", "").replace("lock_timeout =", "");
        let bare =
            bare.replace("synchronous_commit =", "").replace("client_min_messages =", "").replace(") = ROW", " ROW");
        let is_operator = |c: char| "+-*/<>=~!@#%^&|`?".contains(c);
        assert!(!bare.contains(is_operator), "{statement}");
        for grammar in [" DISTINCT FROM", " BETWEEN ", " IN (", " LIKE ", " USING ", "NULLIF", "extract("] {
            assert!(!bare.contains(grammar), "{grammar}: {statement}");
        }
        // What stands before a bracket is a function, or a keyword, or a table with its columns.
        for (at, _) in bare.match_indices('(') {
            let before = bare[..at].trim_end();
            let is_call = before.len() == at;
            let word = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c))).next().unwrap();
            let is_known =
                word.is_empty() || word.starts_with("pg_catalog.") || word.starts_with("snowflake_registry.");
            let is_keyword = !is_call && word.chars().all(|c| c.is_ascii_uppercase());
            assert!(is_known || is_keyword || word == "numeric", "{word}: {statement}");
        }
        for after in bare.split("::").skip(1) {
            assert!(after.starts_with("pg_catalog.") || after.starts_with("boolean"), "{after}: {statement}");
        }
        for words in [" text", " uuid", " timestamptz", " name[]"] {
            assert!(
                !bare.contains(&format!("{words} ")) && !bare.contains(&format!("{words},")),
                "{words}: {statement}"
            );
        }
        for relation in [" FROM ", " JOIN ", " INTO "] {
            for after in bare.split(relation).skip(1) {
                let known = ["pg_catalog.", "snowflake_registry.", "(", "changed", "LATERAL pg_catalog."];
                assert!(known.iter().any(|start| after.trim_start().starts_with(start)), "{after}: {statement}");
            }
        }
    }
}

#[test]
fn what_a_statement_writes_is_locked_before_the_look() {
    let found = Found::read(&ours()).unwrap();
    let mut count = 0;
    for statement in statements() {
        let text = without_literals(&statement);
        let written =
            ["INSERT INTO snowflake_registry.", "UPDATE snowflake_registry."].map(|verb| text.split(verb).skip(1));
        for after in written.into_iter().flatten() {
            let name = after.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap();
            let lock = found.lock(&statement).unwrap_or_default();
            assert!(lock.contains(&format!("snowflake_registry.{name}")), "{lock}: {statement}");
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}
