//! What is checked: the rules as they are, in worlds that differ; and each rule broken.

use super::rules::{Break, Compare, Rules};
use super::state::Budget;
use super::world::World;

/// One check.
pub struct Check {
    /// What it is about.
    pub name: &'static str,
    /// Whether no ID may repeat; otherwise one must.
    pub is_safe: bool,
    /// Whether it belongs to the short form.
    pub is_short: bool,
    pub(super) world: World,
}

/// One position an instant, which is also a tick.
const SAME: &str = "timestamp=5 worker=2 tick=1us epoch=1970-01-01T00:00:00Z";
/// A tick is two instants, and has one position.
const LONG_TICK: &str = "timestamp=5 worker=2 tick=2us epoch=1970-01-01T00:00:00Z";
/// An instant is a tick, and has two positions.
const TWO_POSITIONS: &str = "timestamp=5 worker=2 sequence=1 tick=1us epoch=1970-01-01T00:00:00Z";

/// All checks.
pub fn suite() -> Vec<Check> {
    let rules =
        |layout: &str| Rules { layout: layout.parse().expect("a layout"), compare: Compare::Version, broken: None };
    let none = Budget::default();
    let one = World {
        rules: rules(SAME),
        servers: 2,
        workers: 1,
        start: 2,
        end: 6,
        in_flight: 2,
        reserves: false,
        restores: false,
        remembers: false,
        is_known: false,
        shows: false,
        budget: none,
    };
    // More requests at once are in checks of their own, as they make many states.
    let two = World { workers: 2, end: 5, in_flight: 1, ..one.clone() };
    let reserving = World { reserves: true, end: 5, ..one.clone() };
    let long_tick = World { rules: rules(LONG_TICK), end: 8, ..one.clone() };
    let two_positions = World { rules: rules(TWO_POSITIONS), start: 1, end: 4, ..one.clone() };

    let ending = |end, world: &World| World { end, ..world.clone() };
    let with = |budget, world: &World| World { budget, ..world.clone() };
    let breaking =
        |broken, world: &World| World { rules: Rules { broken: Some(broken), ..world.rules.clone() }, ..world.clone() };
    let comparing = |compare, world: &World| World { rules: Rules { compare, ..world.rules.clone() }, ..world.clone() };

    let one_at_a_time = |world: &World| World { in_flight: 1, ..world.clone() };

    let crash = Budget { crashes: 1, ..none };
    let stop = Budget { stops: 1, ..none };
    let stop_and_crash = Budget { crashes: 1, stops: 1, ..none };
    let session_crash = Budget { session_crashes: 1, ..none };
    let hand_back = Budget { hand_backs: 1, ..none };
    let closing = Budget { closings: 1, ..none };
    let copy = Budget { copies: 1, ..none };
    let rewind = Budget { rewinds: 1, ..none };
    let restoring = |world: &World| World { restores: true, ..one_at_a_time(world) };
    let wipe = Budget { wipes: 1, ..none };
    let remembering = |world: &World| World { remembers: true, is_known: true, ..one_at_a_time(world) };
    // Nobody knows the namespace; the registry goes back, and says that it is another one.
    let showing = |world: &World| World { is_known: false, shows: true, ..remembering(world) };
    let failover = Budget { failovers: 1, ..none };

    let safe = |name, world| Check { name, is_safe: true, is_short: false, world };
    let short = |name, world| Check { name, is_safe: true, is_short: true, world };
    let repeats = |name, world| Check { name, is_safe: false, is_short: true, world };
    vec![
        short("crash, 1 worker", with(crash, &ending(5, &one))),
        safe("crash, 1 worker, longer", with(crash, &one)),
        safe("crash, 2 workers", with(crash, &two)),
        safe("crash, 2 workers, more requests", with(crash, &World { in_flight: 2, ..two.clone() })),
        safe("two crashes, 2 workers", with(Budget { crashes: 2, ..none }, &two)),
        safe("clean stop, 2 workers", with(stop, &two)),
        short("clean stop and crash, 1 worker", with(stop_and_crash, &ending(5, &one))),
        safe("clean stop and crash, 1 worker, longer", with(stop_and_crash, &one)),
        safe("two clean stops and a crash, 1 worker", with(Budget { stops: 2, ..crash }, &ending(5, &one))),
        safe("copy and crash, 1 worker", with(Budget { copies: 1, ..crash }, &ending(5, &one))),
        safe(
            "copy, crash, clean stop, 1 worker",
            with(Budget { copies: 1, ..stop_and_crash }, &ending(5, &one_at_a_time(&one))),
        ),
        safe("3 servers, 1 worker", World { servers: 3, in_flight: 1, ..ending(5, &one) }),
        safe("3 servers, 2 workers", World { servers: 3, ..two.clone() }),
        safe(
            "3 servers, 1 worker, clean stop and crash",
            with(stop_and_crash, &World { servers: 3, ..ending(5, &one) }),
        ),
        safe("2 servers, 3 workers", World { workers: 3, ..two.clone() }),
        safe("workers not in use handed back, 2 workers", with(hand_back, &two)),
        short("line closed and opened again, 1 worker", with(closing, &ending(5, &one))),
        safe("line closed and opened again, 1 worker, longer", with(closing, &one)),
        safe("line closed and opened again, 2 workers", with(closing, &two)),
        safe("line closed twice, crash, 1 worker", with(Budget { closings: 2, ..crash }, &ending(5, &one))),
        short("line lowered by hand, 1 worker", with(rewind, &ending(5, &one))),
        safe("line lowered by hand, 1 worker, longer", with(rewind, &one)),
        safe("line lowered by hand, clean stop, 2 workers", with(Budget { rewinds: 1, ..stop }, &two)),
        short("a tick is 2 instants, stop", with(stop, &one_at_a_time(&long_tick))),
        safe("a tick is 2 instants, stop, crash", with(stop_and_crash, &one_at_a_time(&long_tick))),
        safe("a tick is 2 instants, stop, more requests", with(stop, &ending(7, &long_tick))),
        short("2 IDs an instant, stop, crash", with(stop_and_crash, &one_at_a_time(&two_positions))),
        safe("2 IDs an instant, stop, more requests", with(stop, &two_positions)),
        short(
            "old backup beside its origin, reservation",
            with(copy, &one_at_a_time(&ending(5, &World { servers: 1, ..reserving.clone() }))),
        ),
        safe("old backup beside its origin, reservation, longer", with(copy, &reserving)),
        safe("token outlives a session's crash, 1 worker", with(session_crash, &one_at_a_time(&ending(5, &reserving)))),
        safe(
            "token outlives a session's crash, 2 workers",
            with(session_crash, &World { workers: 2, ..one_at_a_time(&reserving) }),
        ),
        safe(
            "token outlives a session's crash, hand-back, 2 workers",
            with(Budget { hand_backs: 1, ..session_crash }, &World { workers: 2, ..one_at_a_time(&reserving) }),
        ),
        safe("grant outlives a session's crash", with(session_crash, &restoring(&ending(5, &reserving)))),
        short(
            "grant outlives a session's crash, line closed and opened again",
            with(Budget { session_crashes: 1, ..closing }, &restoring(&ending(4, &reserving))),
        ),
        safe(
            "grant outlives a session's crash, 2 workers",
            with(session_crash, &World { workers: 2, ..restoring(&reserving) }),
        ),
        safe(
            "token outlives a session's crash, stop",
            with(Budget { session_crashes: 1, ..stop }, &one_at_a_time(&reserving)),
        ),
        safe(
            "record compared, no version; stop, requests twice",
            comparing(Compare::Record, &with(Budget { duplicates: 1, ..stop }, &ending(5, &one))),
        ),
        short("registry fails over, 1 worker", with(failover, &ending(5, &one))),
        safe("registry fails over, 1 worker, longer", with(failover, &one)),
        safe("registry fails over, 2 workers", with(failover, &two)),
        safe("registry fails over, stop, 1 worker", with(Budget { failovers: 1, ..stop }, &one)),
        safe("registry fails over, crash, 1 worker", with(Budget { failovers: 1, ..crash }, &one)),
        safe("registry fails over, copy, 1 worker", with(Budget { failovers: 1, ..copy }, &one)),
        safe("registry fails over, line closed and opened again", with(Budget { failovers: 1, ..closing }, &one)),
        safe(
            "registry fails over, grant outlives a session's crash",
            with(Budget { failovers: 1, ..session_crash }, &restoring(&reserving)),
        ),
        safe("registry fails over twice, 1 worker", with(Budget { failovers: 2, ..none }, &one)),
        short(
            "grant of a crashed server shortened by hand, 1 worker",
            with(Budget { shortenings: 1, ..crash }, &one_at_a_time(&one)),
        ),
        safe(
            "grant of a crashed server shortened by hand, more requests",
            with(Budget { shortenings: 1, ..crash }, &one),
        ),
        safe("grant of a crashed server shortened by hand, 2 workers", with(Budget { shortenings: 1, ..crash }, &two)),
        safe(
            "grant of a crashed server shortened by hand, copy",
            with(Budget { shortenings: 1, copies: 1, ..crash }, &one_at_a_time(&one)),
        ),
        safe(
            "grants of two crashed servers shortened by hand",
            with(Budget { shortenings: 2, crashes: 2, ..none }, &one_at_a_time(&one)),
        ),
        safe(
            "grant of a crashed server shortened by hand, line lowered by hand",
            with(Budget { shortenings: 1, rewinds: 1, ..crash }, &one_at_a_time(&one)),
        ),
        safe("what was given back shortened by hand", with(Budget { shortenings: 1, ..stop }, &one)),
        safe(
            "grant of a crashed server shortened by hand, registry fails over",
            with(Budget { shortenings: 1, failovers: 1, ..crash }, &ending(5, &one)),
        ),
        short("registry forgets, 1 worker", with(wipe, &remembering(&one))),
        safe("registry forgets, crash, 1 worker", with(Budget { crashes: 1, ..wipe }, &remembering(&one))),
        safe("registry forgets, stop, 1 worker", with(Budget { stops: 1, ..wipe }, &remembering(&one))),
        safe("registry forgets, copy, 1 worker", with(Budget { copies: 1, ..wipe }, &remembering(&ending(5, &one)))),
        safe("registry forgets, 2 workers", with(wipe, &remembering(&two))),
        safe("registry forgets twice, 1 worker", with(Budget { wipes: 2, ..none }, &remembering(&one))),
        short("registry restored, no server knows the namespace, 1 worker", with(wipe, &showing(&one))),
        safe("registry restored, crash, 1 worker", with(Budget { crashes: 1, ..wipe }, &showing(&one))),
        safe("registry restored, stop, 1 worker", with(Budget { stops: 1, ..wipe }, &showing(&one))),
        safe("registry restored, 2 workers", with(wipe, &showing(&two))),
        safe("registry restored twice, 1 worker", with(Budget { wipes: 2, ..none }, &showing(&ending(5, &one)))),
        safe("registry restored, more requests", with(wipe, &World { in_flight: 2, ..showing(&one) })),
        safe("registry restored, 3 servers", with(wipe, &World { servers: 3, ..showing(&ending(5, &one)) })),
        safe("registry forgets, more requests", with(wipe, &World { in_flight: 2, ..remembering(&one) })),
        safe("registry forgets, 3 servers", with(wipe, &World { servers: 3, ..remembering(&ending(5, &one)) })),
        safe(
            "registry forgets, grant outlives a session's crash",
            with(Budget { wipes: 1, ..session_crash }, &World { restores: true, ..remembering(&reserving) }),
        ),
        safe(
            "registry forgets, line closed and opened again",
            with(Budget { wipes: 1, ..closing }, &remembering(&one)),
        ),
        safe("registry forgets, line lowered by hand", with(Budget { wipes: 1, ..rewind }, &remembering(&one))),
        safe(
            "registry forgets, grant of a crashed server shortened by hand",
            with(Budget { wipes: 1, shortenings: 1, ..crash }, &remembering(&one)),
        ),
        safe(
            "registry forgets, workers not in use handed back",
            with(Budget { wipes: 1, ..hand_back }, &remembering(&two)),
        ),
        repeats("1: grant's start rounded down", breaking(Break::StartRoundedDown, &one_at_a_time(&long_tick))),
        repeats(
            "1: what was used rounded down",
            with(stop, &breaking(Break::UsedRoundedDown, &one_at_a_time(&two_positions))),
        ),
        repeats("2: only the owner compared", comparing(Compare::Owner, &ending(5, &one))),
        repeats("2: renewal without a look at the owner", breaking(Break::OwnerUnchecked, &one)),
        repeats("3: own record found again, start forgotten", breaking(Break::StartForgotten, &one_at_a_time(&one))),
        repeats("4: grant used before it is stored", breaking(Break::UsedBeforeStored, &one)),
        repeats("4: worker switched before the line is raised", breaking(Break::SwitchedFirst, &one_at_a_time(&two))),
        repeats("4: end published before the switch", breaking(Break::PublishedFirst, &one_at_a_time(&two))),
        repeats("5: newer grant ends before an older one", breaking(Break::Shrinks, &one_at_a_time(&two))),
        repeats("6: given back while sessions claim", with(stop, &breaking(Break::NotClosed, &one_at_a_time(&one)))),
        repeats(
            "6: given back below the grant's start",
            with(stop, &breaking(Break::GivenBackBelowStart, &one_at_a_time(&one))),
        ),
        repeats(
            "7: worker in use handed back",
            with(hand_back, &breaking(Break::HandedBackInUse, &one_at_a_time(&one))),
        ),
        repeats(
            "11: grant's start on record after the switch",
            with(rewind, &breaking(Break::StartRecordedLate, &two)),
        ),
        repeats(
            "11: line lowered below the grant's start",
            with(rewind, &breaking(Break::LoweredBelowStart, &one_at_a_time(&one))),
        ),
        repeats(
            "12: session's crash, start forgotten",
            with(session_crash, &breaking(Break::StartForgotten, &one_at_a_time(&ending(4, &reserving)))),
        ),
        repeats(
            "12: session's crash, use before it forgotten",
            with(
                Budget { session_crashes: 1, ..hand_back },
                &breaking(Break::CrashForgotten, &one_at_a_time(&ending(3, &reserving))),
            ),
        ),
        repeats("2: versions come again after a failover", with(failover, &breaking(Break::VersionsAgain, &one))),
        repeats(
            "13: what is read back counts as stored",
            with(failover, &breaking(Break::ReadCounts, &ending(4, &one))),
        ),
        repeats("14: a loss is not put on record", with(wipe, &breaking(Break::LossIgnored, &remembering(&one)))),
        repeats("14: nobody looks what the registry is", with(wipe, &breaking(Break::IdentityIgnored, &showing(&one)))),
        repeats("14: a new lease begins before", with(wipe, &breaking(Break::BegunBefore, &remembering(&one)))),
        repeats(
            "14: a grant that is over stored again",
            with(wipe, &breaking(Break::StoredWhenOver, &remembering(&one))),
        ),
        repeats(
            "14: a grant that was given back stored again",
            with(Budget { wipes: 1, ..closing }, &breaking(Break::StoredWhenGivenBack, &remembering(&one))),
        ),
        repeats(
            "14: the namespace's record not expected",
            with(wipe, &breaking(Break::NamespaceUnchecked, &World { in_flight: 2, ..remembering(&one) })),
        ),
        repeats(
            "15: a grant in use shortened by hand",
            with(Budget { shortenings: 1, ..none }, &breaking(Break::ShortenedWhileUsed, &one_at_a_time(&one))),
        ),
        repeats(
            "12: session's crash, grant kept when the line was closed",
            with(
                Budget { session_crashes: 1, ..closing },
                &breaking(Break::KeptWhenClosed, &restoring(&ending(4, &reserving))),
            ),
        ),
        repeats(
            "idea dropped: own reservation trusted, with a copy",
            with(copy, &breaking(Break::ReservationTrusted, &World { servers: 1, ..one_at_a_time(&reserving) })),
        ),
        safe(
            "idea dropped: own reservation trusted, no copies",
            with(crash, &breaking(Break::ReservationTrusted, &one_at_a_time(&reserving))),
        ),
        repeats(
            "exception: registry wiped, and a server that never saw the namespace",
            with(wipe, &World { is_known: false, ..remembering(&one) }),
        ),
        repeats("exception: machine copied with its memory", with(Budget { forks: 1, ..none }, &one)),
    ]
}
