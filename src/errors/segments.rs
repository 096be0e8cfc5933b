//! Errors of segments.

use super::report::{error, or_no_answer};
use crate::postgres::wording::duration;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::Micros;
use snowflake_core::quote::shortened;
use snowflake_core::segment::Tag;

/// Servers ask for ranges of a tag all the time, as its largest range is too small, and collide.
#[derive(Clone, Copy, Debug)]
pub struct Collisions {
    /// How often that happened to this server.
    pub conflicts: u64,
    /// The largest range.
    pub largest: u64,
    /// One that is large enough.
    pub enough: u64,
}

impl Collisions {
    /// What happens, as a sentence.
    pub fn cause(&self) -> String {
        format!(
            "Servers ask for its ranges at the same time, and {} times another was faster than this one: its largest_range, {}, is too \
             small for the rate.",
            self.conflicts, self.largest
        )
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        format!(
            "Drop it and create it again with largest_range => {} or more: its numbers continue above those that were used.",
            self.enough
        )
    }
}

/// Why a number is not taken, or a tag not changed.
#[derive(Clone, Debug)]
pub enum SegmentError {
    /// No registry is set.
    NoRegistry,
    /// The name is no tag's.
    BadTag(String),
    /// A number that a tag cannot have, or bounds that are none.
    BadPlan(&'static str),
    /// The registry knows no such tag.
    Unknown {
        /// The tag.
        tag: Tag,
    },
    /// The tag was dropped.
    Dropped {
        /// The tag.
        tag: Tag,
    },
    /// There is such a tag.
    Exists {
        /// The tag.
        tag: Tag,
    },
    /// All numbers of the tag were used.
    UsedUp {
        /// The tag.
        tag: Tag,
        /// Its last number.
        last: u64,
    },
    /// The number is above the tag's last.
    AboveLast {
        /// The tag.
        tag: Tag,
        /// Its last number.
        last: u64,
    },
    /// This server has no place for another tag.
    Full {
        /// The tag.
        tag: Tag,
    },
    /// The server holds no numbers, and the registry has not granted more in time.
    NoNumbers {
        /// The tag.
        tag: Tag,
        /// What is known of the cause.
        trouble: Option<String>,
        /// Where servers collide on the tag.
        collisions: Option<Collisions>,
        /// How long the call waited.
        waited: Micros,
    },
    /// The registry has not answered.
    NotAnswered {
        /// The tag.
        tag: Tag,
        /// Whether it may have been done all the same.
        is_unknown: bool,
        /// What is known of the cause.
        trouble: Option<String>,
    },
    /// The server is being stopped, and has given its numbers back.
    Stopping,
}

impl SegmentError {
    pub(super) fn report(self) -> ErrorReport {
        match self {
            Self::NoRegistry => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this server has no registry of segments",
            )
            .set_detail("The numbers of segments come from the registry that worker IDs are leased from.")
            .set_hint("Set pg_snowflake.registry in postgresql.conf, and restart the server."),
            Self::BadTag(text) => error(
                ERRCODE_INVALID_PARAMETER_VALUE,
                &format!("invalid tag of a segment: \"{}\"", shortened(&text)),
            )
            .set_detail(format!("A tag has 1 to {} characters of ASCII, and no control characters.", Tag::LONGEST)),
            Self::BadPlan(detail) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, "invalid numbers of a segment").set_detail(detail)
            }
            Self::Unknown { tag } => {
                error(ERRCODE_UNDEFINED_OBJECT, &format!("segment \"{tag}\" does not exist")).set_hint(
                    "Create it with snowflake_segment_create(). If it did exist, the registry has forgotten it: see docs/segments.md \
                     first.",
                )
            }
            Self::Dropped { tag } => error(ERRCODE_UNDEFINED_OBJECT, &format!("segment \"{tag}\" was dropped"))
                .set_hint("Create it again with snowflake_segment_create(): its numbers continue above those that were used."),
            Self::Exists { tag } => error(ERRCODE_DUPLICATE_OBJECT, &format!("segment \"{tag}\" already exists")),
            Self::UsedUp { tag, last } => {
                error(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, &format!("segment \"{tag}\" is used up"))
                    .set_detail(format!("Its last number is {last}."))
                    .set_hint("Drop it and create it again with a higher last number: its numbers continue above those that were used.")
            }
            Self::AboveLast { tag, last } => error(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                &format!("the number is above those of segment \"{tag}\""),
            )
            .set_detail(format!("Its last number is {last}.")),
            Self::Full { tag } => full(&tag),
            Self::NoNumbers { tag, trouble, collisions, waited } => no_numbers(&tag, trouble, collisions, waited),
            Self::NotAnswered { tag, is_unknown, trouble } => not_answered(&tag, is_unknown, trouble),
            Self::Stopping => error(ERRCODE_ADMIN_SHUTDOWN, "this server is being stopped, and takes no more numbers")
                .set_detail("It has given its numbers back to the registry."),
        }
    }

    /// Which numbers a tag can have.
    pub const NUMBERS: &'static str = "Numbers go from 0 to 9223372036854775807, and the last is not below the first.";

    /// How large ranges can be.
    pub const SIZES: &'static str = "A range has at least one number, and the largest is not below the smallest.";
}

fn full(tag: &Tag) -> ErrorReport {
    error(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, &format!("this server has no room for segment \"{tag}\""))
        .set_detail(format!("It uses {} segments already.", settings::max_segments()))
        .set_hint("Raise pg_snowflake.max_segments, and restart the server.")
}

fn no_numbers(tag: &Tag, trouble: Option<String>, collisions: Option<Collisions>, waited: Micros) -> ErrorReport {
    let remedy = collisions.filter(|_| trouble.is_none()).map(|collisions| collisions.remedy());
    let cause = trouble.or_else(|| collisions.map(|collisions| collisions.cause()));
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &format!("this server has no numbers of segment \"{tag}\""))
        .set_detail(format!(
            "{} The call waited {} (pg_snowflake.max_wait is {}).",
            or_no_answer(cause),
            duration(waited),
            duration(settings::max_wait())
        ))
        .set_hint(
            remedy
                .unwrap_or_else(|| "See snowflake_status() and snowflake_segments(), and the server's log.".to_owned()),
        )
}

fn not_answered(tag: &Tag, is_unknown: bool, trouble: Option<String>) -> ErrorReport {
    let message = format!("the registry has not answered about segment \"{tag}\"");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message).set_detail(or_no_answer(trouble)).set_hint(
        match is_unknown {
            true => "Whether the change was made is not known. Make it again.",
            false => "Nothing was changed. See snowflake_status(), and the server's log.",
        },
    )
}
