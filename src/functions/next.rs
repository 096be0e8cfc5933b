//! `snowflake_next()`: sql/30-next.sql.

use crate::errors::Error;
use crate::{generator, settings};
use pgrx::prelude::*;
use snowflake_core::{Claim, Position};

/// A batch claims at most this many IDs at once: enough to make the claim's cost vanish, few enough that other
/// sessions get theirs, and that little is lost when a query stops reading.
const BLOCK: u64 = 1024;

#[pg_extern(sql = "")]
fn snowflake_next() -> i64 {
    match generator::claim(1) {
        Ok(claim) => settings::layout().compose(claim.first, claim.worker),
        Err(error) => error.raise(),
    }
}

#[pg_extern(sql = "")]
fn snowflake_next_many(count: i32) -> SetOfIterator<'static, i64> {
    match u64::try_from(count) {
        Ok(left) => SetOfIterator::new(Ids { left, claim: None }),
        Err(_) => Error::NegativeCount(count).raise(),
    }
}

/// The IDs of a batch, claimed block by block as they are read.
struct Ids {
    /// How many are still to be claimed.
    left: u64,
    /// What is claimed and not yet read.
    claim: Option<Claim>,
}

impl Iterator for Ids {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let claim = match self.claim.take() {
            Some(claim) => claim,
            None if self.left == 0 => return None,
            None => {
                let claim = generator::claim(self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
                self.left -= claim.count;
                claim
            }
        };
        if claim.count > 1 {
            self.claim = Some(Claim { first: Position(claim.first.0 + 1), count: claim.count - 1, ..claim });
        }
        Some(settings::layout().compose(claim.first, claim.worker))
    }
}
