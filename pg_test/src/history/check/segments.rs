//! Numbers of segments: which of them may be there, which once more, and when a call for them may fail.

use super::{Report, seconds};
use crate::history::{Event, Run, Trouble};
use std::collections::{BTreeMap, BTreeSet};

/// From when to when.
type Span = (u64, u64);

/// Numbers that a registry has lost.
struct Lost {
    from: i64,
    until: i64,
    span: Span,
    /// What of it has come a second time.
    again: Vec<Run>,
}

/// What the record says of segments.
#[derive(Default)]
pub(super) struct Segments {
    tags: BTreeMap<String, Run>,
    ended: BTreeMap<String, u64>,
    lost: BTreeMap<String, Vec<Lost>>,
    places: BTreeMap<u32, usize>,
    /// When servers start anew, by line: from the beginning of the end on, and surely after that.
    starts: BTreeMap<u32, Vec<Span>>,
    /// Which tags a server was asked for, and when.
    asked: BTreeMap<u32, Vec<(u64, String)>>,
    /// Calls for which a server had no place: line, node, end, tag.
    without_place: Vec<(u32, u32, u64, String)>,
}

impl Segments {
    pub(super) fn new(events: &[Event]) -> Self {
        let mut of = Self::default();
        for event in events {
            match event {
                Event::Tag(tag, first, last) => {
                    of.tags.insert(tag.clone(), Run { first: *first, last: *last });
                }
                Event::Ended(tag, missing) => drop(of.ended.insert(tag.clone(), *missing)),
                Event::Lost { tag, from, until, begin, end } => {
                    let lost = Lost { from: *from, until: *until, span: (*begin, *end), again: Vec::new() };
                    of.lost.entry(tag.clone()).or_default().push(lost);
                }
                Event::Places(node, count) => drop(of.places.insert(*node, *count)),
                Event::Trouble(Trouble::Down | Trouble::Crash, Some(line), begin, end) => {
                    of.starts.entry(*line).or_default().push((*begin, *end));
                }
                _ => {}
            }
        }
        of
    }

    /// Whether the record says which numbers this segment has, so that its calls are looked at.
    pub(super) fn is_known(&self, tag: &str) -> bool {
        self.tags.contains_key(tag)
    }

    /// A server has a place for a tag, as it gave numbers of it, or had none of these.
    pub(super) fn note(&mut self, node: u32, begin: u64, tag: &str) {
        if self.places.contains_key(&node) {
            self.asked.entry(node).or_default().push((begin, tag.to_owned()));
        }
    }

    /// A server had no place for a tag.
    pub(super) fn note_without_place(&mut self, line: u32, node: u32, end: u64, tag: &str) {
        self.without_place.push((line, node, end, tag.to_owned()));
    }

    /// Numbers are those that the segment has.
    pub(super) fn check_bounds(&self, tag: &str, begin: u64, run: Run, report: &mut Report) {
        if let Some(bounds) = self.tags.get(tag)
            && (run.first < bounds.first || run.last > bounds.last)
        {
            report.wrong("a number is one of its segment", || {
                format!("call at {} s: {} to {} of {tag}, which has {bounds:?}", seconds(begin), run.first, run.last)
            });
        }
    }

    /// Whether numbers may come in two calls that began then, the later one last: after a loss of the registry, and only once more.
    pub(super) fn may_come_again(&mut self, tag: &str, run: Run, later: u64) -> bool {
        let is_in = |lost: &&mut Lost| {
            lost.from <= run.first
                && run.last < lost.until
                && lost.span.0 <= later
                && later <= lost.span.1
                && !lost.again.iter().any(|again| again.first <= run.last && run.first <= again.last)
        };
        let found = self.lost.get_mut(tag).and_then(|all| all.iter_mut().find(is_in));
        found.map(|lost| lost.again.push(run)).is_some()
    }

    /// Whether a server may give this number below others that it gave before.
    pub(super) fn may_fall(&self, tag: &str, number: i64, begin: u64) -> bool {
        let is_in =
            |lost: &Lost| (lost.from..lost.until).contains(&number) && (lost.span.0..=lost.span.1).contains(&begin);
        self.lost.get(tag).is_some_and(|all| all.iter().any(is_in))
    }

    /// A segment that is used up has all its numbers, but for what crashes lose; given are so many.
    pub(super) fn check_ended(&self, given: &BTreeMap<String, u64>, report: &mut Report) {
        for (tag, missing) in &self.ended {
            let Some(bounds) = self.tags.get(tag) else { continue };
            let all = (bounds.last - bounds.first) as u64 + 1;
            let given = given.get(tag).copied().unwrap_or_default();
            if given + missing < all {
                report.wrong("a segment that is used up has given all its numbers but those that crashes lose", || {
                    format!("{tag}: {given} of {all}, and {missing} may be missing")
                });
            }
        }
    }

    /// A server has no place for a tag only where it was asked for as many others since it was started.
    pub(super) fn check_places(&self, report: &mut Report) {
        for (line, node, end, tag) in &self.without_place {
            // What goes on while a server is stopped is of the run before.
            let starts = self.starts.get(line).into_iter().flatten().filter(|(_, over)| over <= end);
            let start = starts.map(|(begin, _)| begin).max().unwrap_or(&0);
            let asked = self.asked.get(node).into_iter().flatten();
            let others: BTreeSet<&str> = asked
                .filter(|(begin, other)| begin >= start && begin <= end && other != tag)
                .map(|(_, other)| other.as_str())
                .collect();
            let places = self.places.get(node).copied();
            if places.is_none_or(|places| others.len() < places) {
                report.wrong("a server has no place for a segment only where it uses as many others", || {
                    format!("server {node}, at {} s: {tag} beside {others:?}, of {places:?}", seconds(*end))
                });
            }
        }
    }
}
