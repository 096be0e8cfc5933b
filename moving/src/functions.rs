//! Functions that run for a row of the tables, or name one of these: what the plan says of them, and how open sessions compile them
//! again.
//!
//! A session keeps the plans of a function in PL/pgSQL, and with them the type that a column of a row variable had, such as that of
//! `NEW.id`. After the column has become wider, each call fails in this session, until the function's own row of the catalogue changes.

use crate::{Actor, Column, Facts, MovePlan, MoveStep, Oid, Waiver};

mod text;

pub use text::Call;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number.
    pub oid: Oid,
    /// Its name with the types of its arguments, as a statement writes it.
    pub name: String,
    /// What calls it for a row: `trigger t on table public.orders`. None where it only names a table.
    pub callers: Vec<String>,
    /// The tables whose rows are `NEW` and `OLD` there.
    pub row_tables: Vec<Oid>,
    /// Its text.
    pub source: String,
    /// Whether it is one of PL/pgSQL.
    pub is_plpgsql: bool,
    /// Its calls of functions that take a smaller type than an ID where they get a key of `NEW` or `OLD`.
    pub small_calls: Vec<Call>,
    /// A statement that has sessions compile it again; `None` where the caller may not, or there is no need.
    pub renewal: Option<String>,
    /// The role that it belongs to. The statement is run as this role: event triggers may run code of anybody's.
    pub owner: Oid,
}

/// Has open sessions compile the functions again, which changes nothing else of them.
pub fn renew(plan: &mut MovePlan, facts: &Facts) {
    for function in &facts.functions {
        if let Some(statement) = &function.renewal {
            let note = "changes nothing: has sessions that are open compile it again, for the wider column";
            let step = MoveStep::on("", statement.clone(), note).by(Actor::Role(function.owner));
            plan.functions.push(function.oid);
            plan.steps.push(MoveStep { locks: Vec::new(), by_definition: true, ..step });
        }
    }
    plan.functions.sort_unstable();
}

/// The lines of a function that may put a key into a variable that is too small.
fn narrowing(facts: &Facts, function: &Function) -> Vec<String> {
    if !function.is_plpgsql {
        return Vec::new();
    }
    let names = |is_meant: &dyn Fn(&Column) -> bool| -> Vec<String> {
        facts.columns.iter().filter(|column| is_meant(column)).map(|column| text::unquoted(&column.name)).collect()
    };
    let of_rows = names(&|column| function.row_tables.contains(&column.relation));
    let name = &function.name;
    let lines = text::narrowing(&function.source, &names(&|_| true), &of_rows).into_iter();
    lines
        .map(|(number, line)| {
            format!("line {number} of function {name} may put the key into a variable that is too small: {line}")
        })
        .collect()
}

impl Facts {
    /// The calls in a function's text that are given one of these columns by `NEW` or `OLD`.
    pub fn calls_with_a_key(columns: &[Column], function: &Function) -> Vec<Call> {
        let is_meant = |column: &&Column| function.row_tables.contains(&column.relation);
        let of_rows = columns.iter().filter(is_meant).map(|column| text::unquoted(&column.name));
        if function.is_plpgsql { text::calls(&function.source, &of_rows.collect::<Vec<_>>()) } else { Vec::new() }
    }
}

/// Where that is done for rows, it is in the way.
pub fn check(plan: &mut MovePlan, facts: &Facts, waived: &[Waiver]) {
    for function in facts.functions.iter().filter(|it| !it.callers.is_empty()) {
        for line in narrowing(facts, function) {
            plan.hinder_unless(waived, Waiver::Functions, &line, "Make such variables bigint.");
        }
        for Call { line, text, name, .. } in &function.small_calls {
            let of = &function.name;
            let obstacle =
                format!("line {line} of function {of} gives the key to {name}(), which takes an integer: {text}");
            plan.hinder_unless(waived, Waiver::Functions, &obstacle, "Have such functions take bigint.");
        }
    }
}

/// What one should know of the functions, where columns become wider.
pub fn notes(facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    for function in &facts.functions {
        if function.callers.is_empty() {
            notes.extend(narrowing(facts, function));
        } else {
            notes.push(format!("function {} runs for rows: {}", function.name, function.callers.join(", ")));
        }
    }
    let names = |is_meant: fn(&&Function) -> bool| {
        let names: Vec<&str> = facts.functions.iter().filter(is_meant).map(|it| &*it.name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = names(|it| it.callers.is_empty()) {
        notes.push(format!(
            "look for variables and arguments of type integer in functions whose source names one of the tables: {names}"
        ));
    }
    if let Some(names) = names(|it| it.is_plpgsql && it.renewal.is_none()) {
        notes.push(format!(
            "sessions that have called these functions must connect again, as only their owners can have them compiled again: {names}"
        ));
    }
    notes
}
