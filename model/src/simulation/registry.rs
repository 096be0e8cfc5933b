//! The registry: it does one request after the other, exactly as a registry must.

use snowflake_core::Micros;
use snowflake_core::lease::{Answer, Found, NamespaceRecord, Next, Stored, Version, WorkerNumber};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Registry {
    namespace: Option<NamespaceRecord>,
    records: BTreeMap<WorkerNumber, Stored>,
    version: u64,
    /// Whether it stores whatever it is told.
    is_broken: bool,
    /// Until then it is busy with the requests that have arrived.
    pub busy_until: Micros,
    /// How many requests arrived in each second.
    pub arrivals: Vec<u32>,
}

impl Registry {
    /// Without any records.
    pub fn new(is_broken: bool) -> Self {
        Self { is_broken, ..Self::default() }
    }

    /// How long a request takes: 2,000 a second, and 500 where all records are read.
    pub fn service(request: &Next) -> Micros {
        Micros(if matches!(request, Next::ReadAll) { 2000 } else { 500 })
    }

    /// A request has arrived. Returns when it is done.
    pub fn arrive(&mut self, now: Micros, request: &Next) -> Micros {
        let second = (now.0 / 1_000_000) as usize;
        self.arrivals.resize(self.arrivals.len().max(second + 1), 0);
        self.arrivals[second] += 1;
        self.busy_until = self.busy_until.max(now) + Self::service(request);
        self.busy_until
    }

    /// Does it.
    pub fn answer(&mut self, request: Next) -> Answer {
        match request {
            Next::Namespace => Answer::Namespace(self.namespace.clone()),
            Next::SetNamespace { expected, record } => {
                if self.namespace == expected {
                    self.namespace = Some(record);
                }
                Answer::Namespace(self.namespace.clone())
            }
            Next::Write(_, namespace) if self.namespace.as_ref() != Some(&namespace) => {
                Answer::OtherNamespace(self.namespace.clone())
            }
            Next::ReadAll => Answer::All(Found { records: self.records.clone(), ..Found::default() }),
            Next::Read(worker) => Answer::One(self.records.get(&worker).cloned()),
            Next::Write(write, _) => {
                let found = self.records.get(&write.worker);
                if found.map(|stored| stored.version) != write.expected && !self.is_broken {
                    return Answer::Conflict(found.cloned());
                }
                self.version += 1;
                let version = Version(self.version);
                self.records.insert(write.worker, Stored { version, record: write.record });
                Answer::Stored(version)
            }
            _ => Answer::Failed,
        }
    }
}
