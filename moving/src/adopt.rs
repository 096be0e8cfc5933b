//! From a sequence, an identity or nothing to `snowflake_next()`.

use crate::record::{self, Memo};
use crate::{
    Before, Column, Facts, ForeignKey, MovePlan, MoveStep, Oid, Source, Values, Waiver, Width, functions, literal,
    partitioned, sequences, views, waiver, writers,
};

/// How columns are to get snowflake IDs.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// New IDs are at or above it.
    pub first_id: i64,
    /// For each column, the name of a sequence for the record of what was before, as a statement writes it, where the column has no
    /// sequence.
    pub markers: Vec<String>,
    /// Whether views that stand in the way are dropped and created again.
    pub recreate_views: bool,
    /// What is waived of what may stand in the way.
    pub waived: Vec<Waiver>,
}

/// Whether a column has IDs, and all that refer to it are as wide.
pub fn is_done(facts: &Facts) -> bool {
    facts.source == Source::Snowflake && facts.columns.iter().all(|column| column.width == Some(Width::Eight))
}

/// How a column gets snowflake IDs. Where the plan has no steps and no obstacles, it has them already.
pub fn adopt(facts: &Facts, wish: &Adoption) -> MovePlan {
    adopt_all(facts, std::slice::from_ref(facts), wish)
}

/// How several columns get them, by one plan: it locks and rewrites each table once. `all` is what is known of [all of
/// them](Facts::of_all). Those that have IDs already are left alone.
pub fn adopt_all(all: &Facts, keys: &[Facts], wish: &Adoption) -> MovePlan {
    let mut plan = MovePlan::default();
    let (open, done): (Vec<_>, Vec<_>) = keys.iter().zip(&wish.markers).partition(|(key, _)| !is_done(key));
    let names = done.iter().map(|(key, _)| key.column_name(key.key()));
    plan.notes.extend(names.map(|name| format!("{name} makes snowflake IDs already")));
    if open.is_empty() {
        return plan;
    }
    let widened: Vec<&Column> = all.columns.iter().filter(|column| column.width != Some(Width::Eight)).collect();
    let heads: Vec<&Column> = open.iter().flat_map(|(key, _)| key.key_columns()).collect();
    let changed = changed(all, &heads, &widened);
    plan.not_owned = not_owned(all, &changed);
    plan.check_owners(all, &touched(all, &changed, &widened));
    find_obstacles(&mut plan, all, &widened, wish);
    open.iter().for_each(|(key, _)| check_values(&mut plan, key, wish.first_id));
    open.iter().for_each(|(key, _)| writers::check(&mut plan, key));
    open.iter().for_each(|(key, _)| partitioned::check(&mut plan, key, wish));
    open.iter().for_each(|(key, _)| waiver::check(&mut plan, key, &wish.waived));
    if !widened.is_empty() {
        functions::check(&mut plan, all, &wish.waived);
    }
    let recreates = wish.recreate_views && !widened.is_empty();
    if recreates {
        views::find_obstacles(&mut plan, all);
    }

    plan.lock(all, locked(all, &changed, &widened));
    let partitions = with_partitions(all, &plan.locks);
    plan.steps.iter_mut().for_each(|step| step.locks.clone_from(&partitions));
    if recreates {
        plan.locks.extend(views::locked(all));
        plan.steps.extend(views::drops(all));
    }
    open.iter().for_each(|(key, _)| end_identity(&mut plan, key));
    let by_hand = by_hand(all, &widened);
    plan.steps.extend(by_hand.iter().map(|key| drop_foreign_key(all, key)));
    plan.steps.extend(widenings(all, &widened));
    plan.steps.extend(by_hand.iter().flat_map(|key| add_foreign_key(all, key)));
    plan.steps.extend(all.left_out.iter().filter(|_| !widened.is_empty()).map(|statement| left_out(statement)));
    if recreates {
        plan.steps.extend(views::creations(all));
    }
    for (key, marker) in &open {
        if key.source != Source::Snowflake {
            replace_default(&mut plan, key);
            put_on_record(&mut plan, key, marker);
        }
        note_sequences(&mut plan, key);
    }
    if recreates {
        plan.steps.extend(views::fillings(all));
    }
    if !widened.is_empty() {
        functions::renew(&mut plan, all);
    }
    for (key, _) in &open {
        plan.notes.extend(notes_of_key(key, wish.first_id));
    }
    let has_sequences = open.iter().any(|(key, _)| !key.sequences.is_empty());
    plan.notes.extend(notes(all, &changed, &widened, has_sequences));
    plan.note_actor(all);
    plan
}

/// The table at the top of an inheritance tree, where the column's type is changed for all of it. Two where the column is
/// inherited from both, and cannot be changed.
fn tops(facts: &Facts, column: &Column) -> Vec<Oid> {
    let mut tops = Vec::new();
    let mut open = vec![column];
    while let Some(column) = open.pop() {
        if column.parents.is_empty() {
            tops.push(column.relation);
        }
        let is_parent = |other: &&Column| column.parents.contains(&other.relation) && other.name == column.name;
        open.extend(facts.columns.iter().filter(is_parent));
    }
    tops.sort_unstable();
    tops.dedup();
    tops
}

/// The foreign keys that one of these columns is part of: PostgreSQL makes them again when its type changes.
fn foreign_keys<'a>(facts: &'a Facts, columns: &[&Column]) -> Vec<&'a ForeignKey> {
    let is_touched = |key: &&ForeignKey| {
        columns.iter().any(|column| {
            key.columns.iter().any(|(from, to)| {
                (key.from == column.relation && *from == column.name)
                    || (key.to == column.relation && *to == column.name)
            }) || is_included(key, column)
        })
    };
    facts.foreign_keys.iter().filter(is_touched).collect()
}

/// Whether the index that a foreign key depends on has the column, which it does not refer to.
fn is_included(key: &ForeignKey, column: &Column) -> bool {
    key.to == column.relation && key.included.contains(&column.name)
}

/// Those of them that PostgreSQL cannot make again by itself. Of one that refers to a partition, it refuses to change the type, as it
/// depends on an index that belongs to the partitioned table's. One that refers to a partitioned table has a part for each partition,
/// and the names that these get may be those of other foreign keys of the table, which are made again after it. One that depends on an
/// index for a column that it does not refer to is in the way of the index.
fn by_hand<'a>(facts: &'a Facts, columns: &[&Column]) -> Vec<&'a ForeignKey> {
    let keys = foreign_keys(facts, columns);
    let is_by_hand = |key: &&ForeignKey| {
        facts.relation(key.to).is_some_and(|to| {
            let has_others = keys.iter().any(|other| other.from == key.from && other.name != key.name);
            let is_in_the_way = columns.iter().any(|column| is_included(key, column));
            is_in_the_way || to.is_partition || !to.partitions.is_empty() && has_others
        })
    };
    keys.iter().copied().filter(is_by_hand).collect()
}

fn drop_foreign_key(facts: &Facts, key: &ForeignKey) -> MoveStep {
    let table = facts.name(key.from);
    let to_partition = facts.relation(key.to).is_some_and(|to| to.is_partition);
    let why = match key {
        _ if to_partition => "it refers to a partition",
        _ if !key.included.is_empty() => "the index that it depends on has a column that becomes wider",
        _ => "it refers to a partitioned table, and the table has others",
    };
    let note = &format!("PostgreSQL would not make it again by itself, as {why}");
    let step = MoveStep::on(table, format!("ALTER TABLE {table} DROP CONSTRAINT {}", key.name), note);
    MoveStep { locks: with_partitions(facts, &[key.from, key.to]), ..step }
}

fn add_foreign_key(facts: &Facts, key: &ForeignKey) -> Vec<MoveStep> {
    let table = facts.name(key.from);
    let statement = format!("ALTER TABLE {table} ADD CONSTRAINT {} {}", key.name, key.definition);
    let step = MoveStep::on(table, statement, "makes it again and checks it");
    let mut steps = vec![MoveStep { locks: with_partitions(facts, &[key.from, key.to]), ..step }];
    steps.extend(key.comment.as_ref().map(|comment| {
        let statement = format!("COMMENT ON CONSTRAINT {} ON {table} IS {}", key.name, literal(comment));
        MoveStep { locks: Vec::new(), ..MoveStep::on(table, statement, "") }
    }));
    steps
}

/// A statistics target, of an index or of extended statistics.
fn left_out(statement: &str) -> MoveStep {
    MoveStep { locks: Vec::new(), ..MoveStep::on("", statement.to_owned(), "PostgreSQL makes it again without") }
}

/// The tables that change: those of the keys, their partitions and heirs, and those with columns that become wider.
fn changed(facts: &Facts, heads: &[&Column], widened: &[&Column]) -> Vec<Oid> {
    let mut tables: Vec<Oid> = heads.iter().chain(widened).map(|column| column.relation).collect();
    tables.extend(by_hand(facts, widened).into_iter().map(|key| key.from));
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// These, and the tables at the other ends of their foreign keys, which PostgreSQL locks, too, and reads when it checks
/// the foreign keys again.
fn touched(facts: &Facts, changed: &[Oid], widened: &[&Column]) -> Vec<Oid> {
    let ends = foreign_keys(facts, widened).into_iter().flat_map(|key| [key.from, key.to]);
    let mut tables: Vec<Oid> = changed.iter().copied().chain(ends).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// What is locked first. Not the tables of other owners: they may not be locked by a LOCK TABLE.
fn locked(facts: &Facts, changed: &[Oid], widened: &[&Column]) -> Vec<Oid> {
    let is_owned = |&oid: &Oid| facts.relation(oid).is_some_and(|relation| relation.is_owned);
    touched(facts, changed, widened).into_iter().filter(|oid| changed.contains(oid) || is_owned(oid)).collect()
}

fn not_owned(facts: &Facts, changed: &[Oid]) -> Vec<String> {
    let foreign = |&&oid: &&Oid| facts.relation(oid).is_none_or(|relation| !relation.is_owned);
    changed.iter().filter(foreign).map(|&oid| facts.name(oid).to_owned()).collect()
}

fn find_obstacles(plan: &mut MovePlan, facts: &Facts, widened: &[&Column], wish: &Adoption) {
    let recreate_views = wish.recreate_views;
    let is_view = |text: &String| facts.views.iter().any(|view| view.description == *text);
    for column in widened {
        let name = facts.column_name(column);
        if column.width.is_none() {
            let obstacle = format!("{name} must hold the IDs, too, and is of type {}", column.type_name);
            plan.hinder(obstacle, "Change such a column's type to bigint first.");
        }
        for dependent in column.dependents.iter().filter(|text| !(recreate_views && is_view(text))) {
            plan.hinder(
                format!("{name} cannot change its type because of {dependent}"),
                if is_view(dependent) {
                    "Give views => 'recreate' to have views dropped and created again."
                } else {
                    "Save the definitions of such objects, drop them, call this again, and create them again, in one \
                     transaction."
                },
            );
        }
        if let [first, second, ..] = &*tops(facts, column) {
            let [first, second] = [first, second].map(|&oid| facts.name(oid));
            plan.hinder(
                format!("{name} cannot change its type because it is inherited from both {first} and {second}"),
                "PostgreSQL cannot change a column that is inherited from two tables: end one of the two by ALTER TABLE ... NO INHERIT.",
            );
        }
    }
    for key in foreign_keys(facts, widened).into_iter().filter(|key| key.is_disabled) {
        let (name, table) = (&key.name, facts.name(key.from));
        plan.hinder(
            format!("foreign key {name} of {table} has triggers that are disabled, and would be made again with all of them enabled"),
            "In one transaction, enable such triggers by ALTER TABLE ... ENABLE TRIGGER ALL, call this, and disable them again.",
        );
    }
    for statistics in facts.statistics_of_others.iter().filter(|_| !widened.is_empty()) {
        plan.hinder(
            format!("{statistics}, and PostgreSQL makes them again without their target"),
            "Give statistics on a column that changes to the owner of the table: ALTER STATISTICS ... OWNER TO.",
        );
    }
    for constraint in &facts.refused_by {
        plan.hinder(
            format!("no new ID passes the constraint of the domain {constraint}"),
            "Drop such a constraint, or change the type of the column to bigint.",
        );
    }
}

/// All values must be below the new IDs.
fn check_values(plan: &mut MovePlan, facts: &Facts, first_id: i64) {
    if let Some(values) = facts.values.filter(|values| values.highest >= first_id) {
        let (name, highest) = (facts.column_name(facts.key()), values.highest);
        plan.hinder(
            format!("{name} has the value {highest}, and the next ID would be {first_id}, which is not above it"),
            "If these are IDs of another layout, such as pgEdge's, set pg_snowflake.layout to it, before this database \
             has IDs of its own. Else give such rows lower numbers.",
        );
    }
}

/// One statement for each table that has a column to be widened and inherits it from none.
fn widenings(facts: &Facts, widened: &[&Column]) -> Vec<MoveStep> {
    let mut roots: Vec<(Oid, Vec<&Column>)> = Vec::new();
    for &column in widened {
        for top in tops(facts, column) {
            match roots.iter_mut().find(|(root, _)| *root == top) {
                Some((_, columns)) => columns.push(column),
                None => roots.push((top, vec![column])),
            }
        }
    }
    roots.into_iter().map(|(root, columns)| widening(facts, root, &columns)).collect()
}

/// These tables, and their partitions: PostgreSQL makes a foreign key's part on each of them again, too.
fn with_partitions(facts: &Facts, tables: &[Oid]) -> Vec<String> {
    let relations = tables.iter().filter_map(|&oid| facts.relation(oid));
    let mut names: Vec<String> = relations.clone().map(|relation| relation.name.clone()).collect();
    for partition in relations.flat_map(|relation| &relation.partitions) {
        if !names.contains(partition) {
            names.push(partition.clone());
        }
    }
    names
}

/// The statement for one table, with these columns of it and of those that inherit from it.
fn widening(facts: &Facts, root: Oid, columns: &[&Column]) -> MoveStep {
    let table = facts.name(root);
    let mut names: Vec<&str> = Vec::new();
    let mut rewritten = vec![root];
    for column in columns {
        if !names.contains(&&*column.name) {
            names.push(&column.name);
        }
        if !rewritten.contains(&column.relation) {
            rewritten.push(column.relation);
        }
    }
    let types: Vec<String> = names.iter().map(|name| format!("ALTER COLUMN {name} TYPE bigint")).collect();
    let keys = foreign_keys(facts, columns);
    let mut locks = rewritten.clone();
    for end in keys.iter().flat_map(|key| [key.from, key.to]) {
        if !locks.contains(&end) {
            locks.push(end);
        }
    }
    let by_hand = by_hand(facts, columns);
    let is_made_again = |key: &&&ForeignKey| !by_hand.iter().any(|other| std::ptr::eq(*other, **key));
    let note = match keys.iter().filter(is_made_again).collect::<Vec<_>>() {
        keys if keys.is_empty() => String::new(),
        keys => {
            let keys: Vec<String> =
                keys.iter().map(|key| format!("{} of {}", key.name, facts.name(key.from))).collect();
            format!("also makes again and checks the foreign keys {}", keys.join(", "))
        }
    };
    let shown = |tables: &[Oid]| tables.iter().map(|&oid| facts.name(oid).to_owned()).collect();
    MoveStep {
        locks: with_partitions(facts, &locks),
        bytes: rewritten.iter().filter_map(|&oid| facts.relation(oid)).map(|relation| relation.bytes).sum(),
        rewrites: shown(&rewritten),
        ..MoveStep::on(table, format!("ALTER TABLE {table} {}", types.join(", ")), &note)
    }
}

/// The sequence of an identity goes with it, and is made again as it was, without the identity.
fn end_identity(plan: &mut MovePlan, facts: &Facts) {
    let (Source::Identity { .. }, Some(table)) = (&facts.source, facts.table()) else { return };
    let key = &facts.key().name;
    let statement = format!("ALTER TABLE {} ALTER COLUMN {key} DROP IDENTITY", table.name);
    let mut step = MoveStep::on(&table.name, statement, "the identity's sequence goes with it, and is made again");
    let own: Vec<_> = facts.sequences.iter().filter(|sequence| sequence.is_identity).collect();
    step.locks.extend(own.iter().map(|sequence| sequence.name.clone()));
    plan.steps.push(step);
    for sequence in own {
        // What it gives until then is not given again.
        plan.locks.push(sequence.oid);
        plan.steps.extend(sequence.creation(table, key));
        plan.check_position(sequence);
        for user in &sequence.users {
            plan.hinder(
                format!("sequence {} is used by {user}, and is dropped and made again", sequence.name),
                "Have such objects use another sequence first.",
            );
        }
    }
}

/// The default of the table, and of those that inherit from it and have the same. Others keep theirs.
fn replace_default(plan: &mut MovePlan, facts: &Facts) {
    let keys = facts.key_columns();
    let (same, others): (Vec<&Column>, Vec<&Column>) = keys.iter().partition(|it| it.default == facts.key().default);
    let note = match &facts.source {
        Source::Default(before) => format!("the default was {before}"),
        Source::Given => "the column had no default".to_owned(),
        Source::Identity { .. } | Source::Snowflake => String::new(),
    };
    plan.alter_defaults(facts, &same, &format!("SET DEFAULT {}", facts.next), &note);
    for other in others.into_iter().filter(|other| !other.makes_ids) {
        let name = facts.column_name(other);
        plan.notes.push(other.default.as_ref().map_or_else(
            || format!("{name} has no default of its own, and gets none: rows that are inserted there need an ID"),
            |default| format!("{name} keeps its own default, {default}: rows that are inserted there get no IDs"),
        ));
    }
}

/// Writes down what [`crate::release`] is to put back, where a sequence that belongs to the column does not say it by being there.
fn put_on_record(plan: &mut MovePlan, facts: &Facts, marker: &str) {
    let Some(table) = facts.table() else { return };
    let mut owned: Vec<_> = facts.sequences.iter().filter(|sequence| sequence.is_owned_by_key).collect();
    let has_identity = matches!(facts.source, Source::Identity { .. });
    owned.sort_by_key(|sequence| !(sequence.is_default || has_identity && sequence.is_identity));
    let before = match &facts.source {
        Source::Identity { is_always } => Some(Before::Identity { is_always: *is_always }),
        Source::Default(_) if owned.len() == 1 && owned[0].is_default => None,
        Source::Default(expression) => Some(Before::Default(expression.clone())),
        Source::Given => Some(Before::Nothing),
        Source::Snowflake => return,
    };
    let Some(sequence) = owned.first() else {
        let before = before.unwrap_or(Before::Nothing);
        let record = Memo { comment: None, before, was: None, is_marker: true };
        let (name, column) = (marker, &facts.key().name);
        let note = "for the way back: its comment says what was before, and it goes with the column";
        plan.steps.extend(sequences::new(name, &format!("CREATE SEQUENCE {name}"), note, table));
        plan.steps.push(MoveStep::on(name, format!("ALTER SEQUENCE {name} OWNED BY {}.{column}", table.name), ""));
        let statement = format!("COMMENT ON SEQUENCE {name} IS {}", literal(&record.write()));
        plan.steps.push(MoveStep::on(name, statement, "for snowflake_release()"));
        return;
    };
    let is_marker = sequence.comment.as_deref().and_then(Memo::read).is_some_and(|record| record.is_marker);
    let comment = record::users_own(sequence.comment.as_deref());
    let is_new = sequence.is_identity && matches!(before, Some(Before::Identity { .. }));
    // Clients set it to the highest ID, as the fixtures of Rails and Django do.
    let was = Some(sequence.options.width).filter(|width| !is_new && *width != Width::Eight);
    if was.is_some() {
        plan.steps.push(sequence.of_type(Width::Eight, "so that it can be set to an ID"));
    }
    let wanted = match before.or_else(|| was.map(|_| Before::Sequence)) {
        Some(before) => Some(Memo { comment, before, was, is_marker }.write()),
        None => comment,
    };
    if is_new || wanted != sequence.comment {
        plan.steps.push(sequence.comment_step(wanted.as_deref(), "for snowflake_release()"));
    }
}

/// What becomes of the sequences that the column has or uses.
fn note_sequences(plan: &mut MovePlan, facts: &Facts) {
    for sequence in &facts.sequences {
        let name = &sequence.name;
        let others = match sequence.others() {
            others if others.is_empty() => String::new(),
            others => format!("; so do {}", others.join(", ")),
        };
        let asked =
            format!("clients that ask it by themselves, as Hibernate's SEQUENCE does, still get small numbers{others}");
        let identity = matches!(facts.source, Source::Identity { .. });
        plan.notes.push(if sequence.is_identity && !identity {
            // That is what pgEdge's conversion leaves behind.
            format!("sequence {name} stays: it was that of an identity, and PostgreSQL drops it with the column only{others}")
        } else if sequence.is_owned_by_key {
            format!("sequence {name} stays, for the way back: {asked}")
        } else {
            format!("sequence {name} stays, as it does not belong to the column: {asked}")
        });
    }
}

/// Whether a value could be an ID: one that was only counted is nowhere near the next ID.
fn could_be_id(value: i64, first_id: i64) -> bool {
    value > first_id >> 10
}

/// Whose times are true of the values that are there.
fn times_of(source: &Source, highest: i64, first_id: i64) -> String {
    match source {
        // It makes IDs in the same form.
        Source::Default(before) if before.starts_with("snowflake.nextval(") => {
            "Only those that snowflake.nextval() has made have true times".to_owned()
        }
        Source::Default(before) if !before.starts_with("nextval(") && could_be_id(highest, first_id) => {
            format!("Their times are true only if {before} makes IDs of this database's layout")
        }
        Source::Given if could_be_id(highest, first_id) => {
            "Their times are true only if they are IDs of this database's layout".to_owned()
        }
        _ => "They have no true times".to_owned(),
    }
}

/// Whoever made IDs before may go on, and knows nothing of those that this server makes.
fn other_makers(source: &Source, name: &str, highest: i64, first_id: i64) -> Option<String> {
    let (who, instead) = match source {
        Source::Default(before) if !before.starts_with("nextval(") => {
            (format!("still call {before} for {name}"), "let nobody call it")
        }
        Source::Given => (format!("go on making values of {name}"), "let them leave the column out"),
        _ => return None,
    };
    could_be_id(highest, first_id).then(|| {
        format!(
            "clients that {who} can make an ID again that this server has made, if that has its worker ID: {instead}, or \
             give this server another number"
        )
    })
}

fn notes_of_key(facts: &Facts, first_id: i64) -> Vec<String> {
    let mut notes = Vec::new();
    let name = facts.column_name(facts.key());
    match facts.values {
        None => notes.push(format!("{name} has no values yet")),
        Some(Values { lowest, highest }) => {
            let times = times_of(&facts.source, highest, first_id);
            notes.push(format!(
                "{name} has values from {lowest} to {highest}, which stay. {times}: new IDs are at or above first_id, \
                 which snowflake_adopt() returns, and which is at least {first_id}"
            ));
        }
    }
    notes.extend(facts.values.and_then(|values| other_makers(&facts.source, &name, values.highest, first_id)));
    if facts.values.is_some_and(|values| values.lowest < 0) {
        notes
            .push(format!("negative values of {name} are no IDs: functions such as snowflake_timestamp() refuse them"));
    }
    let refers = |key: &&ForeignKey| {
        key.from == facts.key().relation
            && key.to != key.from
            && key.columns.iter().any(|(from, _)| *from == facts.key().name)
    };
    for key in facts.foreign_keys.iter().filter(refers) {
        notes.push(format!("{name} itself refers to {}: a new ID must be there first", facts.name(key.to)));
    }
    if facts.source == (Source::Identity { is_always: true }) {
        let table = facts.name(facts.key().relation);
        notes.push(format!(
            "from now on, clients may give values of their own for {name}, which GENERATED ALWAYS refused. To keep them out, let \
             them insert and update the other columns only: REVOKE INSERT, UPDATE ON {table} FROM ..., GRANT INSERT (...), UPDATE \
             (...) ON {table} TO ..."
        ));
    }
    notes
}

fn notes(facts: &Facts, changed: &[Oid], widened: &[&Column], has_sequences: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !facts.checks.is_empty() {
        notes.push(format!("new IDs must pass the constraints {}", facts.checks.join(", ")));
    }
    if !facts.publications.is_empty() && !widened.is_empty() {
        notes.push(format!(
            "published by {}: widen the columns on the subscribers first, as ALTER TABLE is not replicated",
            facts.publications.join(", ")
        ));
    }
    if !widened.is_empty() {
        notes.extend(functions::notes(facts));
    }
    if !widened.is_empty() {
        let tables: Vec<String> = changed.iter().map(|&oid| facts.name(oid).to_owned()).collect();
        let open = match facts.sessions {
            0 => String::new(),
            number => format!("; other sessions open in this database now: {number}"),
        };
        notes.push(format!(
            "sessions that have prepared a statement which returns a widened column get \"cached plan must not change result type\" \
             until it is prepared again: some clients do that by themselves, others must connect again{open}"
        ));
        notes.push(format!("statistics of widened columns are gone: ANALYZE {} afterwards", tables.join(", ")));
    }
    if has_sequences {
        notes.push("lastval() and currval() know nothing of IDs: clients must use INSERT ... RETURNING".to_owned());
    }
    notes
}
