//! How 63 bits are divided, and what follows from it: IDs from their parts and back, instants from IDs and back.

use crate::time::UnixMicros;
use std::fmt;

/// A part of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Ticks since the layout's epoch. Always the highest field, so that IDs sort by time.
    Timestamp,
    /// A group of workers, where the layout has such a field.
    Datacenter,
    /// Who made the ID.
    Worker,
    /// Which of the IDs of one tick it is.
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

/// A count of ticks since the layout's epoch. Those of IDs are never negative; a clock that stands before the epoch
/// gives a negative one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub i64);

/// A place on a server's line of IDs: `tick << sequence bits | sequence`. Below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The worker and datacenter fields, already at their place in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerBits(pub u64);

/// What an ID says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The start of the ID's tick.
    pub timestamp: UnixMicros,
    /// `None` where the layout has no such field.
    pub datacenter: Option<u32>,
    /// `None` where the layout has no such field.
    pub worker: Option<u32>,
    /// Which of the IDs of its tick this one is; 0 where the layout has no such field.
    pub sequence: u32,
}

/// One field's place: `width` bits, the lowest of them bit `shift`. Width 0: the layout has no such field.
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

/// How 63 bits are divided, how long a tick is, and when tick 0 begins. Checked when made: every value of this type
/// can compose, decode, and tell its last instant without overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    timestamp: Bits,
    datacenter: Bits,
    worker: Bits,
    sequence: Bits,
    tick_micros: i64,
    epoch: UnixMicros,
}

impl Layout {
    /// The longest tick, in microseconds: one minute.
    pub const MAX_TICK_MICROS: i64 = 60_000_000;

    /// The widest datacenter, worker or sequence, in bits: their values are PostgreSQL `integer`s.
    pub const MAX_FIELD_WIDTH: u32 = 31;

    /// A layout from its fields, high to low, with the tick's length in microseconds (1 to
    /// [`Self::MAX_TICK_MICROS`]) and the instant at which tick 0 begins (from 1970 on).
    ///
    /// # Errors
    /// Where no such layout can be: see [`LayoutError`].
    pub fn new(fields: &[(Field, u32)], tick_micros: i64, epoch: UnixMicros) -> Result<Self, LayoutError> {
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
        if !(1..=Self::MAX_TICK_MICROS).contains(&tick_micros) {
            return Err(LayoutError::Tick(tick_micros));
        }
        if !(0..=UnixMicros::MAX_WRITTEN.0).contains(&epoch.0) {
            return Err(LayoutError::Epoch(epoch));
        }
        let end = i128::from(epoch.0) + (i128::from(timestamp.max()) + 1) * i128::from(tick_micros);
        if end > i128::from(UnixMicros::MAX_WRITTEN.0) + 1 {
            return Err(LayoutError::EndsTooLate);
        }
        Ok(Self { timestamp, datacenter, worker, sequence, tick_micros, epoch })
    }

    /// Whether IDs can be made in the layout, rather than only read.
    ///
    /// # Errors
    /// [`LayoutError::Missing`] where it has no sequence, which tells the IDs of one tick apart, or no worker, which tells
    /// those of two servers apart.
    pub const fn check_makes_ids(&self) -> Result<(), LayoutError> {
        if self.sequence.width == 0 {
            Err(LayoutError::Missing(Field::Sequence))
        } else if self.worker.width == 0 {
            Err(LayoutError::Missing(Field::Worker))
        } else {
            Ok(())
        }
    }

    /// Whether all IDs are integers that JavaScript and others who count in double precision have exactly: below 2^53.
    pub const fn fits_double(&self) -> bool {
        self.max_id() < 1 << 53
    }

    /// How many IDs one worker can make in a second, rounded down.
    pub const fn ids_per_second(&self) -> u64 {
        (self.sequence.max() + 1) * 1_000_000 / self.tick_micros as u64
    }

    /// The same layout with another epoch.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_epoch(&self, epoch: UnixMicros) -> Result<Self, LayoutError> {
        Self::new(&self.fields(), self.tick_micros, epoch)
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

    /// The length of a tick in microseconds.
    pub const fn tick_micros(&self) -> i64 {
        self.tick_micros
    }

    /// The instant at which tick 0 begins.
    pub const fn epoch(&self) -> UnixMicros {
        self.epoch
    }

    /// The instant at which the last tick ends: no ID has this time or a later one.
    pub const fn end(&self) -> UnixMicros {
        UnixMicros(self.epoch.0 + (self.last_tick().0 + 1) * self.tick_micros)
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

    /// The tick that an instant falls into; negative before the epoch, beyond [`Self::last_tick`] after the end.
    #[inline]
    pub const fn tick_at(&self, instant: UnixMicros) -> Tick {
        Tick(instant.0.saturating_sub(self.epoch.0).div_euclid(self.tick_micros))
    }

    /// The first tick that begins at or after an instant; negative before the epoch, beyond [`Self::last_tick`] near
    /// or after the end.
    pub const fn first_tick_from(&self, instant: UnixMicros) -> Tick {
        let since_epoch = instant.0.saturating_sub(self.epoch.0);
        let within = since_epoch.rem_euclid(self.tick_micros) != 0;
        Tick(since_epoch.div_euclid(self.tick_micros) + within as i64)
    }

    /// The instant at which a tick begins.
    #[inline]
    pub const fn start_of(&self, tick: Tick) -> UnixMicros {
        UnixMicros(self.epoch.0 + tick.0 * self.tick_micros)
    }

    /// How many whole ticks a length of time holds.
    pub const fn ticks_in(&self, micros: i64) -> i64 {
        micros / self.tick_micros
    }

    // Ticks to positions and back.

    /// The position with this tick and sequence.
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

    /// Puts the worker, and the datacenter where the layout has one, at their place in an ID.
    ///
    /// # Errors
    /// Where a value is missing, out of its range, or given for a field that the layout lacks.
    pub fn place_worker(&self, datacenter: Option<u32>, worker: Option<u32>) -> Result<WorkerBits, WorkerError> {
        let mut placed = 0;
        for (field, value) in [(Field::Datacenter, datacenter), (Field::Worker, worker)] {
            let bits = self.bits(field);
            placed |= match value {
                None if bits.width > 0 => return Err(WorkerError::Missing(field)),
                None => 0,
                Some(_) if bits.width == 0 => return Err(WorkerError::NoSuchField(field)),
                Some(value) if u64::from(value) > bits.max() => {
                    return Err(WorkerError::TooHigh { field, value, max: bits.max() });
                }
                Some(value) => bits.put(u64::from(value)),
            };
        }
        Ok(WorkerBits(placed))
    }

    /// The ID at a position, made by a worker.
    #[inline]
    pub const fn compose(&self, position: Position, worker: WorkerBits) -> i64 {
        let tick = position.0 >> self.sequence.width;
        let sequence = position.0 & self.sequence.max();
        (self.timestamp.put(tick) | worker.0 | self.sequence.put(sequence)) as i64
    }

    /// The ID with these parts. The timestamp may lie anywhere within its tick.
    ///
    /// # Errors
    /// Where the timestamp is outside the layout's time, or another part is missing, out of its range, or given for a
    /// field that the layout lacks.
    pub fn encode(&self, parts: &Parts) -> Result<i64, EncodeError> {
        let tick = self.tick_at(parts.timestamp);
        if tick.0 < 0 || tick > self.last_tick() {
            return Err(EncodeError::Time(OutOfRange(parts.timestamp)));
        }
        let worker = self.place_worker(parts.datacenter, parts.worker).map_err(EncodeError::Worker)?;
        let (sequence, max) = (u64::from(parts.sequence), self.sequence.max());
        if sequence > max {
            let too_high = WorkerError::TooHigh { field: Field::Sequence, value: parts.sequence, max };
            return Err(EncodeError::Worker(too_high));
        }
        Ok(self.compose(self.position(tick, sequence), worker))
    }

    /// The parts of an ID.
    ///
    /// # Errors
    /// Where no ID of this layout has that number.
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

    /// The start of the ID's tick; otherwise as [`Self::decode`].
    #[inline]
    pub fn timestamp(&self, id: i64) -> Result<UnixMicros, NotAnId> {
        Ok(self.start_of(Tick(self.timestamp.take(self.check(id)?) as i64)))
    }

    /// One of the ID's small fields, `None` where the layout lacks it; otherwise as [`Self::decode`].
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

    // IDs that bound a range of time.

    /// The lowest ID whose timestamp is at or after an instant. The instant may be any from [`Self::epoch`] on that
    /// lies no later than the start of the last tick.
    ///
    /// # Errors
    /// Where the layout has no such ID.
    pub const fn lowest_id_from(&self, instant: UnixMicros) -> Result<i64, OutOfRange> {
        if instant.0 < self.epoch.0 || instant.0 > self.start_of(self.last_tick()).0 {
            return Err(OutOfRange(instant));
        }
        Ok(self.timestamp.put(self.first_tick_from(instant).0 as u64) as i64)
    }

    /// The highest ID whose timestamp is at or before an instant, which may be any from [`Self::epoch`] on that lies
    /// before [`Self::end`].
    ///
    /// # Errors
    /// Where the instant lies outside the layout's time.
    pub const fn highest_id_until(&self, instant: UnixMicros) -> Result<i64, OutOfRange> {
        if instant.0 < self.epoch.0 || instant.0 >= self.end().0 {
            return Err(OutOfRange(instant));
        }
        let tick = self.tick_at(instant).0 as u64;
        Ok((self.timestamp.put(tick) | (self.timestamp.put(1) - 1)) as i64)
    }

    /// The highest ID whose timestamp is before an instant, which may be any from [`Self::epoch`] to [`Self::end`],
    /// both included; -1 at the epoch, where no ID lies before.
    ///
    /// # Errors
    /// Where the instant lies outside the layout's time.
    pub const fn highest_id_before(&self, instant: UnixMicros) -> Result<i64, OutOfRange> {
        if instant.0 == self.epoch.0 {
            return Ok(-1);
        }
        match self.highest_id_until(UnixMicros(instant.0.saturating_sub(1))) {
            Err(_) => Err(OutOfRange(instant)),
            found => found,
        }
    }
}

/// Why a layout cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The field is given twice.
    Repeated(Field),
    /// The field is required.
    Missing(Field),
    /// The field has no bits.
    Empty(Field),
    /// The field has more than [`Layout::MAX_FIELD_WIDTH`] bits; this many.
    FieldTooWide(Field, u32),
    /// The widths sum to more than 63 bits; to this many.
    TooWide(u64),
    /// A field stands above the timestamp, so IDs would not sort by time.
    TimestampNotHighest,
    /// The tick's length in microseconds is not between 1 and [`Layout::MAX_TICK_MICROS`].
    Tick(i64),
    /// The epoch lies outside the years 1970 to 9999.
    Epoch(UnixMicros),
    /// The layout's time would go on beyond the year 9999.
    EndsTooLate,
}

impl std::error::Error for LayoutError {}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated(field) => write!(f, "field {field} is given twice"),
            Self::Missing(field) => write!(f, "field {field} is missing"),
            Self::Empty(field) => write!(f, "field {field} must have at least 1 bit"),
            Self::FieldTooWide(field, width) => {
                write!(f, "field {field} has {width} bits, more than {}", Layout::MAX_FIELD_WIDTH)
            }
            Self::TooWide(sum) => write!(f, "the fields have {sum} bits together, more than 63"),
            Self::TimestampNotHighest => f.write_str("the timestamp must be the first field, so that IDs sort by time"),
            Self::Tick(_) => f.write_str("a tick must last between 1us and 60s"),
            Self::Epoch(_) => f.write_str("the epoch must lie between the years 1970 and 9999"),
            Self::EndsTooLate => f.write_str("the timestamp would run on beyond the year 9999: give it fewer bits"),
        }
    }
}

/// Why a worker, datacenter or sequence cannot stand in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerError {
    /// The layout has the field, but no value was given.
    Missing(Field),
    /// A value was given, but the layout has no such field.
    NoSuchField(Field),
    /// The value is above the field's highest.
    TooHigh {
        /// The field.
        field: Field,
        /// The value given.
        value: u32,
        /// The highest value that fits.
        max: u64,
    },
}

impl std::error::Error for WorkerError {}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "the layout has a {field}, but none is given"),
            Self::NoSuchField(field) => write!(f, "the layout has no {field}, but one is given"),
            Self::TooHigh { field, value, max } => write!(f, "{field} {value} is above the layout's highest, {max}"),
        }
    }
}

/// Why parts do not make an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The timestamp lies outside the layout's time.
    Time(OutOfRange),
    /// Another part does not fit.
    Worker(WorkerError),
}

/// The instant lies outside a layout's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange(pub UnixMicros);

/// The number is negative, or has more bits than the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId(pub i64);
