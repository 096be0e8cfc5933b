//! `snowflake_preflight()`.

#![expect(clippy::too_many_arguments, reason = "there are many requirements, all of them named and optional")]

use crate::errors::Error;
use crate::errors::preflight::{MAX_KEYS, PreflightError};
use crate::postgres::encoding::{self, Text};
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::settings;
use crate::sql::checks::{Finding, Requirements, check};
use crate::sql::named_layouts;
use pgrx::Array;
use pgrx::prelude::*;
use snowflake_core::Layout;
use std::ffi::CStr;

export!(snowflake_preflight_wrapper as snowflake_preflight);

rows! {
    fn snowflake_preflight(
        layout: Option<Given>,
        epoch: Option<i64>,
        servers: Option<i32>,
        datacenters: Option<i32>,
        leases: Option<bool>,
        ids_per_second: Option<f64>,
        years: Option<i32>,
        javascript: Option<bool>,
        oldest_row: Option<i64>,
        keys: Option<Array<pg_sys::Oid>>,
        key_column: Option<&CStr>,
    ) {
        let layout = wanted_layout(layout, epoch);
        let found = (|| {
            let keys = keys.map(all).transpose()?;
            if let Some(rate) = ids_per_second.filter(|rate| rate.is_nan() || *rate <= 0.0) {
                return Err(PreflightError::Rate(rate).into());
            }
            check(&Requirements {
                layout,
                servers: positive("servers", servers)?,
                datacenters: positive("datacenters", datacenters)?,
                leases,
                ids_per_second,
                years: positive("years", years)?,
                javascript,
                oldest_row,
                keys: keys.unwrap_or_default(),
                key_column: key_column.map(encoding::read_name),
            })
        })();
        found.unwrap_or_else(|error: Error| error.raise_in(&layout))
    }

    row Finding { subject, verdict, finding, advice } => {
        subject: &'static str = subject;
        verdict: &'static str = verdict.name();
        finding: Text = Text(finding);
        advice: Option<Text> = advice.map(Text);
    }
}

/// The layout that is named, or the server's; with another epoch, where one is given.
fn wanted_layout(layout: Option<Given>, epoch: Option<i64>) -> Layout {
    let layout = layout.map_or_else(|| *settings::layout(), named_layouts::find);
    match epoch {
        None => layout,
        Some(epoch) => layout
            .with_epoch(timestamptz::to_unix(epoch))
            .unwrap_or_else(|problem| Error::from(PreflightError::Epoch(epoch, problem)).raise_in(&layout)),
    }
}

/// The elements of `keys`.
fn all(keys: Array<pg_sys::Oid>) -> Result<Vec<pg_sys::Oid>, PreflightError> {
    match keys.len() {
        0..=MAX_KEYS => keys.iter().collect::<Option<_>>().ok_or(PreflightError::NullKey),
        count => Err(PreflightError::TooManyKeys(count)),
    }
}

fn positive(argument: &'static str, value: Option<i32>) -> Result<Option<u32>, PreflightError> {
    let check = |value: i32| match u32::try_from(value) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(PreflightError::TooFew(argument, value)),
    };
    value.map(check).transpose()
}
