//! Records made by hand: a good one in which nothing is wrong, and for each rule one that breaks it, and no other.

use super::{GRACE, LONGEST_GAP, Report, check};
use crate::history::About;
use std::fmt::Write as _;
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;
/// Eight workers, 64 IDs a tick; time 0 of the soak is tick 1,000,000.
const ABOUT: About = About { worker_bits: 3, sequence_bits: 6, tick: 1000, epoch: 0, window: 6 * SECOND };
const START: i64 = 1_000_000;

/// An ID of a worker, so many milliseconds after the start.
fn id(worker: i64, millis: i64) -> i64 {
    (START + millis) << 9 | worker << 6
}

/// Two servers, with a call each that gives ten IDs in every half second of twenty: the first has worker 1 for 12 s, and then
/// worker 2, and the second has worker 3.
struct Made {
    events: String,
    /// Of each server: when a call begins in half seconds, and what it answers.
    calls: [Vec<(u64, String)>; 2],
    grants: Vec<String>,
    found: String,
    /// Of each server: when it took numbers of a segment, in half seconds, and which.
    numbers: [Vec<(u64, String)>; 2],
}

impl Made {
    fn good() -> Self {
        let given = |worker: i64, half: u64| (half, format!("{}*10", id(worker, half as i64 * 500)));
        Self {
            events: "node 0 /a\nnode 1 /b\nbegins 0 0\nbegins 1 0\n".to_owned(),
            calls: [
                (0..40).map(|half| given(if half < 24 { 1 } else { 2 }, half)).collect(),
                (0..40).map(|half| given(3, half)).collect(),
            ],
            grants: vec![
                grant(1, "a", 0, 6, "/a"),
                grant(3, "b", 0, 6, "/b"),
                grant(1, "a", 0, 12, "/a"),
                grant(3, "b", 0, 30, "/b"),
                // The server was stopped, and has another worker.
                grant(1, "-", 0, 12, "/a"),
                grant(2, "c", 12, 30, "/a"),
            ],
            found: id(3, 19_999).to_string(),
            numbers: [
                vec![
                    (1, "1*5".to_owned()),
                    (3, "6*5".to_owned()),
                    (9, "21*5".to_owned()),
                    (12, "! 55000 none".to_owned()),
                ],
                vec![(2, "11*5 1*5".to_owned()), (30, "26*10".to_owned())],
            ],
        }
    }

    fn check(&self) -> Report {
        let directory = TempDir::new().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("about", &ABOUT.to_string());
        write("events", &self.events);
        write("grants", &self.grants.join("\n"));
        write("found", &self.found);
        for (kind, all) in [("calls", &self.calls), ("numbers", &self.numbers)] {
            for (number, calls) in all.iter().enumerate() {
                let mut text = String::new();
                for (half, answer) in calls {
                    writeln!(text, "{} 1000 {number} {number} {answer}", half * SECOND / 2).unwrap();
                }
                write(&format!("{kind}.{number}"), &text);
            }
        }
        check(directory.path()).unwrap()
    }

    fn trouble(&mut self, kind: &str, from: u64, to: u64) {
        writeln!(self.events, "trouble {kind} 0 {} {}", from * SECOND, to * SECOND).unwrap();
    }

    /// The first server gives nothing from this second on until that one.
    fn silent(&mut self, from: u64, to: u64) {
        self.calls[0].retain(|(half, _)| *half < from * 2 || *half >= to * 2);
    }
}

/// A version of a record, of these seconds.
fn grant(worker: i64, owner: &str, from: i64, until: i64, directory: &str) -> String {
    let micros = |seconds: i64| START * 1000 + seconds * 1_000_000;
    format!("{worker} {owner} {} {} {directory}", micros(from), micros(until))
}

/// Exactly this rule is broken, and so many times.
#[track_caller]
fn is_broken(made: &Made, rule: &str, times: u64) {
    let report = made.check();
    let broken: Vec<_> = report.wrong.iter().map(|(rule, (count, _))| (*rule, *count)).collect();
    assert_eq!(broken, [(rule, times)], "{report}");
}

#[track_caller]
fn is_good(made: &Made) {
    let report = made.check();
    assert!(report.wrong.is_empty(), "{report}");
}

const TWICE: &str = "no ID is there twice";
const RISE: &str = "the IDs of a call rise";
const RISE_BETWEEN: &str = "the IDs of a server rise from one call's end to the next one's begin";
const GRANTED: &str = "each ID is of a worker and a time that its server was granted";
const ONE_OWNER: &str = "the registry grants no worker twice for one time";
const EXPLAINED: &str = "a call fails only where something explains it";
const NO_GAP: &str = "IDs stop only where something explains it";

#[test]
fn a_good_record_has_nothing_wrong() {
    let report = Made::good().check();
    assert!(report.wrong.is_empty(), "{report}");
    let found = (report.servers, report.sessions, report.calls, report.ids, report.found, report.grants);
    assert_eq!(found, (2, 2, 86, 800, 1, 6));
    assert_eq!(report.numbers, 35);
    assert!(report.to_string().ends_with("nothing is wrong"), "{report}");
}

#[test]
fn an_id_that_two_servers_gave_is_found() {
    let mut made = Made::good();
    // The second is granted worker 2, too: by a registry that has forgotten, and whose history does not show that.
    made.grants = vec![grant(1, "a", 0, 12, "/a"), grant(2, "a", 12, 30, "/a"), grant(3, "b", 0, 30, "/b")];
    made.events.push_str("worker 1 2\n");
    made.calls[1][30].1 = format!("{}*4", id(2, 15_000) + 6);
    is_broken(&made, TWICE, 1);
    assert_eq!(made.check().duplicates, 4);
}

#[test]
fn an_id_that_one_server_gave_twice_is_found() {
    let mut made = Made::good();
    // At the same time, so that neither call had ended when the other began.
    let twice = made.calls[0][5].clone();
    made.calls[0].push(twice);
    is_broken(&made, TWICE, 1);
    assert_eq!(made.check().duplicates, 10);
}

#[test]
fn an_id_that_a_table_has_beside_a_call_is_found() {
    let mut made = Made::good();
    made.found = id(3, 7000).to_string();
    is_broken(&made, TWICE, 1);
}

#[test]
fn ids_that_fall_within_a_call_are_found() {
    let mut made = Made::good();
    made.calls[0][5].1 = format!("{} -3", id(1, 2500) + 3);
    is_broken(&made, RISE, 1);
}

#[test]
fn ids_that_fall_between_two_calls_are_found() {
    let mut made = Made::good();
    // A millisecond below the end of the one before.
    made.calls[0][6].1 = (id(1, 2500) + 9 - 512).to_string();
    is_broken(&made, RISE_BETWEEN, 1);
}

#[test]
fn calls_at_the_same_time_need_no_order() {
    let mut made = Made::good();
    let half = made.calls[0][6].0;
    made.calls[0].push((half, format!("{}", id(1, 2999))));
    is_good(&made);
}

#[test]
fn an_id_after_its_grant_is_found() {
    let mut made = Made::good();
    // The last that is granted, and the first that is not.
    made.calls[0][23].1 = format!("{}", id(1, 11_999) + 63);
    is_good(&made);
    made.calls[0][23].1 = format!("{}", id(1, 12_000));
    made.calls[0].truncate(24);
    made.events.push_str(&format!("ends 0 {}\n", 12 * SECOND));
    is_broken(&made, GRANTED, 1);
}

#[test]
fn an_id_before_its_grant_is_found() {
    let mut made = Made::good();
    made.calls[0][24].1 = format!("{}", id(2, 11_999));
    is_broken(&made, GRANTED, 1);
}

#[test]
fn an_id_after_what_was_given_back_is_found() {
    let mut made = Made::good();
    made.grants[4] = grant(1, "-", 0, 11, "/a");
    is_broken(&made, GRANTED, 20);
}

#[test]
fn an_id_of_another_servers_worker_is_found() {
    let mut made = Made::good();
    made.calls[0][30].1 = format!("{}", id(3, 15_100));
    is_broken(&made, GRANTED, 1);
}

#[test]
fn a_worker_that_is_granted_twice_is_found() {
    let mut made = Made::good();
    made.grants.push(grant(1, "d", 11, 20, "/c"));
    is_broken(&made, ONE_OWNER, 1);
}

#[test]
fn an_error_that_nothing_explains_is_found() {
    for error in [
        "- connection closed",
        "57P01 terminating connection due to administrator command",
        "55000 this server has no lease of a worker ID",
        "55000 pg_snowflake.worker_id is not set",
        "42883 function snowflake_next() does not exist",
        "55000 the IDs of this database reach up to 59.937 s ahead of the clock",
        "23505 duplicate key value violates unique constraint",
    ] {
        let mut made = Made::good();
        made.calls[0][20].1 = format!("! {error}");
        is_broken(&made, EXPLAINED, 1);
        let kind = match &error[..5] {
            "55000" if error.ends_with("set") => "NoWorker",
            "55000" if error.ends_with("clock") => "Restored",
            "42883" => "Extension",
            _ => "Down",
        };
        made.trouble(kind, 9, 10);
        // A duplicate key is never explained.
        if error.starts_with("23505") {
            is_broken(&made, EXPLAINED, 1)
        } else {
            is_good(&made)
        }
        // Long after that, it is not.
        made.trouble(kind, 1, 1);
        made.calls[0][39].1 = format!("! {error}");
        is_broken(&made, EXPLAINED, if error.starts_with("23505") { 2 } else { 1 });
    }
}

#[test]
fn a_gap_that_nothing_explains_is_found() {
    let mut made = Made::good();
    made.silent(8, 8 + LONGEST_GAP.as_secs());
    // From the end of the last call before to that of the first after.
    is_broken(&made, NO_GAP, 1);
    let mut made = Made::good();
    made.silent(8, 8 + LONGEST_GAP.as_secs() - 1);
    is_good(&made);
}

#[test]
fn ids_that_never_come_back_are_found() {
    let mut made = Made::good();
    made.silent(10, 20);
    is_broken(&made, NO_GAP, 1);
    made.calls[0].clear();
    is_broken(&made, NO_GAP, 1);
}

#[test]
fn what_stops_a_server_explains_a_gap_for_a_while() {
    for kind in ["Down", "Crash", "Frozen", "Standby", "NoWorker"] {
        let mut made = Made::good();
        made.silent(5, 12);
        made.trouble(kind, 5, 6);
        is_good(&made);
        made.silent(5, 6 + GRACE.as_secs() + LONGEST_GAP.as_secs() + 1);
        is_broken(&made, NO_GAP, 1);
    }
}

#[test]
fn what_stops_nobody_explains_nothing() {
    for kind in ["Clock", "Slow", "Extension", "Restored"] {
        let mut made = Made::good();
        made.silent(5, 12);
        made.trouble(kind, 5, 6);
        is_broken(&made, NO_GAP, 1);
    }
}

#[test]
fn what_happens_to_another_server_explains_nothing() {
    let mut made = Made::good();
    made.silent(5, 12);
    made.events.push_str(&format!("trouble Down 1 {} {}\n", 5 * SECOND, 6 * SECOND));
    is_broken(&made, NO_GAP, 1);
}

#[test]
fn a_registry_that_is_away_stops_servers_only_after_two_thirds_of_the_window() {
    // Less a second of margin: 3 s of 6.
    for kind in ["Away", "LeaseProcess"] {
        for (length, explains) in [(2, false), (3, true)] {
            let mut made = Made::good();
            made.silent(7, 12);
            made.trouble(kind, 5, 5 + length);
            if explains { is_good(&made) } else { is_broken(&made, NO_GAP, 1) }
        }
        // Of two that follow each other, nobody can renew in between.
        let mut made = Made::good();
        made.silent(7, 12);
        made.trouble(kind, 4, 6);
        made.trouble("Away", 6, 8);
        is_good(&made);
    }
}

#[test]
fn a_server_that_starts_waits_for_the_registry_however_short_it_is_away() {
    for kind in ["Away", "Slow"] {
        let mut made = Made::good();
        made.silent(3, 12);
        made.trouble("Down", 1, 3);
        is_broken(&made, NO_GAP, 1);
        made.trouble(kind, 5, 7);
        is_good(&made);
    }
}

#[test]
fn a_clock_that_is_set_uses_up_a_lease() {
    let mut made = Made::good();
    made.silent(5, 12);
    made.trouble("Away", 5, 7);
    is_broken(&made, NO_GAP, 1);
    made.trouble("Clock", 4, 4);
    is_good(&made);
}

#[test]
fn a_server_that_starts_with_a_clock_ahead_waits_until_it_is_set() {
    let mut made = Made::good();
    made.silent(3, 16);
    made.trouble("Clock", 1, 1);
    made.trouble("Down", 1, 2);
    is_broken(&made, NO_GAP, 1);
    made.trouble("Ahead", 2, 62);
    is_good(&made);
    made.trouble("Clock", 5, 5);
    is_broken(&made, NO_GAP, 1);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for (file, text) in [
        ("events", "fault now"),
        ("calls.0", "1 2 3 4 x"),
        ("calls.0", "1 2 3 4 5*0"),
        ("grants", "1 a 2"),
        ("found", "x"),
        ("about", "worker 3"),
    ] {
        let directory = TempDir::new().unwrap();
        for name in ["about", "events"] {
            let text = if name == "about" { ABOUT.to_string() } else { String::new() };
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        assert!(check(directory.path()).is_ok());
        std::fs::write(directory.path().join(file), text).unwrap();
        assert!(check(directory.path()).is_err(), "{file}: {text}");
    }
}

/// Whatever server gave them.
#[test]
fn numbers_of_a_segment_are_distinct_and_rise() {
    let mut made = Made::good();
    made.numbers[1][1].1 = "25*11".to_owned();
    is_broken(&made, "no number of a segment is there twice", 1);
    let mut made = Made::good();
    made.numbers[1][0].1 = "16*5 -9*5".to_owned();
    is_broken(&made, "the numbers of a call rise", 1);
    let mut made = Made::good();
    made.numbers[0].push((20, "41".to_owned()));
    made.numbers[0].push((22, "40".to_owned()));
    is_broken(&made, "the numbers of a server rise from one call's end to the next one's begin", 1);
    // Other servers have lower ones later.
    let mut made = Made::good();
    made.numbers[1].push((35, "41".to_owned()));
    made.numbers[0].push((37, "40".to_owned()));
    is_good(&made);
}

/// The record says that the numbers are of a segment with these.
fn of_tag(made: &mut Made, last: i64) {
    writeln!(made.events, "tag t 1 {last}").unwrap();
    for (_, answer) in made.numbers.iter_mut().flatten() {
        answer.insert_str(0, "@t ");
    }
}

#[test]
fn each_segment_has_its_numbers() {
    let mut made = Made::good();
    of_tag(&mut made, 35);
    // Nothing explains that.
    is_broken(&made, "a call for numbers fails only where something explains it", 1);
    made.numbers[0].retain(|(_, answer)| !answer.contains('!'));
    is_good(&made);
    // The same numbers of another one.
    made.numbers[1].push((31, "@u 1*10".to_owned()));
    is_good(&made);
    made.numbers[1][0].1 = "@t 5".to_owned();
    is_broken(&made, "no number of a segment is there twice", 1);
    let mut made = Made::good();
    of_tag(&mut made, 34);
    made.numbers[0].pop();
    is_broken(&made, "a number is one of its segment", 1);
}

#[test]
fn an_error_of_a_segment_that_nothing_explains_is_found() {
    for (error, kind) in [
        ("57P03 the database system is starting up", "Down"),
        ("55000 this server has no numbers of segment", "Away"),
        ("55000 this server has no numbers of segment", "Unsafe"),
        ("42704 segment does not exist", "NoTag"),
    ] {
        let mut made = Made::good();
        of_tag(&mut made, 100);
        made.numbers[0].pop();
        made.numbers[0].push((12, format!("@t ! {error}")));
        is_broken(&made, "a call for numbers fails only where something explains it", 1);
        made.trouble(kind, 5, 6);
        is_good(&made);
    }
}

#[test]
fn a_segment_that_is_used_up_has_all_its_numbers() {
    let mut made = Made::good();
    of_tag(&mut made, 40);
    made.numbers[0].pop();
    made.numbers[0].push((39, "@t ! 2200H segment is used up".to_owned()));
    is_good(&made);
    made.events.push_str("ended t 5\n");
    is_good(&made);
    made.events.push_str("ended t 4\n");
    is_broken(&made, "a segment that is used up has given all its numbers but those that crashes lose", 1);
}

/// The registry has failed over at 5 s, and knows nothing of the numbers from 21 to 25; at 10 s, the segment was raised.
#[test]
fn numbers_that_a_registry_has_lost_may_come_once_more() {
    let lost = |half: u64, numbers: &str| {
        let mut made = Made::good();
        of_tag(&mut made, 1000);
        made.numbers[0].pop();
        made.numbers[1].pop();
        writeln!(made.events, "lost t 21 26 {} {}", 5 * SECOND, 10 * SECOND).unwrap();
        made.numbers[1].push((half, format!("@t {numbers}")));
        made
    };
    for (half, numbers) in [(10, "21*5"), (20, "23*2"), (15, "24*2")] {
        let made = lost(half, numbers);
        is_good(&made);
        assert_eq!(made.check().duplicates, 0);
    }
    let twice = "no number of a segment is there twice";
    // Before that, after that, and others.
    is_broken(&lost(8, "21"), twice, 1);
    is_broken(&lost(21, "21"), twice, 1);
    let others = lost(12, "15");
    let rules: Vec<_> = others.check().wrong.keys().copied().collect();
    assert!(rules.contains(&twice), "{rules:?}");
    // And not a third time.
    let mut made = lost(12, "22*2");
    made.numbers[0].push((13, "@t 23".to_owned()));
    is_broken(&made, twice, 1);
    // A server that was started since gives them below those that it gave before.
    let mut made = lost(10, "21*3");
    made.numbers[0].push((9, "@t 24*2".to_owned()));
    made.numbers[0].retain(|(half, answer)| *half != 9 || !answer.contains("21*5"));
    made.numbers[0].insert(0, (6, "@t 30".to_owned()));
    is_broken(&made, "the numbers of a server rise from one call's end to the next one's begin", 1);
    made.numbers[0].retain(|(half, _)| *half != 9);
    made.numbers[0].push((12, "@t 24*2".to_owned()));
    is_good(&made);
}

#[test]
fn a_server_has_no_place_where_it_uses_as_many_others() {
    let mut made = Made::good();
    made.numbers = [vec![], vec![]];
    made.events.push_str("tag a 1 9\ntag b 1 9\ntag c 1 9\nplaces 0 2\n");
    for (half, answer) in [(1, "@a 1"), (2, "@b 1"), (3, "@c ! 53400 no room"), (10, "@c ! 53400 no room")] {
        made.numbers[0].push((half, answer.to_owned()));
    }
    is_good(&made);
    // It was started since, and uses one.
    made.trouble("Down", 4, 4);
    is_broken(&made, "a server has no place for a segment only where it uses as many others", 1);
    made.numbers[0].push((9, "@b 2".to_owned()));
    is_broken(&made, "a server has no place for a segment only where it uses as many others", 1);
    made.numbers[0].push((9, "@a 2".to_owned()));
    is_good(&made);
}

#[test]
fn a_registry_that_is_another_one_stops_who_needs_a_lease() {
    let mut made = Made::good();
    made.silent(5, 14);
    made.trouble("Unsafe", 3, 14);
    is_broken(&made, NO_GAP, 1);
    for kind in ["Down", "Crash"] {
        let mut made = Made::good();
        made.silent(5, 14);
        made.trouble(kind, 4, 5);
        is_broken(&made, NO_GAP, 1);
        made.trouble("Unsafe", 3, 14);
        is_good(&made);
    }
}
