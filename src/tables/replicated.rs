//! Tables that are published or subscribed to partition by partition: what the partitions' job makes
//! later does not reach a subscriber, and nothing says so.

use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::encoding::Text;
use crate::postgres::{own, restricted};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;

/// The extension in SQL has the query as a function, of `snowflake_next()`.
const FUNCTION: &str = include_str!("../../sql/hosted/replicated.sql");

/// What is to be known of one table and one publication or subscription.
pub struct Replicated {
    /// Whether rows are lost already.
    pub loses_rows: bool,
    /// What there is.
    pub finding: String,
    /// What to do.
    pub advice: String,
}

/// Looks at all tables of this database.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn partition_by_partition() -> Result<Vec<Replicated>, Error> {
    let found = restricted::with(&[restricted::SAFE_PATH], || Spi::connect(read));
    found.map_err(|error| MovingError::Query(error.to_string()).into())
}

fn read(client: &SpiClient) -> spi::Result<Vec<Replicated>> {
    let Some(next) = own::next(client)? else { return Ok(Vec::new()) };
    let query = FUNCTION.split("$$").nth(1).unwrap_or_default();
    let text = |text: Option<Text>| text.map(|text| text.0).unwrap_or_default();
    client
        .select(query, None, &[next.into()])?
        .map(|row| {
            Ok(Replicated {
                loses_rows: text(row.get(1)?) == "problem",
                finding: text(row.get(2)?),
                advice: text(row.get(3)?),
            })
        })
        .collect()
}
