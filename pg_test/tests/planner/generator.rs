//! The state of a query that is being made.

use super::settings;
use super::sources::Source;
use super::tables::Schema;
use fastrand::Rng;
use std::collections::HashSet;

/// What must agree about the order of rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    /// Nothing.
    Any,
    /// So many leading columns, row by row; of the rest, only which rows there are.
    Keys(usize),
    /// Everything.
    Total,
}

/// A finished query.
pub struct Query<'a> {
    /// Its kind, for the statistics at the end.
    pub shape: &'static str,
    /// Settings for its transaction.
    pub settings: Vec<(String, String)>,
    /// The statement that is explained; it may have parameters.
    pub statement: String,
    /// Whether it is a prepared one, even where it has no parameters.
    pub prepared: bool,
    /// The parameters: types and values.
    pub parameters: Vec<(&'static str, String)>,
    /// What changes before the statement runs again, so often.
    pub again: Vec<String>,
    /// Further statements, without parameters.
    pub then: Vec<String>,
    pub order: Order,
    sources: Vec<Source<'a>>,
}

impl Query<'_> {
    /// All statements, of the original or the twin, and which of them is the EXPLAIN.
    pub fn statements(&self, twin: bool, explain: &str) -> (Vec<String>, usize) {
        let put = |text: &str| self.sources.iter().fold(text.to_owned(), |text, source| source.put(&text, twin));
        let statement = put(&self.statement);
        let (mut statements, run) = if self.prepared {
            let (types, values): (Vec<&str>, Vec<&str>) =
                self.parameters.iter().map(|(kind, value)| (*kind, value.as_str())).unzip();
            let list =
                |items: &[&str]| if items.is_empty() { String::new() } else { format!(" ({})", items.join(", ")) };
            let prepare = format!("PREPARE query{} AS {statement}", list(&types));
            (vec![prepare], format!("EXECUTE query{}", list(&values)))
        } else {
            (Vec::new(), statement)
        };
        let explained = statements.len();
        statements.push(format!("{explain} {run}"));
        statements.push(run.clone());
        statements.extend(self.again.iter().flat_map(|change| [change.clone(), run.clone()]));
        statements.extend(self.then.iter().map(|text| put(text)));
        (statements, explained)
    }
}

/// Makes one query.
pub struct Generator<'a> {
    pub schema: &'a Schema,
    pub rng: Rng,
    pub sources: Vec<Source<'a>>,
    /// Whether the query may have parameters.
    pub prepared: bool,
    pub parameters: Vec<(&'static str, String)>,
    /// The session's time zone.
    pub zone: &'static str,
    settings: Vec<(String, String)>,
}

impl<'a> Generator<'a> {
    pub fn new(schema: &'a Schema, known: &HashSet<String>, seed: u64, number: u64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        // Numbers are alike, and so would be the first draws of generators that begin with them.
        let mut rng = Rng::with_seed(rng.u64(..));
        let (settings, zone) = settings::random(&mut rng, known);
        let prepared = rng.u8(..100) < 40;
        Self { schema, rng, sources: Vec::new(), prepared, parameters: Vec::new(), zone, settings }
    }

    /// Ends the query.
    pub fn finish(mut self, shape: &'static str, statement: String, then: Vec<String>, order: Order) -> Query<'a> {
        // What a plan that is kept must not have as a constant. After five runs, a plan may become a generic one.
        let runs = if self.prepared { self.one_of(&[0, 0, 1, 1, 1, 2, 6]) } else { 0 };
        let mut again: Vec<_> = (0..runs).map(|_| settings::change(&mut self.rng)).collect();
        // A plan may start its workers for each row of a join.
        if self.settings.iter().any(|(name, _)| name == "parallel_setup_cost") {
            again.truncate(1);
        }
        let Self { sources, prepared, parameters, settings, .. } = self;
        Query { shape, settings, statement, prepared, parameters, again, then, order, sources }
    }

    /// True so many times of 100.
    pub fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }

    /// Some of these, in their order, but at least one.
    pub fn some_of<T: Copy>(&mut self, choices: &[T]) -> Vec<T> {
        loop {
            let some: Vec<T> = choices.iter().copied().filter(|_| self.rng.bool()).collect();
            if !some.is_empty() {
                return some;
            }
        }
    }
}
