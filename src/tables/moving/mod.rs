//! Moving in and out: tables that have a sequence or an identity get `snowflake_next()`, and back. [`catalogue`] reads
//! what there is, [`snowflake_moving`] lists the statements, and this module shows them or carries them out, in the
//! caller's transaction: on tables and views that belong to the caller, or to a role that the caller is a member of, and as
//! their owners.

pub mod catalogue;
mod meanwhile;
mod probe;
mod recorded;
mod rows;
mod values;
mod views;
mod waiting;

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::errors::moving::MovingError;
use crate::errors::record::RecordError;
use crate::postgres::held::{self, Holds};
use crate::postgres::restricted::Owner;
use crate::postgres::time::{clock, timestamptz};
use crate::postgres::{catalog, encoding, own, snapshot};
use crate::tables::partitions::{self, Failure};
use crate::{generator, record, settings};
use catalogue::{Choice, Chosen, Unseen, look};
use meanwhile::unread;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::Layout;
use snowflake_moving::{
    Actor, Adoption, Column, Facts, MovePlan, MoveStep, Release, Source, Values, Width, adopt_all, begins_at, is_done,
    put_back, release, shut_out, target,
};
use std::ffi::{CStr, CString};

/// A table, and what its caller says of it.
pub struct Named {
    /// The table.
    pub table: pg_sys::Oid,
    /// The column, not quoted; `None` where it is to be found.
    pub column: Option<String>,
}

/// What the caller wants.
pub struct Wish {
    /// The tables: one for the way out, several where they are to get IDs by one plan.
    pub tables: Vec<Named>,
    /// What is to be done.
    pub way: Way,
}

/// What is to be done.
#[derive(Clone, Copy)]
pub enum Way {
    /// To snowflake IDs.
    In {
        /// Whether views that stand in the way are dropped and created again.
        recreate_views: bool,
    },
    /// Back to what was before, or to a sequence or an identity.
    Out {
        /// The next value; `None` for the one after the highest, or where the sequence goes on.
        start: Option<i64>,
        /// An identity, whatever was before.
        identity: bool,
    },
}

/// What was done.
pub struct Done {
    /// The lowest new ID; or the next value, where it is known.
    pub first: Option<i64>,
    /// The time of the lowest new ID, as a `timestamptz`.
    pub at: Option<i64>,
    /// The columns that were changed.
    pub keys: Vec<Changed>,
}

/// A column that was changed.
pub struct Changed {
    /// Its table.
    pub table: pg_sys::Oid,
    /// Its name, not quoted.
    pub column: String,
    /// The highest value from before.
    pub highest: Option<i64>,
}

/// A plan, with what it rests on and what it begins at.
struct Drawn {
    plan: MovePlan,
    /// Of all columns together.
    all: Facts,
    /// Of each.
    keys: Vec<Facts>,
    /// The names of the columns, not quoted.
    columns: Vec<String>,
    first: Option<i64>,
}

/// A column that holds a key.
pub struct Key {
    /// Its table and its name, as statements write them.
    pub names: (String, String),
    /// Its integer type.
    pub width: Option<Width>,
    /// Whether `snowflake_next()` is its default.
    pub makes_ids: bool,
    /// Its values; `None` where there are none.
    pub values: Option<Values>,
    /// Roles that may insert rows, and not execute `snowflake_next()`, in words.
    pub shut_out: Option<String>,
}

/// The key of a table, found as [`plan`] finds it.
///
/// # Errors
/// Where there is no such table or column, or it is not clear which column is meant.
pub fn key(table: pg_sys::Oid, column: Option<String>) -> Result<Key, Error> {
    let wanted = Named { table, column };
    meanwhile::told([table].into_iter(), || Spi::connect(|client| key_of(client, &wanted)))
}

fn key_of(client: &SpiClient, wanted: &Named) -> Result<Key, Error> {
    let (chosen, facts) = meanwhile::read(|| look(|| read(client, wanted)))?;
    let (table, column) = facts.key_names();
    if !facts.has_one_owner() {
        return Err(MovingError::SeveralOwners(table.to_owned()).into());
    }
    let unseen = look(|| catalogue::unseen(client, &chosen)).map_err(unread)?;
    if let Some(unseen) = unseen {
        let (table, column) = (table.to_owned(), column.to_owned());
        return Err(match unseen {
            Unseen::Privileges => MovingError::NotReadable(table, column),
            Unseen::Foreign(foreign) => MovingError::ForeignValues(table, column, foreign),
        }
        .into());
    }
    let values = values::values(client, wanted.table, chosen.number, i64::MIN)?;
    Ok(Key {
        names: (table.to_owned(), column.to_owned()),
        width: facts.key().width,
        makes_ids: facts.source == Source::Snowflake,
        values,
        shut_out: shut_out(&facts),
    })
}

/// What would be done.
///
/// # Errors
/// Where there is no such table or column, or a wish cannot be met.
pub fn plan(wish: &Wish) -> Result<MovePlan, Error> {
    let first = expected_id()?;
    let drawn = |client: &SpiClient| {
        let Drawn { mut plan, keys, .. } = draw(client, wish, first)?;
        if matches!(wish.way, Way::In { .. }) {
            plan.notes.extend(probe::foreseen(client, &keys)?);
        }
        Ok(plan)
    };
    meanwhile::told(tables(wish), || Spi::connect(|client| drawn(client)))
}

/// The lowest ID that can be made now, by the clock.
fn expected_id() -> Result<i64, Error> {
    let now = clock::now();
    record::layout().lowest_id_from(now).ok_or(GeneratorError::Exhausted { now }.into())
}

/// Carries the plan out, and says what came of it.
///
/// # Errors
/// As [`plan`], and where something stands in the way. Nothing is done then.
pub fn carry_out(wish: &Wish) -> Result<Done, Error> {
    let name = match wish.way {
        Way::In { .. } => c"snowflake_adopt()",
        Way::Out { .. } => c"snowflake_release()",
    };
    // SAFETY: this raises an error, or does nothing, and its argument is NUL-terminated.
    unsafe { pg_sys::PreventCommandIfReadOnly(name.as_ptr()) };
    // The catalogue is read by snapshots, and those of such a transaction are too old.
    if snapshot::is_of_transaction() {
        return Err(MovingError::Isolation.into());
    }
    let named: Vec<pg_sys::Oid> = tables(wish).collect();
    meanwhile::told(tables(wish), || {
        Spi::connect_mut(|client| waiting::bounded(client, &named, |client| change(client, wish)))
    })
}

fn tables(wish: &Wish) -> impl Iterator<Item = pg_sys::Oid> {
    wish.tables.iter().map(|wanted| wanted.table)
}

fn change(client: &mut SpiClient, wish: &Wish) -> Result<Done, Error> {
    // After an `update`, each query of this transaction takes a snapshot of its own.
    client.update("SELECT", None, &[]).map_err(unread)?;
    let holds = hold(client, wish)?;
    // Before the first ID is made: after it, the database could not have another layout any more.
    check(wish, &draw(client, wish, expected_id()?)?)?;
    // After the locks: all values that are there are below it.
    let (first, at, new_id) = match wish.way {
        Way::In { .. } => first_id()?,
        Way::Out { .. } => (0, None, 0),
    };
    let drawn = draw(client, wish, first)?;
    check(wish, &drawn)?;
    if !is_named_as_held(&holds, &drawn.all) {
        return Err(meanwhile::gone());
    }
    let probes = match wish.way {
        Way::In { .. } => probe::before(client, &holds, owner_of(wish)?, &drawn.keys, new_id)?,
        Way::Out { .. } => Vec::new(),
    };
    let (prepared, fill_views) = drawn.plan.steps.iter().partition::<Vec<_>, _>(|step| !step.fills_view);
    let owner = owner_of(wish)?;
    run(client, &holds, owner, &prepared)?;
    if matches!(wish.way, Way::In { recreate_views: true, .. }) {
        check_views(client, &drawn.all)?;
    }
    for (wanted, facts) in wish.tables.iter().zip(&drawn.keys) {
        // Before a default is evaluated.
        check_default(client, wanted, wish.way, facts)?;
    }
    run(client, &holds, owner, &fill_views)?;
    probe::after(client, &holds, &probes, drawn.plan.has_waived)?;
    for (wanted, facts) in wish.tables.iter().zip(&drawn.keys) {
        mark_partitions(client, wanted.table, wish.way, facts, drawn.first)?;
    }
    let mut keys = Vec::new();
    for ((wanted, facts), column) in wish.tables.iter().zip(&drawn.keys).zip(drawn.columns) {
        if matches!(wish.way, Way::Out { .. }) || !is_done(facts) {
            let highest = facts.values.map(|values| values.highest);
            keys.push(Changed { table: wanted.table, column, highest });
        }
    }
    Ok(Done { first: drawn.first, at, keys })
}

/// Notes on partitions from which key on those are IDs, or are none any more. `first` is the first that comes now, where it is known.
fn mark_partitions(
    client: &SpiClient,
    table: pg_sys::Oid,
    way: Way,
    facts: &Facts,
    first: Option<i64>,
) -> Result<(), Error> {
    let number = facts.key().number;
    let marked = match (way, first) {
        (Way::In { .. }, Some(first)) if !is_done(facts) => partitions::adopted(client, table, number, first),
        (Way::In { .. }, _) => Ok(()),
        (Way::Out { .. }, first) => {
            let is_rising = facts.sequences.iter().all(|sequence| sequence.options.increment > 0);
            partitions::released(client, table, number, first.filter(|_| is_rising).unwrap_or(i64::MIN))
        }
    };
    marked.map_err(|failure| match failure {
        Failure::Refused(error) => error.into(),
        Failure::Query(error) => unread(error),
    })
}

/// The role whose code the tables run. A plan for several of different roles has obstacles.
fn owner_of(wish: &Wish) -> Result<Owner, Error> {
    let owners: Vec<Owner> = wish.tables.iter().map(|wanted| owner(wanted.table)).collect::<Result<_, _>>()?;
    let is_temporary = owners.iter().all(|owner| owner.is_temporary);
    let first = owners.first().copied().ok_or(MovingError::Null("tables"))?;
    Ok(Owner { is_temporary, ..first })
}

/// Runs statements, each as the role that its [`Actor`] says.
fn run(client: &mut SpiClient, holds: &Holds, owner: Owner, steps: &[&MoveStep]) -> Result<(), Error> {
    for step in steps {
        let mut statement = || holds.statement(&step.statement).update(client);
        let mut defined = || if step.by_definition { look(&mut statement) } else { statement() };
        match step.actor {
            Actor::Caller => defined(),
            Actor::Owner => owner.run(defined),
            Actor::Role(role) => Owner { role: role.0.into(), is_temporary: false }.run(defined),
        }
        .map_err(unread)?;
    }
    Ok(())
}

/// The default calls the function that was meant, or else nothing is done.
fn check_default(client: &SpiClient, wanted: &Named, way: Way, facts: &Facts) -> Result<(), Error> {
    let chosen = look(|| choose(client, wanted))?;
    if (chosen.source == Source::Snowflake) == matches!(way, Way::In { .. }) {
        return Ok(());
    }
    Err(MovingError::OtherDefault(column_name(facts)).into())
}

/// The key's table and name, as a statement writes them.
fn column_name(facts: &Facts) -> String {
    let (table, column) = facts.key_names();
    format!("{table}.{column}")
}

/// The role whose code the table runs.
fn owner(table: pg_sys::Oid) -> Result<Owner, Error> {
    Owner::of(table).ok_or(MovingError::NoSuchTable(table.to_u32()).into())
}

/// Locks all tables that the plan locks, with the sequences of the keys, before the facts are read on which it rests: until a plan that
/// is drawn with all of them held needs no others, and all have the names that it was drawn with.
fn hold(client: &SpiClient, wish: &Wish) -> Result<Holds, Error> {
    let mut holds = Holds::default();
    for _ in 0..meanwhile::ATTEMPTS {
        let (chosen, facts) = read_all(client, wish)?;
        let Drawn { plan, all, .. } = draw_from(client, wish, &chosen, facts, i64::MAX)?;
        // Nobody can lock the tables of others.
        if !plan.not_owned.is_empty() {
            return Err(MovingError::NotOwner(plan.not_owned).into());
        }
        let sequences: Vec<u32> = own_sequences(&all).map(|(oid, _)| oid).collect();
        if plan.locks.iter().map(|table| table.0).chain(sequences.iter().copied()).all(|it| holds.has(it))
            && is_named_as_held(&holds, &all)
        {
            plan.functions.iter().for_each(|function| meanwhile::lock_function(function.0.into()));
            hold_schemas_of_functions(client, &plan)?;
            return Ok(holds);
        }
        for table in plan.locks {
            waiting::hold(&mut holds, table.0.into(), pg_sys::AccessExclusiveLock);
        }
        for sequence in sequences {
            waiting::hold(&mut holds, sequence.into(), pg_sys::ShareRowExclusiveLock);
        }
    }
    Err(meanwhile::gone())
}

/// The sequences of a key, which statements name: they have the owner of its table.
fn own_sequences(facts: &Facts) -> impl Iterator<Item = (u32, &str)> {
    facts.sequences.iter().filter(|it| it.is_owned_by_key).map(|it| (it.oid.0, &*it.name))
}

/// Whether all that statements of a plan name, and that is held, is called what they call it.
fn is_named_as_held(holds: &Holds, facts: &Facts) -> bool {
    let relations = facts.relations.iter().map(|it| (it.oid.0, &*it.name));
    let views = facts.views.iter().map(|it| (it.oid.0, &*it.name));
    relations.chain(views).chain(own_sequences(facts)).all(|(oid, name)| !holds.has(oid) || holds.is_named(oid, name))
}

/// The functions that statements name, `snowflake_next()` among them, stay where they are.
fn hold_schemas_of_functions(client: &SpiClient, plan: &MovePlan) -> Result<(), Error> {
    let next = own::next(client).map_err(unread)?;
    let named = plan.functions.iter().map(|function| function.0.into()).chain(next);
    for function in named {
        held::hold_schema(catalog::schema_of_function(function)).ok_or_else(meanwhile::gone)?;
    }
    Ok(())
}

/// The lowest ID that can still be made: that of the tick of an ID that is claimed for this; its time; and the ID itself.
fn first_id() -> Result<(i64, Option<i64>, i64), Error> {
    let claim = generator::claim(1)?;
    let layout: &Layout = settings::layout();
    let id = layout.compose(claim.first, claim.worker);
    let at = layout.timestamp(id)?;
    Ok((layout.lowest_id_from(at).unwrap_or(id), Some(timestamptz::to_datum(at)), id))
}

fn draw(client: &SpiClient, wish: &Wish, first: i64) -> Result<Drawn, Error> {
    let (chosen, mut keys) = read_all(client, wish)?;
    for (wanted, facts) in wish.tables.iter().zip(&mut keys) {
        add_values(client, wanted.table, wish.way, facts, first)?;
    }
    draw_from(client, wish, &chosen, keys, first)
}

/// What stands in the rows and the sequences.
fn add_values(client: &SpiClient, table: pg_sys::Oid, way: Way, facts: &mut Facts, first: i64) -> Result<(), Error> {
    // Not to be read by others, nor before anything else is clear.
    if may_be_known(table, facts) {
        facts.values = values::values(client, table, facts.key().number, i64::MIN)?;
        for sequence in facts.sequences.iter_mut().filter(|sequence| sequence.is_owned_by_key) {
            sequence.position = catalogue::position(sequence);
        }
        if matches!(way, Way::In { .. }) {
            let refused_by = owner(table)?.run(|| look(|| catalogue::refused_by(client, facts, first)));
            facts.refused_by = refused_by.map_err(unread)?;
            let refused_by = owner(table)?.run(|| look(|| catalogue::refused_by_checks(client, facts, first)));
            facts.refused_by_checks = refused_by.map_err(unread)?;
        }
    }
    Ok(())
}

/// Whether the caller may know what stands in a table: as its owner, and only where that is one role.
fn may_be_known(table: pg_sys::Oid, facts: &Facts) -> bool {
    let is_owned = facts.relations.iter().all(|relation| relation.is_owned || relation.oid.0 != table.to_u32());
    is_owned && facts.has_one_owner()
}

/// The column that is meant.
fn choose(client: &SpiClient, wanted: &Named) -> Result<Chosen, Error> {
    let missing = MovingError::NoSuchTable(wanted.table.to_u32());
    let choice = catalogue::choice(client, wanted.table).map_err(unread)?;
    let Choice { name, table, mut columns } = choice.ok_or(missing)?;
    let chosen = target::choose(&table, wanted.column.as_deref()).map_err(|unfit| MovingError::Unfit(name, unfit))?;
    Ok(columns.swap_remove(chosen))
}

/// All of a column but the views.
fn read(client: &SpiClient, wanted: &Named) -> Result<(Chosen, Facts), Error> {
    let chosen = choose(client, wanted)?;
    let facts = catalogue::facts(client, &chosen).map_err(unread)?;
    Ok((chosen, facts))
}

/// The views depend on columns of any of the tables, and are with the first.
fn read_all(client: &SpiClient, wish: &Wish) -> Result<(Vec<Chosen>, Vec<Facts>), Error> {
    let all = || {
        let read: Vec<_> = wish.tables.iter().map(|wanted| read(client, wanted)).collect::<Result<_, _>>()?;
        let (chosen, mut keys): (Vec<Chosen>, Vec<Facts>) = read.into_iter().unzip();
        let all = together(&keys)?;
        let widened: Vec<&Column> = all.columns.iter().filter(|it| it.width != Some(Width::Eight)).collect();
        let views = views::views(client, &widened).map_err(unread)?;
        keys.iter_mut().take(1).for_each(|first| first.views.clone_from(&views));
        Ok((chosen, keys))
    };
    meanwhile::read(|| look(all))
}

/// What is known of all columns, as one.
fn together(keys: &[Facts]) -> Result<Facts, Error> {
    Facts::of_all(keys).ok_or_else(|| MovingError::Null("tables").into())
}

fn draw_from(client: &SpiClient, wish: &Wish, chosen: &[Chosen], keys: Vec<Facts>, first: i64) -> Result<Drawn, Error> {
    let all = together(&keys)?;
    let (plan, first) = match wish.way {
        Way::In { .. } if all.next.is_empty() => return Err(RecordError::NotCreated.into()),
        Way::In { recreate_views } => {
            let wish =
                Adoption { first_id: first, markers: new_markers(chosen)?, recreate_views, waived: settings::waived() };
            (adopt_all(&all, &keys, &wish), Some(first))
        }
        Way::Out { start, identity } => draw_release(client, wish.tables[0].table, &chosen[0], &all, start, identity)?,
    };
    if matches!(wish.way, Way::In { .. }) && plan.steps.is_empty() {
        return Err(MovingError::AlreadyAdopted(keys.iter().map(column_name).collect()).into());
    }
    let columns = chosen.iter().map(|chosen| chosen.name.clone()).collect();
    Ok(Drawn { plan, all, keys, columns, first })
}

/// Free names for sequences, one for each column.
fn new_markers(chosen: &[Chosen]) -> Result<Vec<String>, Error> {
    let mut markers: Vec<String> = Vec::new();
    for chosen in chosen {
        // Of long names, only the beginning counts.
        let labels = (0..).map(|count| CString::new(format!("before_snowflake{}", digits(count))));
        let names = labels.map(|label| new_sequence(chosen, &label.unwrap_or_default()));
        let free = names.into_iter().find(|name| !name.as_ref().is_ok_and(|name| markers.contains(name)));
        markers.extend(free.transpose()?);
    }
    Ok(markers)
}

/// The way out of a table's column, and the next value, where it is known.
fn draw_release(
    client: &SpiClient,
    table: pg_sys::Oid,
    chosen: &Chosen,
    facts: &Facts,
    start: Option<i64>,
    identity: bool,
) -> Result<(MovePlan, Option<i64>), Error> {
    let column = column_name(facts);
    if let Some(default) = put_back(facts, start, identity) {
        check_recorded(client, table, &column, &default)?;
    }
    // Before all is locked, it is not known where sequences are.
    let is_known = facts.sequences.iter().all(|it| it.position.is_some() || !it.is_owned_by_key);
    let is_readable = facts.source == Source::Snowflake && may_be_known(table, facts) && is_known;
    let next_above = match begins_at(facts, start, identity).filter(|_| is_readable) {
        Some(first) => values::values(client, table, chosen.number, first)?.map(|values| values.lowest),
        None => None,
    };
    let sequence = new_sequence(chosen, c"seq")?;
    let wish = Release { start, next_above, identity, is_not_null: chosen.is_not_null, sequence };
    release(facts, &wish).map_err(|error| MovingError::Release(column, error).into())
}

/// A number at the end of a name; none for the first.
fn digits(count: u32) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

/// A default that is on record as text works, or nothing is done.
fn check_recorded(client: &SpiClient, table: pg_sys::Oid, column: &str, default: &str) -> Result<(), Error> {
    let checked = owner(table)?.run(|| recorded::check(client, default));
    checked.map_err(|problem| {
        let obstacle = format!("the default that is on record, {default}, cannot be put back: {problem}");
        let obstacles = MovingError::Obstacles {
            columns: vec![column.to_owned()],
            is_release: true,
            obstacles: vec![obstacle],
            hints: vec![
                "It stands in the comment of a sequence that belongs to the column. Change it there, or give a start, for a new \
                 sequence.",
            ],
        };
        obstacles.into()
    })
}

fn check(wish: &Wish, drawn: &Drawn) -> Result<(), Error> {
    let Drawn { plan, keys, .. } = drawn;
    if !plan.not_owned.is_empty() {
        return Err(MovingError::NotOwner(plan.not_owned.clone()).into());
    }
    if !plan.obstacles.is_empty() {
        let names = keys.iter().map(column_name);
        return Err(MovingError::Obstacles {
            columns: names.collect(),
            is_release: matches!(wish.way, Way::Out { .. }),
            obstacles: plan.obstacles.clone(),
            hints: plan.hints.clone(),
        }
        .into());
    }
    Ok(())
}

/// Views that were made again are as they were and call what they called, or else nothing is done. Their code has not been
/// run yet: the function that a name means now may be anybody's.
fn check_views(client: &SpiClient, facts: &Facts) -> Result<(), Error> {
    for view in &facts.views {
        let (state, bindings) = look(|| views::now(client, view, &facts.views)).map_err(unread)?;
        let missing = |of: &[String], among: &[String]| of.iter().find(|it| !among.contains(it)).cloned();
        let (before, now) = (missing(&view.bindings, &bindings), missing(&bindings, &view.bindings));
        if before.is_some() || now.is_some() {
            return Err(MovingError::ViewRebound { view: view.description.clone(), before, now }.into());
        }
        if state != [view.state.clone()] {
            return Err(MovingError::ViewChanged(view.description.clone()).into());
        }
    }
    Ok(())
}

/// A free name for a sequence of a column, in the schema of its table.
fn new_sequence(chosen: &Chosen, label: &CStr) -> Result<String, Error> {
    // SAFETY: lookups, which return NULL where there is nothing; strings are NUL-terminated.
    unsafe {
        let schema = pg_sys::get_rel_namespace(chosen.table);
        let in_schema = pg_sys::get_namespace_name(schema);
        let table = pg_sys::get_rel_name(chosen.table);
        let column = pg_sys::get_attname(chosen.table, chosen.number, true);
        if in_schema.is_null() || table.is_null() || column.is_null() {
            return Err(meanwhile::gone());
        }
        let name = pg_sys::ChooseRelationName(table, column, label.as_ptr(), schema, false);
        let name = pg_sys::quote_qualified_identifier(in_schema, name);
        Ok(encoding::read_name(CStr::from_ptr(name)))
    }
}
