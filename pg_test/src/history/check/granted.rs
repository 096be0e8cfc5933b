//! Which worker a server had, and of which time: what the registry's history says, or whoever set it by hand.

use super::{Report, seconds};
use crate::history::{About, Event, Grant, Run};
use std::collections::{BTreeMap, BTreeSet};

/// Half-open ranges of ticks.
type Ticks = Vec<(i64, i64)>;

/// What each server was granted.
pub(super) struct Granted {
    about: About,
    /// By server and worker, in the order of time, with no two ranges that touch.
    ticks: BTreeMap<(u32, u64), Ticks>,
    /// The range that the last run was in, which the next is likely to be in, too.
    last: ((u32, u64), (i64, i64)),
}

/// A grant that is still in the hands of its owner.
struct Held<'a> {
    owner: &'a str,
    node: Option<u32>,
    from: i64,
    until: i64,
}

impl Granted {
    pub(super) fn new(about: &About, events: &[Event], grants: &[Grant], report: &mut Report) -> Self {
        let mut ticks: BTreeMap<(u32, u64), Ticks> = BTreeMap::new();
        let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
        for event in events {
            match event {
                Event::Node(node, directory) => drop(nodes.insert(directory, *node)),
                // Of which time, nobody says.
                Event::Worker(node, worker) => drop(ticks.insert((*node, *worker), vec![(i64::MIN, i64::MAX)])),
                _ => {}
            }
        }
        let workers: BTreeSet<u64> = grants.iter().map(|grant| grant.worker).collect();
        for worker in workers {
            let mut held: Option<Held> = None;
            // The end of all grants of this worker so far.
            let mut end = i64::MIN;
            let mut is_over = |held: Held| {
                let range = (about.first_tick_from(held.from), about.first_tick_from(held.until));
                if let Some(node) = held.node
                    && range.0 < range.1
                {
                    ticks.entry((node, worker)).or_default().push(range);
                }
            };
            for grant in grants.iter().filter(|grant| grant.worker == worker) {
                match (&mut held, &grant.owner) {
                    (Some(now), Some(owner)) if now.owner == owner && grant.from <= now.until => {
                        now.until = grant.until;
                        end = grant.until;
                    }
                    (_, Some(owner)) => {
                        if grant.from < end {
                            report.wrong("the registry grants no worker twice for one time", || {
                                format!("worker {worker}: {grant}, and before that up to {end}")
                            });
                        }
                        held.take().into_iter().for_each(&mut is_over);
                        let node = nodes.get(grant.directory.as_str()).copied();
                        held = Some(Held { owner, node, from: grant.from, until: grant.until });
                        end = grant.until;
                    }
                    // What was not used is given back.
                    (_, None) => {
                        if let Some(mut held) = held.take() {
                            held.until = grant.until;
                            is_over(held);
                        }
                        end = grant.until;
                    }
                }
            }
            held.take().into_iter().for_each(&mut is_over);
        }
        for ranges in ticks.values_mut() {
            ranges.sort_unstable();
            ranges.dedup_by(|next, before| {
                let touches = next.0 <= before.1;
                if touches {
                    before.1 = before.1.max(next.1);
                }
                touches
            });
        }
        Self { about: *about, ticks, last: ((u32::MAX, 0), (0, 0)) }
    }

    /// All IDs of a run are granted.
    pub(super) fn check(&mut self, node: u32, begin: u64, run: Run, report: &mut Report) {
        let worker = self.about.worker(run.first);
        if self.about.worker(run.last) == worker && self.has(node, worker, run) {
            return;
        }
        for id in run.first..=run.last {
            let worker = self.about.worker(id);
            if !self.has(node, worker, Run { first: id, last: id }) {
                let ticks = self.ticks.get(&(node, worker));
                report.wrong("each ID is of a worker and a time that its server was granted", || {
                    let tick = self.about.tick_of(id);
                    let near = ticks.and_then(|ranges| ranges.iter().min_by_key(|range| (range.0 - tick).abs()));
                    format!(
                        "server {node}, call at {} s: {id}, of worker {worker} and tick {tick}; near that it has {near:?}",
                        seconds(begin)
                    )
                });
            }
        }
    }

    /// Whether one range has the first and the last of these, which are of one worker.
    fn has(&mut self, node: u32, worker: u64, run: Run) -> bool {
        let (first, last) = (self.about.tick_of(run.first), self.about.tick_of(run.last));
        let is_in = |range: (i64, i64)| range.0 <= first && last < range.1;
        if self.last.0 == (node, worker) && is_in(self.last.1) {
            return true;
        }
        let Some(ranges) = self.ticks.get(&(node, worker)) else { return false };
        let after = ranges.partition_point(|range| range.0 <= first);
        let found = after.checked_sub(1).map(|at| ranges[at]).filter(|range| is_in(*range));
        if let Some(range) = found {
            self.last = ((node, worker), range);
        }
        found.is_some()
    }
}
