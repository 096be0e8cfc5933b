//! `snowflake_next()`: one ID, or a batch.

use super::batch::{self, Arguments, BLOCK, Batch};
use crate::record::rights;
use crate::{generator, settings};
use pgrx::pg_sys;
use pgrx::prelude::*;
use snowflake_core::{Claim, Position, WorkerBits};

export!(next as snowflake_next, batch::next::<Ids> as snowflake_next_many);

/// `snowflake_next()`. Has no guard of pgrx's, which would take a fifth of the time that the rest takes: nothing here
/// panics or raises an error, and [`next_slowly`], which may, has one.
extern "C-unwind" fn next(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim_at_once(1) {
        Some(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        None => next_slowly(call),
    }
}

#[cold]
#[inline(never)]
#[pg_guard]
extern "C-unwind" fn next_slowly(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim(1) {
        Ok(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        Err(error) => error.raise(),
    }
}

/// The batch of `snowflake_next(count)`.
struct Ids {
    /// How many IDs are not yet claimed.
    left: u64,
    /// The IDs that are claimed and not yet returned.
    claim: Claim,
}

impl Batch for Ids {
    fn asked_for(arguments: &Arguments) -> Self {
        rights::check_batch().unwrap_or_else(|error| error.raise());
        let left = arguments.count(0);
        if left > BLOCK {
            generator::give_way();
        }
        Self { left, claim: Claim { first: Position(0), count: 0, worker: WorkerBits(0) } }
    }

    #[inline(always)]
    fn claimed(&mut self) -> Option<i64> {
        self.claim.count = self.claim.count.checked_sub(1)?;
        let position = self.claim.first;
        self.claim.first = Position(position.0 + 1);
        Some(settings::layout().compose(position, self.claim.worker))
    }

    fn claim(&mut self) {
        if self.left > 0 {
            self.claim = generator::claim(self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
            self.left -= self.claim.count;
        }
    }
}
