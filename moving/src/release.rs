//! From `snowflake_next()` back to what was before, or to a sequence or an identity. The column stays `bigint`.

use crate::record::{self, Memo};
use crate::{
    Before, Column, Facts, MovePlan, MoveStep, Oid, Sequence, Source, Values, Width, literal, sequences, writers,
};

/// What the column is to get instead.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// The next value; `None` for what [`begins_at`] says.
    pub start: Option<i64>,
    /// The lowest existing value at or above the next one.
    pub next_above: Option<i64>,
    /// An identity, whatever was before.
    pub identity: bool,
    /// Whether the column is NOT NULL, as an identity must be.
    pub is_not_null: bool,
    /// The name of a new sequence, as a statement writes it.
    pub sequence: String,
}

const WITHOUT_RECORD: &str = "without what was on record";

/// Why a column cannot be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseError {
    /// Its default is not `snowflake_next()`.
    NotAdopted,
    /// No `bigint` is above its highest value.
    NoValueLeft,
    /// A row has the value to start at.
    Taken(i64),
    /// The column may be NULL, and cannot be an identity.
    Nullable,
    /// Tables that inherit from this one would be left without a default.
    Heirs,
    /// The column still has the sequence of an identity that was taken away by a change of the catalogue, and could not
    /// have a second one.
    OldIdentity,
}

/// What the column gets.
enum Back<'a> {
    /// This default, or none.
    Default(Option<String>),
    /// `nextval()` of a sequence that it has.
    Sequence(&'a Sequence),
    /// An identity, with a sequence that it has.
    Identity(Option<&'a Sequence>, bool),
    /// `nextval()` of a new sequence.
    New,
}

/// The sequence that belongs to the column and has a record in its comment; else the first that belongs to it.
fn kept(facts: &Facts) -> Option<(&Sequence, Option<Memo>)> {
    let owned = || facts.sequences.iter().filter(|sequence| sequence.is_owned_by_key);
    let record = |sequence: &Sequence| sequence.comment.as_deref().and_then(Memo::read);
    let recorded = owned().find_map(|sequence| record(sequence).map(|found| (sequence, Some(found))));
    recorded.or_else(|| owned().next().map(|sequence| (sequence, None)))
}

fn back<'a>(facts: &'a Facts, start: Option<i64>, identity: bool) -> Back<'a> {
    let Some((sequence, record)) = kept(facts) else {
        return if identity { Back::Identity(None, false) } else { Back::New };
    };
    let is_marker = record.as_ref().is_some_and(|record| record.is_marker);
    match record.map(|record| record.before) {
        Some(Before::Identity { is_always }) => Back::Identity(Some(sequence), is_always),
        _ if identity => Back::Identity(Some(sequence).filter(|_| !is_marker), false),
        // A sequence of its own is the only way to begin somewhere.
        Some(_) if is_marker && start.is_some() => Back::New,
        Some(Before::Default(expression)) => Back::Default(Some(expression)),
        Some(Before::Nothing) => Back::Default(None),
        Some(Before::Sequence) | None => Back::Sequence(sequence),
    }
}

/// The default that is on record and would be put back: to be checked before, as it may call what is gone.
pub fn put_back(facts: &Facts, start: Option<i64>, identity: bool) -> Option<String> {
    match back(facts, start, identity) {
        Back::Default(default) if facts.source == Source::Snowflake => default,
        _ => None,
    }
}

/// Whether values of the sequence go elsewhere, too. Then it is never lowered.
fn is_shared(sequence: &Sequence) -> bool {
    !sequence.others().is_empty()
}

/// The value that comes next, where that is not simply the one after the highest: what is asked for, or where a sequence is that
/// others use, too, or that falls.
pub fn begins_at(facts: &Facts, start: Option<i64>, identity: bool) -> Option<i64> {
    let sequence = match back(facts, start, identity) {
        Back::Default(_) => kept(facts).map(|(sequence, _)| sequence).filter(|_| start.is_some()),
        Back::Sequence(sequence) => Some(sequence),
        Back::Identity(sequence, _) => sequence.filter(|sequence| !identity || sequence.users.is_empty()),
        Back::New => None,
    };
    let Some(sequence) = sequence else { return start };
    let is_rising = sequence.options.increment > 0;
    match (start, sequence.next()) {
        (Some(start), Some(next)) if is_shared(sequence) && is_rising => Some(start.max(next)),
        (Some(start), Some(next)) if is_shared(sequence) => Some(start.min(next)),
        (None, Some(next)) if is_shared(sequence) || !is_rising => Some(next),
        (start, _) => start,
    }
}

/// How the column gets back what it had before. Returns the next value, too, where that is known.
///
/// # Errors
/// Where it has no snowflake IDs, or the wishes cannot be met.
pub fn release(facts: &Facts, wish: &Release) -> Result<(MovePlan, Option<i64>), ReleaseError> {
    if facts.source != Source::Snowflake {
        return Err(ReleaseError::NotAdopted);
    }
    let back = back(facts, wish.start, wish.identity);
    let first = match (begins_at(facts, wish.start, wish.identity), &back, facts.values) {
        (Some(first), ..) if wish.next_above == Some(first) && wish.start.is_some() => {
            return Err(ReleaseError::Taken(first));
        }
        (Some(first), ..) => Some(first),
        (None, Back::Default(_), _) => None,
        (None, _, Some(Values { highest, .. })) => {
            Some(highest.max(0).checked_add(1).ok_or(ReleaseError::NoValueLeft)?)
        }
        (None, _, None) => Some(1),
    };
    if let Back::Identity(sequence, _) = back {
        check_identity(facts, wish, sequence)?;
    }
    let mut plan = MovePlan::default();
    let tables = facts.key_columns();
    plan.lock(facts, tables.iter().map(|column| column.relation).collect());
    let is_foreign = |name: &&str| facts.relations.iter().any(|relation| relation.name == *name && !relation.is_owned);
    plan.not_owned =
        tables.iter().map(|column| facts.name(column.relation)).filter(is_foreign).map(str::to_owned).collect();
    let oids: Vec<Oid> = tables.iter().map(|column| column.relation).collect();
    plan.check_owners(facts, &oids);
    // What they give until then is not given again.
    plan.locks.extend(facts.sequences.iter().filter(|it| it.is_owned_by_key).map(|sequence| sequence.oid));

    // What they have of their own stays.
    let columns: Vec<&Column> = tables.into_iter().filter(|column| column.makes_ids).collect();
    match &back {
        Back::Default(default) => put_default_back(&mut plan, facts, &columns, default.as_deref(), first),
        Back::Sequence(sequence) => {
            plan.check_position(sequence);
            restart(&mut plan, sequence, first);
            if let Some(record) = kept(facts).and_then(|(_, record)| record) {
                narrow(&mut plan, sequence, &record, first);
                plan.steps.push(sequence.comment_step(record.comment.as_deref(), WITHOUT_RECORD));
            }
            plan.steps.extend(writers::open_kept(sequence));
            set_default(&mut plan, facts, &columns, &sequence.name);
        }
        Back::Identity(sequence, is_always) => {
            let from = (*sequence, *is_always, first.unwrap_or(1));
            make_identity(&mut plan, facts, &columns, from);
        }
        Back::New => make_sequence(&mut plan, facts, &columns, &wish.sequence, first.unwrap_or(1)),
    }
    drop_marker(&mut plan, facts);
    plan.notes.extend(notes(facts, wish, first));
    plan.note_actor(facts);
    Ok((plan, first))
}

fn check_identity(facts: &Facts, wish: &Release, sequence: Option<&Sequence>) -> Result<(), ReleaseError> {
    let heirs = facts.key_columns().into_iter().skip(1);
    let has_heirs = heirs.into_iter().any(|column| !facts.relation(column.relation).is_some_and(|it| it.is_partition));
    let was_one =
        kept(facts).and_then(|(_, record)| record).is_some_and(|it| matches!(it.before, Before::Identity { .. }));
    if !wish.is_not_null {
        return Err(ReleaseError::Nullable);
    }
    if has_heirs && !was_one {
        return Err(ReleaseError::Heirs);
    }
    if sequence.is_some_and(|sequence| sequence.is_identity) {
        return Err(ReleaseError::OldIdentity);
    }
    Ok(())
}

fn put_default_back(
    plan: &mut MovePlan,
    facts: &Facts,
    columns: &[&Column],
    default: Option<&str>,
    first: Option<i64>,
) {
    const NOTE: &str = "as it was before snowflake_adopt()";
    match default {
        Some(default) => plan.alter_defaults(facts, columns, &format!("SET DEFAULT {default}"), NOTE),
        None => plan.alter_defaults(facts, columns, "DROP DEFAULT", NOTE),
    }
    let Some((sequence, Some(record))) =
        kept(facts).filter(|(_, record)| record.as_ref().is_some_and(|it| !it.is_marker))
    else {
        return;
    };
    if first.is_some() {
        restart(plan, sequence, first);
    }
    narrow(plan, sequence, &record, first.or_else(|| sequence.next()));
    if default.is_some_and(|default| default.contains("nextval")) {
        plan.steps.extend(writers::open_kept(sequence));
    }
    plan.steps.push(sequence.comment_step(record.comment.as_deref(), WITHOUT_RECORD));
}

/// Gives a sequence the type back that it had, where that has room for what comes next.
fn narrow(plan: &mut MovePlan, sequence: &Sequence, record: &Memo, next: Option<i64>) {
    let (Some(was), Some(next)) = (record.was, next) else { return };
    if sequence.options.narrowed(was, next).is_some() {
        plan.steps.push(sequence.of_type(was, "as it was before snowflake_adopt()"));
    } else if was < sequence.options.width {
        let (name, was) = (&sequence.name, was.name());
        plan.notes
            .push(format!("sequence {name} stays bigint, as {was} has no room for it: with a start, it may have"));
    }
}

/// Has a sequence go on with a value. Its limits and its type stay, where they have room for it.
fn restart(plan: &mut MovePlan, sequence: &Sequence, first: Option<i64>) {
    let name = &sequence.name;
    if is_shared(sequence) {
        let others = sequence.others().join(", ");
        plan.notes.push(format!("sequence {name} is never lowered, as it is used by {others}"));
    }
    let Some(first) = first.filter(|first| sequence.next() != Some(*first)) else { return };
    let mut clauses = Vec::new();
    let mut options = sequence.options;
    if !options.has_room_for(first) {
        let narrow = options;
        options = options.of_width(Width::Eight);
        if narrow.width != Width::Eight {
            clauses.push("AS bigint".to_owned());
        }
        let old = options;
        options = options.with_room_for(first);
        if options.min != old.min {
            clauses.push(format!("MINVALUE {}", options.min));
        }
        if options.max != old.max {
            clauses.push("NO MAXVALUE".to_owned());
        }
        plan.notes.push(format!(
            "sequence {name} has no room for {first}, and becomes wider: with a start, it could stay as it is"
        ));
    }
    clauses.push(format!("RESTART WITH {first}"));
    plan.steps.push(sequence.step(format!("ALTER SEQUENCE {name} {}", clauses.join(" ")), "it was kept"));
}

fn set_default(plan: &mut MovePlan, facts: &Facts, columns: &[&Column], sequence: &str) {
    let action = format!("SET DEFAULT pg_catalog.nextval({}::pg_catalog.regclass)", literal(sequence));
    plan.alter_defaults(facts, columns, &action, "the default was snowflake_next()");
}

fn make_sequence(plan: &mut MovePlan, facts: &Facts, columns: &[&Column], name: &str, start: i64) {
    let Some(table) = facts.table() else { return };
    let statement = format!("CREATE SEQUENCE {name} AS bigint MINVALUE {} START WITH {start}", start.min(1));
    plan.steps.extend(sequences::new(name, &statement, "", table));
    let statement = format!("ALTER SEQUENCE {name} OWNED BY {}.{}", table.name, facts.key().name);
    plan.steps.push(MoveStep::on(name, statement, ""));
    plan.steps.extend(writers::open(facts, name));
    set_default(plan, facts, columns, name);
}

fn make_identity(
    plan: &mut MovePlan,
    facts: &Facts,
    columns: &[&Column],
    (sequence, is_always, first): (Option<&Sequence>, bool, i64),
) {
    let Some(table) = facts.table() else { return };
    let (name, column) = (&table.name, &facts.key().name);
    if !table.owner.may_create {
        plan.hinder(
            format!("{}, the owner of {name}, may not create the identity's sequence in its schema", table.owner.name),
            "Grant the owner of the table CREATE on its schema, or leave identity out.",
        );
    }
    plan.alter_defaults(facts, columns, "DROP DEFAULT", "");
    let add = format!("ALTER TABLE {name} ALTER COLUMN {column} ADD {}", record::generated(is_always));
    let was_one = |sequence: &Sequence| {
        let record = sequence.comment.as_deref().and_then(Memo::read);
        record.is_some_and(|record| matches!(record.before, Before::Identity { .. }))
    };
    let kept = match sequence {
        Some(kept) if !kept.users.is_empty() && !was_one(kept) => {
            plan.notes.push(format!("sequence {} stays, as it is used by {}", kept.name, kept.users.join(", ")));
            None
        }
        kept => kept,
    };
    kept.iter().for_each(|sequence| plan.check_position(sequence));
    let Some(kept) = kept else {
        let statement = format!("{add} (START WITH {first} MINVALUE {})", first.min(1));
        plan.steps.push(MoveStep::on(name, statement, ""));
        return;
    };
    for user in &kept.users {
        plan.hinder(
            format!("sequence {} is used by {user}, and is dropped and made again", kept.name),
            "Have such objects use another sequence first.",
        );
    }
    plan.steps.push(kept.step(format!("DROP SEQUENCE {}", kept.name), "the identity makes it again"));
    let width = facts.key().width.unwrap_or(Width::Eight);
    let mut options = kept.options.of_width(width);
    if !options.has_room_for(first) {
        plan.notes.push(format!(
            "sequence {} has no room for {first}, and becomes wider: with a start, it could stay as it is",
            kept.name
        ));
        options = options.with_room_for(first);
    }
    let statement = format!("{add} (SEQUENCE NAME {} {})", kept.name, options.clauses());
    plan.steps.push(MoveStep::on(name, statement, "as it was"));
    let goes_on = kept.next() == Some(first);
    let restart = || kept.step(format!("ALTER SEQUENCE {} RESTART WITH {first}", kept.name), "");
    plan.steps.extend(kept.continuation().filter(|_| goes_on).or_else(|| Some(restart())));
    if kept.is_unlogged != table.has_unlogged_sequences {
        let what = if kept.is_unlogged { "UNLOGGED" } else { "LOGGED" };
        plan.steps.push(kept.step(format!("ALTER SEQUENCE {} SET {what}", kept.name), ""));
    }
    plan.steps.extend(kept.grant_steps(table));
    let comment = record::users_own(kept.comment.as_deref());
    plan.steps.extend(comment.map(|comment| kept.comment_step(Some(&comment), "")));
    if is_shared(kept) {
        let others = kept.others().join(", ");
        plan.notes.push(format!("sequence {} is never lowered, as it is used by {others}", kept.name));
    }
}

/// A sequence that was there for the record only.
fn drop_marker(plan: &mut MovePlan, facts: &Facts) {
    let Some((sequence, Some(Memo { is_marker: true, .. }))) = kept(facts) else { return };
    if sequence.users.is_empty() {
        let statement = format!("DROP SEQUENCE {}", sequence.name);
        plan.steps.push(sequence.step(statement, "it was there for the record only"));
    } else {
        plan.notes.push(format!("sequence {} stays, as it is used by {}", sequence.name, sequence.users.join(", ")));
    }
}

fn notes(facts: &Facts, wish: &Release, first: Option<i64>) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(next), Some(first)) = (wish.next_above, first) {
        notes.push(format!(
            "a row has the value {next}: after {} values from {first} on, inserts fail",
            i128::from(next) - i128::from(first)
        ));
    }
    if first.is_some_and(|first| first > i64::from(i32::MAX)) {
        notes.push("values stay above the range of integer; the column stays bigint".to_owned());
    }
    for other in facts.key_columns().into_iter().filter(|column| !column.makes_ids) {
        let what = other.default.as_deref().unwrap_or("none");
        notes.push(format!("{} keeps its own default: {what}", facts.column_name(other)));
    }
    let key = facts.key();
    if facts.columns.len() > facts.key_columns().len() {
        notes.push(format!("columns that refer to {} stay bigint", facts.column_name(key)));
    }
    notes
}
