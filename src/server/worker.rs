//! The worker whose IDs the server makes, and its change while sessions run.
//!
//! After a reload, processes read the configuration one after the other, and a session that runs a long statement reads
//! it only at the end of that. So one process reads it for all, the keeper ([`crate::generator::keeper`]), as soon as the
//! postmaster tells it to. Where the keeper does not run, the worker is that of the session which has read the
//! configuration last.

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::postgres::process;
use crate::postgres::time::{clock, wait};
use crate::server::believed;
use crate::settings;
use crate::shared::{self, Transitions};
use snowflake_core::{Field, FieldError, Layout, Micros, Tick, Ticks, WorkerBits};

/// How long a session that has read a new worker ID waits for the keeper to read it, too.
const LONGEST_WAIT: Micros = Micros::from_secs(1);

/// Makes sure that the server has a worker. Where this session has read a newer configuration than the keeper, waits a
/// moment for the keeper: after `pg_reload_conf()`, a session expects its next ID to have the new worker.
///
/// # Errors
/// Where the configuration names no worker.
pub fn settle(layout: &Layout) -> Result<(), Error> {
    let start = clock::monotonic_micros();
    loop {
        let configured = settings::worker();
        let wanted = configured.bits.ok();
        let (current, previous, read_at) = {
            let mut transitions = shared::transitions();
            if !shared::has_keeper() {
                publish(layout, &mut transitions);
            }
            (transitions.worker, transitions.previous_worker, transitions.worker_read_at)
        };
        let is_newer = configured.read_at > read_at;
        let waited = clock::monotonic_micros() - start;
        if current == wanted || !is_newer || waited > LONGEST_WAIT {
            let previous = previous.map(|(worker, _)| worker);
            return match (current, configured.bits) {
                (Some(_), _) => Ok(()),
                (None, Err(missing)) => Err(GeneratorError::NoWorker { missing, previous }.into()),
                (None, Ok(_)) => {
                    Err(GeneratorError::NoWorker { missing: FieldError::Missing(Field::Worker), previous }.into())
                }
            };
        }
        wait::sleep(Micros(1000));
    }
}

/// Makes the worker of this process's configuration the server's, unless another process has read a later
/// configuration.
pub fn publish(layout: &Layout, transitions: &mut Transitions) {
    let configured = settings::worker();
    // A parallel worker has the value that its leader had read, and does not know when.
    let knows_when = process::parallel_worker_number() < 0;
    if settings::registry::is_set() || !knows_when || configured.read_at <= transitions.worker_read_at {
        return;
    }
    transitions.worker_read_at = configured.read_at;
    let worker = configured.bits.ok();
    if transitions.worker == worker {
        return;
    }
    let line = shared::line();
    let mut last = layout.tick_of(line.last());
    match worker {
        Some(worker) => {
            line.switch_worker(layout, worker);
            last = layout.tick_of(line.last());
        }
        // Until a session hears of it, it may still make IDs: up to the end of the burst.
        None => {
            let now = layout.tick_at(believed::now_in(transitions));
            last = last.max(now + layout.ticks_in(settings::max_burst()) + Ticks(1));
        }
    }
    replace(layout, worker, last, transitions);
    shared::withdraw_admissions(transitions);
}

/// Notes that a lease has put this worker beside the line.
pub fn note(layout: &Layout, worker: WorkerBits, transitions: &mut Transitions) {
    if transitions.worker != Some(worker) {
        replace(layout, Some(worker), layout.tick_of(shared::line().last()), transitions);
    }
}

/// Notes the worker and the one before it, which made no ID after this tick.
fn replace(layout: &Layout, worker: Option<WorkerBits>, last: Tick, transitions: &mut Transitions) {
    if let Some(previous) = transitions.worker {
        transitions.previous_worker = Some((previous, layout.start_of(last + Ticks(1))));
    }
    transitions.worker = worker;
}
