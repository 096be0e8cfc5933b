//! `snowflake_adopt()` and `snowflake_release()`, and their plans.

use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::encoding::{self, Text};
use crate::postgres::given::Given;
use crate::tables::moving::{self, Changed, Done, Named, Way, Wish};
use pgrx::Array;
use pgrx::prelude::*;
use snowflake_moving::{MovePlan, MoveStep};
use std::ffi::CStr;

export!(
    snowflake_adopt_plan_wrapper as snowflake_adopt_plan,
    snowflake_adopt_wrapper as snowflake_adopt,
    snowflake_adopt_all_plan_wrapper as snowflake_adopt_all_plan,
    snowflake_adopt_all_wrapper as snowflake_adopt_all,
    snowflake_release_plan_wrapper as snowflake_release_plan,
    snowflake_release_wrapper as snowflake_release,
);

rows! {
    fn snowflake_adopt_plan(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, views: Option<Given>) {
        planned(Some(wish(tbl, col, way_in(views))))
    }

    fn snowflake_release_plan(
        tbl: Option<pg_sys::Oid>,
        col: Option<&CStr>,
        start: Option<i64>,
        identity: Option<bool>,
    ) {
        planned(Some(wish(tbl, col, way_out(start, identity))))
    }

    fn snowflake_adopt_all_plan(tables: Option<Array<pg_sys::Oid>>, views: Option<Given>) {
        planned(wish_of_all(tables, views))
    }

    row PlanLine { number, kind, step, note }, let step = step.as_ref() => {
        step: Option<i32> = number;
        kind: &'static str = kind;
        statement: Option<Text> = step.map(|step| Text(format!("{};", step.statement)));
        locks: Option<Text> = step.and_then(|step| filled(step.locks.join(", ")));
        rewrites: Option<Text> = step.and_then(|step| filled(step.rewrites.join(", ")));
        bytes: Option<i64> = step.filter(|step| !step.rewrites.is_empty()).map(|step| step.bytes);
        note: Option<Text> = filled(note);
    }
}

rows! {
    fn snowflake_adopt(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, views: Option<Given>) {
        [done(&wish(tbl, col, way_in(views)))]
    }

    row Done { first, at, keys } => {
        first_id: i64 = first.unwrap_or_default();
        adopted_at: Option<i64> = at;
        highest_before: Option<i64> = keys.first().and_then(|key| key.highest);
    }
}

rows! {
    fn snowflake_adopt_all(tables: Option<Array<pg_sys::Oid>>, views: Option<Given>) {
        let done = wish_of_all(tables, views).map(|wish| done(&wish));
        done.into_iter().flat_map(|Done { first, at, keys }| keys.into_iter().map(move |key| (first, at, key)))
    }

    row (first, at, Changed { table, column, highest }) => {
        tbl: pg_sys::Oid = table;
        col: Text = Text(column);
        first_id: Option<i64> = first;
        adopted_at: Option<i64> = at;
        highest_before: Option<i64> = highest;
    }
}

/// Returns the next value, where it is known.
#[pg_extern(sql = "")]
fn snowflake_release(
    tbl: Option<pg_sys::Oid>,
    col: Option<&CStr>,
    start: Option<i64>,
    identity: Option<bool>,
) -> Option<i64> {
    done(&wish(tbl, col, way_out(start, identity))).first
}

/// What a row of a plan is made of.
struct PlanLine {
    /// That of the statement.
    number: Option<i32>,
    kind: &'static str,
    step: Option<MoveStep>,
    /// May be empty.
    note: String,
}

/// First what stands in the way, then the statements, then what one should know. Nothing where there is no wish.
fn planned(wish: Option<Wish>) -> Vec<PlanLine> {
    let plan = wish.map_or_else(|| Ok(MovePlan::default()), |wish| moving::plan(&wish));
    let MovePlan { not_owned, obstacles, steps, notes, .. } = plan.unwrap_or_else(|error| error.raise());
    let not_owned = not_owned.into_iter().map(|table| format!("must be owner of table {table}"));
    let words = |kind| move |note| PlanLine { number: None, kind, step: None, note };
    let mut lines: Vec<PlanLine> = not_owned.chain(obstacles).map(words("obstacle")).collect();
    lines.extend((1..).zip(steps).map(|(number, step)| {
        let note = step.note.clone();
        PlanLine { number: Some(number), kind: "statement", step: Some(step), note }
    }));
    lines.extend(notes.into_iter().map(words("note")));
    lines
}

fn done(wish: &Wish) -> Done {
    moving::carry_out(wish).unwrap_or_else(|error| error.raise())
}

fn filled(text: String) -> Option<Text> {
    (!text.is_empty()).then_some(Text(text))
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

fn way_in(views: Option<Given>) -> Way {
    let views = views.map_or("refuse".into(), Given::read);
    let recreate_views = match &*views {
        "refuse" => false,
        "recreate" => true,
        _ => Error::from(MovingError::Views(views.into_owned())).raise(),
    };
    Way::In { recreate_views }
}

fn way_out(start: Option<i64>, identity: Option<bool>) -> Way {
    Way::Out { start, identity: identity.unwrap_or(false) }
}

/// A `name` is passed as a pointer to its NUL-terminated bytes.
fn wish(tbl: Option<pg_sys::Oid>, col: Option<&CStr>, way: Way) -> Wish {
    let table = tbl.unwrap_or_else(|| Error::from(MovingError::Null("tbl")).raise());
    Wish { tables: vec![Named { table, column: col.map(encoding::read_name) }], way }
}
