//! `snowflake_layouts()`: the built-in layouts.

use crate::postgres::time::{clock, timestamptz};
use pgrx::datum::Interval;
use snowflake_core::notation::BUILT_IN;
use snowflake_core::{Field, Layout};

export!(snowflake_layouts_wrapper as snowflake_layouts);

rows! {
    fn snowflake_layouts() {
        // A test parses them all.
        BUILT_IN.iter().filter_map(|built_in| Some((built_in, built_in.notation.parse::<Layout>().ok()?)))
    }

    row (built_in, layout) => {
        name: &'static str = built_in.name;
        layout: &'static str = built_in.notation;
        tick: Interval = Interval::from_micros(layout.tick_length().0);
        first_time: i64 = timestamptz::to_datum(layout.epoch());
        last_time: i64 = timestamptz::to_datum(layout.start_of(layout.last_tick()));
        workers: i64 = ((layout.max(Field::Datacenter) + 1) * (layout.max(Field::Worker) + 1)) as i64;
        ids_per_second: i64 = layout.ids_per_second() as i64;
        makes_ids: bool = layout.check_makes_ids().is_ok() && clock::now() < layout.end();
        fits_double: bool = layout.fits_double();
        source: &'static str = built_in.source;
    }
}
