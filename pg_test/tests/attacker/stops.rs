//! Where a call can be kept waiting. For each relation of a scene and each means that mallory has,
//! it is tried whether the call comes to wait for her, and `pg_locks` says for what.

use super::calls::Call;
use super::changes::word;
use super::world::{Ground, Scene, World};
use std::collections::BTreeSet;
use std::fmt;
use std::thread;

/// How mallory keeps a call waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// By a lock on a relation, of this mode.
    Lock(&'static str),
    /// By the same lock, once more: she gets it as soon as the call has given up its own.
    Again,
    /// By an index that she builds again.
    Reindex,
    /// By a privilege that she grants, as whoever changes the row of `pg_class` waits then. She
    /// takes it back.
    Grant,
    /// By a relation that she begins to make, with the name of one that the call makes.
    Name,
    /// By a comment on what else the call locks, such as a function. Somebody else makes it.
    Object,
    /// By an advisory lock, which everybody may take.
    Advisory,
    /// By code of her own that the call runs.
    Gate,
    /// By the change itself, which she makes first.
    First,
}

/// A moment at which a call waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub means: Means,
    /// The relation, the name, the object, the number.
    pub on: String,
    /// What pg_locks says.
    pub waits: String,
    /// The relations that the call has locked by then. Nobody can change these.
    pub locked: Vec<String>,
}

impl Stop {
    /// One that nobody has tried yet.
    pub fn new(means: Means, on: String) -> Self {
        Self { means, on, waits: String::new(), locked: Vec::new() }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = &self.on;
        match &self.means {
            Means::Lock(mode) => write!(f, "{} behind {mode} on {on}", self.waits),
            Means::Again => write!(f, "{}, again", self.waits),
            Means::Reindex => write!(f, "{} behind REINDEX {on}", self.waits),
            Means::Grant => write!(f, "{} behind GRANT on {on}", self.waits),
            Means::Name => write!(f, "{} behind CREATE {on}", self.waits),
            Means::Object => write!(f, "{} behind COMMENT", self.waits),
            Means::Advisory => write!(f, "advisory lock {on}"),
            Means::Gate => write!(f, "code of hers, time {on}"),
            Means::First => write!(f, "the change itself"),
        }
    }
}

/// The strongest first: it stops at the first of several locks.
const MODES: [&str; 3] = ["ACCESS EXCLUSIVE", "SHARE", "ROW EXCLUSIVE"];

/// How many of the times that a call runs code of hers are tried.
const GATES: usize = 6;

/// What a call does where nobody disturbs it.
pub struct Undisturbed {
    /// Its error, if it has one.
    pub error: Option<String>,
    /// The names of the relations that it makes.
    names: Vec<String>,
    /// What it locks that is no relation, as COMMENT names it.
    objects: Vec<String>,
    /// Its advisory locks.
    numbers: Vec<String>,
    /// How often it runs code of hers.
    passes: i64,
}

const OBJECTS: &str = "
    SELECT format('%s %s', upper(o.type), o.identity) FROM pg_locks, pg_identify_object(classid, objid, 0) AS o
    WHERE pid = pg_backend_pid() AND locktype = 'object' AND o.type IN ('function', 'procedure', 'extension')
        AND database <> 0 ORDER BY 1";

const NUMBERS: &str = "
    SELECT CASE objsubid WHEN 2 THEN concat(classid, ', ', objid) ELSE (classid::bigint << 32 | objid::bigint)::text END
    FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' ORDER BY 1";

impl World {
    /// Runs a call alone.
    pub fn undisturbed(&mut self, call: &Call, ground: Ground) -> Undisturbed {
        let scene = self.scene(call, ground);
        self.prepare(call);
        self.mallory.client.batch_execute("SELECT setval('tools.passed', 1, false)").unwrap();
        let statement = self.statement(call, &scene);
        let mut victim = self.victim.take().unwrap();
        if !call.is_procedure {
            victim.client.batch_execute("BEGIN").unwrap();
        }
        let error = victim.client.batch_execute(&statement).err();
        let (mut after, mut objects, mut numbers) = (Default::default(), Vec::new(), Vec::new());
        if call.is_procedure {
            after = self.state(&scene);
        } else if error.is_none() {
            after = victim.state(&scene).unwrap();
            objects = victim.client.query(OBJECTS, &[]).unwrap().iter().map(|row| row.get(0)).collect();
            numbers = victim.client.query(NUMBERS, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        }
        if !call.is_procedure {
            victim.client.batch_execute("ROLLBACK").unwrap();
        }
        self.victim = Some(victim);
        let passes = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM tools.passed";
        let passes = self.mallory.client.query_one(passes, &[]).unwrap().get(0);
        let is_new = |name: &String| scene.named(name).is_none();
        let names = after.into_values().map(|state| state.name).filter(is_new).collect();
        if call.sees_all {
            self.remove(&scene);
        }
        Undisturbed { error: error.map(|error| format!("{error:?}")), names, objects, numbers, passes }
    }

    /// Where a call waits.
    pub fn stops(&mut self, call: &Call, ground: Ground, alone: &Undisturbed) -> Vec<Stop> {
        let mut found: Vec<Stop> = Vec::new();
        let mut scene = self.scene(call, ground);
        let mut candidates: Vec<(Means, String)> = Vec::new();
        for relation in &scene.relations {
            let name = || relation.name.clone();
            if "rpSv".contains(relation.kind) {
                candidates.extend(MODES.map(|mode| (Means::Lock(mode), name())));
                candidates.push((Means::Again, name()));
                candidates.push((Means::Grant, name()));
            } else if relation.kind == 'i' {
                candidates.push((Means::Reindex, name()));
            }
        }
        candidates.extend(alone.names.iter().map(|name| (Means::Name, name.clone())));
        candidates.extend(alone.objects.iter().map(|name| (Means::Object, name.clone())));
        candidates.extend(alone.numbers.iter().map(|number| (Means::Advisory, number.clone())));
        let passes = usize::try_from(alone.passes).unwrap();
        // From the first to the last.
        let gates: BTreeSet<usize> = (0..GATES.min(passes)).map(|gate| 1 + gate * passes / GATES.min(passes)).collect();
        candidates.extend(gates.iter().map(|gate| (Means::Gate, gate.to_string())));
        let mut untouched = BTreeSet::new();
        for (means, on) in candidates {
            // Where the strongest lock is in nobody's way, no other is.
            if matches!(means, Means::Lock(_) | Means::Again) && untouched.contains(&on) {
                continue;
            }
            let mut stop = Stop::new(means, on);
            let tried = self.try_stop(call, &scene, &stop);
            let schema = scene.schema.clone();
            if call.is_procedure {
                scene = self.scene(call, ground);
            }
            let Some((waits, locked)) = tried else {
                if stop.means == Means::Lock(MODES[0]) {
                    untouched.insert(stop.on);
                }
                continue;
            };
            stop.locked = locked;
            stop.waits = waits.replace(&format!("{schema}."), "").replace(&schema, "the schema");
            let is_new = |known: &Stop| {
                let is_lock = |stop: &Stop| matches!(stop.means, Means::Lock(_) | Means::Reindex);
                !(is_lock(&stop) && is_lock(known) && known.waits == stop.waits)
            };
            if found.iter().all(is_new) {
                found.push(stop);
            }
        }
        if call.sees_all {
            self.remove(&scene);
        }
        found
    }

    /// Whether a call comes to wait, and for what.
    fn try_stop(&mut self, call: &Call, scene: &Scene, stop: &Stop) -> Option<(String, Vec<String>)> {
        self.prepare(call);
        self.hold(scene, stop, false).ok()?;
        let statement = self.statement(call, scene);
        let mut victim = self.victim.take().unwrap();
        let pid = victim.pid;
        let (victim, found) = thread::scope(|scope| {
            let running = scope.spawn(move || {
                if !call.is_procedure {
                    victim.client.batch_execute("BEGIN").unwrap();
                }
                let _ = victim.client.batch_execute(&statement);
                victim.client.batch_execute("ROLLBACK").unwrap();
                victim
            });
            let waits = self.until_stopped(scene, stop, pid, || running.is_finished());
            let found = waits.map(|waits| (waits, self.locked(pid, scene)));
            if found.is_some() {
                self.cancel(pid);
            }
            self.let_go(stop, false);
            (running.join().unwrap(), found)
        });
        self.victim = Some(victim);
        found
    }

    /// Waits until a call waits at a stop, or has ended. Where that is for the same lock once more,
    /// the first one is given up on the way.
    pub fn until_stopped(
        &mut self,
        scene: &Scene,
        stop: &Stop,
        pid: i32,
        has_ended: impl Fn() -> bool + Copy,
    ) -> Option<String> {
        let holders = [self.mallory.pid, self.steward.pid];
        let waits = self.until_it_waits(pid, &holders, has_ended)?;
        if stop.means != Means::Again {
            return Some(waits);
        }
        let lock = lock(scene, &stop.on, MODES[0])?;
        let mut session = self.second.take().unwrap();
        let second = session.pid;
        thread::scope(|scope| {
            let locking = scope.spawn(move || {
                let wait = format!("BEGIN; SET LOCAL lock_timeout = 0; {lock}; SET LOCAL lock_timeout = '80ms'");
                let locked = session.client.batch_execute(&wait);
                (session, locked)
            });
            self.until_queued(second, || locking.is_finished());
            self.mallory.client.batch_execute("ROLLBACK").unwrap();
            let waits = self.until_it_waits(pid, &[second], has_ended);
            let (session, locked) = locking.join().unwrap();
            self.second = Some(session);
            // The call may have been given what it waited for, and she not.
            waits.filter(|_| locked.is_ok())
        })
    }

    /// Has mallory hold what keeps a call waiting; or the steward, where he is to make the change.
    pub fn hold(&mut self, scene: &Scene, stop: &Stop, by_steward: bool) -> Result<(), postgres::Error> {
        let (schema, on) = (&scene.schema, &stop.on);
        let statement = match &stop.means {
            Means::Lock(mode) => lock(scene, on, mode),
            Means::Again => lock(scene, on, MODES[0]),
            Means::Reindex => Some(format!("REINDEX INDEX {schema}.{on}")),
            Means::Grant => Some(format!("GRANT SELECT ON {schema}.{on} TO crew")),
            Means::Name => Some(format!("CREATE TABLE {schema}.{on} ()")),
            Means::Object => {
                return self.steward.client.batch_execute(&format!("BEGIN; COMMENT ON {on} IS NULL"));
            }
            Means::Advisory => Some(format!("SELECT pg_advisory_xact_lock({on})")),
            Means::Gate => {
                let gate = format!("SELECT pg_advisory_lock(68, {on}), setval('tools.passed', 1, false)");
                return self.mallory.client.batch_execute(&gate);
            }
            Means::First => None,
        };
        let statement = statement.unwrap_or_default();
        let holder = if by_steward { &mut self.steward } else { &mut self.mallory };
        let held = holder.client.batch_execute(&format!("BEGIN; {statement}"));
        if held.is_err() {
            holder.client.batch_execute("ROLLBACK").unwrap();
        }
        held
    }

    /// Lets it go; where the change was made by who holds it, this makes it true.
    pub fn let_go(&mut self, stop: &Stop, commits: bool) {
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        if stop.means == Means::Gate {
            let gate = format!("SELECT pg_advisory_unlock(68, {})", stop.on);
            self.mallory.client.batch_execute(&gate).unwrap();
        }
        for session in [Some(&mut self.mallory), Some(&mut self.steward), self.second.as_mut()].into_iter().flatten() {
            session.client.batch_execute(end).unwrap();
        }
    }
}

/// A statement that locks a relation so. LOCK takes no sequences, and a view with its tables only.
fn lock(scene: &Scene, name: &str, mode: &str) -> Option<String> {
    let whole = format!("{}.{name}", scene.schema);
    let kind = scene.named(name)?.kind;
    let word = word(kind);
    match (kind, mode) {
        ('r' | 'p', _) => Some(format!("LOCK TABLE ONLY {whole} IN {mode} MODE")),
        (_, "ACCESS EXCLUSIVE") => Some(format!(
            "ALTER {word} {whole} RENAME TO {name}_locked; ALTER {word} {}.{name}_locked RENAME TO {name}",
            scene.schema
        )),
        ('S', "ROW EXCLUSIVE") => Some(format!("SELECT nextval('{whole}')")),
        _ => None,
    }
}
