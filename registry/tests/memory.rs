//! The registry in memory does what the others do.
#![cfg(feature = "memory")]

mod common;

use common::*;
use snowflake_core::lease::Stored;
use snowflake_registry::memory::{InjectedFault, Memory};
use snowflake_registry::{Error, Registry, Swap};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn clients_share_what_is_stored() {
    let memory = Memory::default();
    let mut first = memory.client(&options(PATIENCE));
    let mut second = memory.client(&options(PATIENCE));
    assert_eq!(layout(&mut first, "twitter").unwrap(), "twitter");
    assert_eq!(layout(&mut second, "another").unwrap(), "twitter");
    let one = create(&mut first, WORKER, &record(1));
    let stands = Stored { version: one, record: record(1) };
    assert_eq!(second.compare_and_swap(WORKER, None, &record(2)).unwrap(), Swap::Conflict(Some(stands.clone())));
    assert_eq!(second.records().unwrap(), [(WORKER, stands)]);
    let two = stored(second.compare_and_swap(WORKER, Some(one), &record(2)));
    assert!(two > one);
    memory.wipe();
    assert_eq!(first.compare_and_swap(WORKER, Some(two), &record(3)).unwrap(), Swap::Conflict(None));
}

#[test]
fn faults_do_what_they_say() {
    let memory = Memory::default();
    let mut registry = memory.client(&options(PATIENCE));
    let mut other = memory.client(&options(PATIENCE));
    let mut after = |fault: InjectedFault| {
        registry.next(fault);
        registry.compare_and_swap(WORKER, None, &record(1))
    };
    let error = after(InjectedFault::Unreachable).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(after(InjectedFault::LostRequest).unwrap_err().is_unanswered());
    assert_eq!(memory.deliver_late(), 0);
    assert_eq!(other.record(WORKER).unwrap(), None);
    // Late, and in vain.
    assert!(after(InjectedFault::Late).unwrap_err().is_unanswered());
    let version = create(&mut other, WORKER, &record(2));
    assert_eq!(memory.deliver_late(), 1);
    assert_eq!(other.record(WORKER).unwrap(), Some(Stored { version, record: record(2) }));
    memory.wipe();
    assert!(after(InjectedFault::LostAnswer).unwrap_err().is_unanswered());
    assert_eq!(other.record(WORKER).unwrap().unwrap().record, record(1));
    memory.wipe();
    assert!(after(InjectedFault::Late).unwrap_err().is_unanswered());
    assert_eq!(memory.deliver_late(), 1);
    assert_eq!(other.record(WORKER).unwrap().unwrap().record, record(1));
}

#[test]
fn delays_end_by_deadline_and_by_stop() {
    let memory = Memory::default();
    let mut registry = memory.client(&options(Duration::from_millis(50)));
    registry.next(InjectedFault::Delay(Duration::from_millis(20)));
    create(&mut registry, WORKER, &record(1));
    registry.next(InjectedFault::Delay(PATIENCE));
    let error = registry.compare_and_swap(WORKER, None, &record(2)).unwrap_err();
    assert!(error.is_unanswered() && matches!(error.cause(), Error::Timeout(_)), "{error:?}");
    let (options, stop) = stoppable(PATIENCE);
    let mut registry = memory.client(&options);
    stop.store(true, Ordering::Relaxed);
    registry.next(InjectedFault::Delay(PATIENCE));
    assert_eq!(registry.record(WORKER), Err(Error::Interrupted));
}
