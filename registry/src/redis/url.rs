//! The parts of a URL that mean something to Redis alone.

use crate::url::error::UrlError;
use crate::url::parameters::Parameters;

pub(super) const WAIT_REPLICAS: &str = "wait_replicas";

/// The number of the database, of the path.
pub(super) fn database(path: &str) -> Result<u16, UrlError> {
    match path.is_empty() {
        true => Ok(0),
        false => path.parse().map_err(|_| UrlError::Rule("the path of a Redis URL is the number of a database")),
    }
}

/// How many replicas must have received a change.
pub(super) fn wait_replicas(parameters: &Parameters) -> Result<u32, UrlError> {
    Ok(parameters.number(WAIT_REPLICAS, 0..=100, "a number from 0 to 100")?.unwrap_or(0))
}
