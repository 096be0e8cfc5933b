//! `snowflake_layouts()`: the built-in layouts.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use crate::postgres::time::{clock, timestamptz};
use pgrx::datum::Interval;
use pgrx::iter::TableIterator;
use pgrx::name;
use pgrx::prelude::*;
use snowflake_core::notation::BUILT_IN;
use snowflake_core::{Field, Layout};

export!(snowflake_layouts_wrapper as snowflake_layouts);

#[pg_extern(sql = "")]
fn snowflake_layouts() -> TableIterator<
    'static,
    (
        name!(name, &'static str),
        name!(layout, &'static str),
        name!(tick, Interval),
        name!(first_time, i64),
        name!(last_time, i64),
        name!(workers, i64),
        name!(ids_per_second, i64),
        name!(makes_ids, bool),
        name!(fits_double, bool),
        name!(source, &'static str),
    ),
> {
    let now = clock::now();
    TableIterator::new(BUILT_IN.iter().filter_map(move |built_in| {
        let layout: Layout = built_in.notation.parse().ok()?; // a test reads them all
        let makes_ids = layout.check_makes_ids().is_ok();
        let workers = (layout.max(Field::Datacenter) + 1) * (layout.max(Field::Worker) + 1);
        Some((
            built_in.name,
            built_in.notation,
            Interval::from_micros(layout.tick_length().0),
            timestamptz::to_datum(layout.epoch()),
            timestamptz::to_datum(layout.start_of(layout.last_tick())),
            workers as i64,
            layout.ids_per_second() as i64,
            makes_ids && now < layout.end(),
            layout.fits_double(),
            built_in.source,
        ))
    }))
}
