//! Looks at every state that a world can reach, once. Of a state it keeps 64 bits, by which it is known again: with a
//! billion of them, two are taken for one with a chance of 3 %.

use super::state::State;
use super::world::{Action, World};
use stateright::{Model, Property};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing.
    Whole,
    /// States that differ by nothing that matters.
    Normal,
    /// That, and what comes after the watched ID cannot be claimed again.
    Short,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub states: usize,
    pub transitions: usize,
    /// After how many steps at least an ID repeats.
    pub repeated: Option<usize>,
    /// Which properties hold in some state.
    pub reached: Vec<&'static str>,
    /// Whether every state was seen.
    pub is_over: bool,
}

/// Looks for the nearest state in which an ID repeats: level by level.
pub fn nearest(world: &World, form: Form, longest: Duration) -> Found {
    let (started, mut found) = (Instant::now(), Found::default());
    let mut visit = Visit::new(world, form);
    let mut seen = HashSet::<u64, BuildHasherDefault<Fingerprint>>::default();
    let mut level: Vec<State> = world.init_states().iter().map(|state| visit.stands_for(state)).collect();
    seen.extend(level.iter().map(fingerprint));
    let mut depth = 0;
    while !level.is_empty() && found.repeated.is_none() {
        let mut next = Vec::new();
        depth += 1;
        for state in &level {
            if started.elapsed() > longest {
                return found;
            }
            visit.successors(state, |successor, raw| {
                found.transitions += 1;
                if raw.is_claimed_twice {
                    found.repeated = Some(depth);
                }
                if seen.insert(fingerprint(&successor)) {
                    next.push(successor);
                }
            });
        }
        level = next;
    }
    found.states = seen.len();
    found.reached = visit.reached();
    found.is_over = true;
    found
}

/// Looks at all states, with as many threads; ends where an ID repeats.
pub fn all(world: &World, form: Form, threads: usize, longest: Duration) -> Found {
    let crew = Crew {
        seen: (0..SHARES).map(|_| Mutex::default()).collect(),
        pool: Mutex::new(Pool { work: Vec::new(), idle: 0 }),
        is_wanted: Condvar::new(),
        hungry: AtomicUsize::new(0),
        threads,
        is_cut_off: AtomicBool::new(false),
        is_repeated: AtomicBool::new(false),
        ends: Instant::now() + longest,
    };
    let first: Vec<State> = world.init_states().iter().map(|state| Visit::new(world, form).stands_for(state)).collect();
    for state in &first {
        crew.is_new(state);
    }
    crew.pool.lock().expect("no panic").work.push(first);
    let of_each: Vec<(usize, Vec<&'static str>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| crew.work(world, form))).collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    });
    let mut reached: Vec<_> = of_each.iter().flat_map(|(_, reached)| reached.clone()).collect();
    reached.sort_unstable();
    reached.dedup();
    let is_repeated = crew.is_repeated.into_inner();
    Found {
        states: crew.seen.iter().map(|share| share.lock().expect("no panic").len()).sum(),
        transitions: of_each.iter().map(|(transitions, _)| transitions).sum(),
        repeated: is_repeated.then_some(0),
        reached,
        is_over: is_repeated || !crew.is_cut_off.into_inner(),
    }
}

/// The way from one state to the next ones.
struct Visit<'a> {
    world: &'a World,
    form: Form,
    actions: Vec<Action>,
    /// The properties that no state had yet.
    missing: Vec<Property<World>>,
    all: Vec<Property<World>>,
}

impl<'a> Visit<'a> {
    fn new(world: &'a World, form: Form) -> Self {
        let sometimes = || {
            let is_sometimes = |property: &Property<World>| property.expectation == stateright::Expectation::Sometimes;
            world.properties().into_iter().filter(is_sometimes).collect()
        };
        Self { world, form, actions: Vec::new(), missing: sometimes(), all: sometimes() }
    }

    fn stands_for(&self, state: &State) -> State {
        if self.form == Form::Whole { *state } else { self.world.normal(state) }
    }

    /// Each next state: the one that stands for it, and itself.
    fn successors(&mut self, state: &State, mut each: impl FnMut(State, &State)) {
        if self.form == Form::Short && self.world.is_over(state) {
            return;
        }
        self.actions.clear();
        self.world.actions(state, &mut self.actions);
        for &action in &self.actions {
            if let Some(next) = self.world.next_state(state, action) {
                self.missing.retain(|property| !(property.condition)(self.world, &next));
                each(self.stands_for(&next), &next);
            }
        }
    }

    fn reached(&self) -> Vec<&'static str> {
        let is_missing = |name: &str| self.missing.iter().any(|property| property.name == name);
        self.all.iter().map(|property| property.name).filter(|name| !is_missing(name)).collect()
    }
}

const SHARES: usize = 256;

/// Threads that share the work.
struct Crew {
    seen: Vec<Mutex<HashSet<u64, BuildHasherDefault<Fingerprint>>>>,
    pool: Mutex<Pool>,
    is_wanted: Condvar,
    /// How many wait for work.
    hungry: AtomicUsize,
    threads: usize,
    is_cut_off: AtomicBool,
    is_repeated: AtomicBool,
    ends: Instant,
}

struct Pool {
    work: Vec<Vec<State>>,
    idle: usize,
}

impl Crew {
    fn is_new(&self, state: &State) -> bool {
        let known = fingerprint(state);
        self.seen[(known >> 48) as usize % SHARES].lock().expect("no panic").insert(known)
    }

    fn is_stopped(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed) || self.is_repeated.load(Ordering::Relaxed)
    }

    /// Some work; `None` when there will be no more.
    fn take(&self) -> Option<Vec<State>> {
        let mut pool = self.pool.lock().expect("no panic");
        pool.idle += 1;
        self.hungry.store(pool.idle, Ordering::Relaxed);
        loop {
            if let Some(work) = pool.work.pop() {
                pool.idle -= 1;
                self.hungry.store(pool.idle, Ordering::Relaxed);
                return Some(work);
            }
            if pool.idle == self.threads {
                self.is_wanted.notify_all();
                return None;
            }
            pool = self.is_wanted.wait(pool).expect("no panic");
        }
    }

    /// The state that was found last comes next, so that few wait for their turn.
    fn work(&self, world: &World, form: Form) -> (usize, Vec<&'static str>) {
        let (mut visit, mut transitions, mut visited) = (Visit::new(world, form), 0, 0_usize);
        while let Some(mut open) = self.take() {
            while let Some(state) = open.pop() {
                visited += 1;
                if visited.is_multiple_of(1024) && Instant::now() > self.ends {
                    self.is_cut_off.store(true, Ordering::Relaxed);
                }
                if self.is_stopped() {
                    break;
                }
                visit.successors(&state, |successor, raw| {
                    transitions += 1;
                    if raw.is_claimed_twice {
                        self.is_repeated.store(true, Ordering::Relaxed);
                    }
                    if self.is_new(&successor) {
                        open.push(successor);
                    }
                });
                if self.hungry.load(Ordering::Relaxed) > 0 && open.len() > 1 {
                    let half = open.drain(..open.len() / 2).collect();
                    self.pool.lock().expect("no panic").work.push(half);
                    self.is_wanted.notify_one();
                }
            }
        }
        (transitions, visit.reached())
    }
}

/// 64 bits of a state.
pub fn fingerprint(state: &State) -> u64 {
    let mut fold = Fold::default();
    state.hash(&mut fold);
    fold.finish()
}

/// A hash of small numbers, eight at a time.
#[derive(Default)]
struct Fold {
    hash: u64,
    bytes: u64,
    count: u32,
}

impl Fold {
    fn folded(&self) -> u64 {
        let product = u128::from(self.hash ^ self.bytes ^ 0x2d35_8dcc_aa6c_78a5) * 0x8bb8_4b93_962e_acc9_u128;
        (product as u64) ^ (product >> 64) as u64 ^ self.bytes.rotate_left(32)
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u8(byte));
    }

    fn write_u8(&mut self, byte: u8) {
        self.bytes = self.bytes << 8 | u64::from(byte);
        self.count += 1;
        if self.count == 8 {
            (self.hash, self.bytes, self.count) = (self.folded(), 0, 0);
        }
    }

    /// The number of a variant.
    fn write_isize(&mut self, variant: isize) {
        self.write_u8(variant as u8);
    }

    /// A length.
    fn write_usize(&mut self, length: usize) {
        self.write_u8(length as u8);
    }

    fn finish(&self) -> u64 {
        let last = Self { hash: self.folded(), bytes: u64::from(self.count), count: 0 };
        last.folded()
    }
}

/// What is a hash already.
#[derive(Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is one number")
    }

    fn write_u64(&mut self, known: u64) {
        self.0 = known;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
