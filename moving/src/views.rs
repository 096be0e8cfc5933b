//! Views that depend on columns that become wider: dropped before, and created again afterwards.

use crate::{Actor, Facts, MovePlan, MoveStep, Oid};

/// A view, materialized or not, that depends on a column that becomes wider, or on such a view.
#[derive(Clone, Debug)]
pub struct View {
    /// Its number.
    pub oid: Oid,
    /// Its name, as a statement writes it.
    pub name: String,
    /// As the obstacles have it: `view public.v`.
    pub description: String,
    /// Whether it is materialized.
    pub is_materialized: bool,
    /// The role that owns it.
    pub owner: Oid,
    /// Whether the caller owns it, or is a member of the role that does.
    pub is_owned: bool,
    /// Those of [`Facts::views`] that it reads.
    pub reads: Vec<Oid>,
    /// What of it cannot be made again, such as `trigger t on view public.v`.
    pub blockers: Vec<String>,
    /// What creates it, without rows.
    pub definition: String,
    /// Further statements, in order: owner, indexes, privileges, comments.
    pub details: Vec<String>,
    /// Whether it is materialized and has rows, which are to be made again.
    pub is_populated: bool,
    /// The size of these, in bytes.
    pub bytes: i64,
    /// All that must be the same afterwards, as one text, but what it calls.
    pub state: String,
    /// The functions, operators, types, collations and relations that it depends on. They are bound anew, by name.
    pub bindings: Vec<String>,
}

impl View {
    const fn kind(&self) -> &'static str {
        if self.is_materialized { "MATERIALIZED VIEW" } else { "VIEW" }
    }
}

/// The views in an order in which they can be created; `None` where they read each other in a circle.
fn ordered(views: &[View]) -> Option<Vec<&View>> {
    let mut ordered: Vec<&View> = Vec::new();
    while ordered.len() < views.len() {
        let is_done = |oid: &Oid| ordered.iter().any(|view| view.oid == *oid);
        let next = views.iter().find(|view| !is_done(&view.oid) && view.reads.iter().all(is_done))?;
        ordered.push(next);
    }
    Some(ordered)
}

/// Lists what stands in the way of making the views again. Nothing, where there are none.
pub fn find_obstacles(plan: &mut MovePlan, facts: &Facts) {
    const HINT: &str =
        "Save the definitions of such views, drop them, call this again, and create them again, in one transaction.";
    for view in &facts.views {
        if !view.is_owned {
            plan.hinder(format!("{} cannot be created again: it belongs to another role", view.description), HINT);
        }
        for blocker in &view.blockers {
            plan.hinder(format!("{} cannot be created again because of {blocker}", view.description), HINT);
        }
    }
    if ordered(&facts.views).is_none() {
        let names: Vec<&str> = facts.views.iter().map(|view| &*view.description).collect();
        plan.hinder(format!("views that read each other in a circle are among {}", names.join(", ")), HINT);
    }
}

/// The views to be locked: those of the caller, as nobody can lock those of others.
pub fn locked(facts: &Facts) -> Vec<Oid> {
    facts.views.iter().filter(|view| view.is_owned).map(|view| view.oid).collect()
}

/// What drops the views: those first that nothing reads.
pub fn drops(facts: &Facts) -> Vec<MoveStep> {
    let views = ordered(&facts.views).unwrap_or_default();
    let drop = |view: &&View| {
        let statement = format!("DROP {} {}", view.kind(), view.name);
        MoveStep::on(&view.name, statement, "it is created again below").by(Actor::Role(view.owner))
    };
    views.iter().rev().map(drop).collect()
}

/// What creates them again, without rows.
pub fn creations(facts: &Facts) -> Vec<MoveStep> {
    ordered(&facts.views).unwrap_or_default().into_iter().flat_map(creation).collect()
}

/// What fills them, at the very end: before that, what they call is compared with what they called before.
pub fn fillings(facts: &Facts) -> Vec<MoveStep> {
    ordered(&facts.views).unwrap_or_default().into_iter().filter_map(filling).collect()
}

fn creation(view: &View) -> Vec<MoveStep> {
    let by_definition = |statement: &String, note: &str| MoveStep {
        locks: Vec::new(),
        by_definition: true,
        ..MoveStep::on("", statement.clone(), note).by(Actor::Role(view.owner))
    };
    let mut steps = vec![by_definition(&view.definition, "with search_path = pg_catalog")];
    steps.extend(view.details.iter().map(|detail| by_definition(detail, "")));
    steps
}

fn filling(view: &View) -> Option<MoveStep> {
    let refresh = format!("REFRESH MATERIALIZED VIEW {}", view.name);
    let step =
        MoveStep::on("", refresh, "its rows are those of now, not of the last refresh").by(Actor::Role(view.owner));
    view.is_populated.then(|| MoveStep {
        locks: Vec::new(),
        rewrites: vec![view.name.clone()],
        bytes: view.bytes,
        fills_view: true,
        ..step
    })
}
