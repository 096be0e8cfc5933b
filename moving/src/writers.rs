//! Who inserts rows. A default is evaluated as whoever does, so this role needs EXECUTE on `snowflake_next()`, or a privilege on the
//! sequence.

use crate::{Facts, MovePlan, MoveStep, Sequence};

/// A role that may insert rows of the table, or `PUBLIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// Its name, as a statement writes it.
    pub name: String,
    /// Whether it may execute `snowflake_next()`; for `PUBLIC`, whether all roles may.
    pub may_make_ids: bool,
}

/// What is in the way of roles that may insert rows of the key's table, and could not any more; `None` where nothing is.
pub fn shut_out(facts: &Facts) -> Option<String> {
    let roles: Vec<&str> = facts.writers.iter().filter(|it| !it.may_make_ids).map(|it| &*it.name).collect();
    let (table, next, roles) = (facts.key_names().0, &facts.next, roles.join(", "));
    (!roles.is_empty()).then(|| {
        format!(
            "rows of {table} may be inserted by {roles}, and EXECUTE on {next} was revoked, which an INSERT needs: GRANT EXECUTE ON \
             FUNCTION {next} TO {roles}"
        )
    })
}

/// Roles that could not insert rows any more are in the way.
pub fn check(plan: &mut MovePlan, facts: &Facts) {
    if let Some(obstacle) = shut_out(facts) {
        plan.hinder(
            obstacle,
            "Have a superuser grant EXECUTE on snowflake_next() to such roles, or revoke INSERT from them.",
        );
    }
}

/// All who insert may use a sequence that is new.
pub fn open(facts: &Facts, sequence: &str) -> Option<MoveStep> {
    let owner = facts.table().map(|table| &table.owner.name);
    let roles = facts.writers.iter().map(|writer| &writer.name).filter(|name| Some(*name) != owner);
    grant(sequence, &roles.cloned().collect::<Vec<_>>())
}

/// All who insert may use a sequence that was kept: some may have come since.
pub fn open_kept(sequence: &Sequence) -> Option<MoveStep> {
    grant(&sequence.name, &sequence.closed_to)
}

fn grant(sequence: &str, roles: &[String]) -> Option<MoveStep> {
    let statement = format!("GRANT USAGE ON SEQUENCE {sequence} TO {}", roles.join(", "));
    let step =
        MoveStep::on(sequence, statement, "they may insert rows, which took no privilege on a sequence meanwhile");
    (!roles.is_empty()).then(|| MoveStep { locks: Vec::new(), ..step })
}
