//! A condition is the same in WHERE, in ON and in SELECT: what the planner makes of it in the first two must not change which rows
//! it holds for. SELECT computes it for each row, so it is the judge; and no second form of the tables is needed.
//!
//! `QUERIES`, `SEED`, `ONLY` and `FAILURES` are as for [`super::the_same_work`], with 150 by default.

use super::draft::Draft;
use super::tables::TENANTS;
use super::{Tables, Way, cluster, generator, session_after};
use postgres::{Client, SimpleQueryMessage};
use snowflake_test::variable;

/// Numbers that must be equal: what they are of, and the queries for them.
struct Claim {
    of: &'static str,
    /// Adds up to the first number of the second query.
    parts: Vec<String>,
    whole: String,
}

impl Draft<'_> {
    /// A condition with more of AND, OR and NOT than queries have.
    fn truth(&mut self, depth: u8, leaf: fn(&mut Self) -> String) -> String {
        if depth == 0 {
            return leaf(self);
        }
        match self.rng.u8(..12) {
            0..2 => format!("NOT ({})", self.truth(depth - 1, leaf)),
            2 => {
                let test = self.one_of(&["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"]);
                format!("({}) IS {test}", self.truth(depth - 1, leaf))
            }
            3 => {
                let [when, then, other] = [(); 3].map(|()| self.truth(depth - 1, leaf));
                format!("CASE WHEN {when} THEN {then} ELSE {other} END")
            }
            drawn => {
                let joined = if drawn < 8 { " AND " } else { " OR " };
                let parts: Vec<_> = (0..self.rng.u8(2..4)).map(|_| self.truth(depth - 1, leaf)).collect();
                format!("({})", parts.join(joined))
            }
        }
    }

    /// A condition on the rows of two items.
    fn of_both(&mut self) -> String {
        let operator = self.one_of(&["=", "<", "<=", ">", ">=", "<>"]);
        match self.rng.u8(..10) {
            0..4 => format!("‹a.t› {operator} p.at"),
            4 => format!("p.until {operator} ‹a.t›"),
            5 => format!("‹a.t› {operator} {}", self.one_of(&["p.ts", "p.d", "p.at - interval '1 day'"])),
            6..8 => "‹a.t› BETWEEN p.at AND p.until".to_owned(),
            8 => "a.tenant = p.tenant".to_owned(),
            _ => self.condition("a"),
        }
    }

    /// Where the rows of one item are: those for which a condition is true, false and unknown are all.
    fn of_one_item(&mut self) -> Vec<Claim> {
        self.item("a");
        let depth = self.one_of(&[0, 1, 1, 2]);
        let p = self.truth(depth, |draft| draft.condition("a"));
        let filter = if self.chance(30) { format!("{} AND ", self.range("a")) } else { String::new() };
        let also =
            if filter.is_empty() { String::new() } else { format!(" WHERE {}", filter.trim_end_matches(" AND ")) };
        let [count, n] = ["count(*)", "coalesce(sum(n), 0)"].map(|sum| {
            let part = |test: &str| format!("SELECT {sum} FROM ‹a› WHERE {filter}{test}");
            Claim {
                of: "true, false, unknown",
                parts: vec![part(&format!("({p})")), part(&format!("NOT ({p})")), part(&format!("({p}) IS NULL"))],
                whole: format!("SELECT {sum} FROM ‹a›{also}"),
            }
        });
        let selected = Claim {
            of: "WHERE and SELECT",
            parts: vec![format!("SELECT count(*) FROM ‹a› WHERE {filter}({p})")],
            whole: format!("SELECT coalesce(sum(({p})::integer), 0) FROM ‹a›{also}"),
        };
        let filtered = Claim {
            of: "WHERE and FILTER",
            parts: vec![format!("SELECT count(a.id) FROM ‹a› WHERE {filter}({p})")],
            whole: format!("SELECT count(a.id) FILTER (WHERE {p}) FROM ‹a›{also}"),
        };
        vec![count, n, selected, filtered]
    }

    /// Of a join, the pairs for which a condition is true, false and unknown are all; and an outer join has the pairs for which it is
    /// true, and the rows that are in none.
    fn of_a_join(&mut self) -> Vec<Claim> {
        self.item("a");
        let depth = self.one_of(&[0, 0, 1, 1, 2]);
        let p = self.truth(depth, Self::of_both);
        // All pairs of the two would be many.
        let few = format!("(SELECT * FROM few WHERE k < {}) AS p", self.one_of(&[3, 8]));
        let on = self.one_of(&["true", "a.tenant = p.tenant"]).to_owned();
        let pairs = |test: &str| format!("SELECT count(*) FROM {few} JOIN ‹a› ON {on} AND {test}");
        let each = Claim {
            of: "true, false, unknown of pairs",
            parts: vec![pairs(&format!("({p})")), pairs(&format!("NOT ({p})")), pairs(&format!("({p}) IS NULL"))],
            whole: format!("SELECT count(*) FROM {few} JOIN ‹a› ON {on}"),
        };
        let tested = format!(
            "SELECT p.k, coalesce(bool_or({on} AND ({p})), false) AS found FROM {few} CROSS JOIN ‹a› GROUP BY p.k"
        );
        let selected = Claim {
            of: "ON of an outer join and SELECT",
            parts: vec![
                format!("SELECT coalesce(sum(({on} AND ({p}))::integer), 0) FROM {few} CROSS JOIN ‹a›"),
                format!("SELECT count(*) FROM ({tested}) AS tested WHERE NOT found"),
            ],
            whole: format!("SELECT count(*) FROM {few} LEFT JOIN ‹a› ON {on} AND ({p})"),
        };
        let there = Claim {
            of: "EXISTS and SELECT",
            parts: vec![format!("SELECT count(*) FROM ({tested}) AS tested WHERE found")],
            whole: format!("SELECT count(*) FROM {few} WHERE EXISTS (SELECT FROM ‹a› WHERE {on} AND ({p}))"),
        };
        let tenant = self.rng.u8(..TENANTS);
        let of_tenant = Claim {
            of: "WHERE above an outer join, and SELECT",
            parts: vec![format!("SELECT count(*) FROM {few} LEFT JOIN ‹a› ON a.tenant = {tenant} WHERE ({p})")],
            whole: format!("SELECT coalesce(sum(({p})::integer), 0) FROM {few} LEFT JOIN ‹a› ON a.tenant = {tenant}"),
        };
        vec![each, selected, there, of_tenant]
    }
}

/// The first value of a query's row.
fn first(client: &mut Client, query: &str) -> Result<i64, String> {
    let messages = client.simple_query(query).map_err(|error| {
        error.as_db_error().map_or_else(|| format!("{error:?}\n{query}"), |error| format!("{error}\n{query}"))
    })?;
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(value.unwrap().parse().unwrap())
}

/// Whether a claim holds.
fn check(client: &mut Client, claim: &Claim) -> Result<i64, String> {
    let mut parts = Vec::new();
    for part in &claim.parts {
        parts.push(first(client, part)?);
    }
    let whole = first(client, &claim.whole)?;
    if parts.iter().sum::<i64>() == whole {
        return Ok(parts[0]);
    }
    Err(format!("{}: {parts:?} and {whole}\n{};\n{};", claim.of, claim.parts.join(";\n"), claim.whole))
}

#[test]
fn a_condition_is_the_same_in_where_and_in_select() {
    let (queries, seed, only) = (variable("QUERIES").unwrap_or(150), variable("SEED").unwrap_or(1), variable("ONLY"));
    let failures = variable("FAILURES").unwrap_or(1);
    let cluster = cluster();
    let mut client = cluster.client();
    let mut tables = Tables { schema: None, seed };
    let (mut failed, mut true_for_some, mut claims) = (0, 0, 0);
    'queries: for number in only.map_or(1..=queries, |number| number..=number) {
        let schema = tables.of(&mut client, number);
        let mut draft = Draft::new(schema, generator(seed ^ 0x7472_7574, number));
        draft.has_no_parameters();
        let all = if draft.chance(60) { draft.of_one_item() } else { draft.of_a_join() };
        let begin = format!("BEGIN; {}", draft.set_local());
        client.batch_execute(&begin).unwrap();
        for claim in all {
            let put = |text: &String| draft.put(text, Way::Ids);
            let claim = Claim { of: claim.of, parts: claim.parts.iter().map(put).collect(), whole: put(&claim.whole) };
            if only.is_some() {
                println!("{}:\n{};\n{};\n", claim.of, claim.parts.join(";\n"), claim.whole);
            }
            match check(&mut client, &claim) {
                Ok(found) => true_for_some += u32::from(found > 0),
                Err(report) => {
                    println!("SEED={seed}, query {number}: {report}\n{}\n{begin};\n", draft.made_by().join(";\n"));
                    failed += 1;
                    client = session_after(&cluster, &client);
                    if failed >= failures {
                        break 'queries;
                    }
                    continue 'queries;
                }
            }
            claims += 1;
        }
        client.batch_execute("ROLLBACK").unwrap();
    }
    println!("{claims} claims hold; {true_for_some} of them have rows for which the condition is true");
    assert_eq!(failed, 0, "queries failed");
    assert!(only.is_some() || true_for_some * 2 > claims, "too few conditions hold for any row");
}
