//! What is simulated.

use snowflake_core::Micros;
use snowflake_core::lease::Terms;

/// A run: the servers, and what happens to them.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is about.
    pub name: &'static str,
    pub(super) layout: &'static str,
    pub(super) servers: usize,
    /// How many copies of servers may be started beside their origins.
    pub(super) copies: usize,
    pub(super) terms: Terms,
    pub(super) length: Micros,
    /// One request in so many is lost; as many arrive late, and of as many the answer is lost.
    pub(super) one_request_lost_in: Option<u64>,
    /// Whether the registry stores what it is told, whatever version it finds, so that IDs repeat.
    pub(super) is_registry_broken: bool,
    pub(super) happenings: Vec<(Micros, Happening)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// All servers start within so long.
    StartAll {
        within: Micros,
    },
    /// All stop, and start so long after that, each within as long again.
    StopAll {
        within: Micros,
    },
    CrashAll {
        back_after: Micros,
        within: Micros,
    },
    /// The first so many stop for good.
    Stop {
        share: usize,
    },
    RegistryDown {
        length: Micros,
    },
    /// Figures are of what comes from now on.
    Measure,
    /// One clock in so many is set to anything, up to so far from the true time.
    SetClocks {
        one_in: u64,
        most: Micros,
    },
    SetClock {
        server: usize,
        offset: Micros,
    },
    /// From now on something goes wrong with one server, on average so often.
    Trouble {
        every: Micros,
    },
}

const fn seconds(count: i64) -> Micros {
    Micros::from_secs(count)
}

const WIDE: &str = "default";
/// 256 workers.
const NARROW: &str = "timestamp=41 worker=8 sequence=12";
const DAY: i64 = 86_400;

fn scenario(name: &'static str, length: i64, happenings: Vec<(i64, Happening)>) -> Scenario {
    Scenario {
        name,
        layout: WIDE,
        servers: 1000,
        copies: 0,
        terms: Terms { window: seconds(60), max_lead: seconds(600), max_jump: seconds(10) },
        length: seconds(length),
        one_request_lost_in: None,
        is_registry_broken: false,
        happenings: happenings.into_iter().map(|(at, what)| (seconds(at), what)).collect(),
    }
}

/// A time in which all goes wrong that can, from the first minute on.
fn trouble(name: &'static str, servers: usize, length: i64, every: Micros) -> Scenario {
    let happenings = vec![
        (0, Happening::StartAll { within: seconds(1) }),
        (60, Happening::Trouble { every }),
        (300, Happening::SetClocks { one_in: 20, most: seconds(3600) }),
        (400, Happening::SetClock { server: 7, offset: seconds(365 * DAY) }),
        (460, Happening::SetClock { server: 7, offset: seconds(0) }),
        (length / 4, Happening::RegistryDown { length: seconds(35) }),
        (length / 3, Happening::CrashAll { back_after: seconds(2), within: seconds(1) }),
        (length / 2, Happening::RegistryDown { length: seconds(300) }),
        (length / 2 + 30, Happening::StopAll { within: seconds(5) }),
        (length * 2 / 3, Happening::CrashAll { back_after: seconds(30), within: seconds(10) }),
    ];
    Scenario { servers, copies: servers / 50, one_request_lost_in: Some(500), ..scenario(name, length, happenings) }
}

/// All scenarios.
pub fn long() -> Vec<Scenario> {
    let start = |at| (at, Happening::StartAll { within: seconds(1) });
    let crash = |at, back| (at, Happening::CrashAll { back_after: seconds(back), within: seconds(1) });
    let outage = |length| {
        vec![start(0), (1000, Happening::Measure), (1000, Happening::RegistryDown { length: seconds(length) })]
    };
    let crowded = Scenario {
        layout: NARROW,
        servers: 300,
        ..scenario("256 workers, 300 servers, 50 stop", 1800, vec![start(0), (900, Happening::Stop { share: 50 })])
    };
    let full = Scenario {
        layout: NARROW,
        servers: 256,
        ..scenario("256 workers, 256 servers, all crash", 700, vec![start(0), crash(300, 2)])
    };
    let clocks = vec![
        start(0),
        (100, Happening::SetClocks { one_in: 20, most: seconds(300) }),
        (700, Happening::StopAll { within: seconds(5) }),
        crash(1500, 10),
    ];
    vec![
        scenario("start of all within 1 s", 600, vec![start(0)]),
        scenario("clean restart of all", 900, vec![start(0), (300, Happening::StopAll { within: seconds(5) })]),
        scenario("crash of all, back after 2 s", 900, vec![start(0), crash(300, 2)]),
        scenario("crash of all, back after 30 s", 900, vec![start(0), crash(300, 30)]),
        scenario("crash of all, back after 61 s", 900, vec![start(0), crash(300, 61)]),
        scenario("registry away for 35 s", 2000, outage(35)),
        scenario("registry away for 180 s", 2000, outage(180)),
        full,
        crowded,
        scenario("5 % of clocks wrong, restart, crash", 3600, clocks),
        scenario("a calm day, from the second hour on", DAY, vec![start(0), (3600, Happening::Measure)]),
        trouble("a day of trouble", 1000, DAY, seconds(4)),
    ]
}

/// One in which IDs repeat, as the registry compares no versions: what finds nothing here finds nothing.
pub fn broken() -> Scenario {
    let happenings = vec![(0, Happening::StartAll { within: seconds(1) })];
    Scenario { is_registry_broken: true, ..scenario("versions not compared", 60, happenings) }
}

/// Short ones, for every run of the tests.
pub fn short() -> Vec<Scenario> {
    let wide = trouble("trouble, 100 servers", 100, 7200, seconds(2));
    let full = Scenario {
        layout: "timestamp=41 worker=5 sequence=12",
        ..trouble("trouble, 32 servers, 32 workers", 32, 7200, seconds(8))
    };
    let start = vec![(0, Happening::StartAll { within: seconds(1) })];
    vec![scenario("start of all within 1 s", 120, start), wide, full]
}
