//! The short form of the simulation: see `snowflake_model::simulation`.

use snowflake_core::Micros;
use snowflake_model::simulation::contention;
use snowflake_model::simulation::segments::{self, Scenario};
use snowflake_model::simulation::{Report, broken, long, run, short};

#[test]
fn no_id_repeats_in_a_time_of_trouble() {
    for scenario in short() {
        for seed in 1..=4 {
            let report = run(&scenario, seed);
            println!("{report}");
            assert_eq!(report.repeated, 0, "{} from seed {seed}", scenario.name);
            assert!(report.leases() > 30 && report.ranges > 30, "{} from seed {seed}", scenario.name);
        }
    }
}

#[test]
fn ids_that_repeat_are_noticed() {
    assert!(run(&broken(), 1).repeated > 100);
}

fn of(name: &str) -> Report {
    let scenario = long().into_iter().find(|scenario| scenario.name == name).unwrap();
    run(&scenario, 1)
}

#[test]
fn an_outage_shorter_than_the_window_stops_nobody() {
    let (short, long) = (of("registry away for 35 s"), of("registry away for 180 s"));
    assert_eq!((short.expired(), short.longest_wait()), (0, Micros(0)));
    assert_eq!(long.expired(), 1000);
    assert!(long.longest_wait() < Micros::from_secs(180), "no server waits longer than the outage lasts");
}

#[test]
fn renewals_of_servers_that_were_started_together_spread() {
    let report = of("start of all within 1 s");
    assert_eq!(report.leases(), 1000);
    assert!(report.longest_wait() < Micros::from_secs(10));
}

#[test]
fn servers_without_a_worker_get_one_when_another_stops() {
    let report = of("256 workers, 300 servers, 50 stop");
    assert!(report.refused() >= 44);
    assert!(report.leases() > 256, "some had to wait");
    assert_eq!(report.waiting, 0);
}

/// A smaller day of segments: an outage as long as a range lasts stops nobody, a number is hardly ever waited for, and tags that
/// are used rarely lose little.
#[test]
fn segments_survive_an_outage_and_lose_little() {
    let day = Scenario { servers: 20, ..segments::day() };
    let ours = segments::ours(&day, 1);
    let leaf = segments::leaf(&day, 1, 1000);
    println!("{ours}\n{leaf}");
    assert_eq!(ours.empty_in_outage, 0);
    // When the registry is back, all servers have tags whose next range is due: 2,000 of them.
    assert!(ours.peak() < 200, "{} requests in the busiest second", ours.peak());
    assert!(ours.empty < 60 * ours.pairs, "{}", ours.empty);
    assert!(ours.lost < leaf.lost && ours.lost_of_rare * 10 < leaf.lost_of_rare, "{} {}", ours.lost, leaf.lost);
    assert!(ours.taken.abs_diff(leaf.taken) < ours.taken / 100, "{} {}", ours.taken, leaf.taken);
}

/// Servers that use one tag as fast as they can, with ranges that are too small for that: each gets its share, and nothing else waits.
#[test]
fn servers_that_collide_share() {
    for scenario in contention::all().into_iter().filter(|scenario| scenario.far == 0) {
        let report = contention::run(&scenario, 1);
        println!("{report}");
        assert!(report.share() >= 0.2 && report.granted.iter().all(|ranges| *ranges > 10), "{report}");
        assert!(report.calm() < Micros::from_secs(3) && report.raised() < Micros::from_secs(3), "{report}");
    }
}
