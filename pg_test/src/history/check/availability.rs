//! When IDs may stop, and when calls may fail: what the table "What happens when" of docs/leases.md says, and docs/promise.md.
//!
//! Where a server can make IDs, some session of the load always has one. A *gap* is a time in which none has. What explains a gap,
//! or an error:
//!
//! | trouble | explains |
//! |---|---|
//! | the server is stopped, killed, promoted; a session crashes; the server is frozen; it waits for a standby; it has no worker ID | the time until that is over, and [`GRACE`] |
//! | nobody renews the lease, as the registry is away, the server or the process of the lease is frozen: for two thirds of the window less [`MARGIN`], or longer | the same |
//! | the same for a shorter time | nothing; but where the server needs a new lease at that time, as it was started or its clock was set, the same |
//! | the server was started with a clock that is far ahead | the time until the clock is set, a minute at most, and [`GRACE`] |
//! | the registry is slow | nothing; the same where the server was started |
//! | the registry is another one than before, and new leases are not safe yet | nothing; the same where the server needs a new lease, as it was started, a session has crashed, or its lease was not renewed |
//! | calls are cancelled | nothing; that they end |
//! | a clock that is set, another parameter, a copy, a dump, a checkpoint | nothing |
//!
//! What remains of a gap may be [`LONGEST_GAP`] long: a machine that has too much to do.

use super::{Report, seconds};
use crate::history::{About, Event, Trouble};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a server may take until it makes IDs again, after what kept it from that is over.
pub const GRACE: Duration = Duration::from_secs(5);

/// By how much an outage of the registry must be shorter than two thirds of the window to be none for the servers.
pub const MARGIN: Duration = Duration::from_secs(1);

/// How long the part of a gap may be that nothing explains.
pub const LONGEST_GAP: Duration = Duration::from_secs(3);

/// Two outages of the registry are one where the time in between is too short for a renewal.
const RENEWAL: u64 = 1_000_000_000;

/// What sessions are told while the extension is not there.
const NO_EXTENSION: [(&str, &str); 4] = [
    ("42883", "function snowflake_next"),
    ("42883", "function public.snowflake_next"),
    ("XX000", "cache lookup failed for function"),
    ("55000", "extension pg_snowflake is not created in this database"),
];

/// From when to when.
type Span = (u64, u64);

/// What explains what, for a line.
#[derive(Default)]
struct Line {
    begins: u64,
    ends: Option<u64>,
    /// Why IDs stop; in order, no two touch.
    stops: Vec<Span>,
    /// Why connections break.
    breaks: Vec<Span>,
    /// Why calls end early.
    cancels: Vec<Span>,
    /// Why there is no lease.
    without_lease: Vec<Span>,
    without_worker: Vec<Span>,
    without_extension: Vec<Span>,
    /// Where a dump was restored.
    restored: Vec<Span>,
    /// Why there are no numbers of a segment.
    without_numbers: Vec<Span>,
    without_tag: Vec<Span>,
    has_calls: bool,
}

/// What explains gaps and errors, for each line.
pub(super) struct Availability(BTreeMap<u32, Line>);

/// The same spans in order, those made one that are nearer to each other than this.
fn united(mut spans: Vec<Span>, nearer: u64) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let touches = next.0 <= before.1.saturating_add(nearer);
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    spans
}

fn overlap(one: Span, other: Span) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

fn nanos(length: Duration) -> u64 {
    length.as_nanos() as u64
}

impl Line {
    fn new(line: u32, about: &About, events: &[Event]) -> Self {
        let mut of = Self::default();
        let mut troubles: BTreeMap<Trouble, Vec<Span>> = BTreeMap::new();
        for event in events {
            match *event {
                Event::Begins(number, at) if number == line => of.begins = at,
                Event::Ends(number, at) if number == line => of.ends = Some(at),
                Event::Trouble(trouble, number, begin, end) if number.is_none_or(|number| number == line) => {
                    troubles.entry(trouble).or_default().push((begin, end));
                }
                _ => {}
            }
        }
        let spans = |kinds: &[Trouble]| -> Vec<Span> {
            kinds.iter().flat_map(|kind| troubles.get(kind).cloned().unwrap_or_default()).collect()
        };
        let later = |(begin, end): Span| (begin, end + nanos(GRACE));
        let all_later = |kinds: &[Trouble]| spans(kinds).into_iter().map(later).collect::<Vec<_>>();
        use Trouble::{
            Ahead, Away, Cancelled, Clock, Crash, Down, Extension, Frozen, LeaseProcess, NoTag, NoWorker, Paused,
            Restored, Slow, Standby, Unsafe,
        };

        // A server that needs a new lease, or a longer one, waits for the registry however short the outage is.
        let starts = spans(&[Down]);
        let needs = |(begin, end): Span| {
            let near = (begin.saturating_sub(nanos(GRACE)), end);
            let far = (begin.saturating_sub(about.window), end);
            starts.iter().any(|start| overlap(*start, near)) || spans(&[Clock]).iter().any(|step| overlap(*step, far))
        };
        let harmless = (about.window / 3 * 2).saturating_sub(nanos(MARGIN));
        let outages = united(spans(&[Away, Frozen, LeaseProcess]), RENEWAL);
        let is_too_long = |outage: &Span| outage.1 - outage.0 >= harmless || needs(*outage);
        let mut unrenewed: Vec<Span> = outages.into_iter().filter(is_too_long).map(later).collect();
        let is_at_start = |slow: &Span| starts.iter().any(|start| overlap(later(*start), *slow));
        // Until the clock is set, which also was done at the start.
        let is_set = |(begin, end): Span| {
            let after = spans(&[Clock]).into_iter().map(|step| step.0).filter(|step| *step > begin);
            (begin, after.min().unwrap_or(end).min(end))
        };
        unrenewed.extend(spans(&[Ahead]).into_iter().map(is_set).map(later));
        unrenewed.extend(spans(&[Slow]).into_iter().filter(is_at_start).map(later));

        // Who has a lease goes on.
        let without = [unrenewed.clone(), spans(&[Down, Crash, Frozen])].concat();
        let is_met = |unsafe_: &Span| without.iter().any(|span| overlap(*span, *unsafe_));
        unrenewed.extend(spans(&[Unsafe]).into_iter().filter(is_met).map(later));

        of.without_lease = united([unrenewed, all_later(&[Down, Frozen])].concat(), 0);
        // In a pause, sessions are ended.
        of.breaks = all_later(&[Down, Crash, Frozen, Paused]);
        of.cancels = all_later(&[Cancelled]);
        of.without_worker = all_later(&[NoWorker]);
        of.without_extension = all_later(&[Extension]);
        of.restored = spans(&[Restored]);
        of.without_tag = all_later(&[NoTag]);
        // However short that is: so few may be left. Who has no lease has none either.
        of.without_numbers = [of.without_lease.clone(), all_later(&[Away, Slow, Crash, Unsafe, NoTag])].concat();
        let others = all_later(&[Crash, Standby, NoWorker]);
        // The load needs a moment to begin again.
        let pauses = spans(&[Paused]).into_iter().map(|(begin, end)| (begin, end + RENEWAL)).collect();
        of.stops = united([of.without_lease.clone(), others, pauses].concat(), 0);
        of
    }

    /// The longest part of this span that nothing explains.
    fn unexplained(&self, (mut from, to): Span) -> u64 {
        let mut longest = 0;
        for stop in &self.stops {
            if stop.1 < from {
                continue;
            }
            if stop.0 >= to {
                break;
            }
            longest = longest.max(stop.0.saturating_sub(from));
            from = from.max(stop.1);
        }
        longest.max(to.saturating_sub(from))
    }
}

impl Availability {
    pub(super) fn new(about: &About, events: &[Event]) -> Self {
        let begins = |event: &Event| match event {
            Event::Begins(line, _) => Some(*line),
            _ => None,
        };
        Self(events.iter().filter_map(begins).map(|line| (line, Line::new(line, about, events))).collect())
    }

    /// A call that ended with an error did so because of a trouble.
    pub(super) fn check_error(&mut self, line: u32, call: Span, code: &str, message: &str, report: &mut Report) {
        let Some(of) = self.0.get_mut(&line) else {
            report.wrong("each call asks a line that has begun", || format!("line {line}"));
            return;
        };
        let reasons: &[&Vec<Span>] = match code {
            // A connection that broke or was not made; sessions that are ended; a server that is starting, or a standby.
            "-" | "57P01" | "57P02" | "57P03" | "25006" => &[&of.breaks],
            "55000" if message == "this server has no lease of a worker ID" => &[&of.without_lease],
            "55000" if message == "pg_snowflake.worker_id is not set" => &[&of.without_worker],
            "57014" => &[&of.cancels],
            "55000" if message.starts_with("the IDs of this database reach up to ") => &[&of.restored],
            "55000" if message == "the record of the IDs of this database was set back" => &[&of.restored],
            "40P01" | "40001" => &[&of.without_extension],
            _ if NO_EXTENSION.iter().any(|(of, start)| *of == code && message.starts_with(start)) => {
                &[&of.without_extension]
            }
            _ => &[],
        };
        if !reasons.iter().any(|spans| spans.iter().any(|span| overlap(*span, call))) {
            report.wrong("a call fails only where something explains it", || {
                format!("line {line}, from {} s to {} s: {code} {message}", seconds(call.0), seconds(call.1))
            });
        }
    }

    /// A call for numbers of a segment that ended with an error did so because of a trouble, or as the segment is used up.
    pub(super) fn check_number_error(&self, line: u32, call: Span, code: &str, message: &str, report: &mut Report) {
        let Some(of) = self.0.get(&line) else {
            report.wrong("each call asks a line that has begun", || format!("line {line}"));
            return;
        };
        let reasons = match code {
            "2200H" => return,
            "-" | "57P01" | "57P02" | "57P03" | "25006" => &of.breaks,
            "55000" => &of.without_numbers,
            "42704" => &of.without_tag,
            _ => &Vec::new(),
        };
        if !reasons.iter().any(|span| overlap(*span, call)) {
            report.wrong("a call for numbers fails only where something explains it", || {
                format!("line {line}, from {} s to {} s: {code} {message}", seconds(call.0), seconds(call.1))
            });
        }
    }

    /// The calls that gave IDs, by their ends in order, leave no gap that nothing explains.
    pub(super) fn check_gaps(
        &mut self,
        line: u32,
        ends: impl Iterator<Item = u64>,
        last_end: u64,
        report: &mut Report,
    ) {
        let Some(of) = self.0.get_mut(&line) else {
            report.wrong("each call asks a line that has begun", || format!("line {line}"));
            return;
        };
        of.has_calls = true;
        let until = of.ends.unwrap_or(last_end);
        let mut from = of.begins;
        for end in ends.take_while(|end| *end < until).chain([until]) {
            of.check_gap(line, (from, end), report);
            from = end;
        }
    }

    /// Lines that gave no ID at all.
    pub(super) fn check_silent(&mut self, last_end: u64, report: &mut Report) {
        for (line, of) in self.0.iter().filter(|(_, of)| !of.has_calls) {
            of.check_gap(*line, (of.begins, of.ends.unwrap_or(last_end)), report);
        }
    }
}

impl Line {
    fn check_gap(&self, line: u32, gap: Span, report: &mut Report) {
        let length = Duration::from_nanos(gap.1.saturating_sub(gap.0));
        let begin = Duration::from_nanos(gap.0);
        report.longest_gap = report.longest_gap.max((length, begin));
        if length <= report.longest_unexplained.0 && length <= LONGEST_GAP {
            return;
        }
        let unexplained = Duration::from_nanos(self.unexplained(gap));
        report.longest_unexplained = report.longest_unexplained.max((unexplained, begin));
        if unexplained > LONGEST_GAP {
            report.wrong("IDs stop only where something explains it", || {
                format!(
                    "line {line}, from {} s to {} s: {:.1} s of it",
                    seconds(gap.0),
                    seconds(gap.1),
                    unexplained.as_secs_f64()
                )
            });
        }
    }
}
