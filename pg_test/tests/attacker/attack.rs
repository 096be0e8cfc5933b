//! One attack: a call comes to wait at a stop, a change is made, the call goes on. Then this looks
//! whose code ran as whom, how the call ended, and which objects it has touched.

use super::calls::Call;
use super::changes::{self, Change};
use super::stops::{Means, Stop};
use super::world::{Ground, Scene, State, World};
use std::collections::BTreeMap;
use std::thread;

/// What came of an attack.
#[derive(Debug)]
pub enum Outcome {
    /// It could not be made: mallory may not, a lock is in the way, or the call did not wait.
    Missed(String),
    /// The call ended, by an error or not, and nothing is wrong.
    Held(String),
    /// What is wrong.
    Broken(Vec<String>),
}

/// An error in short.
pub fn told(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => format!("lost: {error}"),
    }
}

type States = BTreeMap<u32, State>;

impl World {
    /// Makes one attack.
    pub fn attack(&mut self, call: &Call, ground: Ground, stop: &Stop, change: &Change, is_plain: bool) -> Outcome {
        let scene = self.scene(call, ground);
        self.prepare(call);
        self.ran();
        let outcome = self.attack_on(call, &scene, stop, change, is_plain);
        if call.sees_all {
            self.remove(&scene);
        }
        outcome
    }

    fn attack_on(&mut self, call: &Call, scene: &Scene, stop: &Stop, change: &Change, is_plain: bool) -> Outcome {
        let by_steward = change.is_of_steward(scene.ground);
        if by_steward && stop.means == Means::Again {
            return Outcome::Missed("two hold it one after the other".to_owned());
        }
        if let Err(error) = self.hold(scene, stop, by_steward && stop.means.is_of_changer()) {
            return Outcome::Missed(told(&error));
        }
        let script = changes::script(self, scene, change, is_plain);
        let mut changed = None;
        if stop.means == Means::First {
            match self.change(scene, stop, by_steward, &script) {
                Ok(states) => changed = Some(states),
                Err(error) => return Outcome::Missed(told(&error)),
            }
        }
        let statement = self.statement(call, scene);
        let mut victim = self.victim.take().unwrap();
        let pid = victim.pid;
        let (victim, result, changed) = thread::scope(|scope| {
            let running = scope.spawn(move || {
                let result = victim.client.batch_execute(&statement);
                (victim, result)
            });
            let changed = match self.until_stopped(scene, stop, pid, || running.is_finished()) {
                None => Err("the call does not wait".to_owned()),
                Some(_) => match changed {
                    Some(states) => Ok(states),
                    None => self.change(scene, stop, by_steward, &script).map_err(|error| told(&error)),
                },
            };
            self.let_go(stop, changed.is_ok() && stop.means.is_of_changer());
            let (victim, result) = running.join().unwrap();
            (victim, result, changed)
        });
        let is_lost = victim.client.is_closed();
        self.victim = Some(if is_lost { self.new_victim() } else { victim });
        let mut wrong: Vec<String> = self.ran().into_iter().collect();
        // Its name is another one each time.
        let error = result.err().map(|error| told(&error).replace(&scene.schema, "s"));
        if let Some(error) = &error
            && (error.starts_with("XX")
                || error.starts_with("lost")
                || error.starts_with("57014")
                || error.contains("panicked"))
        {
            wrong.push(error.clone());
        }
        match changed {
            Err(missed) if wrong.is_empty() => Outcome::Missed(missed),
            Err(missed) => {
                Outcome::Broken(wrong.into_iter().map(|what| format!("{what} (no attack: {missed})")).collect())
            }
            Ok(states) => {
                wrong.extend(self.touched(scene, change, &states));
                let how = error.unwrap_or_else(|| "done".to_owned());
                if wrong.is_empty() { Outcome::Held(how) } else { Outcome::Broken(wrong) }
            }
        }
    }

    /// Makes the change: in the session that keeps the call waiting, where that holds a lock which
    /// the change needs; else in another one. Returns what there is then.
    fn change(
        &mut self,
        scene: &Scene,
        stop: &Stop,
        by_steward: bool,
        script: &str,
    ) -> Result<States, postgres::Error> {
        let is_of_holder = stop.means.is_of_changer();
        let session = match (&stop.means, by_steward) {
            (_, true) => &mut self.steward,
            (Means::Again, _) => self.second.as_mut().unwrap(),
            _ if is_of_holder => &mut self.mallory,
            _ => &mut self.third,
        };
        let (begin, commit) = if is_of_holder { ("", "") } else { ("BEGIN;", "COMMIT") };
        let made = session.client.batch_execute(&format!("{begin} {script}"));
        let made = made.and_then(|()| session.state(scene)).and_then(|states| {
            session.client.batch_execute(commit)?;
            Ok(states)
        });
        if made.is_err() {
            session.client.batch_execute("ROLLBACK").unwrap();
        }
        made
    }

    /// What a call has done to objects that are not those it was to work on.
    fn touched(&mut self, scene: &Scene, change: &Change, before: &States) -> Vec<String> {
        let after = self.state(scene);
        let is_original = |oid: &u32| scene.relations.iter().any(|relation| relation.oid == *oid);
        let mut wrong = Vec::new();
        let is_detached = |oid: &u32| {
            change.step == changes::Move::Detach && change.on.as_deref().is_some_and(|name| scene.oid(name) == *oid)
        };
        // What mallory has made a partition of her table is one.
        let is_part = |state: &State| state.of.iter().any(is_original);
        let is_hers = |oid: &u32, state: &State| !is_original(oid) && !is_part(state) && !"iI".contains(state.kind);
        for (oid, state) in before.iter().filter(|(oid, state)| is_detached(oid) || is_hers(oid, state)) {
            match after.get(oid) {
                Some(now) if now == state => {}
                Some(now) => {
                    wrong.push(format!("{} of mallory's was changed: it was {state:?}, and is {now:?}", state.name))
                }
                None => wrong.push(format!("{} of mallory's was dropped", state.name)),
            }
        }
        let made = |oid: &u32| after.contains_key(oid) && !before.contains_key(oid);
        let is_fine = |oid: &u32| is_original(oid) || made(oid) || before.get(oid).is_some_and(is_part);
        let originals = || before.iter().filter(|(oid, _)| is_original(oid)).map(|(_, state)| state);
        for (_, state) in after.iter().filter(|(oid, _)| made(oid)) {
            if !state.of.iter().all(is_fine) || state.of.is_empty() && "rpS".contains(state.kind) {
                wrong.push(format!("{} was made of something of mallory's", state.name));
            } else if originals().all(|original| original.schema != state.schema) {
                wrong.push(format!("{} was made in a schema of mallory's", state.name));
            } else if originals().all(|original| original.owner != state.owner) {
                wrong.push(format!("{} was made, and belongs to somebody else", state.name));
            }
        }
        let hers: Vec<&State> = after
            .iter()
            .filter(|(oid, state)| state.kind == 'r' && is_hers(oid, state))
            .map(|(_, state)| state)
            .collect();
        wrong.extend(self.written(scene, &hers));
        wrong
    }

    /// Tables of mallory's whose rows are not those that she has put there.
    fn written(&mut self, scene: &Scene, hers: &[&State]) -> Vec<String> {
        let mut wrong = Vec::new();
        for state in hers {
            let Some(relation) = scene.named(&state.name) else { continue };
            let count = format!("SELECT count(*) FROM ONLY {}.{}", scene.schema, state.name);
            let keys = self.keys(&relation.name).len();
            let Ok(row) = self.third.client.query_one(&count, &[]) else { continue };
            let count: i64 = row.get(0);
            if count != i64::try_from(keys).unwrap() {
                wrong.push(format!("{} of mallory's has {count} rows, and had {keys}", state.name));
            }
        }
        wrong
    }
}

impl Means {
    /// Whether who keeps the call waiting makes the change, and ends with a COMMIT.
    fn is_of_changer(&self) -> bool {
        matches!(self, Means::Lock(_) | Means::Again | Means::Reindex | Means::First)
    }
}
