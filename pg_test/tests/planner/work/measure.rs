//! What a plan did, counted and not timed.

use serde_json::Value;

/// What running a query took.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    /// Pages found in or read into the buffers.
    pub pages: f64,
    /// Rows that a scan has looked at, whether it returned them or not, and pairs of rows that a join has looked at.
    pub rows: f64,
    /// Scans that a Merge Append began.
    pub merged: f64,
    /// Rows that these have looked at and not returned, as until the first that is accepted.
    pub passed_to_merge: f64,
    /// The rows and pages of those that had to be sorted first.
    pub sorted_to_merge: (f64, f64),
    /// How many members of an Append or a Merge Append the plan sorts.
    pub sorted_members: u32,
    /// What the planner had estimated.
    pub cost: f64,
}

/// As many rows cost as much as a page: PostgreSQL's `seq_page_cost` is 100 times its `cpu_tuple_cost`. Where the weights are the
/// planner's, what it chooses between at about the same cost is about the same work, if its estimates are right.
const ROWS_OF_A_PAGE: f64 = 100.0;

/// What may differ by chance: a dozen descents of an index, a hundred rows more, what is looked up once. The tables have from 100 to 500 pages
/// and rows in proportion, so a scan of a whole one is well above.
const SLACK: f64 = 40.0;

/// How many times the work is too much.
const FACTOR: f64 = 1.5;

/// How close are the estimated costs of two plans that PostgreSQL holds for equally good.
const TIE: f64 = 1.1;

impl Work {
    /// Of the result of `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`.
    pub fn of(explained: &str) -> Self {
        let explained: Value = serde_json::from_str(explained).unwrap();
        let plan = &explained[0]["Plan"];
        // With EXECUTE or triggers, too, all is below the first node.
        let mut work = Self { pages: pages(plan), cost: number(plan, "Total Cost"), ..Self::default() };
        work.add(plan, "");
        work
    }

    /// In pages.
    pub fn total(&self) -> f64 {
        self.pages + self.rows / ROWS_OF_A_PAGE
    }

    /// Whether the planner had to find this about as good as another, or better.
    pub fn is_estimated_as(&self, other: &Self) -> bool {
        self.cost <= TIE * other.cost
    }

    /// Whether this is too much beside another.
    pub fn exceeds(&self, other: &Self) -> bool {
        self.total() > FACTOR * other.total() + SLACK
    }

    /// Adds the rows of a node and of those below it, and the scans that are merged. Counts are averages of the node's loops.
    /// `within` is the last Append or Merge Append above.
    fn add(&mut self, node: &Value, within: &str) {
        let is_merged = within == "Merge Append";
        let (returned, loops) = (number(node, "Actual Rows"), number(node, "Actual Loops"));
        let removed: f64 = ["Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter"]
            .iter()
            .map(|field| number(node, field))
            .sum();
        let kind = node["Node Type"].as_str().unwrap_or_default();
        self.rows += match kind {
            // Its rows are counted where they are fetched.
            "Bitmap Index Scan" => 0.0,
            // What was kept is cheap, but not free where it is read again and again.
            "Materialize" => returned * (loops - 1.0).max(0.0),
            _ if node["Relation Name"].is_string() && kind != "ModifyTable" || kind == "CTE Scan" => {
                (returned + removed) * loops
            }
            _ => removed * loops,
        };
        if is_merged && node["Relation Name"].is_string() {
            self.merged += loops;
            self.passed_to_merge += removed * loops;
        }
        let before = self.rows;
        for below in node["Plans"].as_array().into_iter().flatten() {
            let is_append = kind == "Append" || kind == "Merge Append";
            self.add(below, if is_append && !is_merged { kind } else { within });
        }
        if kind == "Sort" && !within.is_empty() {
            self.sorted_members += 1;
            if is_merged {
                self.sorted_to_merge.0 += self.rows - before;
                self.sorted_to_merge.1 += pages(node);
            }
        }
    }
}

fn number(node: &Value, field: &str) -> f64 {
    node[field].as_f64().unwrap_or(0.0)
}

fn pages(node: &Value) -> f64 {
    number(node, "Shared Hit Blocks") + number(node, "Shared Read Blocks")
}

#[test]
fn rows_and_pages_are_counted() {
    let plan = r#"[{"Plan": {"Node Type": "Nested Loop", "Total Cost": 7.5, "Actual Rows": 20, "Actual Loops": 1,
        "Rows Removed by Join Filter": 30, "Shared Hit Blocks": 12, "Shared Read Blocks": 3, "Plans": [
        {"Node Type": "Seq Scan", "Relation Name": "a", "Actual Rows": 10, "Actual Loops": 1, "Rows Removed by Filter": 90},
        {"Node Type": "Materialize", "Actual Rows": 5, "Actual Loops": 10, "Plans": [
        {"Node Type": "Bitmap Heap Scan", "Relation Name": "b", "Actual Rows": 5, "Actual Loops": 1,
        "Rows Removed by Index Recheck": 2, "Plans": [{"Node Type": "Bitmap Index Scan", "Actual Rows": 7, "Actual Loops": 1}]}
        ]}]}, "Planning": {"Shared Hit Blocks": 1000}}]"#;
    let work = Work::of(plan);
    assert!((work.pages - 15.0).abs() < 1e-9 && (work.cost - 7.5).abs() < 1e-9);
    assert!((work.rows - (30.0 + 100.0 + 45.0 + 7.0)).abs() < 1e-9, "{}", work.rows);
}
