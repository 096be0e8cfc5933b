//! `snowflake_adopt()` and `snowflake_release()`, and their plans.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::encoding::{self, Text};
use crate::postgres::given::Given;
use crate::tables::moving::{self, Changed, Done, Named, Way, Wish};
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{Array, name};
use snowflake_moving::Plan;
use std::ffi::CStr;

export!(
    snowflake_adopt_plan_wrapper as snowflake_adopt_plan,
    snowflake_adopt_wrapper as snowflake_adopt,
    snowflake_adopt_all_plan_wrapper as snowflake_adopt_all_plan,
    snowflake_adopt_all_wrapper as snowflake_adopt_all,
    snowflake_release_plan_wrapper as snowflake_release_plan,
    snowflake_release_wrapper as snowflake_release,
);

/// A row of a plan: its number, what it is, the statement, what that locks, rewrites, and how many bytes; and a note.
type Shown = (Option<i32>, &'static str, Option<Text>, Option<Text>, Option<Text>, Option<i64>, Option<Text>);

#[pg_extern(sql = "")]
fn snowflake_adopt_plan(
    tbl: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    views: Option<Given>,
) -> TableIterator<
    'static,
    (
        name!(step, Option<i32>),
        name!(kind, &'static str),
        name!(statement, Option<Text>),
        name!(locks, Option<Text>),
        name!(rewrites, Option<Text>),
        name!(bytes, Option<i64>),
        name!(note, Option<Text>),
    ),
> {
    TableIterator::new(shown(tbl, col, way_in(views)))
}

#[pg_extern(sql = "")]
fn snowflake_release_plan(
    tbl: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    start: Option<i64>,
    identity: Option<bool>,
) -> TableIterator<
    'static,
    (
        name!(step, Option<i32>),
        name!(kind, &'static str),
        name!(statement, Option<Text>),
        name!(locks, Option<Text>),
        name!(rewrites, Option<Text>),
        name!(bytes, Option<i64>),
        name!(note, Option<Text>),
    ),
> {
    TableIterator::new(shown(tbl, col, Way::Out { start, identity: identity.unwrap_or(false) }))
}

#[pg_extern(sql = "")]
fn snowflake_adopt(
    tbl: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    views: Option<Given>,
) -> TableIterator<'static, (name!(first_id, i64), name!(adopted_at, Option<i64>), name!(highest_before, Option<i64>))>
{
    let Done { first, at, keys } = done(tbl, col, way_in(views));
    TableIterator::once((first.unwrap_or_default(), at, keys.first().and_then(|key| key.highest)))
}

#[pg_extern(sql = "")]
fn snowflake_adopt_all_plan(
    tables: Option<Array<pg_sys::Oid>>,
    views: Option<Given>,
) -> TableIterator<
    'static,
    (
        name!(step, Option<i32>),
        name!(kind, &'static str),
        name!(statement, Option<Text>),
        name!(locks, Option<Text>),
        name!(rewrites, Option<Text>),
        name!(bytes, Option<i64>),
        name!(note, Option<Text>),
    ),
> {
    let plan = wish_of_all(tables, views).map_or_else(|| Ok(Plan::default()), |wish| moving::plan(&wish));
    TableIterator::new(plan.map_or_else(|error| error.raise(), rows))
}

#[pg_extern(sql = "")]
fn snowflake_adopt_all(
    tables: Option<Array<pg_sys::Oid>>,
    views: Option<Given>,
) -> TableIterator<
    'static,
    (
        name!(tbl, pg_sys::Oid),
        name!(col, Text),
        name!(first_id, Option<i64>),
        name!(adopted_at, Option<i64>),
        name!(highest_before, Option<i64>),
    ),
> {
    let Some(wish) = wish_of_all(tables, views) else { return TableIterator::empty() };
    let Done { first, at, keys } = moving::carry_out(&wish).unwrap_or_else(|error| error.raise());
    let row = move |Changed { table, column, highest }| (table, Text(column), first, at, highest);
    TableIterator::new(keys.into_iter().map(row))
}

/// Each table once; `None` where there is none.
fn wish_of_all(tables: Option<Array<pg_sys::Oid>>, views: Option<Given>) -> Option<Wish> {
    let null = |argument| Error::from(MovingError::Null(argument));
    let mut all: Vec<pg_sys::Oid> = Vec::new();
    for table in tables.unwrap_or_else(|| null("tables").raise()).iter() {
        let table = table.unwrap_or_else(|| null("an element of tables").raise());
        if !all.contains(&table) {
            all.push(table);
        }
    }
    let tables: Vec<Named> = all.into_iter().map(|table| Named { table, column: None }).collect();
    let wish = Wish { tables, way: way_in(views) };
    (!wish.tables.is_empty()).then_some(wish)
}

/// Returns the next value, where it is known.
#[pg_extern(sql = "")]
fn snowflake_release(
    tbl: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    start: Option<i64>,
    identity: Option<bool>,
) -> Option<i64> {
    done(tbl, col, Way::Out { start, identity: identity.unwrap_or(false) }).first
}

fn way_in(views: Option<Given>) -> Way {
    let views = views.map_or("refuse".into(), Given::read);
    let recreate_views = match &*views {
        "refuse" => false,
        "recreate" => true,
        _ => Error::from(MovingError::Views(views.into_owned())).raise(),
    };
    Way::In { recreate_views }
}

/// A `name` is passed as a pointer to its NUL-terminated bytes.
fn wish(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, way: Way) -> Wish {
    let table = tbl.unwrap_or_else(|| Error::from(MovingError::Null("tbl")).raise());
    Wish { tables: vec![Named { table, column: col.map(encoding::read_name) }], way }
}

fn shown(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, way: Way) -> Vec<Shown> {
    moving::plan(&wish(tbl, col, way)).map_or_else(|error| error.raise(), rows)
}

fn done(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, way: Way) -> Done {
    moving::carry_out(&wish(tbl, col, way)).unwrap_or_else(|error| error.raise())
}

/// First what stands in the way, then the statements, then what one should know.
fn rows(plan: Plan) -> Vec<Shown> {
    let not_owned = plan.not_owned.into_iter().map(|table| format!("must be owner of table {table}"));
    let words = |kind: &'static str, text: String| (None, kind, None, None, None, None, Some(Text(text)));
    let filled = |text: String| (!text.is_empty()).then_some(Text(text));
    let mut rows: Vec<Shown> = not_owned.chain(plan.obstacles).map(|text| words("obstacle", text)).collect();
    rows.extend(plan.steps.into_iter().enumerate().map(|(index, step)| {
        let number = i32::try_from(index + 1).ok();
        let locks = filled(step.locks.join(", "));
        let rewrites = filled(step.rewrites.join(", "));
        let bytes = rewrites.is_some().then_some(step.bytes);
        (number, "statement", Some(Text(step.statement + ";")), locks, rewrites, bytes, filled(step.note))
    }));
    rows.extend(plan.notes.into_iter().map(|text| words("note", text)));
    rows
}
