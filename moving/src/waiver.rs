//! Obstacles that can be waived by name: the statements can be carried out, and what then fails is what the caller has been told of.

use crate::{Facts, MovePlan};

/// A kind of obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiver {
    /// An expression of the table's casts the key to a type that new IDs do not fit into.
    Casts,
    /// A CHECK constraint refuses new IDs.
    Checks,
    /// A function that runs for rows puts the key into a variable that is too small, as far as its text shows.
    Functions,
    /// No partition takes new IDs.
    Partitions,
}

impl Waiver {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Casts, Self::Checks, Self::Functions, Self::Partitions];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Casts => "casts",
            Self::Checks => "checks",
            Self::Functions => "functions",
            Self::Partitions => "partitions",
        }
    }

    /// Reads names with commas between them.
    ///
    /// # Errors
    /// With the first word that is none.
    pub fn read(text: &str) -> Result<Vec<Self>, &str> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(|word| Self::ALL.into_iter().find(|waiver| waiver.name() == word).ok_or(word)).collect()
    }
}

impl MovePlan {
    /// Something in the way, or a note of it where it is waived.
    pub(crate) fn hinder_unless(&mut self, waived: &[Waiver], waiver: Waiver, obstacle: &str, hint: &'static str) {
        let name = waiver.name();
        if waived.contains(&waiver) {
            self.has_waived = true;
            self.notes.push(format!("waived: {obstacle}"));
        } else {
            self.hinder(format!("{obstacle} (to pass over this: pg_snowflake.waive = '{name}')"), hint);
        }
    }
}

/// Expressions that cast the key, and CHECK constraints that refuse new IDs.
pub fn check(plan: &mut MovePlan, facts: &Facts, waived: &[Waiver]) {
    for cast in &facts.casts {
        plan.hinder_unless(
            waived,
            Waiver::Casts,
            &format!("{cast}, into which no new ID fits"),
            "Recreate such an expression without the cast.",
        );
    }
    for check in &facts.refused_by_checks {
        plan.hinder_unless(
            waived,
            Waiver::Checks,
            &format!("no new ID passes the constraint {check}"),
            "Drop such a constraint, or widen its limit.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::Waiver;

    #[test]
    fn names_are_read() {
        assert_eq!(Waiver::read(""), Ok(Vec::new()));
        assert_eq!(Waiver::read(" checks,partitions ,"), Ok(vec![Waiver::Checks, Waiver::Partitions]));
        assert_eq!(Waiver::read("casts, all"), Err("all"));
        for waiver in Waiver::ALL {
            assert_eq!(Waiver::read(waiver.name()), Ok(vec![waiver]));
        }
    }
}
