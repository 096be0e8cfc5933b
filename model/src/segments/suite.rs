//! What is checked: the rules as they are, in worlds that differ; and each rule broken.

use super::rules::{Break, Rules};
use super::state::Budget;
use super::world::World;

/// One check.
pub struct Check {
    /// What it is about.
    pub name: &'static str,
    /// Whether no number may repeat; otherwise one must.
    pub is_safe: bool,
    /// Whether it belongs to the short form.
    pub is_short: bool,
    pub(super) world: World,
}

/// All checks.
pub fn suite() -> Vec<Check> {
    let none = Budget::default();
    let one = World { rules: Rules::new(5), servers: 2, tags: 1, in_flight: 2, is_created: true, budget: none };
    let two = World { rules: Rules::new(2), tags: 2, in_flight: 1, ..one.clone() };
    let alone = World { servers: 1, ..one.clone() };

    let with = |budget, world: &World| World { budget, ..world.clone() };
    let up_to = |last, world: &World| World { rules: Rules::new(last), ..world.clone() };
    let breaking = |rule, world: &World| World { rules: world.rules.breaking(rule), ..world.clone() };

    let crash = Budget { crashes: 1, ..none };
    let stop = Budget { stops: 1, ..none };
    let copy = Budget { copies: 1, ..none };
    let duplicate = Budget { duplicates: 1, ..none };
    let drops = Budget { drops: 1, ..none };
    let repair = Budget { wipes: 1, repairs: 1, ..none };
    let recreation = Budget { wipes: 1, recreations: 1, ..none };
    let rollback = Budget { rollbacks: 1, ..none };
    let failover = Budget { failovers: 1, ..none };
    let stop_and_duplicate = Budget { stops: 1, duplicates: 1, ..none };

    let safe = |name, world| Check { name, is_safe: true, is_short: false, world };
    let short = |name, world| Check { name, is_safe: true, is_short: true, world };
    let repeats = |name, world| Check { name, is_safe: false, is_short: true, world };
    vec![
        short("segments: crash", with(crash, &up_to(4, &one))),
        safe("segments: crash, longer", with(crash, &one)),
        safe("segments: two crashes", with(Budget { crashes: 2, ..none }, &up_to(4, &one))),
        short("segments: stop", with(stop, &up_to(4, &one))),
        safe("segments: stop, longer", with(stop, &one)),
        safe("segments: two stops", with(Budget { stops: 2, ..none }, &up_to(4, &one))),
        safe("segments: stop and crash", with(Budget { crashes: 1, ..stop }, &up_to(4, &one))),
        short("segments: requests arrive twice, stop", with(stop_and_duplicate, &up_to(4, &one))),
        safe("segments: requests arrive twice, two stops", with(Budget { stops: 2, ..duplicate }, &up_to(3, &one))),
        short("segments: copy of a data directory", with(copy, &alone)),
        safe("segments: copy of a data directory, crash", with(Budget { crashes: 1, ..copy }, &alone)),
        short("segments: two tags, stop", with(stop, &two)),
        safe("segments: two tags, crash", with(crash, &two)),
        safe("segments: two tags, requests arrive twice", with(duplicate, &two)),
        safe("segments: two tags, more requests", with(crash, &World { in_flight: 2, ..two.clone() })),
        short("segments: a tag is dropped and created again", with(drops, &up_to(4, &one))),
        safe("segments: dropped, created again, stop", with(Budget { stops: 1, ..drops }, &up_to(4, &one))),
        safe("segments: created by two servers", with(crash, &World { is_created: false, ..up_to(4, &one) })),
        short("segments: registry wiped, created again above", with(repair, &up_to(4, &one))),
        safe(
            "segments: registry wiped, created again above, late creation",
            with(repair, &World { is_created: false, ..up_to(4, &one) }),
        ),
        safe(
            "segments: registry wiped, created again above, stop",
            with(Budget { stops: 1, ..repair }, &up_to(4, &one)),
        ),
        short("segments: registry wiped, all have told, created at the first", with(recreation, &up_to(4, &one))),
        safe("segments: wiped, told, created at the first, longer", with(recreation, &one)),
        safe("segments: wiped, told, stop, created", with(Budget { stops: 1, ..recreation }, &up_to(4, &one))),
        safe("segments: wiped, told, created, two tags", with(recreation, &two)),
        short("segments: registry rolled back, one server", with(rollback, &alone)),
        safe("segments: registry rolled back twice, one server", with(Budget { rollbacks: 2, ..none }, &alone)),
        short("segments: registry fails over", with(failover, &up_to(4, &one))),
        safe("segments: registry fails over, longer", with(failover, &one)),
        safe("segments: registry fails over, stop", with(Budget { stops: 1, ..failover }, &up_to(4, &one))),
        safe("segments: registry fails over twice", with(Budget { failovers: 2, ..none }, &up_to(4, &one))),
        repeats("segments, 1: nothing is compared", breaking(Break::NotCompared, &one)),
        repeats(
            "segments, 1: the next number compared",
            with(stop_and_duplicate, &breaking(Break::NextCompared, &one)),
        ),
        repeats("segments, 1: versions come again", with(failover, &breaking(Break::VersionsAgain, &one))),
        repeats("segments, 2: used before it is confirmed", breaking(Break::UsedBeforeStored, &one)),
        repeats("segments, 2: what is read back is used", with(failover, &breaking(Break::ReadCounts, &one))),
        repeats("segments, 2: the answer to another request", breaking(Break::AnswerOfAnother, &one)),
        repeats(
            "segments, 2: the answer for another tag",
            breaking(Break::AnswerOfAnother, &World { in_flight: 2, ..two }),
        ),
        repeats("segments, 3: a range's end before its start", breaking(Break::EndFirst, &one)),
        repeats("segments, 5: ranges survive in a copy", with(copy, &breaking(Break::Persisted, &alone))),
        repeats("segments, 6: given back while sessions take numbers", with(stop, &breaking(Break::NotClosed, &one))),
        repeats("segments, 6: given back whatever was granted", with(stop, &breaking(Break::GivenBackAnyway, &one))),
        repeats("segments, 6: given back with what lies between", with(stop, &breaking(Break::GapGivenBack, &one))),
        repeats("segments, 7: a tag without a record begins anew", with(repair, &breaking(Break::BegunAnew, &one))),
        repeats("segments, 8: a rollback is believed", with(rollback, &breaking(Break::NotRestored, &alone))),
        repeats("segments, 8: a wipe is believed", with(recreation, &breaking(Break::NotRestored, &one))),
        repeats("segments, 9: a drop forgets", with(drops, &breaking(Break::DropForgets, &one))),
        repeats(
            "segments, 10: the namespace's record not expected",
            with(repair, &breaking(Break::NamespaceUnchecked, &World { is_created: false, ..one.clone() })),
        ),
        repeats(
            "segments, exception: wiped, and created by somebody who has not looked",
            with(Budget { wipes: 1, careless: 1, ..none }, &one),
        ),
        repeats(
            "segments, exception: wiped, and one that has crashed cannot tell",
            with(Budget { crashes: 1, ..recreation }, &one),
        ),
        repeats("segments, exception: rolled back, two servers", with(rollback, &one)),
        repeats(
            "segments, exception: rolled back, and the server has crashed",
            with(Budget { crashes: 1, ..rollback }, &alone),
        ),
        repeats("segments, exception: machine copied with its memory", with(Budget { forks: 1, ..none }, &alone)),
    ]
}
