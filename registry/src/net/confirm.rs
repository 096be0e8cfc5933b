//! When a change counts as made.

use super::fault::Fault;
use crate::Swap;
use snowflake_core::lease::{Record, Stored, Version};

/// A record is stored where the answer says so and repeats it. Another answer may be one to something else.
///
/// # Errors
/// [`Fault::Unclear`], where it repeats something else.
pub(crate) fn confirmed(record: &Record, version: Option<Version>, stands: Option<&Stored>) -> Result<Swap, Fault> {
    match (version, stands) {
        (Some(version), Some(stands)) if stands.version == version && stands.record == *record => {
            Ok(Swap::Stored(version))
        }
        _ => Err(Fault::Unclear("the answer does not repeat what was to be stored".to_owned())),
    }
}
