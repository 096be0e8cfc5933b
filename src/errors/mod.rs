//! Every error that a function can end with, and its SQLSTATE, message, detail and hint; by topic.

pub mod generator;
pub mod leases;
pub mod moving;
pub mod partitions;
pub mod preflight;
pub mod record;
pub mod report;
pub mod reservation;
pub mod segments;
pub mod values;

use self::generator::GeneratorError;
use self::leases::LeaseError;
use self::moving::MovingError;
use self::partitions::PartitionError;
use self::preflight::PreflightError;
use self::record::RecordError;
use self::report::error;
use self::reservation::ReservationError;
use self::segments::SegmentError;
use self::values::ValueError;
use crate::postgres::encoding;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::{Layout, NotAnId};

/// Why a call fails.
#[derive(Clone, Debug)]
pub enum Error {
    /// No ID can be made.
    Generator(GeneratorError),
    /// There is no lease.
    Lease(LeaseError),
    /// What the database has on record does not allow it.
    Record(RecordError),
    /// There is no reservation, or no way back.
    Reservation(ReservationError),
    /// A value that was given cannot be used.
    Value(ValueError),
    /// `snowflake_create_partitions()` cannot make the partitions.
    Partitions(PartitionError),
    /// `snowflake_adopt()` or `snowflake_release()` cannot move the table.
    Moving(MovingError),
    /// The arguments of `snowflake_preflight()` mean nothing.
    Preflight(PreflightError),
    /// There is no number of a segment, or it cannot be changed.
    Segment(SegmentError),
    /// The records of the registry cannot be listed.
    NoListing(String),
    /// Another extension plans with an index that only the planner was told of.
    PlannedByOthers,
}

/// An error of one topic is an error.
macro_rules! from_topics {
    ($($topic:ident => $variant:ident,)+) => {
        $(
            impl From<$topic> for Error {
                fn from(error: $topic) -> Self {
                    Self::$variant(error)
                }
            }
        )+
    };
}

from_topics! {
    GeneratorError => Generator,
    LeaseError => Lease,
    RecordError => Record,
    ReservationError => Reservation,
    ValueError => Value,
    PartitionError => Partitions,
    MovingError => Moving,
    PreflightError => Preflight,
    SegmentError => Segment,
}

impl From<NotAnId> for Error {
    fn from(error: NotAnId) -> Self {
        ValueError::from(error).into()
    }
}

impl Error {
    /// Ends the call with this error.
    #[cold]
    #[inline(never)]
    pub fn raise(self) -> ! {
        self.raise_in(settings::layout())
    }

    /// Ends a call about IDs of this layout.
    #[cold]
    #[inline(never)]
    pub fn raise_in(self, layout: &Layout) -> ! {
        self.shown(layout).report(PgLogLevel::ERROR);
        unreachable!("reporting an ERROR does not return")
    }

    /// Warns of it, and goes on.
    pub fn warn(self) {
        self.shown(settings::layout()).report(PgLogLevel::WARNING);
    }

    /// The report, in the encoding of the database.
    fn shown(self, layout: &Layout) -> ErrorReport {
        let mut report = self.report(layout);
        if let Some(detail) = report.detail().map(encoding::shown) {
            report = report.set_detail(detail);
        }
        if let Some(hint) = report.hint().map(encoding::shown) {
            report = report.set_hint(hint);
        }
        report
    }

    /// Its message and its hint, for a row of a result.
    pub fn words(self) -> (String, Option<String>) {
        let report = self.report(settings::layout());
        (report.message().to_owned(), report.hint().map(str::to_owned))
    }

    fn report(self, layout: &Layout) -> ErrorReport {
        use PgSqlErrorCode::*;
        match self {
            Self::Generator(problem) => problem.report(layout),
            Self::Lease(problem) => problem.report(),
            Self::Record(problem) => problem.report(),
            Self::Reservation(problem) => problem.report(),
            Self::Value(problem) => problem.report(layout),
            Self::Partitions(problem) => problem.report(layout),
            Self::Moving(problem) => problem.report(),
            Self::Preflight(problem) => problem.report(layout),
            Self::Segment(problem) => problem.report(),
            Self::NoListing(why) => {
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the registry of worker IDs cannot be read")
                    .set_detail(why)
            }
            Self::PlannedByOthers => error(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "another extension plans with an index that pg_snowflake has described for the planner alone",
            )
            .set_detail("The index does not exist. It only gives the planner statistics of the time.")
            .set_hint("SET pg_snowflake.plan_by_time = off for such queries, and report the extension's name."),
        }
    }
}
