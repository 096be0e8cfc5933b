//! The results of a run: groups of rows, and how they compare.

use crate::rounds::{Row, median};
use serde::Serialize;

/// All that one run found.
#[derive(Serialize)]
pub struct Results {
    /// Whether the run was the short one.
    pub quick: bool,
    /// The machine, the versions and the settings.
    pub conditions: Vec<(&'static str, String)>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// What was measured.
    pub groups: Vec<Group>,
}

/// Contenders that are measured side by side.
#[derive(Serialize)]
pub struct Group {
    /// What is compared.
    pub title: &'static str,
    /// How it is measured.
    pub about: String,
    /// The contenders.
    pub rows: Vec<Row>,
    /// How they compare.
    pub ratios: Vec<Ratio>,
}

/// One contender as a multiple of another: the median of the ratios of the rounds.
#[derive(Serialize)]
pub struct Ratio {
    /// What is divided by what.
    pub what: String,
    /// The ratio.
    pub ratio: f64,
    /// What it should be.
    pub goal: Goal,
    /// Whether the ratio is as it should be.
    pub met: bool,
}

/// What a ratio should be.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
        }
    }
}

impl Group {
    /// A group without ratios.
    pub fn new(title: &'static str, about: impl Into<String>, rows: Vec<Row>) -> Self {
        Self { title, about: about.into(), rows, ratios: Vec::new() }
    }

    /// The contender of this name, where it took part.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Compares two contenders, where both took part.
    pub fn compare(&mut self, ours: &str, theirs: &str, unit: &str, goal: Goal) {
        let (Some(one), Some(other)) = (self.row(ours), self.row(theirs)) else { return };
        let pairs = one.figure(unit).rounds.iter().zip(&other.figure(unit).rounds);
        let ratio = median(&pairs.map(|(one, other)| one / other).collect::<Vec<_>>());
        let unit = if self.rows[0].figures.len() > 1 { format!(", {unit}") } else { String::new() };
        self.state(format!("{ours} / {theirs}{unit}"), ratio, goal);
    }

    /// Adds a ratio that was computed in another way.
    pub fn state(&mut self, what: impl Into<String>, ratio: f64, goal: Goal) {
        self.ratios.push(Ratio { what: what.into(), ratio, goal, met: goal.is_met(ratio) });
    }
}
