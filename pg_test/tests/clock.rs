//! The server's clock stepped while it runs, by a library that is preloaded: order, uniqueness, waits and errors.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::query::{NEXT, batch};
use snowflake_test::waits::{wait_event, wait_event_of};
use snowflake_test::{Cluster, Stop, millis, seconds, value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

fn next(client: &mut Client) -> Result<i64, postgres::Error> {
    client.query_one(NEXT, &[]).map(|row| row.get(0))
}

/// How far the next ID is ahead of the server's clock, in milliseconds: the most of several tries, as the machine may
/// pause between the ID and the clock.
fn lead(client: &mut Client) -> i64 {
    let query = "SELECT (extract(epoch FROM snowflake_timestamp(snowflake_next()) - clock_timestamp()) * 1000)::bigint";
    (0..10).map(|_| value(client, query)).max().unwrap()
}

/// The error of a call after the clock went back by half a second. If the machine pauses for so long that the clock is
/// not behind any more, this tries again.
fn refused_half_a_second_back(cluster: &Cluster, client: &mut Client) -> postgres::Error {
    for _ in 0..20 {
        let start = Instant::now();
        next(client).unwrap();
        cluster.step_clock("-0.5s");
        let call = Instant::now();
        match next(client) {
            Err(error) => {
                assert!(call.elapsed() < seconds(20), "{:?}", call.elapsed());
                return error;
            }
            Ok(_) => assert!(start.elapsed() >= millis(490), "it was not refused"),
        }
        cluster.step_clock("+0s");
    }
    panic!("the machine pauses all the time");
}

/// Waits until a session waits for an ID.
fn until_it_waits(cluster: &Cluster, pid: i32) {
    let mut other = cluster.client();
    check::wait_for("the session waits for the clock", || {
        wait_event(&mut other, pid) == wait_event_of("SnowflakeClock")
    });
}

/// SQLSTATE, message, detail and hint.
fn parts(error: &postgres::Error) -> (String, String, String, String) {
    let error = error.as_db_error().unwrap();
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    (error.code().code().to_owned(), error.message().to_owned(), text(error.detail()), text(error.hint()))
}

#[test]
fn steps_back_within_the_lead_go_unnoticed() {
    let cluster = Cluster::options().with_clock().start();
    let done = AtomicBool::new(false);
    let lists = thread::scope(|scope| {
        let stepper = scope.spawn(|| {
            for offset in ["-0.5s", "+0s", "-5s", "-2s", "-9m", "-9m", "+0s", "+5s", "+0s"] {
                cluster.step_clock(offset);
                thread::sleep(millis(300));
            }
            done.store(true, Ordering::Relaxed);
        });
        let lists = cluster.sessions(8, |session, client| {
            let mut list = Vec::new();
            while !done.load(Ordering::Relaxed) {
                match session % 2 {
                    0 => list.push(next(client).unwrap()),
                    _ => list.extend(batch(client, 20)),
                }
            }
            list
        });
        stepper.join().unwrap();
        lists
    });
    lists.iter().for_each(|list| check::rising(list));
    assert!(check::distinct(&lists) > 10_000);
}

#[test]
fn behind_the_clock_ids_come_at_real_time_pace() {
    let cluster = Cluster::options().with_clock().start();
    let mut client = cluster.client();
    next(&mut client).unwrap();
    cluster.step_clock("-60s");
    let before = lead(&mut client);
    assert!((30_000..=60_500).contains(&before), "{before}");
    let start = Instant::now();
    let count: i64 = client.query_one("SELECT count(*) FROM snowflake_next(1000000)", &[]).unwrap().get(0);
    let took = start.elapsed();
    assert_eq!(count, 1_000_000);
    assert!(took > millis(1_000_000 / 4096), "faster than one tick per tick: {took:?}");
    let after = lead(&mut client);
    assert!(after <= before + 5, "the lead grew from {before} to {after} ms");
}

#[test]
fn an_hour_back_waits_then_fails_and_says_what_to_do() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '700ms'").start();
    let mut client = cluster.client();
    let last = next(&mut client).unwrap();
    cluster.step_clock("-3600s");
    let start = Instant::now();
    let (code, message, detail, hint) = parts(&next(&mut client).unwrap_err());
    let took = start.elapsed();
    assert!((millis(650)..seconds(30)).contains(&took), "{took:?}");
    assert_eq!(code, "55000");
    let behind = message.strip_prefix("the clock is ").and_then(|rest| rest.strip_suffix(" s behind the last ID"));
    let behind: f64 = behind.unwrap_or_else(|| panic!("{message}")).parse().unwrap();
    // Time has passed since the ID.
    assert!((3540.0..=3600.0).contains(&behind), "{message}");
    assert!(detail.contains("at most 600 s behind (pg_snowflake.max_lead)"), "{detail}");
    assert!(detail.contains("(pg_snowflake.max_wait is 700 ms)"), "{detail}");
    assert!(hint.contains("raise pg_snowflake.max_lead"), "{hint}");

    // A batch, too.
    let batch = client.query("SELECT snowflake_next(10)", &[]).unwrap_err();
    assert_eq!(batch.code().unwrap().code(), "55000");

    // Reading IDs does not need the clock.
    assert!(client.query_one("SELECT snowflake_timestamp($1) IS NOT NULL", &[&last]).unwrap().get::<_, bool>(0));

    // IDs go on when max_lead is raised, as the hint says; and when the clock is right again.
    cluster.reload(&[("pg_snowflake.max_lead", "2h")]);
    let on = next(&mut client).unwrap();
    assert!(on > last);
    cluster.reload(&[("pg_snowflake.max_lead", "10min")]);
    cluster.step_clock("+0s");
    assert!(next(&mut client).unwrap() > on);
}

#[test]
fn a_wait_ends_when_the_clock_is_set_right() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '30s'").start();
    let mut client = cluster.client();
    let last = next(&mut client).unwrap();
    cluster.step_clock("-3600s");
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(millis(500));
            cluster.step_clock("+0s");
        });
        assert!(next(&mut client).unwrap() > last);
    });
    let took = start.elapsed();
    assert!((millis(450)..seconds(25)).contains(&took), "{took:?}");
}

#[test]
fn a_wait_can_be_cancelled_and_holds_no_lock() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '60s'").start();
    let mut client = cluster.client();
    next(&mut client).unwrap();
    cluster.step_clock("-3600s");

    // statement_timeout
    client.batch_execute("SET statement_timeout = '400ms'").unwrap();
    let start = Instant::now();
    refused(&mut client, NEXT, "57014");
    assert!(start.elapsed() < seconds(30));
    client.batch_execute("RESET statement_timeout").unwrap();

    // Cancelled by another session. While the first waits, the other gets the lock: its own, shorter wait ends in time.
    let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| next(&mut client).unwrap_err());
        until_it_waits(&cluster, pid);
        let mut other = cluster.client();
        other.batch_execute("SET pg_snowflake.max_wait = 0").unwrap();
        let start = Instant::now();
        refused(&mut other, NEXT, "55000");
        assert!(start.elapsed() < seconds(20));
        other.query_one("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
        let error = waiter.join().unwrap();
        assert_eq!(error.code().unwrap().code(), "57014");
    });

    // Shutdown.
    thread::scope(|scope| {
        let waiter = scope.spawn(|| next(&mut client).unwrap_err());
        until_it_waits(&cluster, pid);
        let start = Instant::now();
        cluster.stop(Stop::Fast);
        assert!(start.elapsed() < seconds(30));
        waiter.join().unwrap();
    });
}

/// What Twitter's original does: a clock that went back is refused at once.
#[test]
fn strict_settings_refuse_at_once() {
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_lead = 0")
        .set("pg_snowflake.max_burst = 0")
        .set("pg_snowflake.max_wait = 0")
        .start();
    let mut client = cluster.client();
    let last = next(&mut client).unwrap();
    let (code, message, ..) = parts(&refused_half_a_second_back(&cluster, &mut client));
    assert_eq!(code, "55000");
    assert!(message.contains(" ms behind the last ID"), "{message}");
    cluster.step_clock("+0s");
    assert!(next(&mut client).unwrap() > last);
    // Without a burst, a call for more IDs than a tick holds waits for the next tick, and is not refused.
    let count: i64 = client.query_one("SELECT count(*) FROM snowflake_next(20000)", &[]).unwrap().get(0);
    assert_eq!(count, 20_000);
}

/// What Leaf does: it waits where the clock is up to 5 ms behind, and refuses where it is more.
#[test]
fn a_short_wait_bridges_a_short_step_only() {
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_lead = 0")
        .set("pg_snowflake.max_burst = 0")
        .set("pg_snowflake.max_wait = '10ms'")
        .start();
    let mut client = cluster.client();
    let mut last = next(&mut client).unwrap();
    let mut bridged = 0;
    for _ in 0..20 {
        cluster.step_clock("-0.003s");
        // A call may still see the old clock, or come when the clock is not behind any more.
        if let Ok(id) = next(&mut client) {
            assert!(id > last);
            last = id;
            bridged += 1;
        }
        cluster.step_clock("+0s");
        last = next(&mut client).unwrap().max(last);
    }
    assert!(bridged >= 5, "{bridged} of 20 steps of 3 ms were bridged");
    assert_eq!(refused_half_a_second_back(&cluster, &mut client).code().unwrap().code(), "55000");
}

#[test]
fn a_step_forward_is_followed_and_back_again_is_a_step_back() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_jump = '1h'").start();
    let mut client = cluster.client();
    let first = next(&mut client).unwrap();
    cluster.step_clock("+300s");
    let ahead = next(&mut client).unwrap();
    let hop: i64 = (ahead >> 22) - (first >> 22);
    assert!((299_000..360_000).contains(&hop), "{hop}");
    cluster.step_clock("+0s");
    let back = next(&mut client).unwrap();
    assert!(back > ahead);
    assert!((back >> 22) - (ahead >> 22) <= 1);
}

#[test]
fn a_clock_before_the_epoch_or_past_the_end_is_an_error() {
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_wait = 0")
        .set("pg_snowflake.max_jump = '36525d'")
        .start();
    let mut client = cluster.client();
    cluster.step_clock("-10y");
    let (code, message, ..) = parts(&next(&mut client).unwrap_err());
    assert_eq!(code, "55000");
    assert!(message.ends_with(" s behind the last ID"), "{message}");
    cluster.step_clock("+80y");
    let (code, message, detail, _) = parts(&next(&mut client).unwrap_err());
    assert_eq!((code.as_str(), message.as_str()), ("2200H", "the layout is exhausted"));
    assert!(detail.contains("ends at 2093-09-06T15:47:35.552Z"), "{detail}");
    cluster.step_clock("+0s");
    assert!(next(&mut client).is_ok());
}

#[test]
fn a_clock_that_stands_still_is_an_error_in_bounded_time() {
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_wait = '0'")
        .set("pg_snowflake.max_jump = '36525d'")
        .start();
    let mut client = cluster.client();
    let first = next(&mut client).unwrap();
    cluster.step_clock("2077-07-07 07:07:07"); // A clock that stands still.
    // A large batch leaves an eighth of it to others: to another session, as all statements begin at one time here.
    for (ids, what) in
        [(350_000, "SELECT snowflake_next(350000)"), (50_000, "SELECT snowflake_next() FROM generate_series(1, 50000)")]
    {
        let count: i64 = value(&mut cluster.client(), &format!("SELECT count(*) FROM ({what} OFFSET 0) AS made"));
        assert_eq!(count, ids, "the burst is there to be used");
    }
    let start = Instant::now();
    let error = client.query("SELECT snowflake_next(100000)", &[]).unwrap_err();
    assert!(start.elapsed() < seconds(60), "{:?}", start.elapsed());
    let (code, message, detail, _) = parts(&error);
    assert_eq!((code.as_str(), message.as_str()), ("55000", "the clock stands still"));
    // A second, or longer where the machine paused.
    let waited =
        detail.strip_prefix("The call waited ").and_then(|rest| rest.strip_suffix(" for the next tick of the layout."));
    let waited = waited.unwrap_or_else(|| panic!("{detail}"));
    assert!(waited.ends_with(" s") && !waited.starts_with("0."), "{detail}");
    cluster.step_clock("+51y");
    assert!(next(&mut client).unwrap() > first);
}

#[test]
fn more_than_the_layout_holds_waits_and_loses_nothing() {
    // 2 IDs a tick of 10 ms, 10 ticks of burst: 20 at once, then 200 a second.
    let cluster = Cluster::options().set("pg_snowflake.layout = 'timestamp=38 worker=10 sequence=1 tick=10ms'").start();
    let mut all = Vec::new();
    let mut round = || -> i64 {
        let start = Instant::now();
        let lists = cluster.sessions(4, |session, client| match session {
            0 => batch(client, 100),
            _ => (0..50).map(|_| next(client).unwrap()).collect(),
        });
        let took = start.elapsed();
        lists.iter().for_each(|list| check::rising(list));
        assert_eq!(check::distinct(&lists), 250);
        assert!(took > millis(1000), "{took:?}");
        let (min, max) = lists.concat().iter().fold((i64::MAX, 0), |(min, max), &id| (min.min(id), max.max(id)));
        all.extend(lists);
        (max >> 11) - (min >> 11) + 1
    };
    // 250 IDs take 125 ticks if no position is skipped. A few are, at the start; and where the machine pauses for
    // longer than the burst, all of that time.
    let mut ticks = Vec::new();
    while !ticks.iter().any(|ticks| (125..=160).contains(ticks)) {
        assert!(ticks.len() < 10, "250 IDs took {ticks:?} ticks");
        ticks.push(round());
    }
    check::distinct(&all);
}

#[test]
fn an_id_says_the_millisecond_in_which_it_was_made() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let of_the_kernel = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    // Of the server, which may be emulated: scripts/test-arm64.
    let version: String = value(&mut Cluster::options().start().client(), "SELECT version()");
    let counter = match of_the_kernel.trim() {
        "tsc" if version.contains(" on x86_64-") && read("/proc/cpuinfo").contains(" nonstop_tsc ") => "tsc",
        "arch_sys_counter" if version.contains(" on aarch64-") => "cntvct",
        _ => "system",
    };
    for (setting, used) in [("auto", counter), ("system", "system")] {
        // Wide enough that no tick is ever full.
        let cluster = Cluster::options()
            .set("pg_snowflake.layout = 'timestamp=41 worker=1 sequence=21'")
            .set(&format!("pg_snowflake.clock_source = '{setting}'"))
            .start();
        let mut client = cluster.client();
        // Long enough for the session to renew its admission, and to learn the counter's rate.
        let wrong = "SELECT count(*) FILTER (WHERE snowflake_timestamp(id) < date_trunc('milliseconds', before)), \
                            count(*) FILTER (WHERE snowflake_timestamp(id) > after), \
                            count(*), max(after) - min(before) > '1 s' AND count(DISTINCT id) = count(*) \
                     FROM (SELECT clock_timestamp() AS before, snowflake_next() AS id, clock_timestamp() AS after, \
                                  CASE WHEN n % 1000 = 0 THEN pg_sleep(0.001) END \
                           FROM generate_series(1, 1000000) AS n OFFSET 0) AS ids";
        let row = client.query_one(wrong, &[]).unwrap();
        let counts: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        assert_eq!(counts, [0, 0, 1_000_000], "too early, too late, all, with {setting}");
        assert!(row.get::<_, bool>(3), "{setting}");
        let source = |client: &mut Client| -> String { value(client, "SELECT clock_source FROM snowflake_status()") };
        assert_eq!(source(&mut client), used);

        // Changed while sessions run.
        let before = next(&mut client).unwrap();
        cluster.reload(&[("pg_snowflake.clock_source", "system")]);
        assert_eq!(source(&mut cluster.client()), "system");
        assert!(next(&mut client).unwrap() > before);
    }
}
