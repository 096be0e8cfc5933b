//! Why a call fails.

use crate::errors::partitions::PartitionError;
use pgrx::spi;

/// Why no partitions were created.
pub enum Failure {
    /// They cannot be created, or not by this caller.
    Refused(PartitionError),
    /// A query of the extension's own failed.
    Query(spi::Error),
}

impl From<PartitionError> for Failure {
    fn from(error: PartitionError) -> Self {
        Self::Refused(error)
    }
}

impl From<spi::Error> for Failure {
    fn from(error: spi::Error) -> Self {
        Self::Query(error)
    }
}
