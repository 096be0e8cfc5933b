//! What must be true of a record. The checker knows the record's format, and how an ID is made up; nothing of how IDs are made.
//!
//! 1. No ID is there twice, over all servers.
//! 2. The IDs of a call rise, and are above those of all calls of the same line that had ended when it began: through crashes, stops,
//!    other worker IDs, and a failover to a synchronous standby.
//! 3. Each ID has a worker and a time that the server was granted by the registry, or a worker that it was given by hand. In the
//!    registry's own history, no two servers are granted one worker for one time.
//! 4. Numbers of a segment are as IDs in 1 and 2, and among those that the segment has. Those that a registry has lost in a failover may come once
//!    more, until somebody has raised the segment. One that is used up has given all but those that crashes lose.
//! 5. [Availability](availability): a call fails only where the tables of the documentation say so, and IDs stop at no other time.

mod availability;
mod granted;
mod segments;
#[cfg(test)]
mod tests;

pub use availability::{GRACE, LONGEST_GAP, MARGIN};

use super::{About, Event, Reader, Run, events, found, grants};
use availability::Availability;
use granted::Granted;
use segments::Segments;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// How many violations of a rule are told.
const TOLD: usize = 5;

/// What a record has, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Report {
    /// Servers, copies among them.
    pub servers: usize,
    /// Sessions.
    pub sessions: u32,
    /// Calls.
    pub calls: u64,
    /// IDs that were given.
    pub ids: u64,
    /// Numbers of a segment that were given.
    pub numbers: u64,
    /// IDs that were found in tables, and that no session heard of.
    pub found: usize,
    /// Calls that ended with an error, by SQLSTATE and message.
    pub errors: BTreeMap<String, u64>,
    /// Faults by kind.
    pub faults: BTreeMap<String, usize>,
    /// Versions of records in the registry.
    pub grants: usize,
    /// How long all of it took.
    pub length: Duration,
    /// The longest time without IDs of a server that was asked for them, and where it began.
    pub longest_gap: (Duration, Duration),
    /// The longest part of such a time that nothing explains, and where the gap began.
    pub longest_unexplained: (Duration, Duration),
    /// IDs that are there more than once.
    pub duplicates: u64,
    /// Numbers that came once more after a registry had lost them, as the documentation says.
    pub again: u64,
    /// What is wrong, by rule: how often, and the first of it.
    pub wrong: BTreeMap<&'static str, (u64, Vec<String>)>,
}

impl Report {
    fn wrong(&mut self, rule: &'static str, what: impl FnOnce() -> String) {
        let (count, told) = self.wrong.entry(rule).or_default();
        *count += 1;
        if told.len() < TOLD {
            told.push(what());
        }
    }

    /// How many faults there were.
    pub fn all_faults(&self) -> usize {
        self.faults.values().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |(length, begin): (Duration, Duration)| {
            format!("{:.1} s (from {:.1} s on)", length.as_secs_f64(), begin.as_secs_f64())
        };
        writeln!(f, "{:12} servers, copies among them", self.servers)?;
        writeln!(f, "{:12} sessions", self.sessions)?;
        writeln!(f, "{:12} s", self.length.as_secs())?;
        writeln!(f, "{:12} faults", self.all_faults())?;
        for (kind, count) in &self.faults {
            writeln!(f, "{count:16} {kind}")?;
        }
        writeln!(f, "{:12} versions of grants", self.grants)?;
        writeln!(f, "{:12} calls, of which ended with an error", self.calls)?;
        for (error, count) in &self.errors {
            writeln!(f, "{count:16} {error}")?;
        }
        writeln!(f, "longest time without IDs of a server: {}", at(self.longest_gap))?;
        writeln!(f, "longest part of one that no fault explains: {}", at(self.longest_unexplained))?;
        writeln!(f, "{:12} IDs given, and {} found in tables that no session heard of", self.ids, self.found)?;
        writeln!(f, "{:12} numbers of a segment given", self.numbers)?;
        writeln!(f, "{:12} numbers once more, as the registry had lost them", self.again)?;
        writeln!(f, "{:12} duplicates", self.duplicates)?;
        for (rule, (count, told)) in &self.wrong {
            writeln!(f, "WRONG, {count} times: {rule}")?;
            told.iter().try_for_each(|what| writeln!(f, "    {what}"))?;
        }
        if self.wrong.is_empty() { write!(f, "nothing is wrong") } else { write!(f, "THE RECORD BREAKS THE PROMISE") }
    }
}

/// A call as the rules need it.
#[derive(Clone, Copy)]
struct Given {
    begin: u64,
    end: u64,
    lowest: i64,
    highest: i64,
}

/// IDs that follow each other, and the call that they came with.
#[derive(Clone, Copy)]
struct From {
    run: Run,
    begin: u64,
}

/// What is said of IDs, or of numbers of a segment, that break a rule.
struct Rules {
    call: &'static str,
    twice: &'static str,
    between: &'static str,
}

const OF_IDS: Rules = Rules {
    call: "the IDs of a call rise",
    twice: "no ID is there twice",
    between: "the IDs of a server rise from one call's end to the next one's begin",
};

const OF_NUMBERS: Rules = Rules {
    call: "the numbers of a call rise",
    twice: "no number of a segment is there twice",
    between: "the numbers of a server rise from one call's end to the next one's begin",
};

/// What calls gave.
#[derive(Default)]
struct AllGiven {
    lines: BTreeMap<u32, Vec<Given>>,
    runs: Vec<From>,
}

impl AllGiven {
    /// Notes what a call gave. Returns how many that are.
    fn note(&mut self, call: (u32, u64, u64), list: Vec<Run>, rules: &Rules, report: &mut Report) -> u64 {
        let (line, begin, end) = call;
        if let Some(pair) = list.windows(2).find(|pair| pair[1].first <= pair[0].last) {
            report.wrong(rules.call, || {
                let (first, second) = (pair[0].last, pair[1].first);
                format!("line {line}, {} s: after {first} comes {second}", seconds(begin))
            });
        }
        let lowest = list.iter().map(|run| run.first).min();
        let highest = list.iter().map(|run| run.last).max();
        if let (Some(lowest), Some(highest)) = (lowest, highest) {
            self.lines.entry(line).or_default().push(Given { begin, end, lowest, highest });
        }
        let count = list.iter().map(|run| (run.last - run.first) as u64 + 1).sum();
        self.runs.extend(list.into_iter().map(|run| From { run, begin }));
        count
    }
}

/// Checks the record in this directory.
///
/// # Errors
/// Where it cannot be read.
pub fn check(directory: &Path) -> Result<Report, String> {
    let about = std::fs::read_to_string(directory.join("about")).map_err(|error| format!("about: {error}"))?;
    let about: About = about.parse()?;
    let (events, grants) = (events(directory)?, grants(directory)?);
    let mut report = Report { grants: grants.len(), ..Report::default() };
    let mut granted = Granted::new(&about, &events, &grants, &mut report);
    let mut availability = Availability::new(&about, &events);
    for event in &events {
        match event {
            Event::Node(..) => report.servers += 1,
            Event::Fault(kind, ..) => *report.faults.entry(kind.clone()).or_default() += 1,
            _ => {}
        }
    }

    let mut segments = Segments::new(&events);
    let mut given = AllGiven::default();
    // By tag.
    let mut numbers: BTreeMap<String, AllGiven> = BTreeMap::new();
    let mut given_of: BTreeMap<String, u64> = BTreeMap::new();
    let mut last_end = 0;
    while let Some(calls) = Reader::open(directory, report.sessions)? {
        for call in calls {
            let call = call.map_err(|error| format!("calls.{}: {error}", report.sessions))?;
            report.calls += 1;
            last_end = last_end.max(call.end);
            match call.answer {
                Ok(list) => {
                    list.iter().for_each(|run| granted.check(call.node, call.begin, *run, &mut report));
                    let count = given.note((call.line, call.begin, call.end), list, &OF_IDS, &mut report);
                    report.ids += count;
                }
                Err((code, message)) => {
                    let kind = message.split(" up to ").next().unwrap_or_default();
                    *report.errors.entry(format!("{code} {kind}")).or_default() += 1;
                    availability.check_error(call.line, (call.begin, call.end), &code, &message, &mut report);
                }
            }
        }
        for call in Reader::of_numbers(directory, report.sessions)?.into_iter().flatten() {
            let call = call.map_err(|error| format!("numbers.{}: {error}", report.sessions))?;
            report.calls += 1;
            let tag = call.tag.unwrap_or_default();
            match call.answer {
                Ok(list) => {
                    segments.note(call.node, call.begin, &tag);
                    list.iter().for_each(|run| segments.check_bounds(&tag, call.begin, *run, &mut report));
                    let of = numbers.entry(tag.clone()).or_default();
                    let count = of.note((call.line, call.begin, call.end), list, &OF_NUMBERS, &mut report);
                    report.numbers += count;
                    *given_of.entry(tag).or_default() += count;
                }
                Err((code, message)) => {
                    let kind = if segments.is_known(&tag) { message.replace(&tag, "…") } else { message.clone() };
                    *report.errors.entry(format!("{code} {kind}")).or_default() += 1;
                    if code == "53400" {
                        segments.note_without_place(call.line, call.node, call.end, &tag);
                    } else if segments.is_known(&tag) {
                        if ["55000", "42704"].contains(&code.as_str()) {
                            segments.note(call.node, call.begin, &tag);
                        }
                        availability.check_number_error(
                            call.line,
                            (call.begin, call.end),
                            &code,
                            &message,
                            &mut report,
                        );
                    }
                }
            }
        }
        report.sessions += 1;
    }
    report.length = Duration::from_nanos(last_end);

    let found = found(directory)?;
    report.found = found.len();
    given.runs.extend(found.into_iter().map(|id| From { run: Run { first: id, last: id }, begin: 0 }));
    distinct(given.runs, &OF_IDS, &mut report, |_, _| false);
    for (tag, of) in numbers {
        distinct(of.runs, &OF_NUMBERS, &mut report, |run, later| segments.may_come_again(&tag, run, later));
        for (line, mut calls) in of.lines {
            rising(line, &mut calls, &OF_NUMBERS, &mut report, |call| segments.may_fall(&tag, call.lowest, call.begin));
        }
    }
    segments.check_ended(&given_of, &mut report);
    segments.check_places(&mut report);
    for (line, mut calls) in given.lines {
        rising(line, &mut calls, &OF_IDS, &mut report, |_| false);
        let ends: BTreeSet<u64> = calls.iter().map(|call| call.end).collect();
        availability.check_gaps(line, ends.into_iter(), last_end, &mut report);
    }
    availability.check_silent(last_end, &mut report);
    Ok(report)
}

fn seconds(nanos: u64) -> f64 {
    (nanos / 1_000_000) as f64 / 1e3
}

/// Nothing is there twice: runs in the order of their first IDs do not overlap, but for what may come again in a call that began then.
fn distinct(mut runs: Vec<From>, rules: &Rules, report: &mut Report, mut may_come_again: impl FnMut(Run, u64) -> bool) {
    runs.sort_unstable_by_key(|from| from.run);
    let mut before: Option<From> = None;
    for from in runs {
        match &mut before {
            Some(before) if from.run.first <= before.run.last => {
                let twice = Run { first: from.run.first, last: before.run.last.min(from.run.last) };
                let count = (twice.last - twice.first) as u64 + 1;
                if may_come_again(twice, before.begin.max(from.begin)) {
                    report.again += count;
                } else {
                    report.duplicates += count;
                    let (id, first, second) = (from.run.first, seconds(before.begin), seconds(from.begin));
                    report.wrong(rules.twice, || {
                        format!("{id} and {} more, of calls that began at {first} s and {second} s", count - 1)
                    });
                }
                if from.run.last > before.run.last {
                    *before = from;
                }
            }
            _ => before = Some(from),
        }
    }
}

/// The IDs of a call are above those of all calls that had ended when it began. Leaves the calls in the order of their ends.
fn rising(line: u32, calls: &mut [Given], rules: &Rules, report: &mut Report, may_fall: impl Fn(&Given) -> bool) {
    let mut by_begin = calls.to_vec();
    by_begin.sort_unstable_by_key(|call| call.begin);
    calls.sort_unstable_by_key(|call| call.end);
    let mut ended = calls.iter().peekable();
    let mut highest: Option<Given> = None;
    for call in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.end < call.begin) {
            if highest.is_none_or(|highest| earlier.highest > highest.highest) {
                highest = Some(*earlier);
            }
        }
        if let Some(earlier) = highest
            && call.lowest <= earlier.highest
            && !may_fall(&call)
        {
            report.wrong(rules.between, || {
                format!(
                    "line {line}: {} of a call that began at {} s, after {} of one that ended at {} s",
                    call.lowest,
                    seconds(call.begin),
                    earlier.highest,
                    seconds(earlier.end)
                )
            });
        }
    }
}
