//! How many instructions planning takes, as Valgrind counts them. They do not depend on how fast a machine is and on what else runs there, and are
//! nearly the same each time, so that a change of a hundredth is seen.

use super::planning::WAYS;
use super::planning_forms::{self, FORMS};
use super::planning_growth::{self, COLUMN, Case};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Figure, Row};
use crate::servers;
use snowflake_test::programs::{Installation, as_server_user};
use snowflake_test::{Cluster, Stop, run};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// In thousands.
const UNIT: &str = "thousand instructions";

/// The first fills the catalogue's caches.
const REPEATED: usize = 3;

const ABOUT: &str = "Instructions in `planner()`, as Valgrind's callgrind counts them for one process: the fewest of three EXPLAINs. The queries \
                     are those of [Planning of what analysts ask](#planning-of-what-analysts-ask) and of [Growth of planning](#growth-of-planning).";

/// Each form of [`FORMS`], and what grows, with 500 partitions in an order. In the short run, three of the forms.
pub fn instructions(plan: &Plan) -> Group {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Group::new(
            "Instructions of planning",
            format!("{ABOUT} Not measured: there is no Valgrind here."),
            Vec::new(),
        );
    }
    let form = |(title, form): (&str, &str)| Case {
        title: title.to_owned(),
        by_id: planning_forms::query(form, "snowflake_timestamp(id)"),
        by_column: planning_forms::query(form, "created_at"),
    };
    let mut cases: Vec<Case> = FORMS.into_iter().map(form).collect();
    let cluster = servers::server(&[]);
    let mut client = cluster.client();
    planning_forms::create(&mut client, plan);
    if plan.quick {
        cases.truncate(3);
    } else {
        let (create, _, growth) = planning_growth::cases(plan, &[500]);
        create.iter().for_each(|statement| client.batch_execute(statement).unwrap());
        cases.extend(growth);
    }
    drop(client);
    cluster.stop(Stop::Fast);

    let contenders: Vec<(String, &str, &str)> = cases
        .iter()
        .flat_map(|case| {
            [
                (case, WAYS[0], WAYS[0], &case.by_id),
                (case, WAYS[1], WAYS[1], &case.by_id),
                (case, COLUMN, WAYS[0], &case.by_column),
            ]
        })
        .map(|(case, contender, way, query)| (format!("{}, {contender}", case.title), way, &**query))
        .collect();
    let counts = count(&cluster, contenders.iter().map(|&(_, way, query)| (way, query)));
    assert_eq!(counts.len(), contenders.len());
    let row =
        |((name, ..), count): ((String, &str, &str), f64)| Row { name, figures: vec![Figure::new(UNIT, vec![count])] };
    let mut group =
        Group::new("Instructions of planning", ABOUT, contenders.into_iter().zip(counts).map(row).collect());
    for (index, Case { title, .. }) in cases.iter().enumerate() {
        let goal = match FORMS.get(index) {
            Some((_, form)) if form.contains("‹times") || form.contains("‹any") => Goal::AtMost(2.0),
            Some(_) => Goal::AtMost(1.5),
            None => planning_growth::GOAL,
        };
        group.compare(&format!("{title}, on"), &format!("{title}, {COLUMN}"), UNIT, goal);
    }
    group
}

/// How many instructions the planner takes for each query, in thousands, with `plan_by_time` as given.
fn count<'a>(cluster: &Cluster, queries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<f64> {
    let mut statements = String::new();
    for (way, query) in queries {
        assert!(!query.contains('\n'), "a line is a statement: {query}");
        let _ = writeln!(statements, "SET pg_snowflake.plan_by_time = {way}");
        (0..REPEATED).for_each(|_| statements += &format!("EXPLAIN {query}\n"));
    }
    let (file, counts) = (cluster.new_file("statements"), cluster.new_file("callgrind"));
    fs::write(&file, statements).unwrap();
    let mut server = Command::new("valgrind");
    server
        .args(["--tool=callgrind", "--combine-dumps=yes", "--toggle-collect=planner", "--dump-after=planner"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(Installation::under_test().bin().join("postgres"))
        .arg("--single")
        .arg("-D")
        .arg(cluster.data())
        .arg("postgres");
    run(as_server_user(&mut server).stdin(fs::File::open(&file).unwrap()));
    // Of each planning, and of what comes after the last one.
    let counts = fs::read_to_string(&counts).unwrap();
    let counts: Vec<f64> = counts
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "))
        .map(|count| count.trim().parse::<f64>().unwrap() / 1000.0)
        .collect();
    counts[..counts.len() - 1].chunks(REPEATED).map(|each| each.iter().copied().fold(f64::INFINITY, f64::min)).collect()
}
