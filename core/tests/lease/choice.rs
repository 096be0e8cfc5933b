//! Which worker is taken.

use super::*;

pub(super) struct Looking {
    pub(super) layout: Layout,
    pub(super) records: BTreeMap<WorkerNumber, Stored>,
    pub(super) watch: Watch,
    pub(super) wanted: Wanted,
    pub(super) gone: BTreeSet<WorkerNumber>,
    pub(super) beside: Option<WorkerNumber>,
    pub(super) monotonic: MonotonicMicros,
    pub(super) line: UnixMicros,
    pub(super) leases_from: Option<UnixMicros>,
    pub(super) terms: Terms,
}

impl Looking {
    /// In the layout of four workers, of which the first have these records.
    pub(super) fn at(records: &[Stored]) -> Self {
        let numbered = records.iter().cloned().enumerate();
        Self {
            layout: narrow(),
            records: numbered.map(|(i, stored)| (WorkerNumber(i as u64), stored)).collect(),
            watch: Watch::default(),
            wanted: Wanted::any(&narrow()),
            gone: BTreeSet::new(),
            beside: None,
            monotonic: MonotonicMicros(0),
            line: start(),
            leases_from: None,
            terms: TERMS,
        }
    }

    /// The look of server 1 at second 100.
    pub(super) fn search<T>(&self, look: impl FnOnce(&Search<'_>) -> T) -> T {
        let me = server(1);
        look(&Search {
            layout: &self.layout,
            me: &me,
            wanted: self.wanted,
            records: &self.records,
            watch: &self.watch,
            gone: &self.gone,
            beside: self.beside,
            now: at(100),
            monotonic: self.monotonic,
            line: self.line,
            leases_from: self.leases_from,
            terms: self.terms,
        })
    }

    pub(super) fn choose(&self, chance: u64) -> Choice {
        self.search(|search| search.choose(chance))
    }

    pub(super) fn left_far_ahead(&self) -> Option<u64> {
        self.search(|search| search.left_far_ahead().map(|(worker, _)| worker.0))
    }

    /// The worker chosen.
    pub(super) fn worker(&self, chance: u64) -> u64 {
        match self.choose(chance) {
            Choice::Lease(worker) => worker.0,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn refusal(&self) -> Vec<(u64, Why)> {
        match self.choose(0) {
            Choice::NoWorker(no) => no.taken.iter().map(|taken| (taken.worker.0, taken.why)).collect(),
            chosen => panic!("{chosen:?}"),
        }
    }
}

fn current(server: u64) -> Stored {
    record(Some(server + 100), server, 0, 150)
}

pub(super) fn over(server: u64) -> Stored {
    record(Some(server + 100), server, 0, 99)
}

#[test]
fn a_free_worker_is_chosen_by_chance() {
    let looking = Looking::at(&[current(2), over(3), current(4)]);
    assert_eq!((0..4).map(|chance| looking.worker(chance)).collect::<Vec<_>>(), [1, 3, 1, 3]);
    let empty = Looking::at(&[]);
    assert_eq!((0..5).map(|chance| empty.worker(chance)).collect::<Vec<_>>(), [0, 1, 2, 3, 0]);
    // Also where they are too many to be listed.
    let layout = "timestamp=20 datacenter=21 worker=21 sequence=1".parse().unwrap();
    let wide = Looking { layout, wanted: Wanted::any(&layout), ..looking };
    assert_eq!(wide.worker((1 << 42) - 3), (1 << 42) - 1);
}

#[test]
fn a_datacenter_has_its_own_workers() {
    let layout = "timestamp=40 datacenter=2 worker=2 sequence=10".parse().unwrap();
    let third = |records: &[Stored]| {
        let mut looking = Looking { layout, wanted: Wanted::datacenter(&layout, 2), ..Looking::at(&[]) };
        looking.records = (6..).map(WorkerNumber).zip(records.iter().cloned()).collect();
        looking
    };
    // Worker 7 is the last one of the datacenter before.
    let looking = third(&[current(2), current(3), current(4)]);
    assert_eq!((0..4).map(|chance| looking.worker(chance)).collect::<Vec<_>>(), [9, 10, 11, 9]);
    // The own last ones in other datacenters are left alone, and so is a free one.
    let full = third(&[over(1), over(3), current(4), current(5), current(6), current(7), record(Some(101), 1, 0, 98)]);
    assert_eq!(full.refusal(), [(8, Why::Held), (9, Why::Held), (10, Why::Held), (11, Why::Held)]);
    assert_eq!(Looking { wanted: Wanted::any(&layout), ..full }.worker(0), 6);
    // A layout without datacenters has one for all.
    let none = Looking { wanted: Wanted::datacenter(&narrow(), 1), ..Looking::at(&[current(2)]) };
    assert_eq!(none.worker(0), 1);
}

#[test]
fn the_own_worker_comes_first() {
    // With the token of this run, whatever else is free; the one that reaches furthest.
    let own = [over(1), record(Some(1), 1, 0, 60), record(Some(1), 1, 0, 61)];
    assert_eq!(Looking::at(&own).worker(3), 2);
    let beside = Some(WorkerNumber(1));
    assert_eq!(Looking { beside, ..Looking::at(&own) }.worker(3), 1, "the one beside the line, however far it reaches");
    // Its last one, where that is over, or was given back.
    assert_eq!(Looking::at(&[over(2), over(1)]).worker(3), 1);
    let given_back = record(None, 1, 100, 101);
    assert_eq!(Looking::at(&[over(2), given_back.clone()]).worker(3), 1);
    // But not where that is far ahead of the clock, unless the line is there, too.
    let far = record(None, 1, 5000, 5000);
    assert_eq!(Looking::at(&[over(2), far.clone()]).worker(2), 3);
    assert_eq!(Looking { line: at(4500), ..Looking::at(&[over(2), far]) }.worker(2), 1);
    // Who is its copy on another host has no claim to it.
    let mut copy = given_back;
    copy.record.holder.host = "elsewhere".to_owned();
    assert_eq!(Looking::at(&[over(2), copy]).worker(2), 3);
}

/// The registry has forgotten what it had stored, and gives no new lease before second 500.
#[test]
fn until_new_leases_are_given_only_a_current_one_goes_on() {
    let not_before = Choice::NotBefore(at(500));
    let own = |until| record(Some(1), 1, 0, until);
    let looking = |records: &[Stored]| Looking { leases_from: Some(at(500)), ..Looking::at(records) };
    assert_eq!(looking(&[over(2)]).choose(0), not_before);
    assert_eq!(looking(&[current(2), own(101)]).worker(0), 1);
    assert_eq!(looking(&[own(100)]).choose(0), not_before, "it is over by the clock");
    assert_eq!(Looking { line: at(110), ..looking(&[own(110)]) }.choose(0), not_before, "it is used up");
    assert_eq!(Looking { line: at(110), ..looking(&[own(111)]) }.worker(0), 0);
    let two = looking(&[own(101), own(102)]);
    assert_eq!(two.worker(0), 1);
    assert_eq!(Looking { beside: Some(WorkerNumber(0)), ..two }.worker(0), 0);
}

/// With the token of this run: neither the one beside the line nor the one that is kept.
#[test]
fn workers_of_lost_answers_are_strays() {
    let own = record(Some(1), 1, 0, 150);
    let looking = Looking::at(&[own.clone(), own.clone(), own, current(2)]);
    let strays = |looking: &Looking, kept: Option<u64>| {
        looking.search(|it| it.strays(kept.map(WorkerNumber)).map(|(worker, _)| worker.0).collect::<Vec<_>>())
    };
    assert_eq!(strays(&looking, None), [0, 1, 2]);
    let looking = Looking { beside: Some(WorkerNumber(1)), ..looking };
    assert_eq!((strays(&looking, None), strays(&looking, Some(2))), (vec![0, 2], vec![0]));
}

#[test]
fn above_a_grant_only_where_no_worker_is_free() {
    let full = [current(2), current(1), current(3), current(4)];
    assert_eq!(Looking::at(&full[..3]).worker(0), 3, "the last one is free");
    let gone = BTreeSet::from([WorkerNumber(1)]);
    assert_eq!(Looking { gone, ..Looking::at(&full) }.worker(0), 1, "the own old one, whose process is gone");
    // One that nobody has any more is better, although its end is ahead of the clock.
    let mut given_back = full.clone();
    given_back[3] = record(None, 4, 130, 130);
    assert_eq!(Looking::at(&given_back).worker(0), 3);
}

#[test]
fn a_copys_worker_is_taken_only_when_its_record_stands_still() {
    let mut records = [current(2), current(1), current(3), current(4)];
    records[1].record.holder.data_directory = "/copy".to_owned();
    let mut looking = Looking::at(&records);
    let taken = [(0, Why::Held), (1, Why::MayBeCopy), (2, Why::Held), (3, Why::Held)];
    assert_eq!(looking.refusal(), taken);
    let look = |looking: &mut Looking, seconds: i64| {
        looking.monotonic = MonotonicMicros(0) + Micros::from_secs(seconds);
        let (records, monotonic) = (looking.records.clone(), looking.monotonic);
        looking.watch.note(1, &records, monotonic);
    };
    look(&mut looking, 0);
    look(&mut looking, 29);
    assert_eq!(looking.refusal(), taken);
    look(&mut looking, 30);
    assert_eq!(looking.worker(0), 1);
    // It lives: the version has changed.
    looking.records.get_mut(&WorkerNumber(1)).unwrap().version = Version(8);
    assert_eq!(looking.refusal(), taken, "what was noted is of another version");
    look(&mut looking, 31);
    look(&mut looking, 60);
    assert_eq!(looking.refusal(), taken);
}

/// A cloned machine has all that the original has, but for the processes.
#[test]
fn the_same_host_and_directory_prove_nothing() {
    let full = [current(2), current(1), current(3), current(4)];
    let looking = Looking::at(&full);
    assert_eq!(looking.refusal()[1], (1, Why::MayBeCopy));
    let gone = Looking { gone: BTreeSet::from([WorkerNumber(1)]), ..Looking::at(&full) };
    assert_eq!(gone.worker(0), 1);
    // Another one's is never taken, whatever is known of it.
    let others = Looking { gone: BTreeSet::from([WorkerNumber(0)]), ..Looking::at(&full) };
    assert_eq!(others.refusal()[0], (0, Why::Held));
}

#[test]
fn a_grant_far_ahead_of_the_clock_is_left_alone() {
    let mut records = [current(2), record(None, 9, 0, 701), current(3), current(4)];
    let looking = Looking::at(&records);
    assert_eq!(looking.refusal().last(), Some(&(1, Why::TooFarAhead)), "the list goes by the ends of grants");
    records[1] = record(None, 9, 0, 700);
    assert_eq!(Looking::at(&records).worker(0), 1, "600 s are allowed");
    // Its own, given back, may end as far ahead as a grant reaches.
    let terms = Terms { window: Micros::from_secs(700), ..TERMS };
    records[1] = record(None, 9, 0, 701);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.refusal().last(), Some(&(1, Why::TooFarAhead)));
    records[1] = record(None, 1, 0, 800);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.worker(0), 1);
    records[1] = record(None, 1, 0, 801);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.refusal().last(), Some(&(1, Why::TooFarAhead)));
}

#[test]
fn a_configured_worker_is_leased_and_no_other() {
    let configured =
        |number, records: &[Stored]| Looking { wanted: Wanted::One(WorkerNumber(number)), ..Looking::at(records) };
    assert_eq!(configured(2, &[]).worker(0), 2);
    assert_eq!(configured(1, &[over(2), over(3)]).worker(0), 1);
    assert_eq!(configured(1, &[current(2), current(1)]).refusal(), [(1, Why::MayBeCopy)]);
    let gone = BTreeSet::from([WorkerNumber(1)]);
    assert_eq!(Looking { gone, ..configured(1, &[current(2), current(1)]) }.worker(0), 1, "an older run's");
    let refused = configured(1, &[current(2), current(3)]);
    let Choice::NoWorker(no) = refused.choose(0) else { panic!() };
    let holder = holder(3);
    assert_eq!(no.wanted, Wanted::One(WorkerNumber(1)));
    assert_eq!(no.taken, [Taken { worker: WorkerNumber(1), holder, until: at(150), why: Why::Held }]);
}

#[test]
fn numbers_of_workers_go_to_their_places_and_back() {
    let twitter: Layout = "twitter".parse().unwrap();
    assert_eq!(twitter.workers(), 1024);
    assert_eq!(twitter.number_worker(Some(11), Some(26)), Ok(11 << 5 | 26));
    assert_eq!(twitter.place_number(11 << 5 | 26), twitter.place_worker(Some(11), Some(26)).ok());
    assert_eq!(twitter.place_number(1024), None);
    // Also where the fields stand in another order.
    let sonyflake: Layout = "sonyflake".parse().unwrap();
    for number in [0, 1, 65535] {
        assert_eq!(sonyflake.number_worker(None, Some(number)), Ok(number.into()));
        assert_eq!(sonyflake.place_number(number.into()), sonyflake.place_worker(None, Some(number)).ok());
    }
    assert!(sonyflake.number_worker(None, Some(65536)).is_err());
    assert!(sonyflake.number_worker(None, None).is_err());
}
