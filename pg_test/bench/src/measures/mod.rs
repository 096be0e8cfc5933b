//! What is measured. Each module gives one or more groups of results, of type [`crate::results::Group`].

mod analytics;
mod beside;
mod calls;
mod ceiling;
pub mod clients;
mod cores;
mod decoding;
mod growth;
mod hosted;
mod inserts;
mod once;
mod planning;
mod planning_forms;
mod planning_growth;
mod planning_instructions;
mod segments;

use crate::contenders::Contender;
use crate::plan::Plan;
use crate::results::Group;
use crate::servers::Servers;

/// A group of results.
pub struct Measure {
    /// The module that it belongs to, with a hyphen between words: by which it is chosen.
    pub name: &'static str,
    /// Measures it.
    pub group: fn(&Servers, &Plan, &[Contender]) -> Group,
}

const fn measure(name: &'static str, group: fn(&Servers, &Plan, &[Contender]) -> Group) -> Measure {
    Measure { name, group }
}

/// All of them, in the order in which they are measured. Those of the same name may depend on each other.
pub const ALL: [Measure; 27] = [
    measure("calls", calls::one_call),
    measure("calls", |servers, plan, _| calls::batch(servers, plan)),
    measure("ceiling", |servers, plan, _| ceiling::ceiling(servers, plan)),
    measure("beside", |servers, plan, _| beside::beside(servers, plan)),
    measure("clients", |servers, plan, _| clients::clients(servers, plan)),
    measure("cores", |servers, plan, _| cores::generation(servers, plan)),
    measure("cores", cores::inserts),
    measure("cores", |servers, plan, _| cores::waits(servers, plan)),
    measure("inserts", inserts::many_rows),
    measure("inserts", inserts::single_rows),
    measure("inserts", inserts::mixed_rows),
    measure("decoding", |servers, plan, _| decoding::decoding(servers, plan)),
    measure("analytics", |servers, plan, _| analytics::queries(servers, plan)),
    measure("analytics", |servers, plan, _| analytics::forms(servers, plan)),
    measure("analytics", |servers, plan, _| analytics::costs(servers, plan)),
    measure("planning", |servers, plan, _| planning::planning(servers, plan)),
    measure("planning", |servers, plan, _| planning::by_time(servers, plan)),
    measure("planning-forms", |servers, plan, _| planning_forms::forms(servers, plan)),
    measure("planning-growth", |servers, plan, _| planning_growth::growth(servers, plan)),
    measure("planning-instructions", |_, plan, _| planning_instructions::instructions(plan)),
    measure("growth", |servers, plan, _| growth::databases(servers, plan)),
    measure("growth", |servers, plan, _| growth::connections(servers, plan)),
    measure("hosted", |servers, plan, _| hosted::one_call(servers, plan)),
    measure("hosted", |servers, plan, _| hosted::decoding(servers, plan)),
    measure("segments", |_, plan, _| segments::one_call(plan)),
    measure("segments", |_, plan, _| segments::clients(plan)),
    measure("once", |servers, plan, _| once::once(servers, plan)),
];

/// Those whose names are in a list, separated by commas or spaces; without any name, all.
///
/// # Errors
/// A name that none of them has.
pub fn chosen(names: &str) -> Result<Vec<&'static Measure>, String> {
    let names: Vec<&str> = names.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|&&name| ALL.iter().all(|measure| measure.name != name)) {
        let mut known: Vec<&str> = ALL.iter().map(|measure| measure.name).collect();
        known.dedup();
        return Err(format!("there is no measure \"{unknown}\", only {}", known.join(", ")));
    }
    Ok(ALL.iter().filter(|measure| names.is_empty() || names.contains(&measure.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::{ALL, chosen};

    #[test]
    fn measures_are_chosen_by_name() {
        let names = |list| chosen(list).map(|chosen| chosen.iter().map(|measure| measure.name).collect::<Vec<_>>());
        assert_eq!(names("").unwrap().len(), ALL.len());
        assert_eq!(names("once").unwrap(), ["once"]);
        // In their own order, each group once.
        assert_eq!(names(" once, calls,once").unwrap(), ["calls", "calls", "once"]);
        assert!(names("once,analytic").unwrap_err().contains("\"analytic\", only calls, ceiling,"));
    }
}
