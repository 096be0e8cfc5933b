//! A few lessees and a registry that do anything in any order.

use super::*;

#[derive(Clone, Debug)]
enum Op {
    /// A lessee does what there is to do, or sends a request, which arrives.
    Step {
        server: usize,
        chance: u64,
    },
    /// A lessee sends a request that gets no answer; it arrives later, or never.
    Lose {
        server: usize,
        chance: u64,
        arrives: bool,
    },
    /// A request from before arrives.
    Arrive,
    Claim {
        server: usize,
        want: u64,
    },
    Crash {
        server: usize,
    },
    SessionCrash {
        server: usize,
    },
    Stop {
        server: usize,
    },
    Pass {
        micros: i64,
    },
    SetClock {
        server: usize,
        seconds: i64,
    },
    Wipe,
}

fn op() -> impl Strategy<Value = Op> {
    let server = 0..3_usize;
    prop_oneof![
        20 => (server.clone(), any::<u64>()).prop_map(|(server, chance)| Op::Step { server, chance }),
        3 => (server.clone(), any::<u64>(), any::<bool>())
            .prop_map(|(server, chance, arrives)| Op::Lose { server, chance, arrives }),
        3 => Just(Op::Arrive),
        16 => (server.clone(), 1..30_u64).prop_map(|(server, want)| Op::Claim { server, want }),
        1 => server.clone().prop_map(|server| Op::Crash { server }),
        1 => server.clone().prop_map(|server| Op::SessionCrash { server }),
        1 => server.clone().prop_map(|server| Op::Stop { server }),
        8 => (0..40_000_000_i64).prop_map(|micros| Op::Pass { micros }),
        1 => Just(Op::Wipe),
        1 => (server, -300..300_i64).prop_map(|(server, seconds)| Op::SetClock { server, seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three servers with two workers. Ticks are long and have few IDs, so that those of different servers often meet.
    #[test]
    fn no_id_is_made_twice(ops in prop::collection::vec(op(), 1..400)) {
        run(ops, false)?;
    }

    /// The registry forgets everything, now and then. All servers know it, and their clocks are right.
    #[test]
    fn no_id_is_made_twice_by_servers_that_know_a_registry_which_forgets(ops in prop::collection::vec(op(), 1..400)) {
        run(ops, true)?;
    }
}

fn run(ops: Vec<Op>, forgets: bool) -> Result<(), TestCaseError> {
    let layout: Layout = "timestamp=31 worker=2 sequence=1 tick=1s".parse().unwrap();
    let mut registry = Registry { namespace: Some(namespace(&layout, 1, None)), ..Registry::default() };
    // The others are held for ever.
    for worker in [2, 3] {
        registry.records.insert(WorkerNumber(worker), record(Some(99), 9, 0, 1_000_000));
    }
    let mut servers: Vec<Server> =
        (1..=3).map(|number| Server::knowing(layout, number, forgets.then_some(1))).collect();
    let mut under_way: Vec<Next> = Vec::new();
    let mut monotonic = ZERO;
    let mut made: Vec<(u64, u64)> = Vec::new();
    for op in ops {
        match op {
            Op::Step { server, chance } => {
                if let Ok(request) = servers[server].step(monotonic, chance) {
                    let answer = registry.answer(request);
                    servers[server].answer(monotonic, answer, chance);
                }
            }
            Op::Lose { server, chance, arrives } => {
                if let Ok(request) = servers[server].step(monotonic, chance) {
                    let answer = if matches!(request, Next::Write(..)) { Answer::Unknown } else { Answer::Failed };
                    under_way.extend(arrives.then_some(request));
                    servers[server].answer(monotonic, answer, chance);
                }
            }
            Op::Arrive => {
                under_way.pop().map(|request| registry.answer(request));
            }
            Op::Claim { server, want } => made.extend(servers[server].claim_many(want)),
            Op::Crash { server } => servers[server].restart(true),
            Op::SessionCrash { server } => servers[server].restart(false),
            Op::Stop { server } => {
                servers[server].lessee.stop(monotonic + Micros::from_secs(5));
                while let Ok(request) = servers[server].step(monotonic, 0) {
                    let answer = registry.answer(request);
                    servers[server].answer(monotonic, answer, 0);
                }
                // Sessions that have not noticed.
                prop_assert_eq!(servers[server].claim(), None);
                servers[server].restart(true);
            }
            Op::Pass { micros } => {
                monotonic = monotonic + Micros(micros);
                servers.iter_mut().for_each(|server| server.clock = server.clock + Micros(micros));
            }
            Op::SetClock { .. } if forgets => {}
            Op::Wipe if forgets => registry = Registry { version: registry.version, ..Registry::default() },
            Op::Wipe => {}
            Op::SetClock { server, seconds } => servers[server].clock = at(seconds) + (monotonic - ZERO),
        }
    }
    let count = made.len();
    made.sort_unstable();
    made.dedup();
    prop_assert_eq!(made.len(), count);
    Ok(())
}
