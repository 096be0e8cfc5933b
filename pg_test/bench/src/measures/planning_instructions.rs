//! How many instructions planning takes, as Valgrind counts them. They do not depend on how fast a machine is, or on what else it does. They are
//! nearly the same each time, so a change of one percent is seen. The same holds for the misses of a simulated cache of instructions. They matter,
//! because most code runs once in a planning, and the processor waits for it to come from a slower cache.

use super::planning::WAYS;
use super::planning_forms;
use super::planning_growth::{self, COLUMN, Case};
use crate::plan::Plan;
use crate::results::Group;
use crate::rounds::{Figure, Row};
use crate::servers;
use snowflake_test::programs::{Installation, as_server_user};
use snowflake_test::{Cluster, Stop, run};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

const UNIT: &str = "thousand instructions";
const MISSES: &str = "thousand misses";
/// The first cache of instructions that most processors have: bytes, ways, and bytes of a line.
const CACHE: &str = "--I1=32768,8,64";

/// The first fills the catalogue's caches.
const REPEATED: usize = 3;

const ABOUT: &str = "Instructions in `planner()`, as Valgrind's callgrind counts them for one process, and how often one was not in the \
                     processor's first cache, if that has 32 KiB: the fewest of three EXPLAINs. The queries are those of \
                     [Planning of what analysts ask](#planning-of-what-analysts-ask) and of [Growth of planning](#growth-of-planning).";

/// What analysts ask, and what grows, with 500 partitions in an order. In the short run, three of the former.
pub fn instructions(plan: &Plan) -> Group {
    const TITLE: &str = "Instructions of planning";
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Group::new(TITLE, format!("{ABOUT} Not measured: there is no Valgrind here."), Vec::new());
    }
    let mut cases: Vec<Case> = planning_forms::cases().collect();
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

    let mut group = Group::new(TITLE, ABOUT, rows(&cluster, &cases));
    for Case { title, .. } in &cases {
        let goal = planning_forms::goal(title).unwrap_or(planning_growth::GOAL);
        group.compare(&format!("{title}, {}", WAYS[0]), &format!("{title}, {COLUMN}"), UNIT, goal);
    }
    group
}

/// How many instructions the planner of a server that is stopped takes for each contender of each case.
fn rows(cluster: &Cluster, cases: &[Case]) -> Vec<Row> {
    let (mut names, mut statements) = (Vec::new(), String::new());
    for case in cases {
        for (contender, query, way) in case.contenders() {
            assert!(!query.contains('\n'), "a line is a statement: {query}");
            names.push(format!("{}, {contender}", case.title));
            let _ = writeln!(statements, "SET pg_snowflake.plan_by_time = {way}");
            (0..REPEATED).for_each(|_| statements += &format!("EXPLAIN {query}\n"));
        }
    }
    let (file, counts) = (cluster.new_file("statements"), cluster.new_file("callgrind"));
    fs::write(&file, statements).unwrap();
    let mut server = Command::new("valgrind");
    server
        .args([
            "--tool=callgrind",
            "--cache-sim=yes",
            CACHE,
            "--combine-dumps=yes",
            "--toggle-collect=planner",
            "--dump-after=planner",
        ])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(Installation::under_test().bin().join("postgres"))
        .arg("--single")
        .arg("-D")
        .arg(cluster.data())
        .arg("postgres");
    run(as_server_user(&mut server).stdin(fs::File::open(&file).unwrap()));
    let counts = fs::read_to_string(&counts).unwrap();
    let totals: Vec<[f64; 2]> = counts.lines().filter_map(|line| line.strip_prefix("totals: ")).map(counted).collect();
    // Of each planning, and at last of what comes after.
    assert_eq!(totals.len(), names.len() * REPEATED + 1);
    let fewest = |each: &[[f64; 2]], at: usize| each.iter().map(|one| one[at]).fold(f64::INFINITY, f64::min);
    let figures = |each: &[[f64; 2]]| {
        [UNIT, MISSES].into_iter().enumerate().map(|(at, unit)| Figure::new(unit, vec![fewest(each, at)])).collect()
    };
    names
        .into_iter()
        .zip(totals.chunks_exact(REPEATED))
        .map(|(name, each)| Row { name, figures: figures(each) })
        .collect()
}

/// Thousands of instructions, and of those that were not in the first cache: the first and the fourth of what callgrind counts, of
/// "Ir Dr Dw I1mr D1mr ...", without the zeros at its end.
fn counted(totals: &str) -> [f64; 2] {
    let counts: Vec<f64> = totals.split_whitespace().map(|count| count.parse::<f64>().unwrap() / 1000.0).collect();
    [0, 3].map(|at| counts.get(at).copied().unwrap_or_default())
}
