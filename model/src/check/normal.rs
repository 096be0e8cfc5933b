//! States that differ by nothing that matters: the check goes on from one of them only.
//!
//! * *Servers are alike, and so are workers*, tokens are equal or not, and no more. Who is called the first is free to
//!   choose.
//! * *What nobody looks at any more* might be anything: who a run was that is over; where its grant began; steps of an
//!   installation that are done; a grant kept for the time after a crash, when no crash can come any more.
//! * *Where no server starts anew any more*, nobody asks how far it has reserved.
//! * *Once the watched ID is behind all lines*, and no line can fall, it is not claimed again. What else happens, happens
//!   where no ID is watched, too.
//!
//! The tests compare the states that are reached with those that are reached without this.

use super::rules::{Break, Compare};
use super::state::*;
use super::world::World;

/// A token that no run has: that of a run of which nobody needs to know which it was.
const SOMEBODY: Token = Token::MAX - 1;

/// The orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// The orders in which the keys rise: more than one where some are equal.
fn rising<K: Ord>(keys: [K; 3]) -> impl Iterator<Item = [usize; 3]> {
    let are_in_order = move |order: &[usize; 3]| keys[order[0]] <= keys[order[1]] && keys[order[1]] <= keys[order[2]];
    ORDERS.into_iter().filter(are_in_order)
}

impl World {
    /// The state that stands for all that differ from this one by nothing that matters.
    pub fn normal(&self, state: &State) -> State {
        let state = self.without_the_past(state);
        let mut least = None;
        for workers in self.orders_of_workers(&state) {
            let ordered = with_workers(&state, workers);
            for servers in orders_of_servers(&ordered) {
                let named = with_servers(&ordered, servers);
                if least.is_none_or(|least| named < least) {
                    least = Some(named);
                }
            }
        }
        least.expect("an order")
    }

    /// Whether the watched ID cannot be claimed again, and nothing new happens any more.
    pub fn is_over(&self, state: &State) -> bool {
        let left = &state.left;
        let Some(watched) = state.watched.filter(|_| left.copies + left.rewinds == 0) else { return false };
        state.servers.iter().all(|server| {
            let starts_above = self.reserves && self.rules.first_position(server.reserved) > watched.position;
            match server.phase {
                Phase::Unborn => true,
                Phase::Down => starts_above,
                Phase::Up | Phase::Stopping => {
                    // A line is raised to the reservation before anything is claimed.
                    let is_above = server.last >= watched.position || !server.is_raised && starts_above;
                    is_above && (starts_above || !starts_anew(state))
                }
            }
        })
    }

    /// What nobody looks at any more is as at the start.
    fn without_the_past(&self, state: &State) -> State {
        let mut state = *state;
        let left = state.left;
        let is_whole = self.rules.broken.is_none();
        let is_live = |state: &State, token: Token| state.servers.iter().any(|s| s.token == token && token != 0);
        // By hand, IDs are taken back of a run that may be over.
        if let Some(watched) = state.watched {
            let is_taken_back = self.budget.shortenings > 0 || self.budget.rewinds > 0 && is_live(&state, watched.by);
            if !is_taken_back {
                state.watched = Some(Watched { by: SOMEBODY, ..watched });
            }
        }
        // A record is taken for that of a run that is over, or of nobody, unless all of it is compared, or somebody
        // looks whether it was given back.
        let is_compared = self.rules.compare != Compare::Version || self.budget.failovers > 0;
        let is_looked_at = self.remembers || self.budget.shortenings > 0;
        if is_whole && !is_compared && !is_looked_at {
            let before = state;
            let forget = |record: &mut Record| {
                if !is_live(&before, record.owner) {
                    (record.owner, record.from) = (0, 0);
                }
            };
            state.registry.iter_mut().for_each(forget);
            let forgotten = before.network.iter().map(|request| {
                let mut request = *request;
                forget(&mut request.new);
                request
            });
            state.network = forgotten.collect();
        }
        for server in &mut state.servers {
            if left.session_crashes == 0 && server.end.is_some() {
                server.kept = None;
            }
            if let Task::Installing(plan, step) = &mut server.task
                && is_whole
            {
                plan.raise = plan.raise.filter(|_| *step == 0);
                plan.switches &= *step < 2;
            }
        }
        if left.copies == 0 && !starts_anew(&state) {
            for server in state.servers.iter_mut().filter(|server| server.phase == Phase::Up && server.is_raised) {
                server.reserved = 0;
            }
        }
        if !self.rules.is_broken(Break::ReservationTrusted) {
            state.servers.iter_mut().for_each(|server| server.system = 0);
        }
        state
    }

    /// That of the watched ID is the first.
    fn orders_of_workers(&self, state: &State) -> impl Iterator<Item = [usize; 3]> {
        let watched = state.watched.map(|watched| usize::from(watched.worker));
        let key = |worker: usize| {
            let blind = |record: Record| Record { owner: u8::from(record.owner != 0), ..record };
            let place = if watched == Some(worker) { 0 } else { 1 + usize::from(worker >= self.workers) };
            (place, blind(state.registry[worker]), blind(state.durable[worker]))
        };
        rising([key(0), key(1), key(2)]).take(if self.workers > 1 { 6 } else { 1 })
    }
}

/// Whether a server that is up can still start anew.
fn starts_anew(state: &State) -> bool {
    let left = &state.left;
    left.crashes + left.session_crashes + left.stops > 0
}

/// The same with other numbers for the workers: the first of the order becomes worker 0.
fn with_workers(state: &State, order: [usize; 3]) -> State {
    if order == [0, 1, 2] {
        return *state;
    }
    let number = |worker: Worker| order.iter().position(|&at| at == usize::from(worker)).unwrap_or(0) as Worker;
    let grant = |grant: Grant| Grant { worker: number(grant.worker), ..grant };
    let request = |request: Request| Request { worker: number(request.worker), ..request };
    let mut new = *state;
    new.registry = order.map(|at| state.registry[at]);
    new.durable = order.map(|at| state.durable[at]);
    for server in &mut new.servers {
        server.worker = server.worker.map(number);
        server.kept = server.kept.map(grant);
        server.task = match server.task {
            Task::Idle => Task::Idle,
            Task::Waiting(wanted, sent) => Task::Waiting(grant(wanted), request(sent)),
            Task::Unconfirmed(wanted) => Task::Unconfirmed(grant(wanted)),
            Task::Installing(plan, step) => Task::Installing(Installation { grant: grant(plan.grant), ..plan }, step),
        };
    }
    new.network = state.network.iter().map(|&sent| request(sent)).collect();
    new.watched = state.watched.map(|watched| Watched { worker: number(watched.worker), ..watched });
    new
}

/// The orders by what servers are, whatever their tokens.
fn orders_of_servers(state: &State) -> impl Iterator<Item = [usize; 3]> + use<> {
    let blind = |record: Record| Record { owner: u8::from(record.owner != 0), ..record };
    let key = |at: usize| {
        let mut server = Server { token: 0, ..state.servers[at] };
        if let Task::Waiting(_, sent) = &mut server.task {
            (sent.new, sent.expected) = (blind(sent.new), blind(sent.expected));
        }
        server
    };
    rising([key(0), key(1), key(2)])
}

/// The same with other numbers for the servers; and tokens by first use, in an order that does not depend on them.
fn with_servers(state: &State, order: [usize; 3]) -> State {
    let mut names = Names::default();
    let mut new = *state;
    new.servers = order.map(|at| state.servers[at]);
    for server in &mut new.servers {
        server.token = names.of(server.token);
    }
    for record in new.registry.iter_mut().chain(&mut new.durable) {
        record.owner = names.of(record.owner);
    }
    if let Some(watched) = &mut new.watched {
        watched.by = names.of(watched.by);
    }
    let mut network = state.network;
    if network.len() > 1 {
        let blind = |r: &Request| (r.worker, r.new.from, r.new.until, r.expected.from, r.expected.until);
        let known = |token: Token| names.find(token).unwrap_or(SOMEBODY);
        let mut requests = [network[0], network[1]];
        requests.sort_by_key(|r| (blind(r), known(r.new.owner), known(r.expected.owner)));
        for request in requests {
            names.of_request(request);
        }
    }
    network = network.iter().map(|request| names.of_request(*request)).collect();
    new.network = network;
    for server in &mut new.servers {
        if let Task::Waiting(grant, sent) = server.task {
            server.task = Task::Waiting(grant, names.of_request(sent));
        }
    }
    new.runs = names.count;
    new
}

/// New tokens for old ones.
#[derive(Default)]
struct Names {
    old: [Token; 16],
    count: Token,
}

impl Names {
    fn find(&self, token: Token) -> Option<Token> {
        if matches!(token, 0 | SOMEBODY) || token == LOST.owner {
            return Some(token);
        }
        let at = self.old[..usize::from(self.count)].iter().position(|&old| old == token)?;
        Some(at as Token + 1)
    }

    fn of(&mut self, token: Token) -> Token {
        self.find(token).unwrap_or_else(|| {
            self.old[usize::from(self.count)] = token;
            self.count += 1;
            self.count
        })
    }

    fn of_request(&mut self, request: Request) -> Request {
        let (new, expected) = (request.new, request.expected);
        Request {
            new: Record { owner: self.of(new.owner), ..new },
            expected: Record { owner: self.of(expected.owner), ..expected },
            ..request
        }
    }
}
