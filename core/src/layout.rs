//! The layout: how the 63 bits of an ID are divided into fields, how long a tick is, and when tick 0 begins. What
//! follows from it is here too: IDs from their parts and back, and the IDs of a range of time.
//!
//! ```
//! use snowflake_core::{Field, Layout, Parts, UnixMicros};
//!
//! let twitter: Layout = "twitter".parse()?;
//! let parts = twitter.decode(1541815603606036480)?;
//! assert_eq!(parts, Parts {
//!     timestamp: UnixMicros::parse("2022-06-28T16:07:40.105Z").unwrap(),
//!     datacenter: Some(11),
//!     worker: Some(26),
//!     sequence: 0,
//! });
//! assert_eq!(twitter.encode(&parts)?, 1541815603606036480);
//!
//! // All IDs of a time or later are at or above one number, so an index on the ID serves as one on the time.
//! let lowest = twitter.lowest_id_from(parts.timestamp).unwrap();
//! assert!(lowest <= 1541815603606036480);
//! assert_eq!(twitter.timestamp(lowest)?, parts.timestamp);
//! assert_eq!(twitter.field(lowest, Field::Worker)?, Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::time::{Micros, Tick, Ticks, UnixMicros};
use std::fmt;
use thiserror::Error;

/// A field of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Ticks since the layout's epoch. Always the highest field, so that IDs sort by time.
    Timestamp,
    /// A group of workers, where the layout has such a field.
    Datacenter,
    /// The server that made the ID.
    Worker,
    /// Tells apart the IDs that one worker made in one tick.
    Sequence,
}

impl Field {
    /// All fields, in the order in which messages list them.
    pub const ALL: [Self; 4] = [Self::Timestamp, Self::Datacenter, Self::Worker, Self::Sequence];

    /// The field's name in notation and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::Datacenter => "datacenter",
            Self::Worker => "worker",
            Self::Sequence => "sequence",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place on a server's [`Line`](crate::Line) of IDs: `tick << sequence bits | sequence`. Below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The worker and the datacenter, already shifted to their places in an ID; all other bits are 0. Made by
/// [`Layout::place_worker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerBits(pub u64);

/// The parts of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The start of the ID's tick.
    pub timestamp: UnixMicros,
    /// `None` where the layout has no such field.
    pub datacenter: Option<u32>,
    /// `None` where the layout has no such field.
    pub worker: Option<u32>,
    /// 0 where the layout has no such field.
    pub sequence: u32,
}

/// The place of a field: `width` bits, of which the lowest is bit `shift`. A field that the layout lacks has width 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    width: u32,
    shift: u32,
}

impl Bits {
    const fn max(self) -> u64 {
        (1 << self.width) - 1
    }

    const fn take(self, id: u64) -> u64 {
        id >> self.shift & self.max()
    }

    const fn put(self, value: u64) -> u64 {
        value << self.shift
    }
}

/// How 63 bits are divided, how long a tick is, and when tick 0 begins. Every value of this type is valid:
/// [`Self::new`] has checked that none of its IDs and instants overflows. Written as text by [`crate::notation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    timestamp: Bits,
    datacenter: Bits,
    worker: Bits,
    sequence: Bits,
    tick_length: Micros,
    epoch: UnixMicros,
}

impl Layout {
    /// The longest tick: one minute.
    pub const MAX_TICK_LENGTH: Micros = Micros::from_secs(60);

    /// The widest datacenter, worker or sequence, in bits: the values fit a signed 32-bit integer.
    pub const MAX_FIELD_WIDTH: u32 = 31;

    /// A layout of these fields, from the highest to the lowest, each with its width in bits. A tick lasts from one
    /// microsecond to [`Self::MAX_TICK_LENGTH`]. Tick 0 begins at the epoch, in the years 1970 to 9999.
    ///
    /// # Errors
    /// Where there can be no such layout: see [`LayoutError`].
    pub fn new(fields: &[(Field, u32)], tick_length: Micros, epoch: UnixMicros) -> Result<Self, LayoutError> {
        let mut placed = [Bits { width: 0, shift: 0 }; Field::ALL.len()];
        let mut shift = 0;
        for &(field, width) in fields.iter().rev() {
            let bits = &mut placed[field as usize];
            if bits.width != 0 {
                return Err(LayoutError::Repeated(field));
            }
            if width == 0 {
                return Err(LayoutError::Empty(field));
            }
            if field != Field::Timestamp && width > Self::MAX_FIELD_WIDTH {
                return Err(LayoutError::FieldTooWide(field, width));
            }
            if width > 63 - shift {
                let sum = fields.iter().map(|&(_, width)| u64::from(width)).sum();
                return Err(LayoutError::TooWide(sum));
            }
            *bits = Bits { width, shift };
            shift += width;
        }
        let [timestamp, datacenter, worker, sequence] = placed;
        if timestamp.width == 0 {
            return Err(LayoutError::Missing(Field::Timestamp));
        }
        if fields[0].0 != Field::Timestamp {
            return Err(LayoutError::TimestampNotHighest);
        }
        if !(Micros(1)..=Self::MAX_TICK_LENGTH).contains(&tick_length) {
            return Err(LayoutError::Tick(tick_length));
        }
        if !(0..=UnixMicros::MAX_WRITTEN.0).contains(&epoch.0) {
            return Err(LayoutError::Epoch(epoch));
        }
        let end = i128::from(epoch.0) + (i128::from(timestamp.max()) + 1) * i128::from(tick_length.0);
        if end > i128::from(UnixMicros::MAX_WRITTEN.0) + 1 {
            return Err(LayoutError::EndsTooLate);
        }
        Ok(Self { timestamp, datacenter, worker, sequence, tick_length, epoch })
    }

    /// Checks that IDs can be made in the layout, and not only read.
    ///
    /// # Errors
    /// [`LayoutError::Missing`] where it has no sequence, without which the IDs of one tick would be equal, or no
    /// worker, without which the IDs of two servers would be.
    pub const fn check_makes_ids(&self) -> Result<(), LayoutError> {
        if self.sequence.width == 0 {
            Err(LayoutError::Missing(Field::Sequence))
        } else if self.worker.width == 0 {
            Err(LayoutError::Missing(Field::Worker))
        } else {
            Ok(())
        }
    }

    /// Whether all IDs are below 2^53: integers that JavaScript, and whatever else counts in double precision, holds
    /// exactly.
    pub const fn fits_double(&self) -> bool {
        self.max_id() < 1 << 53
    }

    /// The instant from which on IDs are not below 2^53, and so not all exact as JavaScript numbers: the start of the tick that
    /// has the first such ID. `None` where [all IDs are](Self::fits_double).
    pub const fn exact_until(&self) -> Option<UnixMicros> {
        if self.fits_double() {
            None
        } else {
            Some(self.start_of(Tick(((1_u64 << 53) >> self.timestamp.shift) as i64)))
        }
    }

    /// How many IDs one worker can make in a second, rounded down.
    pub const fn ids_per_second(&self) -> u64 {
        (self.sequence.max() + 1) * 1_000_000 / self.tick_length.0 as u64
    }

    /// The same layout with another epoch.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_epoch(&self, epoch: UnixMicros) -> Result<Self, LayoutError> {
        Self::new(&self.fields(), self.tick_length, epoch)
    }

    /// The fields with their widths in bits, high to low; those that the layout lacks are left out.
    pub fn fields(&self) -> Vec<(Field, u32)> {
        let mut present: Vec<Field> = Field::ALL.into_iter().filter(|&field| self.bits(field).width > 0).collect();
        present.sort_by_key(|&field| std::cmp::Reverse(self.bits(field).shift));
        present.into_iter().map(|field| (field, self.bits(field).width)).collect()
    }

    const fn bits(&self, field: Field) -> Bits {
        match field {
            Field::Timestamp => self.timestamp,
            Field::Datacenter => self.datacenter,
            Field::Worker => self.worker,
            Field::Sequence => self.sequence,
        }
    }

    /// The highest value of a field; 0 where the layout has no such field.
    pub const fn max(&self, field: Field) -> u64 {
        self.bits(field).max()
    }

    /// How long a tick lasts.
    pub const fn tick_length(&self) -> Micros {
        self.tick_length
    }

    /// The instant at which tick 0 begins.
    pub const fn epoch(&self) -> UnixMicros {
        self.epoch
    }

    /// The instant at which the last tick ends. All IDs have earlier times.
    pub const fn end(&self) -> UnixMicros {
        UnixMicros(self.epoch.0 + (self.last_tick().0 + 1) * self.tick_length.0)
    }

    /// The last tick that an ID can have.
    pub const fn last_tick(&self) -> Tick {
        Tick(self.timestamp.max() as i64)
    }

    /// The highest ID of the layout.
    pub const fn max_id(&self) -> i64 {
        ((1_u64 << (self.timestamp.shift + self.timestamp.width)) - 1) as i64
    }

    // Time to ticks and back.

    /// The tick in which an instant lies; negative before the epoch, beyond [`Self::last_tick`] after the end.
    #[inline]
    pub const fn tick_at(&self, instant: UnixMicros) -> Tick {
        Tick(instant.saturating_since(self.epoch).0.div_euclid(self.tick_length.0))
    }

    /// The first tick that begins at or after an instant; negative before the epoch, beyond [`Self::last_tick`] near
    /// or after the end.
    pub const fn first_tick_from(&self, instant: UnixMicros) -> Tick {
        let since_epoch = instant.saturating_since(self.epoch).0;
        let within = since_epoch.rem_euclid(self.tick_length.0) != 0;
        Tick(since_epoch.div_euclid(self.tick_length.0) + within as i64)
    }

    /// The instant at which a tick begins. The tick is one of the layout's, or near them: that of another may overflow.
    #[inline]
    pub const fn start_of(&self, tick: Tick) -> UnixMicros {
        UnixMicros(self.epoch.0 + tick.0 * self.tick_length.0)
    }

    /// How many whole ticks a length of time holds, rounded towards 0.
    pub const fn ticks_in(&self, length: Micros) -> Ticks {
        Ticks(length.0 / self.tick_length.0)
    }

    /// How long so many ticks last; at most what the type can hold.
    pub const fn length_of(&self, ticks: Ticks) -> Micros {
        Micros(ticks.0.saturating_mul(self.tick_length.0))
    }

    // Ticks to positions and back.

    /// The position with this tick and sequence, which are not checked: the tick is not negative and at most one above
    /// [`Self::last_tick`], and the sequence fits its field.
    #[inline]
    pub const fn position(&self, tick: Tick, sequence: u64) -> Position {
        Position((tick.0 as u64) << self.sequence.width | sequence)
    }

    /// The last position of a tick.
    #[inline]
    pub const fn last_position(&self, tick: Tick) -> Position {
        self.position(tick, self.sequence.max())
    }

    /// The tick of a position.
    #[inline]
    pub const fn tick_of(&self, position: Position) -> Tick {
        Tick((position.0 >> self.sequence.width) as i64)
    }

    // Positions to IDs and back.

    /// Shifts the worker, and the datacenter where the layout has one, to their places in an ID.
    ///
    /// # Errors
    /// Where a value is missing, too high, or given for a field that the layout lacks.
    pub fn place_worker(&self, datacenter: Option<u32>, worker: Option<u32>) -> Result<WorkerBits, FieldError> {
        let mut placed = 0;
        for (field, value) in [(Field::Datacenter, datacenter), (Field::Worker, worker)] {
            let bits = self.bits(field);
            placed |= match value {
                None if bits.width > 0 => return Err(FieldError::Missing(field)),
                None => 0,
                Some(_) if bits.width == 0 => return Err(FieldError::NoSuchField(field)),
                Some(value) if u64::from(value) > bits.max() => {
                    return Err(FieldError::TooHigh { field, value, max: bits.max() });
                }
                Some(value) => bits.put(u64::from(value)),
            };
        }
        Ok(WorkerBits(placed))
    }

    /// How many workers the layout has: each datacenter with each worker is one. At least 1.
    pub const fn workers(&self) -> u64 {
        1 << (self.datacenter.width + self.worker.width)
    }

    /// How many workers each datacenter has. At least 1.
    pub const fn workers_of_datacenter(&self) -> u64 {
        1 << self.worker.width
    }

    /// Whether the layout has a field for the worker.
    pub const fn has_workers(&self) -> bool {
        self.worker.width > 0
    }

    /// The number of a worker within the whole layout, below [`Self::workers`]: the worker, and above it the
    /// datacenter where the layout has one.
    ///
    /// # Errors
    /// As [`Self::place_worker`].
    pub fn number_worker(&self, datacenter: Option<u32>, worker: Option<u32>) -> Result<u64, FieldError> {
        self.place_worker(datacenter, worker)?;
        Ok(u64::from(datacenter.unwrap_or(0)) << self.worker.width | u64::from(worker.unwrap_or(0)))
    }

    /// The datacenter and the worker with this number, shifted to their places in an ID; `None` where the layout has
    /// no such worker.
    pub const fn place_number(&self, number: u64) -> Option<WorkerBits> {
        if number >= self.workers() {
            return None;
        }
        let datacenter = self.datacenter.put(number >> self.worker.width);
        Some(WorkerBits(datacenter | self.worker.put(number & self.worker.max())))
    }

    /// The ID at a position, made by a worker. Both are of this layout.
    #[inline]
    pub const fn compose(&self, position: Position, worker: WorkerBits) -> i64 {
        let tick = position.0 >> self.sequence.width;
        let sequence = position.0 & self.sequence.max();
        (self.timestamp.put(tick) | worker.0 | self.sequence.put(sequence)) as i64
    }

    /// The ID with these parts. The timestamp may lie anywhere within its tick.
    ///
    /// # Errors
    /// Where the timestamp is outside the layout's time, or another part is missing, too high, or given for a field
    /// that the layout lacks.
    pub fn encode(&self, parts: &Parts) -> Result<i64, EncodeError> {
        let tick = self.tick_at(parts.timestamp);
        if tick.0 < 0 || tick > self.last_tick() {
            return Err(EncodeError::Time(OutOfRange(parts.timestamp)));
        }
        let worker = self.place_worker(parts.datacenter, parts.worker)?;
        let (sequence, max) = (u64::from(parts.sequence), self.sequence.max());
        if sequence > max {
            return Err(FieldError::TooHigh { field: Field::Sequence, value: parts.sequence, max }.into());
        }
        Ok(self.compose(self.position(tick, sequence), worker))
    }

    /// The parts of an ID.
    ///
    /// # Errors
    /// Where the number is no ID of this layout.
    pub const fn decode(&self, id: i64) -> Result<Parts, NotAnId> {
        match self.check(id) {
            Err(error) => Err(error),
            Ok(id) => Ok(Parts {
                timestamp: self.start_of(Tick(self.timestamp.take(id) as i64)),
                datacenter: self.part(id, Field::Datacenter),
                worker: self.part(id, Field::Worker),
                sequence: self.sequence.take(id) as u32,
            }),
        }
    }

    /// The start of the ID's tick, as [`Self::decode`] has it.
    ///
    /// # Errors
    /// Where the number is no ID of this layout.
    #[inline]
    pub fn timestamp(&self, id: i64) -> Result<UnixMicros, NotAnId> {
        Ok(self.start_of(Tick(self.timestamp.take(self.check(id)?) as i64)))
    }

    /// The ID's datacenter, worker or sequence; `None` where the layout lacks the field. Not for the timestamp, which
    /// may have more than 32 bits: see [`Self::timestamp`].
    ///
    /// # Errors
    /// Where the number is no ID of this layout.
    #[inline]
    pub fn field(&self, id: i64, field: Field) -> Result<Option<u32>, NotAnId> {
        Ok(self.part(self.check(id)?, field))
    }

    const fn part(&self, id: u64, field: Field) -> Option<u32> {
        let bits = self.bits(field);
        if bits.width == 0 { None } else { Some(bits.take(id) as u32) }
    }

    const fn check(&self, id: i64) -> Result<u64, NotAnId> {
        if id < 0 || id > self.max_id() { Err(NotAnId(id)) } else { Ok(id as u64) }
    }

    // IDs that bound a range of time. For every instant and every ID of the layout, comparing the ID with the bound is
    // the same as comparing the ID's timestamp with the instant.

    /// The lowest ID whose timestamp is at or after an instant: 0 before [`Self::epoch`], and `None` after the start of
    /// the last tick, as no ID has a later timestamp.
    pub const fn lowest_id_from(&self, instant: UnixMicros) -> Option<i64> {
        if instant.0 <= self.epoch.0 {
            Some(0)
        } else if instant.0 > self.start_of(self.last_tick()).0 {
            None
        } else {
            Some(self.timestamp.put(self.first_tick_from(instant).0 as u64) as i64)
        }
    }

    /// The highest ID whose timestamp is at or before an instant: -1 before [`Self::epoch`], as there is none, and
    /// [`Self::max_id`] from [`Self::end`] on.
    pub const fn highest_id_until(&self, instant: UnixMicros) -> i64 {
        if instant.0 < self.epoch.0 {
            -1
        } else if instant.0 >= self.end().0 {
            self.max_id()
        } else {
            let tick = self.tick_at(instant).0 as u64;
            (self.timestamp.put(tick) | (self.timestamp.put(1) - 1)) as i64
        }
    }

    /// The highest ID whose timestamp is before an instant: -1 up to [`Self::epoch`] itself, as there is none, and
    /// [`Self::max_id`] from [`Self::end`] on.
    pub const fn highest_id_before(&self, instant: UnixMicros) -> i64 {
        // Timestamps are whole microseconds.
        self.highest_id_until(UnixMicros(instant.0.saturating_sub(1)))
    }
}

/// Why there can be no such layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The field is given twice.
    #[error("field {0} is given twice")]
    Repeated(Field),
    /// The field is required.
    #[error("field {0} is missing")]
    Missing(Field),
    /// The field has no bits.
    #[error("field {0} must have at least 1 bit")]
    Empty(Field),
    /// The field has so many bits, more than [`Layout::MAX_FIELD_WIDTH`].
    #[error("field {0} has {1} bits, more than {max}", max = Layout::MAX_FIELD_WIDTH)]
    FieldTooWide(Field, u32),
    /// The fields have so many bits together, more than 63.
    #[error("the fields have {0} bits together, more than 63")]
    TooWide(u64),
    /// A field stands above the timestamp, so IDs would not sort by time.
    #[error("the timestamp must be the first field, so that IDs sort by time")]
    TimestampNotHighest,
    /// A tick is shorter than a microsecond, or longer than [`Layout::MAX_TICK_LENGTH`].
    #[error("a tick must last between 1us and 60s")]
    Tick(Micros),
    /// The epoch lies outside the years 1970 to 9999.
    #[error("the epoch must lie between the years 1970 and 9999")]
    Epoch(UnixMicros),
    /// The layout's time would go on beyond the year 9999.
    #[error("the timestamp would run on beyond the year 9999: give it fewer bits")]
    EndsTooLate,
}

/// Why a datacenter, worker or sequence cannot stand in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// The layout has the field, but no value was given.
    #[error("the layout has a {0}, but none is given")]
    Missing(Field),
    /// A value was given, but the layout has no such field.
    #[error("the layout has no {0}, but one is given")]
    NoSuchField(Field),
    /// The value is above the field's highest.
    #[error("{field} {value} is above the layout's highest, {max}")]
    TooHigh {
        /// The field.
        field: Field,
        /// The value given.
        value: u32,
        /// The highest value that fits.
        max: u64,
    },
}

/// Why parts do not make an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The timestamp lies outside the layout's time.
    #[error(transparent)]
    Time(#[from] OutOfRange),
    /// Another field does not fit.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// The instant lies outside the layout's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} lies outside the time of the layout")]
pub struct OutOfRange(pub UnixMicros);

/// The number is negative, or has more bits than the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not an ID of the layout")]
pub struct NotAnId(pub i64);
