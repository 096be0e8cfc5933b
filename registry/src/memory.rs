//! A registry in memory, for tests and simulations: as many clients as one likes, and faults that are told beforehand.
//!
//! ```
//! use snowflake_core::lease::NamespaceRecord;
//! use snowflake_registry::memory::{InjectedFault, Memory};
//! use snowflake_registry::{Options, Registry};
//!
//! let memory = Memory::default();
//! let mut registry = memory.client(&Options::default());
//! let record = NamespaceRecord { layout: "twitter".to_owned(), life: 1, ..Default::default() };
//! assert_eq!(registry.swap_namespace(None, &record)?, Some(record.clone()));
//!
//! registry.next(InjectedFault::LostAnswer);
//! assert!(registry.swap_namespace(None, &record).unwrap_err().is_unanswered());
//! # Ok::<(), snowflake_registry::Error>(())
//! ```

use crate::error::{Attempt, Attempts, Error};
use crate::storable::{check, check_namespace};
use crate::{Options, Registry, Swap};
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A store in memory. Clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    namespace: Option<NamespaceRecord>,
    records: BTreeMap<WorkerNumber, Stored>,
    segments: BTreeMap<Tag, segment::StoredTag>,
    holdings: BTreeMap<(Tag, WorkerNumber), Holding>,
    last_version: u64,
    late: VecDeque<Sent>,
}

/// A change that was sent.
#[derive(Clone)]
enum Sent {
    Namespace(Option<NamespaceRecord>, NamespaceRecord),
    Swap(Option<NamespaceRecord>, WorkerNumber, Option<Version>, Box<Record>),
    Segment(NamespaceRecord, Box<segment::TagWrite>, Option<(WorkerNumber, Holding)>),
}

/// Its outcome.
enum Outcome {
    Namespace(Option<NamespaceRecord>),
    Swap(Swap),
    Segment(Swap<segment::StoredTag>),
}

/// The fate of a call. Reads know no difference between the last three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// It is answered, after this long.
    Delay(Duration),
    /// It is not sent: the registry cannot be reached.
    Unreachable,
    /// It is lost on the way.
    LostRequest,
    /// It is made, and the answer is lost.
    LostAnswer,
    /// It is not answered, and a change is made when [`Memory::deliver_late`] says so.
    Late,
}

/// One client, as [`open`](crate::open) gives one for other registries.
pub struct MemoryClient {
    memory: Memory,
    options: Options,
    longest: Option<Duration>,
    faults: VecDeque<InjectedFault>,
}

impl Memory {
    /// A client, whose calls go well.
    pub fn client(&self, options: &Options) -> MemoryClient {
        MemoryClient { memory: self.clone(), options: options.clone(), longest: None, faults: VecDeque::new() }
    }

    /// Makes the changes that are late, in the order in which they were sent. Returns how many there were.
    pub fn deliver_late(&self) -> usize {
        let mut store = self.lock();
        let late = std::mem::take(&mut store.late);
        for change in &late {
            store.make(change);
        }
        late.len()
    }

    /// Loses everything but what is late.
    pub fn wipe(&self) {
        let mut store = self.lock();
        let late = std::mem::take(&mut store.late);
        *store = Store { late, ..Store::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Store {
    fn make(&mut self, change: &Sent) -> Outcome {
        match change {
            Sent::Namespace(expected, record) => {
                if self.namespace == *expected {
                    self.namespace = Some(record.clone());
                }
                Outcome::Namespace(self.namespace.clone())
            }
            Sent::Swap(Some(namespace), ..) if self.namespace.as_ref() != Some(namespace) => {
                Outcome::Swap(Swap::OtherNamespace(self.namespace.clone()))
            }
            Sent::Segment(namespace, ..) if self.namespace.as_ref() != Some(namespace) => {
                Outcome::Segment(Swap::OtherNamespace(self.namespace.clone()))
            }
            Sent::Segment(_, write, holding) => {
                let stands = self.segments.get(&write.tag);
                if stands.map(|stored| stored.version) != write.expected {
                    return Outcome::Segment(Swap::Conflict(stands.cloned()));
                }
                self.last_version += 1;
                let version = Version(self.last_version);
                let stored = segment::StoredTag { version, record: write.record.clone() };
                self.segments.insert(write.tag.clone(), stored);
                self.holdings.extend(holding.map(|(worker, holding)| ((write.tag.clone(), worker), holding)));
                Outcome::Segment(Swap::Stored(version))
            }
            Sent::Swap(_, worker, expected, record) => {
                let stands = self.records.get(worker);
                if stands.map(|stored| stored.version) != *expected {
                    return Outcome::Swap(Swap::Conflict(stands.cloned()));
                }
                self.last_version += 1;
                let version = Version(self.last_version);
                self.records.insert(*worker, Stored { version, record: (**record).clone() });
                Outcome::Swap(Swap::Stored(version))
            }
        }
    }
}

impl MemoryClient {
    /// Chooses the fate of the next call, or, after this was called several times, of as many calls.
    pub fn next(&mut self, fault: InjectedFault) {
        self.faults.push_back(fault);
    }

    fn attempts() -> Attempts {
        Attempts(vec![Attempt::new("memory", "injected", None)])
    }

    /// Waits, and says what else becomes of the call.
    fn begin(&mut self) -> Result<Option<InjectedFault>, Error> {
        let wait = |length: Duration| {
            let end = Instant::now() + length;
            loop {
                if self.options.stop.is_wanted() {
                    return Err(Error::Interrupted);
                }
                match end.saturating_duration_since(Instant::now()) {
                    Duration::ZERO => return Ok(()),
                    left => thread::sleep(left.min(Duration::from_millis(10))),
                }
            }
        };
        let deadline = self.longest.map_or(self.options.deadline(), |longest| longest.min(self.options.deadline()));
        match self.faults.pop_front() {
            Some(InjectedFault::Delay(length)) if length < deadline => wait(length).map(|()| None),
            Some(InjectedFault::Delay(_)) => {
                wait(deadline)?;
                Ok(Some(InjectedFault::Late))
            }
            Some(InjectedFault::Unreachable) => Err(Error::Unreachable(Self::attempts())),
            other => wait(Duration::ZERO).map(|()| other),
        }
    }

    fn read<T>(&mut self, read: impl Fn(&Store) -> T) -> Result<T, Error> {
        match self.begin()? {
            Some(_) => Err(Error::Timeout(Self::attempts())),
            None => Ok(read(&self.memory.lock())),
        }
    }

    fn change(&mut self, change: Sent) -> Result<Outcome, Error> {
        let unanswered = || Err(Error::Unanswered(Box::new(Error::Timeout(Self::attempts()))));
        match self.begin() {
            Ok(None | Some(InjectedFault::Delay(_))) => Ok(self.memory.lock().make(&change)),
            Ok(Some(InjectedFault::LostAnswer)) => {
                self.memory.lock().make(&change);
                unanswered()
            }
            Ok(Some(InjectedFault::Late)) => {
                self.memory.lock().late.push_back(change);
                unanswered()
            }
            Ok(Some(InjectedFault::LostRequest | InjectedFault::Unreachable)) => unanswered(),
            Err(error) => Err(error),
        }
    }
}

impl Registry for MemoryClient {
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error> {
        self.read(|store| store.namespace.clone())
    }

    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error> {
        check_namespace(record)?;
        match self.change(Sent::Namespace(expected.cloned(), record.clone()))? {
            Outcome::Namespace(stands) => Ok(stands),
            Outcome::Swap(_) | Outcome::Segment(_) => unreachable!("a namespace was sent"),
        }
    }

    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error> {
        self.read(|store| store.records.iter().map(|(worker, stored)| (*worker, stored.clone())).collect())
    }

    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error> {
        self.read(|store| store.records.get(&worker).cloned())
    }

    fn swap_within(
        &mut self,
        namespace: Option<&NamespaceRecord>,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        match self.change(Sent::Swap(namespace.cloned(), worker, expected, Box::new(record.clone())))? {
            Outcome::Swap(swap) => Ok(swap),
            Outcome::Namespace(_) | Outcome::Segment(_) => unreachable!("a swap was sent"),
        }
    }

    fn segments(&mut self) -> Result<Vec<(Tag, segment::StoredTag)>, Error> {
        self.read(|store| store.segments.iter().map(|(tag, stored)| (tag.clone(), stored.clone())).collect())
    }

    fn segment(&mut self, tag: &Tag) -> Result<Option<segment::StoredTag>, Error> {
        self.read(|store| store.segments.get(tag).cloned())
    }

    fn swap_segment_held(
        &mut self,
        namespace: &NamespaceRecord,
        write: &segment::TagWrite,
        holding: Option<&(WorkerNumber, Holding)>,
    ) -> Result<Swap<segment::StoredTag>, Error> {
        match self.change(Sent::Segment(namespace.clone(), Box::new(write.clone()), holding.copied()))? {
            Outcome::Segment(swap) => Ok(swap),
            Outcome::Namespace(_) | Outcome::Swap(_) => unreachable!("a segment was sent"),
        }
    }

    fn holdings(&mut self) -> Result<Vec<(Tag, WorkerNumber, Holding)>, Error> {
        let holding = |((tag, worker), holding): (&(Tag, WorkerNumber), &Holding)| (tag.clone(), *worker, *holding);
        self.read(|store| store.holdings.iter().map(holding).collect())
    }

    fn limit(&mut self, longest: Option<Duration>) {
        self.longest = longest;
    }

    fn warnings(&mut self) -> Result<Vec<String>, Error> {
        self.read(|_| vec!["The registry is in memory, and is lost when its process ends.".to_owned()])
    }
}
