//! Errors: each has a message of its own, in lower case and without a full stop, as it may stand within another one.

use snowflake_core::layout::{EncodeError, FieldError, NotAnId, OutOfRange};
use snowflake_core::lease::{NotInstalled, OtherLayout, WorkerNumber};
use snowflake_core::notation::Problem;
use snowflake_core::pieces::{Overlap, PieceLengthError, PiecesError};
use snowflake_core::reservation::CopyTooFar;
use snowflake_core::text::TextError;
use snowflake_core::{Field, LayoutError, Micros, Refusal, Tick, Ticks, UnixMicros};
use std::error::Error;

#[test]
fn messages_say_what_is_wrong() {
    let too_high = FieldError::TooHigh { field: Field::Worker, value: 1024, max: 1023 };
    let year_2000 = OutOfRange(UnixMicros::parse("2000-01-01T00:00:00Z").unwrap());
    let expected: [(Box<dyn Error>, &str); _] = [
        (Box::new(NotAnId(-1)), "-1 is not an ID of the layout"),
        (Box::new(year_2000), "2000-01-01T00:00:00Z lies outside the time of the layout"),
        (Box::new(EncodeError::from(year_2000)), "2000-01-01T00:00:00Z lies outside the time of the layout"),
        (Box::new(EncodeError::from(too_high)), "worker 1024 is above the layout's highest, 1023"),
        (Box::new(FieldError::Missing(Field::Worker)), "the layout has a worker, but none is given"),
        (Box::new(FieldError::NoSuchField(Field::Datacenter)), "the layout has no datacenter, but one is given"),
        (Box::new(LayoutError::FieldTooWide(Field::Worker, 32)), "field worker has 32 bits, more than 31"),
        (Box::new(Problem::Repeated("tick")), "tick is given twice"),
        (Box::new(Problem::TooLong), "a layout has at most 256 bytes"),
        (Box::new(TextError::TooLong), "the text has more than 64 bytes, and an ID at most 19 characters"),
        (Box::new(Problem::Layout(LayoutError::TooWide(64))), "the fields have 64 bits together, more than 63"),
        (Box::new(PieceLengthError::Negative), "a part of the step is negative"),
        (Box::new(PieceLengthError::NotWholeSeconds), "the step is not one or more whole seconds"),
        (Box::new(PiecesError::Empty), "the range is empty"),
        (Box::new(PiecesError::TooMany(1001)), "the range has 1001 pieces, more than 1000"),
        (Box::new(Overlap { piece: 2, partition: 0 }), "piece 2 overlaps partition 0"),
        (
            Box::new(CopyTooFar { ahead: Micros::from_millis(1500), wait: Micros::from_millis(400) }),
            "the copy of a reservation from elsewhere is 1500000 us ahead of the clock",
        ),
        (Box::new(NotInstalled::RenewFirst), "the grant ends before the line or a published end"),
        (Box::new(NotInstalled::NoSuchWorker(WorkerNumber(1024))), "the layout has no worker 1024"),
        (
            Box::new(OtherLayout { theirs: "a".into(), ours: "b".into() }),
            "the layout of the namespace is \"a\", and that of this server \"b\"",
        ),
        (Box::new(Refusal::Full { until: Tick(9) }), "the burst is used up until the clock reaches tick 9"),
        (Box::new(Refusal::Behind), "the clock is behind, and the last tick is full"),
        (Box::new(Refusal::TooEarly { wait: Micros(10) }), "the next tick can be opened in 10 us"),
        (Box::new(Refusal::TooFarAhead { lead: Ticks(9) }), "the line is 9 ticks ahead of the clock"),
        (Box::new(Refusal::Limit { needs: Tick(9) }), "tick 9 is beyond the limit"),
        (Box::new(Refusal::Exhausted), "the layout is used up"),
    ];
    for (error, message) in expected {
        assert_eq!(error.to_string(), message);
        assert!(error.source().is_none(), "{message}: the message has the cause's already");
    }
}
