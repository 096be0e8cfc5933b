//! When a change counts as made.

use super::fault::Fault;
use crate::Swap;
use snowflake_core::lease::Version;

/// A record is stored where the answer says so and repeats it: what stands, and its version. Another answer may be one to something
/// else.
///
/// # Errors
/// [`Fault::Unclear`], where it repeats something else.
pub(crate) fn confirmed<R: PartialEq, S>(
    record: &R,
    version: Option<Version>,
    stands: Option<(Version, &R)>,
) -> Result<Swap<S>, Fault> {
    match (version, stands) {
        (Some(version), Some((of_stands, stands))) if of_stands == version && stands == record => {
            Ok(Swap::Stored(version))
        }
        _ => Err(Fault::Unclear("the answer does not repeat what was to be stored".to_owned())),
    }
}
