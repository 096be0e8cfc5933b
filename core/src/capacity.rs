//! What a layout has room for, compared with what is required before the first ID is made, when the layout can still be chosen: until
//! when it lasts, how many servers it has room for, how many IDs a second, which rows can have IDs of their own time, and whether numbers that exist sort
//! below its IDs. Each function answers one question. It does not fail where that is not enough: it says why.
//!
//! ```
//! use snowflake_core::capacity::{Lifetime, Need, Rate, Room, Verdict, lifetime, rate, room};
//! use snowflake_core::{Layout, UnixMicros};
//!
//! let layout: Layout = "cosid-js".parse()?; // 53 bits: 8 servers with 512 IDs a millisecond each
//! let now = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! assert_eq!(lifetime(&layout, now, Some(50)), Lifetime::Lasts);
//! assert_eq!(lifetime(&layout, now, Some(80)), Lifetime::TooShort);
//!
//! let need = Need { servers: Some(5), datacenters: None, leases: true };
//! assert_eq!(room(&layout, &need), Room::FewSpare);
//! assert_eq!(room(&layout, &need).verdict(), Verdict::Warning);
//! assert_eq!(rate(&layout, Some(1e6)), Rate::TooFast);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::layout::{Field, Layout};
use crate::lease::Terms;
use crate::notation::BUILT_IN;
use crate::time::{Micros, UnixMicros};

/// The mean length of a year: 365.2425 days.
pub const YEAR: Micros = Micros::from_secs(31_556_952);

/// How long ago an ID may have been made by which [`likely_layouts`] finds a layout.
const RECENT: Micros = YEAR;

/// How far clocks may differ for the same.
const SKEW: Micros = Micros::from_secs(60);

/// The judgement of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Can be right, but should be looked at before the first ID.
    Warning,
    /// It cannot work so.
    Problem,
}

impl Verdict {
    /// `ok`, `warning`, `problem`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// How long IDs can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The epoch is in the future.
    NotBegun,
    /// The layout's time is over.
    Over,
    /// The layout's time ends earlier than is needed.
    TooShort,
    /// Long enough.
    Lasts,
}

impl Lifetime {
    /// Whether that is enough.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::NotBegun | Self::Over | Self::TooShort => Verdict::Problem,
            Self::Lasts => Verdict::Ok,
        }
    }
}

/// Whether IDs can be made from now on, for so many years.
pub const fn lifetime(layout: &Layout, now: UnixMicros, years: Option<u32>) -> Lifetime {
    let needed = match years {
        Some(years) => Micros(YEAR.0.saturating_mul(years as i64)),
        None => Micros(0),
    };
    if now.0 < layout.epoch().0 {
        Lifetime::NotBegun
    } else if now.0 >= layout.end().0 {
        Lifetime::Over
    } else if layout.end().saturating_since(now).0 < needed.0 {
        Lifetime::TooShort
    } else {
        Lifetime::Lasts
    }
}

/// How many servers make IDs at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// In all datacenters together; `None` where that is not known.
    pub servers: Option<u32>,
    /// In how many datacenters, evenly; `None` where they may be spread over any number. Without meaning in a layout that
    /// has no such field.
    pub datacenters: Option<u32>,
    /// Whether the workers are leased. After a crash a server then takes another worker at once, if one is free.
    pub leases: bool,
}

impl Need {
    /// How many servers share one range of workers, and how many workers that has.
    fn share(&self, layout: &Layout) -> (u64, u64) {
        let servers = u64::from(self.servers.unwrap_or(0));
        match self.datacenters {
            Some(datacenters) if layout.max(Field::Datacenter) > 0 => {
                (servers.div_ceil(u64::from(datacenters).max(1)), layout.workers_of_datacenter())
            }
            _ => (servers, layout.workers()),
        }
    }
}

/// Whether the layout has a worker for each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// More datacenters than the layout has.
    TooManyDatacenters,
    /// More servers than workers; in a datacenter, where their number is known.
    TooMany,
    /// With leases: as many workers as servers. After a crash, a server must wait for its own, or start ahead of the clock.
    NoneSpare,
    /// With leases: fewer than two workers for each server. When more servers crash at once than workers are left, the
    /// same happens.
    FewSpare,
    /// Enough.
    Enough,
}

impl Room {
    /// Whether that is enough.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::TooManyDatacenters | Self::TooMany => Verdict::Problem,
            Self::NoneSpare | Self::FewSpare => Verdict::Warning,
            Self::Enough => Verdict::Ok,
        }
    }
}

/// Whether there are enough workers.
pub fn room(layout: &Layout, need: &Need) -> Room {
    let datacenters = layout.max(Field::Datacenter) + 1;
    let (servers, workers) = need.share(layout);
    if datacenters > 1 && need.datacenters.is_some_and(|needed| u64::from(needed) > datacenters) {
        Room::TooManyDatacenters
    } else if servers > workers {
        Room::TooMany
    } else if need.leases && servers == workers {
        Room::NoneSpare
    } else if need.leases && servers * 2 > workers {
        Room::FewSpare
    } else {
        Room::Enough
    }
}

/// Whether one server can make so many IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// More than the layout allows in the long run: calls would wait all the time.
    TooFast,
    /// More than half of that, so that a peak of twice the rate makes calls wait.
    Tight,
    /// Enough.
    Enough,
}

impl Rate {
    /// Whether that is enough.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::TooFast => Verdict::Problem,
            Self::Tight => Verdict::Warning,
            Self::Enough => Verdict::Ok,
        }
    }
}

/// Whether one server can make so many IDs a second; `None` where that is not known.
pub fn rate(layout: &Layout, ids_per_second: Option<f64>) -> Rate {
    let most = sustained(layout);
    match ids_per_second {
        Some(needed) if needed > most => Rate::TooFast,
        Some(needed) if needed * 2.0 > most => Rate::Tight,
        _ => Rate::Enough,
    }
}

/// How many IDs one server can make in a second, in the long run. Below 1 where a tick is long and the sequence narrow.
pub fn sustained(layout: &Layout) -> f64 {
    (layout.max(Field::Sequence) + 1) as f64 * 1e6 / layout.tick_length().0 as f64
}

/// How many IDs more a peak can take at once, where IDs may run so far ahead of the clock.
pub const fn burst(layout: &Layout, max_burst: Micros) -> u64 {
    (layout.max(Field::Sequence) + 1).saturating_mul(layout.ticks_in(max_burst).0.unsigned_abs())
}

/// Whether JavaScript, and whatever else counts in double precision, has the IDs exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubles {
    /// All of them.
    Exact,
    /// Those before this instant, which is after the time that is required.
    ExactLongEnough(UnixMicros),
    /// Those before this instant, which is in the time that is required.
    ExactUntil(UnixMicros),
    /// Not those that are made now. Those before this instant are.
    Inexact(UnixMicros),
}

impl Doubles {
    /// Whether that will do, where clients are known to have IDs as such numbers, known not to, or where nothing is known.
    pub const fn verdict(self, matters: Option<bool>) -> Verdict {
        match (self, matters) {
            (Self::Exact | Self::ExactLongEnough(_), _) | (_, Some(false)) => Verdict::Ok,
            (_, Some(true)) => Verdict::Problem,
            (_, None) => Verdict::Warning,
        }
    }
}

/// Whether IDs that are made in so many years from now on are exact.
pub fn doubles(layout: &Layout, now: UnixMicros, years: Option<u32>) -> Doubles {
    let until = now.saturating_add(Micros(YEAR.0.saturating_mul(i64::from(years.unwrap_or(0)))));
    match layout.exact_until() {
        None => Doubles::Exact,
        Some(end) if end <= now => Doubles::Inexact(end),
        Some(end) if years.is_some() && end >= until => Doubles::ExactLongEnough(end),
        Some(end) => Doubles::ExactUntil(end),
    }
}

/// Whether a row from before can have an ID of its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backfill {
    /// It can.
    Possible,
    /// It is older than the epoch. With the start of its day as the epoch, the layout would be this one; `None` where there
    /// is no such layout.
    BeforeEpoch(Option<Layout>),
    /// Its time is after the layout's.
    AfterEnd,
}

impl Backfill {
    /// Whether that will do.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Possible => Verdict::Ok,
            Self::BeforeEpoch(_) | Self::AfterEnd => Verdict::Problem,
        }
    }
}

/// Whether a row of this instant can have an ID.
pub fn backfill(layout: &Layout, oldest: UnixMicros) -> Backfill {
    const DAY: i64 = 86_400_000_000;
    if oldest < layout.epoch() {
        Backfill::BeforeEpoch(layout.with_epoch(UnixMicros(oldest.0.div_euclid(DAY).saturating_mul(DAY))).ok())
    } else if oldest >= layout.end() {
        Backfill::AfterEnd
    } else {
        Backfill::Possible
    }
}

/// How numbers that exist sort beside the next ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// No ID can be made now, so there is none to compare with.
    NoNext,
    /// All are below the next ID, which is at least this one.
    Below(i64),
    /// The highest is not below the next ID, which would be this one or above it. In these built-in layouts, it would be
    /// an ID that was made lately.
    NotBelow(i64, Vec<&'static str>),
}

impl Sorting {
    /// Whether that will do.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::NoNext | Self::NotBelow(..) => Verdict::Problem,
            Self::Below(_) => Verdict::Ok,
        }
    }
}

/// How numbers sort beside the IDs from now on, of which this is the highest.
pub fn sorting(layout: &Layout, now: UnixMicros, highest: i64) -> Sorting {
    let next = if lifetime(layout, now, None) == Lifetime::Lasts { layout.lowest_id_from(now) } else { None };
    match next {
        None => Sorting::NoNext,
        Some(next) if highest < next => Sorting::Below(next),
        Some(next) => Sorting::NotBelow(next, likely_layouts(highest, now)),
    }
}

/// The built-in layouts in which the ID is one that was made in the last year, the one with the latest time first.
pub fn likely_layouts(id: i64, now: UnixMicros) -> Vec<&'static str> {
    let time = |layout: Layout| layout.timestamp(id).ok().filter(|&at| at >= now - RECENT && at <= now + SKEW);
    let mut likely: Vec<(UnixMicros, &str)> =
        BUILT_IN.iter().filter_map(|built_in| Some((time(built_in.notation.parse().ok()?)?, built_in.name))).collect();
    likely.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
    likely.into_iter().map(|(_, name)| name).collect()
}

/// Lengths of time that a server is configured with.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// How far IDs may run ahead of the clock in a peak.
    pub max_burst: Micros,
    /// How far ahead of the clock IDs go on after it went back, or after a crash.
    pub max_lead: Micros,
    /// How far ahead IDs are reserved.
    pub reserve_ahead: Micros,
    /// How far a lease reaches; `None` without leases.
    pub window: Option<Micros>,
}

/// Settings that do not go together. Each is worth a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// `max_burst` is shorter than a tick: no peak can take IDs in advance.
    NoBurst,
    /// `reserve_ahead` is longer than `max_lead`: after a crash, calls wait.
    ReservesBeyondLead,
    /// The window is longer than `max_lead`: after a crash, a server that takes its own worker over waits.
    LeasesBeyondLead,
}

/// All that does not go together.
pub fn misfits(layout: &Layout, lengths: &Lengths) -> Vec<Misfit> {
    let Lengths { max_burst, max_lead, reserve_ahead, window } = *lengths;
    let leads_too_far = window.is_some_and(|window| Terms { window, max_lead, max_jump: Micros(0) }.leads_too_far());
    [
        (layout.ticks_in(max_burst).0 == 0 && max_burst.0 > 0, Misfit::NoBurst),
        (reserve_ahead > max_lead, Misfit::ReservesBeyondLead),
        (leads_too_far, Misfit::LeasesBeyondLead),
    ]
    .into_iter()
    .filter_map(|(is_so, misfit)| is_so.then_some(misfit))
    .collect()
}
