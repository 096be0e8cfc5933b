//! Plans of made-up tables: which statements there are, in which order, and what they lock and rewrite.

use snowflake_moving::{
    Actor, Adoption, Column, Facts, ForeignKey, Function, LastValue, MovePlan, Oid, Options, PartitionedByKey,
    Relation, Release, ReleaseError, Role, Sequence, Source, Values, View, Waiver, Width, Writer, begins_at, is_done,
    literal, put_back, release,
};

pub const FIRST: i64 = 1 << 60;

pub fn adopt(facts: &Facts, first_id: i64) -> MovePlan {
    snowflake_moving::adopt(
        facts,
        &Adoption { first_id, markers: vec!["m".to_owned()], recreate_views: false, waived: Vec::new() },
    )
}

pub fn relation(oid: u32, name: &str) -> Relation {
    let bytes = 1000 + i64::from(oid);
    let heirs_of_others = Vec::new();
    let (oid, name, owner) = (Oid(oid), name.to_owned(), role(7));
    Relation {
        oid,
        name,
        owner,
        is_owned: true,
        heirs_of_others,
        is_partition: false,
        partitions: Vec::new(),
        has_unlogged_sequences: false,
        is_foreign: false,
        bytes,
    }
}

pub fn role(oid: u32) -> Role {
    Role { oid: Oid(oid), name: format!("role_{oid}"), is_caller: oid == 7, may_create: true }
}

pub fn column(relation: u32, name: &str, width: Width, parents: &[u32]) -> Column {
    Column {
        relation: Oid(relation),
        number: 1,
        name: name.to_owned(),
        width: Some(width),
        type_name: "of some type".to_owned(),
        parents: parents.iter().map(|&oid| Oid(oid)).collect(),
        default: (name == "id").then(|| "nextval('s'::regclass)".to_owned()),
        makes_ids: false,
        dependents: Vec::new(),
    }
}

pub fn sequence(name: &str) -> Sequence {
    Sequence {
        oid: Oid(77),
        name: name.to_owned(),
        is_owned_by_key: true,
        is_identity: false,
        is_default: true,
        users: Vec::new(),
        callers: Vec::new(),
        closed_to: Vec::new(),
        options: Options::DEFAULT,
        position: Some(LastValue { last: 9, is_called: true }),
        is_unlogged: false,
        comment: None,
        grants: Vec::new(),
    }
}

/// The same, with snowflake IDs.
pub fn moved_in(mut facts: Facts) -> Facts {
    facts.source = Source::Snowflake;
    for column in facts.columns.iter_mut().filter(|column| column.name == "id") {
        (column.default, column.makes_ids) = (Some("public.snowflake_next()".to_owned()), true);
    }
    facts
}

pub fn foreign_key(name: &str, from: (u32, &str), to: (u32, &str)) -> ForeignKey {
    let columns = vec![(from.1.to_owned(), to.1.to_owned())];
    ForeignKey {
        name: name.to_owned(),
        from: Oid(from.0),
        to: Oid(to.0),
        columns,
        definition: format!("DEFINITION OF {name}"),
        comment: None,
        is_disabled: false,
        included: Vec::new(),
    }
}

/// A table `t` with a serial `id`, to which `u.t_id` refers.
pub fn serial(width: Width, other: Width) -> Facts {
    Facts {
        relations: vec![relation(2, "t"), relation(1, "u")],
        columns: vec![column(2, "id", width, &[]), column(1, "t_id", other, &[])],
        foreign_keys: vec![foreign_key("u_t_id_fkey", (1, "t_id"), (2, "id"))],
        source: Source::Default("nextval('s'::regclass)".to_owned()),
        sequences: vec![sequence("s")],
        sessions: 0,
        writers: Vec::new(),
        values: Some(Values { lowest: 1, highest: 9 }),
        next: "public.snowflake_next()".to_owned(),
        functions: Vec::new(),
        partitioned: Vec::new(),
        checks: Vec::new(),
        refused_by: Vec::new(),
        casts: Vec::new(),
        refused_by_checks: Vec::new(),
        left_out: Vec::new(),
        statistics_of_others: Vec::new(),
        publications: Vec::new(),
        views: Vec::new(),
    }
}

fn statements(plan: &MovePlan) -> Vec<&str> {
    plan.steps.iter().map(|step| &*step.statement).collect()
}

#[test]
fn a_serial_and_what_refers_to_it_become_bigint() {
    let plan = adopt(&serial(Width::Four, Width::Two), FIRST);
    assert_eq!(
        statements(&plan),
        [
            "LOCK TABLE u, t IN ACCESS EXCLUSIVE MODE",
            "ALTER TABLE t ALTER COLUMN id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN t_id TYPE bigint",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
        ]
    );
    assert_eq!(plan.locks, [Oid(1), Oid(2)]);
    assert_eq!((&*plan.steps[1].rewrites, plan.steps[1].bytes), (&["t".to_owned()][..], 1002));
    assert_eq!(plan.steps[1].locks, ["t", "u"]);
    assert_eq!((plan.obstacles.len(), plan.not_owned.len()), (0, 0));
}

#[test]
fn a_column_that_is_wide_enough_is_left_alone() {
    let plan = adopt(&serial(Width::Eight, Width::Eight), FIRST);
    assert_eq!(
        statements(&plan),
        ["LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",]
    );
    assert!(plan.steps.iter().all(|step| step.rewrites.is_empty()));
}

#[test]
fn only_the_top_of_a_tree_is_altered() {
    let mut facts = serial(Width::Four, Width::Eight);
    facts.relations.extend([relation(3, "part"), relation(4, "subpart")]);
    facts.columns.extend([column(3, "id", Width::Four, &[2]), column(4, "id", Width::Four, &[3])]);
    let plan = adopt(&facts, FIRST);
    assert_eq!(statements(&plan)[1..2], ["ALTER TABLE t ALTER COLUMN id TYPE bigint"]);
    assert_eq!(plan.steps[1].rewrites, ["t", "part", "subpart"]);
    assert_eq!(plan.steps[1].bytes, 3009);
    assert_eq!(plan.locks, [Oid(1), Oid(2), Oid(3), Oid(4)]);
}

#[test]
fn a_key_that_refers_to_another_table_is_noted() {
    let mut facts = serial(Width::Eight, Width::Eight);
    let has_note = |facts: &Facts| adopt(facts, FIRST).notes.iter().any(|note| note.contains("itself refers to u"));
    assert!(!has_note(&facts));
    facts.foreign_keys.push(foreign_key("back", (2, "id"), (1, "t_id")));
    assert!(has_note(&facts));
}

/// PostgreSQL refuses to change the type otherwise.
#[test]
fn a_foreign_key_to_a_partition_is_dropped_and_made_again() {
    let mut facts = serial(Width::Four, Width::Eight);
    facts.relations.push(Relation { is_partition: true, ..relation(3, "part") });
    facts.relations.push(Relation { is_owned: false, ..relation(5, "v") });
    facts.columns.extend([column(3, "id", Width::Four, &[2]), column(5, "part_id", Width::Eight, &[])]);
    facts.foreign_keys.push(foreign_key("f", (5, "part_id"), (3, "id")));
    facts.foreign_keys[1].comment = Some("it's one".to_owned());
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan)[1..5],
        [
            "ALTER TABLE v DROP CONSTRAINT f",
            "ALTER TABLE t ALTER COLUMN id TYPE bigint",
            "ALTER TABLE v ADD CONSTRAINT f DEFINITION OF f",
            "COMMENT ON CONSTRAINT f ON v IS 'it''s one'",
        ]
    );
    assert_eq!(plan.steps[2].note, "also makes again and checks the foreign keys u_t_id_fkey of u");
    assert_eq!(plan.not_owned, ["v"]);
}

/// A table is rewritten once, whatever number of its columns refer to the key.
#[test]
fn a_table_has_one_statement_for_all_its_columns() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.columns.push(column(1, "t_id_2", Width::Two, &[]));
    facts.columns.push(column(2, "parent_id", Width::Four, &[]));
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan)[1..3],
        [
            "ALTER TABLE t ALTER COLUMN id TYPE bigint, ALTER COLUMN parent_id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN t_id TYPE bigint, ALTER COLUMN t_id_2 TYPE bigint",
        ]
    );
}

#[test]
fn a_column_of_two_trees_is_an_obstacle() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.relations.extend([relation(7, "a"), relation(8, "b")]);
    facts.columns.extend([column(7, "t_id", Width::Four, &[]), column(8, "t_id", Width::Four, &[])]);
    facts.columns[1].parents = vec![Oid(7), Oid(8)];
    let plan = adopt(&facts, FIRST);
    assert_eq!(plan.obstacles, ["u.t_id cannot change its type because it is inherited from both a and b"]);
    // A diamond has one top.
    facts.relations.push(relation(9, "top"));
    facts.columns.push(column(9, "t_id", Width::Four, &[]));
    for index in [2, 3] {
        facts.columns[index].parents = vec![Oid(9)];
    }
    let plan = adopt(&facts, FIRST);
    assert!(plan.obstacles.is_empty());
    assert!(statements(&plan).contains(&"ALTER TABLE top ALTER COLUMN t_id TYPE bigint"));
}

#[test]
fn what_stands_in_the_way_is_listed_for_columns_that_change() {
    let mut facts = serial(Width::Eight, Width::Four);
    facts.columns[0].dependents = vec!["view v".to_owned()];
    facts.columns[1].dependents = vec!["view w".to_owned()];
    facts.relations[1].is_owned = false;
    let plan = adopt(&facts, FIRST);
    assert_eq!(plan.obstacles, ["u.t_id cannot change its type because of view w"]);
    assert_eq!(plan.not_owned, ["u"]);
    facts.columns[1].width = None;
    assert_eq!(adopt(&facts, FIRST).obstacles.len(), 2);
}

#[test]
fn a_value_that_no_new_id_is_above_is_an_obstacle() {
    let mut facts = serial(Width::Eight, Width::Eight);
    for (highest, obstacles) in [(FIRST - 1, 0), (FIRST, 1), (i64::MAX, 1)] {
        facts.values = Some(Values { lowest: 1, highest });
        assert_eq!(adopt(&facts, FIRST).obstacles.len(), obstacles, "{highest}");
    }
    facts.values = None;
    assert!(adopt(&facts, FIRST).obstacles.is_empty());
}

/// Whoever asks it by himself goes on.
#[test]
fn a_sequence_stays_with_a_note_who_asks_it() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.sequences[0].users = vec!["default value for column b of table t".to_owned()];
    facts.sequences[0].callers = vec!["f()".to_owned()];
    let plan = adopt(&facts, FIRST);
    assert!(plan.steps.iter().all(|step| !step.statement.contains("SEQUENCE")), "{:?}", plan.steps);
    let note = plan.notes.iter().find(|note| note.starts_with("sequence s stays, for the way back")).unwrap();
    assert!(note.ends_with("so do default value for column b of table t, function f()"), "{note}");
}

#[test]
fn the_sequence_of_an_identity_is_made_again_and_the_identity_is_on_record() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.source = Source::Identity { is_always: true };
    facts.columns[0].default = None;
    let own = &mut facts.sequences[0];
    (own.is_identity, own.is_default, own.comment) = (true, false, Some("of the user".to_owned()));
    own.options =
        Options { width: Width::Four, min: -7, max: i64::from(i32::MAX), cache: 5, cycles: true, ..own.options };
    own.grants = vec![("GRANT a".to_owned(), Oid(7)), ("GRANT b".to_owned(), Oid(8))];
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan)[1..],
        [
            "ALTER TABLE t ALTER COLUMN id DROP IDENTITY",
            "CREATE SEQUENCE s AS bigint START WITH 1 INCREMENT BY 1 MINVALUE -7 NO MAXVALUE CACHE 5 CYCLE",
            "SELECT pg_catalog.setval('s'::pg_catalog.regclass, 9, true)",
            "ALTER SEQUENCE s OWNED BY t.id",
            "GRANT a",
            "GRANT b",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
            "COMMENT ON SEQUENCE s IS 'of the user\n[snowflake_adopt: GENERATED ALWAYS AS IDENTITY]'",
        ]
    );
    assert_eq!(plan.locks, [Oid(2), Oid(77)]);
    assert_eq!(actors(&plan)[5..7], [Actor::Owner, Actor::Role(Oid(8))]);
    facts.sequences[0].users = vec!["view v".to_owned()];
    assert_eq!(adopt(&facts, FIRST).obstacles, ["sequence s is used by view v, and is dropped and made again"]);
}

#[test]
fn another_default_is_on_record_in_a_sequence_of_the_column() {
    let mut facts = serial(Width::Eight, Width::Eight);
    let records = |facts: &Facts| {
        let plan = adopt(facts, FIRST);
        let found = statements(&plan).into_iter().filter(|it| it.contains("SEQUENCE")).map(str::to_owned);
        found.collect::<Vec<_>>()
    };
    assert_eq!(records(&facts), [""; 0]);
    // What an earlier time has left does not count any more.
    facts.sequences[0].comment = Some("c\n[snowflake_adopt: no default]".to_owned());
    assert_eq!(records(&facts), ["COMMENT ON SEQUENCE s IS 'c'"]);
    facts.sequences[0].is_default = false;
    facts.source = Source::Default("f('x')".to_owned());
    assert_eq!(records(&facts), ["COMMENT ON SEQUENCE s IS 'c\n[snowflake_adopt: DEFAULT f(''x'')]'"]);
    facts.sequences.clear();
    facts.source = Source::Given;
    assert_eq!(
        records(&facts),
        [
            "CREATE SEQUENCE m",
            "ALTER SEQUENCE m OWNED BY t.id",
            "COMMENT ON SEQUENCE m IS '[snowflake_adopt: no default; snowflake_release() drops this sequence]'",
        ]
    );
}

/// Clients set the sequence of a key to its highest value. On the way back it becomes what it was, where nothing is lost.
#[test]
fn a_narrow_sequence_gets_room_for_ids() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.sequences[0].options = Options::DEFAULT.of_width(Width::Four);
    facts.sequences[0].comment = Some("c".to_owned());
    let plan = adopt(&facts, FIRST);
    let record = "c\n[snowflake_adopt: nextval() of this sequence; of type integer]";
    let of_it = |plan: &MovePlan| -> Vec<String> {
        let all = statements(plan).into_iter().filter(|it| it.contains("SEQUENCE"));
        all.map(str::to_owned).collect()
    };
    assert_eq!(of_it(&plan), ["ALTER SEQUENCE s AS bigint".to_owned(), format!("COMMENT ON SEQUENCE s IS '{record}'")]);
    let mut moved = moved_in(serial(Width::Eight, Width::Eight));
    moved.sequences[0].comment = Some(record.to_owned());
    let back = |facts: &Facts, start| of_it(&release(facts, &Release { start, ..Release::default() }).unwrap().0);
    let comment = "COMMENT ON SEQUENCE s IS 'c'";
    assert_eq!(back(&moved, None), ["ALTER SEQUENCE s AS integer", comment]);
    assert_eq!(back(&moved, Some(77)), ["ALTER SEQUENCE s RESTART WITH 77", "ALTER SEQUENCE s AS integer", comment]);
    // Where IDs were made, it goes on after them.
    moved.values = Some(Values { lowest: 1, highest: FIRST });
    assert_eq!(back(&moved, None), [format!("ALTER SEQUENCE s RESTART WITH {}", FIRST + 1), comment.to_owned()]);
    // Limits that an integer does not have.
    moved.values = None;
    moved.sequences[0].options.max = FIRST;
    assert_eq!(back(&moved, Some(77)), ["ALTER SEQUENCE s RESTART WITH 77", comment]);
}

/// What partitions and tables that inherit have of their own stays theirs.
#[test]
fn defaults_of_heirs_stay() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.relations.extend([relation(3, "same"), relation(4, "other"), relation(5, "none")]);
    facts.columns.extend([3, 4, 5].map(|oid| column(oid, "id", Width::Eight, &[2])));
    assert_eq!(
        statements(&adopt(&facts, FIRST))[1],
        "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()"
    );
    facts.columns[3].default = Some("7".to_owned());
    facts.columns[4].default = None;
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan)[1..],
        [
            "ALTER TABLE ONLY t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
            "ALTER TABLE ONLY same ALTER COLUMN id SET DEFAULT public.snowflake_next()",
        ]
    );
    let has = |text: &str| plan.notes.iter().any(|note| note.starts_with(text));
    assert!(has("other.id keeps its own default, 7: ") && has("none.id has no default of its own"), "{:?}", plan.notes);
    // And on the way back.
    let mut facts = moved_in(facts);
    for (heir, default) in [(3, Some("7".to_owned())), (4, None)] {
        (facts.columns[heir].default, facts.columns[heir].makes_ids) = (default, false);
    }
    let (plan, _) = release(&facts, &Release { start: Some(10), ..Release::default() }).unwrap();
    assert_eq!(
        statements(&plan)[1..],
        [
            "ALTER TABLE ONLY t ALTER COLUMN id SET DEFAULT pg_catalog.nextval('s'::pg_catalog.regclass)",
            "ALTER TABLE ONLY same ALTER COLUMN id SET DEFAULT pg_catalog.nextval('s'::pg_catalog.regclass)",
        ]
    );
    assert!(plan.notes.contains(&"other.id keeps its own default: 7".to_owned()), "{:?}", plan.notes);
}

/// `SET DEFAULT` by hand does half of it.
#[test]
fn what_is_half_done_is_finished_and_what_is_done_needs_nothing() {
    let mut facts = serial(Width::Eight, Width::Four);
    facts.sequences.clear();
    let mut facts = moved_in(facts);
    let plan = adopt(&facts, FIRST);
    assert_eq!(statements(&plan)[1..], ["ALTER TABLE u ALTER COLUMN t_id TYPE bigint"]);
    facts.columns[1].width = Some(Width::Eight);
    let done = adopt(&facts, FIRST);
    assert!(done.steps.is_empty() && done.obstacles.is_empty() && is_done(&facts), "{done:?}");
}

#[test]
fn what_would_be_lost_or_never_work_is_an_obstacle() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.foreign_keys[0].is_disabled = true;
    facts.refused_by = vec!["public.d: CHECK (VALUE < 9)".to_owned()];
    facts.statistics_of_others = vec!["statistics public.s belong to role r".to_owned()];
    let statistics = "statistics public.s belong to role r, and PostgreSQL makes them again without their target";
    let disabled =
        "foreign key u_t_id_fkey of u has triggers that are disabled, and would be made again with all of them enabled";
    let domain = "no new ID passes the constraint of the domain public.d: CHECK (VALUE < 9)";
    assert_eq!(adopt(&facts, FIRST).obstacles, [disabled, statistics, domain]);
    // The foreign key is not made again where nothing becomes wider.
    let wide = serial(Width::Eight, Width::Eight);
    let facts = Facts {
        foreign_keys: facts.foreign_keys,
        refused_by: facts.refused_by,
        statistics_of_others: facts.statistics_of_others,
        ..wide
    };
    assert_eq!(adopt(&facts, FIRST).obstacles, [domain]);
}

#[test]
fn what_postgresql_leaves_out_is_put_back() {
    let mut facts = serial(Width::Four, Width::Eight);
    facts.left_out = vec!["ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 500".to_owned()];
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan)[1..3],
        ["ALTER TABLE t ALTER COLUMN id TYPE bigint", "ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 500"]
    );
    let facts = Facts { left_out: facts.left_out, ..serial(Width::Eight, Width::Eight) };
    assert!(!adopt(&facts, FIRST).steps.iter().any(|step| step.statement.contains("STATISTICS")));
}

/// A foreign key into a partitioned table has a part on each partition.
#[test]
fn partitions_at_the_other_end_of_a_foreign_key_are_locked() {
    let mut facts = serial(Width::Eight, Width::Four);
    facts.relations[0].partitions = vec!["t_1".to_owned(), "t_2".to_owned()];
    let plan = adopt(&facts, FIRST);
    assert_eq!(plan.steps[0].statement, "LOCK TABLE u, t IN ACCESS EXCLUSIVE MODE");
    assert_eq!(plan.steps[0].locks, ["u", "t", "t_1", "t_2"]);
    assert_eq!(plan.steps[1].locks, ["u", "t", "t_1", "t_2"]);
}

fn released(
    wish: &Release,
    values: Option<Values>,
    sequences: &[Sequence],
) -> Result<(Vec<String>, i64), ReleaseError> {
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    facts.values = values;
    facts.sequences = sequences.to_vec();
    let (plan, next) = release(&facts, wish)?;
    Ok((plan.steps.into_iter().map(|step| step.statement).collect(), next.unwrap()))
}

#[test]
fn a_new_sequence_begins_behind_the_highest_value() {
    let wish = Release { sequence: "t_id_seq".to_owned(), ..Release::default() };
    let (statements, next) = released(&wish, Some(Values { lowest: -3, highest: 77 }), &[]).unwrap();
    assert_eq!(next, 78);
    assert_eq!(
        statements,
        [
            "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
            "CREATE SEQUENCE t_id_seq AS bigint MINVALUE 1 START WITH 78",
            "ALTER SEQUENCE t_id_seq OWNED BY t.id",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT pg_catalog.nextval('t_id_seq'::pg_catalog.regclass)",
        ]
    );
    assert_eq!(released(&wish, None, &[]).unwrap().1, 1);
    assert_eq!(released(&wish, Some(Values { lowest: -3, highest: -2 }), &[]).unwrap().1, 1);
    let full = Some(Values { lowest: 1, highest: i64::MAX });
    assert_eq!(released(&wish, full, &[]).unwrap_err(), ReleaseError::NoValueLeft);
    assert_eq!(released(&Release { start: Some(-9), ..wish.clone() }, full, &[]).unwrap().1, -9);
}

#[test]
fn a_start_that_a_row_has_is_refused() {
    let wish = Release { start: Some(5), next_above: Some(5), ..Release::default() };
    let values = Some(Values { lowest: 1, highest: 9 });
    assert_eq!(released(&wish, values, &[]).unwrap_err(), ReleaseError::Taken(5));
    assert_eq!(released(&Release { next_above: Some(6), ..wish }, values, &[]).unwrap().1, 5);
}

#[test]
fn an_identity_needs_a_column_that_is_not_null() {
    let wish = Release { identity: true, ..Release::default() };
    assert_eq!(released(&wish, None, &[]).unwrap_err(), ReleaseError::Nullable);
    let (statements, _) = released(&Release { is_not_null: true, ..wish }, None, &[]).unwrap();
    assert_eq!(
        statements[2],
        "ALTER TABLE t ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (START WITH 1 MINVALUE 1)"
    );
}

#[test]
fn only_an_adopted_column_is_released() {
    let facts = serial(Width::Eight, Width::Eight);
    assert_eq!(release(&facts, &Release::default()).unwrap_err(), ReleaseError::NotAdopted);
}

#[test]
fn literals_are_quoted_for_either_setting() {
    assert_eq!(literal("a.b"), "'a.b'");
    assert_eq!(literal("a.\"it's\""), "'a.\"it''s\"'");
    assert_eq!(literal("a.\"\\'\""), "E'a.\"\\\\''\"'");
}

/// pgEdge's conversion clears `attidentity`, and leaves the sequence as it was.
#[test]
fn the_sequence_of_an_identity_that_is_gone_stays_and_is_used_again() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.sequences[0].is_identity = true;
    let plan = adopt(&facts, FIRST);
    assert!(!statements(&plan).contains(&"DROP SEQUENCE s"));
    assert!(plan.notes.iter().any(|note| note.starts_with("sequence s stays")), "{:?}", plan.notes);
    let sequences = &facts.sequences;
    let (statements, _) = released(&Release { start: Some(12), ..Release::default() }, None, sequences).unwrap();
    assert_eq!(statements[1], "ALTER SEQUENCE s RESTART WITH 12");
    let wish = Release { identity: true, is_not_null: true, ..Release::default() };
    assert_eq!(released(&wish, None, sequences).unwrap_err(), ReleaseError::OldIdentity);
}

fn recorded(said: &str) -> Vec<Sequence> {
    let comment = Some(format!("of the user\n[snowflake_adopt: {said}]"));
    vec![Sequence {
        comment,
        is_default: false,
        position: Some(LastValue { last: 9, is_called: true }),
        ..sequence("s")
    }]
}

#[test]
fn an_identity_comes_back_with_all_that_it_was() {
    let mut sequences = recorded("GENERATED ALWAYS AS IDENTITY");
    let own = &mut sequences[0];
    own.options = Options { width: Width::Four, start: 2, min: 2, max: 1000, increment: 3, cache: 5, cycles: true };
    own.grants = vec![("GRANT a".to_owned(), Oid(7))];
    own.is_unlogged = true;
    let wish = Release { start: Some(50), is_not_null: true, ..Release::default() };
    let values = Some(Values { lowest: 1, highest: FIRST });
    let (statements, first) = released(&wish, values, &sequences).unwrap();
    assert_eq!(first, 50);
    let made = "ALTER TABLE t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s START WITH 2 INCREMENT BY 3 \
                MINVALUE 2 MAXVALUE 1000 CACHE 5 CYCLE)";
    let expected = [
        "ALTER TABLE t ALTER COLUMN id DROP DEFAULT",
        "DROP SEQUENCE s",
        made,
        "ALTER SEQUENCE s RESTART WITH 50",
        "ALTER SEQUENCE s SET UNLOGGED",
        "GRANT a",
        "COMMENT ON SEQUENCE s IS 'of the user'",
    ];
    assert_eq!(statements[1..], expected);
    // Behind the highest value there is no room.
    let (statements, first) = released(&Release { start: None, ..wish.clone() }, values, &sequences).unwrap();
    assert_eq!((first, &*statements[3]), (FIRST + 1, &*made.replace("MAXVALUE 1000", "NO MAXVALUE")));
    // Who takes from it, too, does not get a value twice.
    sequences[0].callers = vec!["f()".to_owned()];
    for start in [None, Some(1), Some(12)] {
        let (statements, first) = released(&Release { start, ..wish.clone() }, values, &sequences).unwrap();
        assert_eq!(first, 12);
        assert_eq!(statements[4], "SELECT pg_catalog.setval('s'::pg_catalog.regclass, 9, true)");
    }
    assert_eq!(
        released(&Release { is_not_null: false, ..wish }, values, &sequences).unwrap_err(),
        ReleaseError::Nullable
    );
}

#[test]
fn a_sequence_that_others_use_is_never_lowered() {
    let mut used = sequence("s");
    used.users = vec!["default value for column b of table t".to_owned()];
    let values = Some(Values { lowest: 1, highest: FIRST });
    let of = |start, sequence: &Sequence| {
        let wish = Release { start, ..Release::default() };
        let (statements, first) = released(&wish, values, std::slice::from_ref(sequence)).unwrap();
        (first, statements.into_iter().find(|it| it.contains("RESTART")).unwrap_or_default())
    };
    for start in [None, Some(1), Some(10)] {
        assert_eq!(of(start, &used), (10, String::new()));
    }
    assert_eq!(of(Some(11), &used), (11, "ALTER SEQUENCE s RESTART WITH 11".to_owned()));
    used.options = Options { increment: -1, min: -100, max: 100, start: 100, ..used.options };
    assert_eq!(of(Some(50), &used), (8, String::new()));
    assert_eq!(of(Some(7), &used), (7, "ALTER SEQUENCE s RESTART WITH 7".to_owned()));
    // One that falls goes on, whoever uses it.
    used.users.clear();
    assert_eq!(of(None, &used), (8, String::new()));
    // It is widened only where it must be.
    let narrow = Sequence {
        options: Options { width: Width::Four, max: i64::from(i32::MAX), ..Options::DEFAULT },
        ..sequence("s")
    };
    assert_eq!(of(Some(99), &narrow).1, "ALTER SEQUENCE s RESTART WITH 99");
    assert_eq!(of(None, &narrow).1, format!("ALTER SEQUENCE s AS bigint RESTART WITH {}", FIRST + 1));
    let small =
        Sequence { options: Options { width: Width::Two, min: 5, max: 100, ..Options::DEFAULT }, ..sequence("s") };
    assert_eq!(of(None, &small).1, format!("ALTER SEQUENCE s AS bigint NO MAXVALUE RESTART WITH {}", FIRST + 1));
    assert_eq!(of(Some(1), &small).1, "ALTER SEQUENCE s AS bigint MINVALUE 1 RESTART WITH 1");
}

#[test]
fn what_is_on_record_is_put_back() {
    let of = |said: &str, start| {
        let facts = Facts { sequences: recorded(said), ..moved_in(serial(Width::Eight, Width::Eight)) };
        let checked = put_back(&facts, start, false);
        let wish = Release { start, sequence: "new".to_owned(), ..Release::default() };
        let (plan, first) = release(&facts, &wish).unwrap();
        assert_eq!(first, begins_at(&facts, start, false).or(first));
        (statements(&plan)[1..].iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), first, checked)
    };
    let default = "ALTER TABLE t ALTER COLUMN id SET DEFAULT f('x')".to_owned();
    let comment = "COMMENT ON SEQUENCE s IS 'of the user'".to_owned();
    let checked = Some("f('x')".to_owned());
    let (steps, first, found) = of("DEFAULT f('x')", None);
    assert_eq!((steps, first, found), (vec![default.clone(), comment.clone()], None, checked.clone()));
    let restart = "ALTER SEQUENCE s RESTART WITH 70".to_owned();
    assert_eq!(
        of("DEFAULT f('x')", Some(70)),
        (vec![default.clone(), restart, comment.clone()], Some(70), checked.clone())
    );
    let none = "ALTER TABLE t ALTER COLUMN id DROP DEFAULT".to_owned();
    assert_eq!(of("no default", None), (vec![none.clone(), comment], None, None));
    // A sequence that was made for the record goes with it; a start is a wish for one of its own.
    let marker = "; snowflake_release() drops this sequence";
    let drop = "DROP SEQUENCE s".to_owned();
    assert_eq!(of(&format!("no default{marker}"), None), (vec![none, drop.clone()], None, None));
    assert_eq!(of(&format!("DEFAULT f('x'){marker}"), None), (vec![default, drop], None, checked));
    let (steps, first, found) = of(&format!("DEFAULT f('x'){marker}"), Some(3));
    assert_eq!((&*steps[0], first, found), ("CREATE SEQUENCE new AS bigint MINVALUE 1 START WITH 3", Some(3), None));
    assert_eq!(steps.last().unwrap(), "DROP SEQUENCE s");
}

pub fn view(oid: u32, reads: &[u32]) -> View {
    View {
        oid: Oid(oid),
        name: format!("v{oid}"),
        description: format!("view v{oid}"),
        is_materialized: false,
        owner: Oid(8),
        is_owned: true,
        reads: reads.iter().map(|&oid| Oid(oid)).collect(),
        blockers: Vec::new(),
        definition: format!("CREATE VIEW v{oid}"),
        details: Vec::new(),
        is_populated: false,
        bytes: 0,
        state: String::new(),
        bindings: Vec::new(),
    }
}

fn with_views(views: Vec<View>) -> Facts {
    let mut facts = serial(Width::Four, Width::Four);
    facts.columns[0].dependents = vec!["rule r on table t".to_owned(), "view v10".to_owned()];
    Facts { views, ..facts }
}

pub fn recreating(facts: &Facts) -> MovePlan {
    snowflake_moving::adopt(
        facts,
        &Adoption { first_id: FIRST, markers: vec!["m".to_owned()], recreate_views: true, waived: Vec::new() },
    )
}

#[test]
fn views_are_dropped_and_created_again_in_order() {
    let mut facts = with_views(vec![view(12, &[10, 11]), view(11, &[10]), view(10, &[])]);
    facts.columns[0].dependents.remove(0);
    facts.views[1].is_materialized = true;
    facts.views[1].is_populated = true;
    facts.views[1].bytes = 77;
    facts.views[1].details = vec!["CREATE INDEX i".to_owned()];
    let plan = recreating(&facts);
    assert_eq!(plan.obstacles, [""; 0]);
    assert_eq!(plan.locks, [1, 2, 12, 11, 10].map(Oid));
    assert_eq!(
        statements(&plan)[1..],
        [
            "DROP VIEW v12",
            "DROP MATERIALIZED VIEW v11",
            "DROP VIEW v10",
            "ALTER TABLE t ALTER COLUMN id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN t_id TYPE bigint",
            "CREATE VIEW v10",
            "CREATE VIEW v11",
            "CREATE INDEX i",
            "CREATE VIEW v12",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
            "REFRESH MATERIALIZED VIEW v11",
        ]
    );
    let definitions: Vec<&str> =
        plan.steps.iter().filter(|step| step.by_definition).map(|step| &*step.statement).collect();
    assert_eq!(definitions, ["CREATE VIEW v10", "CREATE VIEW v11", "CREATE INDEX i", "CREATE VIEW v12"]);
    let refresh = plan.steps.iter().find(|step| step.statement.starts_with("REFRESH")).unwrap();
    assert_eq!((&*refresh.rewrites, refresh.bytes), (&["v11".to_owned()][..], 77));

    // Without being told to, they are in the way; and where nothing becomes wider, they stay.
    assert_eq!(adopt(&facts, FIRST).obstacles, ["t.id cannot change its type because of view v10"]);
    let wide = Facts { views: facts.views, ..serial(Width::Eight, Width::Eight) };
    assert!(!statements(&recreating(&wide)).iter().any(|statement| statement.contains("VIEW")));
}

#[test]
fn what_cannot_be_made_again_is_in_the_way() {
    let mut facts = with_views(vec![view(10, &[]), view(11, &[10])]);
    facts.views[0].blockers = vec!["trigger x on view v10".to_owned()];
    facts.views[1].is_owned = false;
    let plan = recreating(&facts);
    assert_eq!(
        plan.obstacles,
        [
            "t.id cannot change its type because of rule r on table t",
            "view v10 cannot be created again because of trigger x on view v10",
            "view v11 cannot be created again: it belongs to another role",
        ]
    );
    assert_eq!(plan.locks, [1, 2, 10].map(Oid));
    let circle = recreating(&with_views(vec![view(10, &[11]), view(11, &[10])]));
    assert_eq!(circle.obstacles.last().unwrap(), "views that read each other in a circle are among view v10, view v11");
}

// Whose rights a statement is run with.

fn actors(plan: &MovePlan) -> Vec<Actor> {
    plan.steps.iter().map(|step| step.actor).collect()
}

#[test]
fn statements_are_run_as_the_owners_of_tables_and_views() {
    let mut facts = with_views(vec![view(10, &[])]);
    facts.columns[0].dependents.remove(0);
    facts.views[0].is_materialized = true;
    facts.views[0].is_populated = true;
    let plan = snowflake_moving::adopt(
        &facts,
        &Adoption { recreate_views: true, first_id: FIRST, markers: vec![String::new()], waived: Vec::new() },
    );
    let others: Vec<_> = plan.steps.iter().filter(|step| step.actor != Actor::Owner).collect();
    let shown: Vec<_> = others.iter().map(|step| (&*step.statement, step.actor, step.fills_view)).collect();
    let viewer = Actor::Role(Oid(8));
    assert_eq!(
        shown,
        [
            ("LOCK TABLE u, t IN ACCESS EXCLUSIVE MODE", Actor::Caller, false),
            ("DROP MATERIALIZED VIEW v10", viewer, false),
            ("CREATE VIEW v10", viewer, false),
            ("REFRESH MATERIALIZED VIEW v10", viewer, true),
        ]
    );
    assert!(plan.notes.iter().all(|note| !note.contains("SET ROLE")), "{:?}", plan.notes);
    facts.relations[0].owner = role(9);
    facts.relations[1].owner = role(9);
    let plan = adopt(&facts, FIRST);
    assert!(plan.notes.iter().any(|note| note.contains("SET ROLE role_9")), "{:?}", plan.notes);
}

#[test]
fn views_are_filled_when_all_of_them_are_there() {
    let mut facts = with_views(vec![view(10, &[]), view(11, &[10])]);
    facts.views.iter_mut().for_each(|view| (view.is_materialized, view.is_populated) = (true, true));
    let plan = snowflake_moving::adopt(
        &facts,
        &Adoption { recreate_views: true, first_id: FIRST, markers: vec![String::new()], waived: Vec::new() },
    );
    let created: Vec<_> =
        statements(&plan).into_iter().filter(|it| it.contains("v1") && !it.contains("DROP")).collect();
    assert_eq!(
        created,
        ["CREATE VIEW v10", "CREATE VIEW v11", "REFRESH MATERIALIZED VIEW v10", "REFRESH MATERIALIZED VIEW v11"]
    );
}

/// The owner of either table could run code as the owner of the other one.
#[test]
fn tables_of_two_owners_are_an_obstacle_where_one_statement_concerns_both() {
    for other in [0, 1] {
        let mut facts = serial(Width::Four, Width::Four);
        facts.relations[other].owner = role(9);
        let plan = adopt(&facts, FIRST);
        let obstacles = plan.obstacles.join("; ");
        assert!(obstacles.contains("belongs to role_7") || obstacles.contains("belongs to role_9"), "{obstacles}");
        assert!(facts.has_one_owner());
    }
    // Where nothing becomes wider, the other table is not concerned.
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.relations[1].owner = role(9);
    assert_eq!(adopt(&facts, FIRST).obstacles.len(), 0);
}

#[test]
fn partitions_of_another_owner_are_an_obstacle_both_ways() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.relations.push(Relation { is_partition: true, owner: role(9), ..relation(3, "p") });
    facts.columns.push(column(3, "id", Width::Eight, &[2]));
    facts.relations[0].heirs_of_others = vec!["p to role_9".to_owned()];
    assert!(!facts.has_one_owner());
    let expected = "t belongs to role_7, and p to role_9";
    let plan = adopt(&facts, FIRST);
    assert!(plan.obstacles.len() == 1 && plan.obstacles[0].starts_with(expected), "{:?}", plan.obstacles);
    let facts = moved_in(facts);
    let (plan, _) = release(&facts, &Release { sequence: "new".to_owned(), ..Release::default() }).unwrap();
    assert!(plan.obstacles[0].starts_with(expected), "{:?}", plan.obstacles);
}

/// Where the owner of the table may not create the sequence, perhaps its caller may, and runs no code of the owner's by it.
#[test]
fn a_new_sequence_is_made_by_the_caller_where_the_owner_may_not() {
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    facts.sequences = Vec::new();
    facts.relations[0].owner.is_caller = false;
    let wish = Release { sequence: "new".to_owned(), ..Release::default() };
    let (plan, _) = release(&facts, &wish).unwrap();
    assert_eq!(actors(&plan), [Actor::Caller, Actor::Owner, Actor::Owner, Actor::Owner, Actor::Owner]);
    facts.relations[0].owner.may_create = false;
    let (plan, _) = release(&facts, &wish).unwrap();
    assert_eq!(actors(&plan), [Actor::Caller, Actor::Caller, Actor::Caller, Actor::Owner, Actor::Owner]);
    let identity = Release { identity: true, is_not_null: true, ..wish };
    let (plan, _) = release(&facts, &identity).unwrap();
    assert!(plan.obstacles[0].contains("may not create the identity's sequence"), "{:?}", plan.obstacles);
}

/// A foreign key is checked by a query that reads all of the other table.
#[test]
fn partitions_of_another_owner_at_the_other_end_of_a_foreign_key_are_an_obstacle() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.relations[1].heirs_of_others = vec!["p to role_9".to_owned()];
    let plan = adopt(&facts, FIRST);
    assert!(plan.obstacles[0].starts_with("t belongs to role_7, and p to role_9"), "{:?}", plan.obstacles);
    assert!(facts.has_one_owner());
}

/// `t`, to which `u.t_id` refers, and `u` itself, whose key is `id`.
fn two() -> [Facts; 2] {
    let first = serial(Width::Four, Width::Four);
    let mut second = serial(Width::Four, Width::Four);
    second.relations = vec![relation(1, "u")];
    second.columns = vec![column(1, "id", Width::Four, &[])];
    second.columns[0].number = 2;
    second.foreign_keys.clear();
    second.sequences[0].name = "s_of_u".to_owned();
    [first, second]
}

fn adopt_all(keys: &[Facts]) -> MovePlan {
    let markers = vec!["m".to_owned(); keys.len()];
    let wish = Adoption { first_id: FIRST, markers, recreate_views: false, waived: Vec::new() };
    snowflake_moving::adopt_all(&Facts::of_all(keys).unwrap(), keys, &wish)
}

#[test]
fn several_tables_are_locked_and_rewritten_once() {
    let plan = adopt_all(&two());
    assert_eq!(
        statements(&plan),
        [
            "LOCK TABLE u, t IN ACCESS EXCLUSIVE MODE",
            "ALTER TABLE t ALTER COLUMN id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN t_id TYPE bigint, ALTER COLUMN id TYPE bigint",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
            "ALTER TABLE u ALTER COLUMN id SET DEFAULT public.snowflake_next()",
        ]
    );
    assert_eq!(plan.obstacles, [""; 0]);
    let said = |text: &str| plan.notes.iter().filter(|note| note.contains(text)).count();
    assert_eq!(["sequence s stays", "sequence s_of_u stays", "lastval()", "ANALYZE u, t"].map(said), [1, 1, 1, 1]);
}

#[test]
fn what_is_in_the_way_of_one_of_several_tables_is_in_the_way() {
    let [first, mut second] = two();
    second.values = Some(Values { lowest: 1, highest: FIRST });
    second.columns[0].dependents = vec!["rule r".to_owned()];
    let plan = adopt_all(&[first, second]);
    assert!(plan.obstacles[0].contains("u.id cannot change its type because of rule r"), "{plan:?}");
    assert!(plan.obstacles[1].contains("u.id has the value") && plan.obstacles.len() == 2, "{plan:?}");
}

#[test]
fn of_several_tables_those_with_ids_are_left_alone() {
    let [first, second] = two();
    let [mut first, second] = [moved_in(first), second];
    first.columns.iter_mut().for_each(|column| column.width = Some(Width::Eight));
    let plan = adopt_all(&[first.clone(), second.clone()]);
    assert_eq!(
        statements(&plan),
        [
            "LOCK TABLE u IN ACCESS EXCLUSIVE MODE",
            "ALTER TABLE u ALTER COLUMN id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN id SET DEFAULT public.snowflake_next()",
        ]
    );
    assert_eq!(plan.notes[0], "t.id makes snowflake IDs already");
    assert_eq!(adopt_all(&[first.clone(), first]).steps, []);
}

/// A foreign key depends on the index of the key, which has another column that becomes wider.
#[test]
fn a_key_that_includes_a_wider_column_lets_go_of_its_foreign_keys() {
    let mut facts = serial(Width::Four, Width::Four);
    facts.relations.push(relation(3, "v"));
    facts
        .foreign_keys
        .push(ForeignKey { included: vec!["t_id".to_owned()], ..foreign_key("v_u_id_fkey", (3, "u_id"), (1, "id")) });
    let plan = adopt(&facts, FIRST);
    assert_eq!(
        statements(&plan),
        [
            "LOCK TABLE u, t, v IN ACCESS EXCLUSIVE MODE",
            "ALTER TABLE v DROP CONSTRAINT v_u_id_fkey",
            "ALTER TABLE t ALTER COLUMN id TYPE bigint",
            "ALTER TABLE u ALTER COLUMN t_id TYPE bigint",
            "ALTER TABLE v ADD CONSTRAINT v_u_id_fkey DEFINITION OF v_u_id_fkey",
            "ALTER TABLE t ALTER COLUMN id SET DEFAULT public.snowflake_next()",
        ]
    );
    assert!(plan.steps[1].note.contains("the index that it depends on has a column that becomes wider"), "{plan:?}");
}

#[test]
fn a_sequence_that_nobody_may_read_is_an_obstacle() {
    let mut facts = serial(Width::Eight, Width::Eight);
    facts.source = Source::Identity { is_always: true };
    (facts.sequences[0].is_identity, facts.sequences[0].position) = (true, None);
    assert_eq!(adopt(&facts, FIRST).obstacles, ["the last value of sequence s cannot be read"]);
    let mut facts = moved_in(serial(Width::Eight, Width::Eight));
    facts.sequences[0].position = None;
    let (plan, _) = release(&facts, &Release::default()).unwrap();
    assert_eq!(plan.obstacles, ["the last value of sequence s cannot be read"]);
}

/// What is dropped while the catalogue is read leaves gaps, of which no plan is made.
#[test]
fn facts_with_gaps_are_none() {
    let whole = || serial(Width::Four, Width::Four);
    assert!(whole().whole().is_some());
    assert!(Facts { columns: Vec::new(), ..whole() }.whole().is_none());
    assert!(Facts { relations: whole().relations.split_off(1), ..whole() }.whole().is_none());
    assert!(Facts { foreign_keys: vec![foreign_key("k", (1, "a"), (9, "b"))], ..whole() }.whole().is_none());
    assert!(Facts::of_all(&[]).is_none());
}

#[test]
fn who_inserts_and_cannot_any_more_is_in_the_way() {
    let writer = |name: &str, may_make_ids| Writer { name: name.to_owned(), may_make_ids };
    let facts = Facts {
        writers: vec![writer("a", false), writer("b", true), writer("PUBLIC", false)],
        ..serial(Width::Eight, Width::Eight)
    };
    let plan = snowflake_moving::adopt(
        &facts,
        &Adoption { first_id: FIRST, markers: vec!["m".to_owned()], recreate_views: false, waived: Vec::new() },
    );
    assert_eq!(plan.obstacles.len(), 1);
    assert!(
        plan.obstacles[0].ends_with("GRANT EXECUTE ON FUNCTION public.snowflake_next() TO a, PUBLIC"),
        "{:?}",
        plan.obstacles
    );
}

/// What breaks INSERTs is in the way, and becomes a note where it is waived by its name.
#[test]
fn what_the_catalogue_shows_to_break_inserts_can_be_waived() {
    let function = Function {
        oid: Oid(9),
        name: "f()".to_owned(),
        callers: vec!["trigger w on table t".to_owned()],
        row_tables: vec![Oid(2)],
        source: "DECLARE v integer; BEGIN v := NEW.id; END".to_owned(),
        is_plpgsql: true,
        small_calls: Vec::new(),
        renewal: None,
        owner: Oid(10),
    };
    let partitioned = PartitionedByKey { table: Oid(2), bounds: vec!["FOR VALUES FROM (1) TO (10)".to_owned()] };
    let facts = Facts {
        casts: vec!["index i casts id to integer: (id)::integer".to_owned()],
        refused_by_checks: vec!["few: (id < 10)".to_owned()],
        functions: vec![function],
        partitioned: vec![partitioned],
        ..serial(Width::Eight, Width::Four)
    };
    let adopt = |waived: &[Waiver]| {
        snowflake_moving::adopt(
            &facts,
            &Adoption {
                first_id: FIRST,
                markers: vec!["m".to_owned()],
                recreate_views: false,
                waived: waived.to_vec(),
            },
        )
    };
    let plan = adopt(&[]);
    assert_eq!((plan.obstacles.len(), plan.hints.len(), plan.has_waived), (4, 4, false), "{plan:#?}");
    for waiver in Waiver::ALL {
        let way = format!("pg_snowflake.waive = '{}'", waiver.name());
        assert_eq!(plan.obstacles.iter().filter(|it| it.contains(&way)).count(), 1, "{plan:#?}");
        let plan = adopt(&[waiver]);
        assert!(plan.has_waived && !plan.obstacles.iter().any(|it| it.contains(&way)), "{plan:#?}");
        assert_eq!((plan.obstacles.len(), plan.notes.iter().filter(|it| it.starts_with("waived: ")).count()), (3, 1));
    }
    assert!(adopt(&Waiver::ALL).obstacles.is_empty());
}
