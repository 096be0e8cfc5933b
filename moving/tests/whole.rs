//! Whole plans, as people see them, of tables that have all that plans speak of: each statement with what it locks and who runs it, and
//! all notes.

use super::plans::{self, FIRST, column, foreign_key, moved_in, recreating, relation, sequence, serial};
use snowflake_moving::{
    Actor, Column, Facts, ForeignKey, Function, MovePlan, Oid, Options, PartitionedByKey, Relation, Release,
    ReleaseError, Sequence, Source, Values, View, Width, Writer, begins_at, put_back, release,
};

/// A plan as text. A statement that locks nothing, or is run by another role than the owner, says so.
fn shown(plan: &MovePlan) -> String {
    let mut lines = Vec::new();
    for step in &plan.steps {
        let mut about = Vec::new();
        about.push(if step.locks.is_empty() {
            "locks nothing".to_owned()
        } else {
            format!("locks {}", step.locks.join(", "))
        });
        if !step.rewrites.is_empty() {
            about.push(format!("rewrites {} bytes of {}", step.bytes, step.rewrites.join(", ")));
        }
        about.extend(step.by_definition.then(|| "by definition".to_owned()));
        about.extend(step.fills_view.then(|| "fills".to_owned()));
        about.extend(match step.actor {
            Actor::Owner => None,
            Actor::Caller => Some("by the caller".to_owned()),
            Actor::Role(role) => Some(format!("by role {}", role.0)),
        });
        about.extend((!step.note.is_empty()).then(|| step.note.clone()));
        lines.push(format!("{}\n    {}", step.statement, about.join("; ")));
    }
    lines.extend(plan.obstacles.iter().map(|obstacle| format!("! {obstacle}")));
    lines.extend(plan.not_owned.iter().map(|table| format!("! not owned: {table}")));
    lines.extend(plan.notes.iter().map(|note| format!("* {note}")));
    lines.join("\n")
}

fn adopted(facts: &Facts) -> String {
    shown(&recreating(facts))
}

fn view(oid: u32, name: &str, reads: &[u32], is_populated: bool) -> View {
    View {
        name: name.to_owned(),
        description: format!("view {name}"),
        is_materialized: is_populated,
        owner: Oid(9),
        definition: format!("CREATE VIEW {name} AS ..."),
        details: vec![format!("COMMENT ON VIEW {name} IS 'x'")],
        is_populated,
        bytes: 50,
        ..plans::view(oid, reads)
    }
}

fn function(oid: u32, name: &str, callers: &[&str], source: &str) -> Function {
    Function {
        oid: Oid(oid),
        name: name.to_owned(),
        callers: callers.iter().map(|&caller| caller.to_owned()).collect(),
        row_tables: vec![Oid(2)],
        source: source.to_owned(),
        is_plpgsql: true,
        small_calls: Vec::new(),
        renewal: None,
        owner: Oid(8),
    }
}

#[test]
fn a_table_becomes_wider_with_all_that_depends_on_it() {
    let mut facts = serial(Width::Four, Width::Four);
    // A partitioned table, to which another one refers by two foreign keys, and by one that needs a column which is INCLUDEd.
    facts.relations[0].partitions = vec!["part".to_owned()];
    facts.relations.push(Relation { is_partition: true, ..relation(3, "part") });
    facts.columns.push(column(3, "id", Width::Four, &[2]));
    facts.foreign_keys[0].comment = Some("of u".to_owned());
    facts.foreign_keys.push(foreign_key("twice", (1, "t_id"), (2, "id")));
    facts.relations.push(relation(4, "w"));
    facts
        .foreign_keys
        .push(ForeignKey { included: vec!["t_id".to_owned()], ..foreign_key("beside", (4, "n"), (1, "n")) });
    // Another one refers to it once, and one to a partition.
    for (oid, name, key, to) in [(6, "x", "x_fk", 2), (7, "y", "y_fk", 3)] {
        facts.relations.push(relation(oid, name));
        facts.columns.push(column(oid, "t_id", Width::Eight, &[]));
        facts.foreign_keys.push(foreign_key(key, (oid, "t_id"), (to, "id")));
    }
    // The key refers to a table itself.
    facts.foreign_keys.push(foreign_key("up", (2, "id"), (4, "id")));
    facts.values = Some(Values { lowest: -3, highest: 9 });
    facts.checks = vec!["c: (id <> 0)".to_owned()];
    facts.publications = vec!["p".to_owned()];
    facts.sessions = 2;
    facts.left_out = vec!["ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 5".to_owned()];
    facts.views = vec![view(21, "v2", &[20], true), view(20, "v1", &[], false)];
    facts.columns[0].dependents = vec!["view v1".to_owned()];
    facts.sequences.push(Sequence { is_owned_by_key: false, is_default: false, ..sequence("other") });
    facts.sequences.insert(0, Sequence { is_identity: true, is_default: false, ..sequence("old") });
    let renewal = |name: &str| Some(format!("ALTER FUNCTION {name} COST 100"));
    facts.functions = vec![
        Function {
            renewal: renewal("g()"),
            ..function(31, "g()", &["trigger g on table t"], "BEGIN\n  RETURN NEW;\nEND")
        },
        Function {
            renewal: renewal("f()"),
            ..function(30, "f()", &[], "DECLARE\n  v int;\nBEGIN\n  SELECT id INTO v FROM t;\nEND")
        },
        function(32, "h()", &[], "BEGIN\nEND"),
        Function {
            is_plpgsql: false,
            small_calls: Vec::new(),
            ..function(33, "sql()", &[], "DECLARE v int; BEGIN SELECT id INTO v FROM t; END")
        },
    ];
    assert_eq!(adopted(&facts), include_str!("whole/wider.txt").trim_end());
}

#[test]
fn a_table_that_is_wide_has_less_to_say() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.source = Source::Identity { is_always: true };
    facts.publications = vec!["p".to_owned()];
    facts.left_out = vec!["ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 5".to_owned()];
    let renewal = Some("ALTER FUNCTION f() COST 100".to_owned());
    facts.functions = vec![Function { renewal, ..function(30, "f()", &[], "") }];
    // Columns of other names, and a row that refers to its own table.
    facts.relations.extend([relation(3, "heir"), relation(4, "other")]);
    facts.columns.push(column(3, "id2", Width::Eight, &[2]));
    facts.foreign_keys.push(foreign_key("self", (2, "id"), (2, "n")));
    facts.foreign_keys.push(foreign_key("n", (2, "n"), (4, "id")));
    facts.partitioned = vec![PartitionedByKey { table: Oid(2), bounds: vec!["DEFAULT".to_owned()] }];
    let own = &mut facts.sequences[0];
    (own.is_identity, own.is_default, own.grants) = (true, false, vec![("GRANT a".to_owned(), Oid(8))]);
    // As long as what begins a record.
    own.comment = Some("The old sequence: DEFAULT 5]".to_owned());
    facts.sequences.insert(0, Sequence { is_default: false, ..sequence("second") });
    facts.values = Some(Values { lowest: 0, highest: 9 });
    assert_eq!(adopted(&facts), include_str!("whole/wide.txt").trim_end());
    assert_eq!(facts.key_names(), ("t", "id"));
}

/// A narrow table is in the way by that alone.
#[test]
fn a_partition_for_new_ids_is_missed_in_a_wide_table() {
    let obstacles = |width, bounds: &[&str]| {
        let mut facts = serial(width, Width::Eight);
        let bounds = bounds.iter().map(|&bound| bound.to_owned()).collect();
        facts.partitioned = vec![PartitionedByKey { table: Oid(2), bounds }];
        plans::adopt(&facts, FIRST)
            .obstacles
            .iter()
            .filter(|obstacle| obstacle.contains("no partition for new IDs"))
            .count()
    };
    assert_eq!([obstacles(Width::Eight, &[]), obstacles(Width::Eight, &["DEFAULT"])], [1, 0]);
    assert_eq!([obstacles(Width::Four, &[]), obstacles(Width::Four, &["DEFAULT"])], [0, 0]);
}

/// The sequence of an identity that was taken away by a change of the catalogue.
#[test]
fn what_is_on_record_already_is_not_written_again() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.source = Source::Default("f()".to_owned());
    let comment = Some("[snowflake_adopt: DEFAULT f()]".to_owned());
    facts.sequences = vec![Sequence { is_identity: true, is_default: false, comment, ..sequence("s") }];
    assert!(!adopted(&facts).contains("COMMENT ON"), "{}", adopted(&facts));
}

fn given_back(facts: &Facts, wish: &Release) -> String {
    let (plan, next) = release(facts, wish).unwrap();
    format!("{}\nnext: {next:?}", shown(&plan))
}

fn writer(name: &str) -> Writer {
    Writer { name: name.to_owned(), may_make_ids: true }
}

#[test]
fn a_table_gets_a_sequence_of_its_own() {
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    facts.sequences.clear();
    facts.writers = vec![writer("role_7"), writer("app"), writer("PUBLIC")];
    facts.relations.extend([relation(3, "heir"), Relation { is_owned: false, ..relation(4, "elsewhere") }]);
    let heir = Column { default: Some("5".to_owned()), makes_ids: false, ..column(3, "id", Width::Eight, &[2]) };
    facts.columns.push(heir);
    facts.values = Some(Values { lowest: 1, highest: i64::from(i32::MAX) });
    let wish = Release { sequence: "t_id_seq".to_owned(), next_above: Some(3_000_000_000), ..Release::default() };
    assert_eq!(given_back(&facts, &wish), include_str!("whole/sequence.txt").trim_end());
    // As many values as an integer has.
    facts.values = Some(Values { lowest: 1, highest: i64::from(i32::MAX) - 1 });
    assert!(!given_back(&facts, &wish).contains("above the range"));
    facts.columns.remove(1);
    assert!(!given_back(&facts, &wish).contains("refer to"));
}

#[test]
fn a_sequence_that_was_kept_goes_on_for_all_who_insert() {
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    facts.sequences[0].closed_to = vec!["app".to_owned()];
    assert_eq!(given_back(&facts, &Release::default()), include_str!("whole/kept.txt").trim_end());
}

#[test]
fn an_identity_that_was_one_is_made_again() {
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    let own = &mut facts.sequences[0];
    (own.is_default, own.comment) =
        (false, Some("of the user\n[snowflake_adopt: GENERATED ALWAYS AS IDENTITY]".to_owned()));
    own.options = Options { width: Width::Two, start: 7, max: i64::from(i16::MAX), ..Options::DEFAULT };
    own.users = vec!["view v".to_owned()];
    own.is_unlogged = true;
    own.grants = vec![("GRANT a".to_owned(), Oid(7))];
    facts.values = Some(Values { lowest: 1, highest: i64::MAX - 1 });
    let wish = Release { identity: true, is_not_null: true, ..Release::default() };
    assert_eq!(given_back(&facts, &wish), include_str!("whole/identity.txt").trim_end());
    // A table that inherits gets its own back, as it had one; else not, unless it is a partition.
    facts.relations.push(relation(3, "heir"));
    facts.columns.push(column(3, "id", Width::Eight, &[2]));
    assert!(release(&facts, &wish).is_ok());
    facts.sequences[0].comment = None;
    assert_eq!(release(&facts, &wish).unwrap_err(), ReleaseError::Heirs);
    facts.relations.last_mut().unwrap().is_partition = true;
    // One that others use stays theirs.
    assert_eq!(given_back(&facts, &wish), include_str!("whole/beside.txt").trim_end());
}

#[test]
fn a_sequence_begins_where_it_must() {
    let facts = |change: fn(&mut Sequence)| {
        let mut facts = moved_in(serial(Width::Eight, Width::Eight));
        change(&mut facts.sequences[0]);
        facts
    };
    let used = facts(|it| it.users = vec!["view v".to_owned()]);
    assert_eq!(begins_at(&used, None, false), Some(10));
    assert_eq!([Some(5), Some(50)].map(|start| begins_at(&used, start, false)), [Some(10), Some(50)]);
    // As an identity, it would be another one.
    assert_eq!([None, Some(5)].map(|start| begins_at(&used, start, true)), [None, Some(5)]);
    let falls = facts(|it| it.options.increment = -1);
    assert_eq!([false, true].map(|identity| begins_at(&falls, None, identity)), [Some(8), Some(8)]);
    assert_eq!(begins_at(&facts(|_| {}), None, false), None);
}

/// Of a column that is to be released alone.
#[test]
fn a_default_on_record_is_checked_before_it_is_put_back() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.sequences[0].is_default = false;
    facts.sequences[0].comment = Some("[snowflake_adopt: DEFAULT f()]".to_owned());
    assert_eq!(put_back(&facts, None, false), None);
    assert_eq!(put_back(&moved_in(facts), None, false).as_deref(), Some("f()"));
}

#[test]
fn limits_of_a_type_become_those_of_another() {
    let falling = Options { increment: -1, min: i64::from(i32::MIN), max: -1, width: Width::Four, ..Options::DEFAULT };
    let wider = falling.of_width(Width::Eight);
    assert_eq!((wider.min, wider.max), (i64::MIN, -1));
    assert!(wider.clauses().contains("NO MINVALUE NO MAXVALUE"), "{}", wider.clauses());
    let own = Options { min: 5, max: 50, width: Width::Four, ..Options::DEFAULT };
    assert_eq!((own.of_width(Width::Eight).min, own.of_width(Width::Eight).max), (5, 50));
    let rooms = [4, 5, 50, 51].map(|value| own.with_room_for(value)).map(|it| (it.min, it.max));
    assert_eq!(rooms, [(4, 50), (5, 50), (5, 50), (5, i64::MAX)]);
    assert_eq!([4, 5, 50, 51].map(|value| own.has_room_for(value)), [false, true, true, false]);
}
