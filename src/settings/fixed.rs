//! The layout: what `pg_snowflake.layout` and `pg_snowflake.epoch` make together. It is read once, and does not change while a process
//! lives: in another layout, new IDs could repeat existing ones.

use crate::postgres::time::clock;
use once_cell::sync::OnceCell;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::notation::{self, NotationError};
use snowflake_core::{Layout, UnixMicros};

static LAYOUT: OnceCell<Layout> = OnceCell::new();

/// The layout of this server's IDs.
#[inline]
pub fn layout() -> &'static Layout {
    // `init` has set it before anything else can run.
    LAYOUT.get_or_init(notation::default_layout)
}

/// Reads the layout from its two parameters. In the postmaster (`preloading`), a wrong value ends the start of the server.
pub fn init(layout: &str, epoch: &str, preloading: bool) {
    let invalid = |message, detail: String, hint: &str| {
        let level = if preloading { PgLogLevel::FATAL } else { PgLogLevel::ERROR };
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        ErrorReport::new(code, message, "").set_detail(detail).set_hint(hint).report(level);
    };
    match configured(layout, epoch) {
        Ok(layout) => {
            // Without preloading no IDs are made, and those that exist can be read.
            if preloading && clock::now() >= layout.end() {
                invalid(
                    "the time of pg_snowflake.layout is over",
                    format!("The layout \"{layout}\" ended at {}.", layout.end()),
                    "Set a layout, or an epoch, with a later end.",
                );
            }
            LAYOUT.get_or_init(|| layout);
        }
        Err(detail) => invalid(
            "pg_snowflake.epoch does not fit pg_snowflake.layout",
            detail,
            "Set an earlier epoch, or a layout with a narrower timestamp.",
        ),
    }
}

/// The layout that the two parameters make together, or why they do not. Each was checked alone.
fn configured(layout: &str, epoch: &str) -> Result<Layout, String> {
    let layout: Layout = layout.parse().map_err(|error: NotationError| error.to_string())?;
    match epoch {
        "" => Ok(layout),
        epoch => {
            let epoch = UnixMicros::parse(epoch).unwrap_or(layout.epoch());
            layout.with_epoch(epoch).map_err(|error| format!("With epoch {epoch}, {error}."))
        }
    }
}
