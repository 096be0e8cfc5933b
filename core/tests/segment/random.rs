//! Servers and a registry that do anything in any order.

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Claim(usize, usize, u64),
    Step(usize, Fate),
    Advance(usize, i64),
    Attach(usize, usize),
    Create(usize, usize, u64),
    Raise(usize, usize, u64),
    Drop(usize, usize),
    Crash(usize),
    Stop(usize),
    Deliver,
}

const SERVERS: usize = 2;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (server, tag) = (0..SERVERS, 0..2_usize);
    let fate =
        prop_oneof![6 => Just(Fate::Done), 1 => Just(Fate::Lost), 1 => Just(Fate::AnswerLost), 1 => Just(Fate::Late)];
    let op = prop_oneof![
        12 => (server.clone(), tag.clone(), 1..9_u64).prop_map(|(s, t, n)| Op::Claim(s, t, n)),
        16 => (server.clone(), fate).prop_map(|(s, fate)| Op::Step(s, fate)),
        4 => (server.clone(), 1..90_i64).prop_map(|(s, n)| Op::Advance(s, n)),
        4 => (server.clone(), tag.clone()).prop_map(|(s, t)| Op::Attach(s, t)),
        2 => (server.clone(), tag.clone(), 1..30_u64).prop_map(|(s, t, n)| Op::Create(s, t, n)),
        1 => (server.clone(), tag.clone(), 1..300_u64).prop_map(|(s, t, n)| Op::Raise(s, t, n)),
        1 => (server.clone(), tag).prop_map(|(s, t)| Op::Drop(s, t)),
        1 => server.clone().prop_map(Op::Crash),
        1 => server.prop_map(Op::Stop),
        2 => Just(Op::Deliver),
    ];
    proptest::collection::vec(op, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn numbers_are_distinct_and_rise_on_each_server(ops in ops()) {
        let tags = [tag("a"), tag("b")];
        let mut registry = Registry::new();
        let mut servers: Vec<_> = (0..SERVERS).map(|_| Server::new()).collect();
        let mut taken = [BTreeSet::new(), BTreeSet::new()];
        // By server and tag, of the run.
        let mut highest = [[0; 2]; SERVERS];
        for op in ops {
            match op {
                Op::Claim(s, t, want) => {
                    if let Some(claimed) = servers[s].claim(&tags[t], want) {
                        prop_assert!(claimed.first > highest[s][t]);
                        highest[s][t] = claimed.end - 1;
                        for number in claimed.first..claimed.end {
                            prop_assert!(taken[t].insert(number), "{number} of {} twice", tags[t]);
                        }
                    }
                }
                Op::Step(s, fate) => drop(servers[s].step(&mut registry, fate)),
                Op::Advance(s, seconds) => servers[s].advance(seconds),
                Op::Attach(s, t) => servers[s].fetcher.request(Request::Attach(tags[t].clone())),
                Op::Create(s, t, first) => servers[s].fetcher.request(Request::Create(tags[t].clone(), plan(first, 2000))),
                Op::Raise(s, t, above) => servers[s].fetcher.request(Request::Raise(tags[t].clone(), above)),
                Op::Drop(s, t) => servers[s].fetcher.request(Request::Drop(tags[t].clone())),
                Op::Crash(s) => (servers[s], highest[s]) = (Server::new(), [0; 2]),
                Op::Stop(s) => {
                    let by = servers[s].now.saturating_add(Micros::from_secs(1));
                    servers[s].fetcher.stop(by);
                    for _ in 0..20 {
                        servers[s].step(&mut registry, Fate::Done);
                    }
                    prop_assert!(servers[s].is_done);
                    (servers[s], highest[s]) = (Server::new(), [0; 2]);
                }
                Op::Deliver => {
                    for late in std::mem::take(&mut registry.late) {
                        registry.answer(&late);
                    }
                }
            }
        }
        // Nothing is above what the registry knows.
        for (tag, taken) in tags.iter().zip(&taken) {
            if let Some(last) = taken.last() {
                prop_assert!(registry.records[tag].record.next > *last);
            }
        }
    }

    /// Once nothing goes wrong any more, numbers come again.
    #[test]
    fn no_way_leads_to_where_no_number_comes(ops in ops()) {
        let (mut registry, mut server) = (Registry::new(), Server::new());
        server.request(&mut registry, Request::Create(tag("a"), plan(1, TagRecord::HIGHEST))).unwrap();
        for op in ops {
            match op {
                Op::Claim(_, _, want) => drop(server.claim(&tag("a"), want)),
                Op::Step(_, fate) => drop(server.step(&mut registry, fate)),
                Op::Advance(_, seconds) => server.advance(seconds),
                Op::Attach(..) => server.fetcher.request(Request::Attach(tag("a"))),
                Op::Raise(_, _, above) => server.fetcher.request(Request::Raise(tag("a"), above)),
                Op::Crash(_) => server.fetcher = fetcher(server.places.iter().map(|place| place.tag.clone()).collect()),
                _ => {}
            }
        }
        server.advance(10);
        server.events.clear();
        prop_assert!(server.request(&mut registry, Request::Attach(tag("a"))).is_ok());
        for _ in 0..100 {
            server.settle(&mut registry);
            prop_assert!(server.claim(&tag("a"), 1).is_some());
            server.advance(6);
        }
    }
}
