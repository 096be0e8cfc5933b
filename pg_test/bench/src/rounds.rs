//! Contenders measured in turn, round by round, so that a machine that slows down slows all of them.

use serde::Serialize;
use statrs::statistics::{Data, OrderStatistics};

/// One contender.
pub struct Trial<'a> {
    name: String,
    measure: Box<dyn FnMut() -> Vec<(&'static str, f64)> + 'a>,
}

impl<'a> Trial<'a> {
    /// A contender, by its name in tables, and how to measure it once: each figure with its unit.
    pub fn new(name: impl Into<String>, measure: impl FnMut() -> Vec<(&'static str, f64)> + 'a) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }
}

/// What was measured of one contender.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The contender.
    pub name: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// One figure of a contender, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What is counted, such as `ns` or `IDs/s`.
    pub unit: &'static str,
    /// The median of the rounds.
    pub median: f64,
    /// By round.
    pub rounds: Vec<f64>,
}

impl Row {
    /// The figure of this unit.
    ///
    /// # Panics
    /// Where there is none.
    pub fn figure(&self, unit: &str) -> &Figure {
        let found = self.figures.iter().find(|figure| figure.unit == unit);
        found.unwrap_or_else(|| panic!("{} has no figure in {unit}", self.name))
    }
}

impl Figure {
    /// A figure from its rounds.
    pub fn new(unit: &'static str, rounds: Vec<f64>) -> Self {
        Self { unit, median: median(&rounds), rounds }
    }

    /// The difference to another figure, round by round.
    pub fn less(&self, other: &Self) -> Self {
        Self::new(self.unit, self.rounds.iter().zip(&other.rounds).map(|(one, other)| one - other).collect())
    }
}

/// Measures all contenders for so many rounds. Every second round is in reverse order, so that a contender does not
/// always come after the same one.
pub fn interleave(rounds: usize, mut trials: Vec<Trial>) -> Vec<Row> {
    let mut all: Vec<Vec<(&'static str, Vec<f64>)>> = trials.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut order: Vec<_> = trials.iter_mut().zip(&mut all).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (trial, figures) in order {
            for (unit, value) in (trial.measure)() {
                match figures.iter_mut().find(|(known, _)| *known == unit) {
                    Some((_, values)) => values.push(value),
                    None => figures.push((unit, vec![value])),
                }
            }
        }
    }
    let row = |(trial, figures): (Trial, Vec<(&'static str, Vec<f64>)>)| Row {
        name: trial.name,
        figures: figures.into_iter().map(|(unit, rounds)| Figure::new(unit, rounds)).collect(),
    };
    trials.into_iter().zip(all).map(row).collect()
}

/// The middle value; of an even number, the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    Data::new(values.to_vec()).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let trial = |name: &'static str| {
            let order = &order;
            Trial::new(name, move || {
                order.borrow_mut().push_str(name);
                vec![("ns", order.borrow().len() as f64)]
            })
        };
        let rows = interleave(3, vec![trial("a"), trial("b")]);
        assert_eq!(*order.borrow(), "abbaab");
        assert_eq!(rows[1].figure("ns").rounds, [2.0, 3.0, 6.0]);
        assert_eq!(rows[1].figure("ns").median, 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
