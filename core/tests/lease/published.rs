//! What reaches the sessions: a grant, published beside the line.

use super::*;

fn grant(worker: u64, from: i64, until: i64) -> Grant {
    Grant { worker: WorkerNumber(worker), from: at(from), until: at(until) }
}

fn reach(published: &Published, now: i64) -> Reach {
    let policy = Policy { max_burst: Ticks(100), max_lead: Ticks(600_000), spread: 1 };
    Reach { policy, limit: published.limit(&layout()).unwrap(), now: layout().tick_at(at(now)), gives_way: false }
}

#[test]
fn a_grant_is_installed_in_its_order_and_a_renewal_only_publishes() {
    let (line, mut published) = (Line::new(), Published::new(true));
    let bits = layout().place_number(3).unwrap();
    let first = grant(3, 10, 90);
    let steps = published.actions(&layout(), &line, &first).unwrap();
    let floor = layout().first_tick_from(at(10));
    assert_eq!(steps, [Some(Action::Raise(floor)), Some(Action::Switch(first, bits)), Some(Action::Publish(first))]);
    published.install(&layout(), &line, &first).unwrap();
    let claim = line.claim(&layout(), &reach(&published, 0), 1).unwrap_or_else(|_| {
        // The line was raised to the grant's start, which is ahead of the clock.
        line.claim(&layout(), &reach(&published, 11), 1).unwrap()
    });
    assert!(layout().start_of(layout().tick_of(claim.first)) >= at(10));
    assert_eq!(claim.worker, bits);

    let renewed = grant(3, 10, 120);
    assert_eq!(published.actions(&layout(), &line, &renewed), Ok([None, None, Some(Action::Publish(renewed))]));
    let before = line.last();
    published.install(&layout(), &line, &renewed).unwrap();
    assert_eq!(line.last(), before, "a renewal gives nothing up");
    assert_eq!(published.end, Some(at(120)));
}

/// What installs a grant may end between two steps, and a superuser may lower the line then.
#[test]
fn wherever_an_installation_ends_the_line_is_not_lowered_below_a_grant() {
    let floor = |grant: &Grant| layout().first_tick_from(grant.from);
    for (old, new) in [(grant(3, 10, 90), grant(4, 50, 120)), (grant(3, 50, 90), grant(4, 10, 120))] {
        let (line, mut published) = (Line::new(), Published::new(true));
        published.install(&layout(), &line, &old).unwrap();
        for step in published.actions(&layout(), &line, &new).unwrap().into_iter().flatten() {
            published.apply(&layout(), &line, step);
            let lowest = published.lowest_tick(&layout()).unwrap();
            let in_use = if published.worker == Some(new.worker) { &new } else { &old };
            assert!(lowest >= floor(in_use), "{step:?}");
        }
        assert_eq!(published.lowest_tick(&layout()), Some(floor(&new)), "in the end as low as may be");
    }
}

#[test]
fn a_grant_that_is_too_short_is_renewed_first() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 90)).unwrap();
    let untouched = published;
    for shorter in [grant(4, 0, 89), grant(3, 0, 89)] {
        assert_eq!(published.install(&layout(), &line, &shorter), Err(NotInstalled::RenewFirst));
    }
    line.raise(&layout(), layout().tick_at(at(200)));
    assert_eq!(published.install(&layout(), &line, &grant(3, 0, 150)), Err(NotInstalled::RenewFirst), "no room");
    assert_eq!(published, untouched);
    let nobody = grant(1024, 0, 500);
    let error = NotInstalled::NoSuchWorker(WorkerNumber(1024));
    assert_eq!(published.install(&layout(), &line, &nobody), Err(error));
    assert_eq!(error.to_string(), "the layout has no worker 1024");
    // What `lease` asks for then is long enough.
    let seen = published.look(&layout(), &line);
    let write = lease(&layout(), &server(1), (WorkerNumber(4), None), None, &TERMS, at(0), &seen);
    assert_eq!(published.install(&layout(), &line, &write.grant()), Ok(()));
}

#[test]
fn a_grant_is_installed_as_long_as_a_tick_of_it_is_left() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 90)).unwrap();
    assert!(published.actions(&layout(), &line, &grant(4, 0, 90)).is_ok(), "another worker's may end there, too");
    line.raise(&layout(), layout().tick_at(at(20)));
    let steps = |from| published.actions(&layout(), &line, &grant(3, from, 90));
    assert_eq!(steps(20).unwrap()[0], None, "the line is there already");
    let end = layout().tick_at(at(90));
    line.raise(&layout(), end - Ticks(1));
    assert!(steps(20).is_ok());
    line.raise(&layout(), end);
    assert_eq!(steps(20), Err(NotInstalled::RenewFirst));
}

/// Nothing was used of it.
#[test]
fn a_line_without_a_grant_is_closed_where_it_is() {
    let (line, mut published) = (Line::new(), Published::new(true));
    let before = published.look(&layout(), &line);
    published.close(&layout(), &line);
    let after = published.look(&layout(), &line);
    assert_eq!((after.line, after.used, after.is_closed), (before.line, before.used, true));
}

#[test]
fn ends_of_grants_are_rounded_up_to_ticks() {
    let coarse: Layout = "timestamp=39 sequence=8 worker=16 tick=10ms".parse().unwrap();
    let (line, mut published) = (Line::new(), Published::new(true));
    // From within a tick to within another.
    let grant = Grant { worker: WorkerNumber(3), from: at(0) + Micros(1), until: at(1) + Micros(1) };
    published.install(&coarse, &line, &grant).unwrap();
    let floor = coarse.tick_at(at(0)) + Ticks(1);
    assert!(coarse.tick_of(Position(line.last().0 + 1)) >= floor);
    assert_eq!(published.lowest_tick(&coarse), Some(floor));
    // The tick that begins before the end is the last one; the next owner starts after it.
    assert_eq!(published.limit(&coarse), Some(coarse.tick_at(at(1))));
    assert_eq!(coarse.first_tick_from(grant.until), coarse.tick_at(at(1)) + Ticks(1));
}

#[test]
fn a_closed_line_is_closed_for_old_open_ranges_and_opens_above_them() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 60)).unwrap();
    let used = line.claim(&layout(), &reach(&published, 1), 5).unwrap();
    // Whatever its clock says: a session that has copied the end.
    let copies: Vec<_> = (0..70).map(|now| reach(&published, now).open_range(&layout())).collect();
    published.close(&layout(), &line);
    assert_eq!(published.closed, Some(Position(used.first.0 + used.count - 1)));
    assert_eq!(published.limit(&layout()), None);
    for open in &copies {
        assert_eq!(line.claim_in(open, 1), None);
    }
    let seen = published.look(&layout(), &line);
    let next_tick = layout().tick_of(used.first) + Ticks(1);
    assert_eq!((seen.used, seen.is_closed), (Some(layout().start_of(next_tick)), true));
    published.close(&layout(), &line);
    assert_eq!(published.look(&layout(), &line), seen, "closing again changes nothing");

    let write = lease(&layout(), &server(1), (WorkerNumber(3), None), None, &TERMS, at(2), &seen);
    published.install(&layout(), &line, &write.grant()).unwrap();
    for open in &copies {
        assert_eq!(line.claim_in(open, 1), None);
    }
    let claim = line.claim(&layout(), &reach(&published, 61), 1).unwrap();
    assert!(layout().start_of(layout().tick_of(claim.first)) >= at(60));
}

#[test]
fn after_a_sessions_crash_use_is_unknown_until_the_line_is_raised() {
    let line = Line::new();
    let mut published = Published::new(false);
    assert_eq!(published.look(&layout(), &line).used, None);
    published.resumed = true;
    assert!(published.look(&layout(), &line).used.is_some());
}
