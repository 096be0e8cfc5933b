//! What may do more work with the parameter on, each with its reason.

use super::judge::{Run, Session};
use super::measure::Work;

/// A query that does too much.
pub struct Case<'a, 'q> {
    pub on: &'a Work,
    pub off: &'a Work,
    pub column: &'a Work,
    /// Runs it again, in one of the ways, with something set.
    pub again: &'a mut Session<'q>,
}

/// An exception: its reason, and whether it is this one.
type Exception = (&'static str, fn(&mut Case) -> Result<bool, String>);

const EXCEPTIONS: [Exception; 23] = [
    ("nothing is on the ID, and PostgreSQL knows less of an expression than of a column", only_expressions),
    ("PostgreSQL does as much with a column, where its estimates mislead it", misled),
    ("PostgreSQL fetches the row where an index has an expression and not the column", fetched),
    ("PostgreSQL would not fetch the row if the index on the time had the ID, too", fetched_without_the_id),
    ("partitions by the ID are merged, which looks into each", merged),
    ("partitions by the ID are not joined one by one by equal times", joined_as_a_whole),
    ("conditions of a column that contradict each other are seen before anything is read", contradicted),
    ("PostgreSQL knows of a column that no element is within an alternative of an OR", excluded_elements),
    ("below a UNION ALL, PostgreSQL prunes partitions at run time by conditions on its columns alone", pruned_later),
    ("PostgreSQL estimates that a plan which does less costs about the same", tied),
    (
        "PostgreSQL does as much with an index on a column alone, whose order it trusts more than that of two",
        misled_alone,
    ),
    ("PostgreSQL estimates that a plan with a column which does as much costs about the same", nearly_misled),
    ("PostgreSQL 19 aggregates before a join by columns, and not by expressions", aggregated_early),
    ("PostgreSQL does not know how many rows have the same time without statistics of it", without_statistics),
    (
        "PostgreSQL reads several times by one scan of an index, and a range of the ID for each by several, in an OR or by BRIN",
        scanned_apiece,
    ),
    (
        "from 17 on, PostgreSQL reads a page of an index once for all elements of an array that are on it",
        descended_for_each,
    ),
    (
        "PostgreSQL estimates an index at half of the whole table or less, and a column has none for what is made of it",
        served_by_no_column,
    ),
    (
        "PostgreSQL takes it that the few pages of a table stay in memory, and a column has no index for what is made of it",
        kept_in_memory,
    ),
    ("the rows for a LIMIT are believed to be spread evenly, where it is known how many there are", spread),
    ("a plan that is made for all values takes it that a third of the rows are above one that is not known", unknown),
    ("PostgreSQL estimates that hundreds of calls for a row take longer than to read it", called_by_the_hundred),
    ("PostgreSQL estimates that the calls for each row take longer than without", called_for_each),
    ("where an index is on the time, an order by the ID is preferred at a quarter of the cost only", doubted),
];

/// What PostgreSQL chooses between.
const KINDS: [&str; 10] = [
    "seqscan",
    "indexscan",
    "indexonlyscan",
    "bitmapscan",
    "nestloop",
    "hashjoin",
    "mergejoin",
    "sort",
    "hashagg",
    "memoize",
];

/// Why this case may be as it is.
///
/// # Errors
/// Where a way fails.
pub fn reason(case: &mut Case) -> Result<Option<&'static str>, String> {
    for (reason, is_it) in EXCEPTIONS {
        if is_it(case)? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

/// What it does with a column and with a parameter turned off, where that is no less than this does, which is no more than without the hooks.
fn as_a_column_without(case: &mut Case, parameter: &str) -> Result<Option<Run>, String> {
    if case.on.exceeds(case.off) {
        return Ok(None);
    }
    let column = case.again.column(&format!("{parameter} = off"))?;
    Ok((!case.on.exceeds(&column.work)).then_some(column))
}

/// There is nothing that the hooks could use.
fn only_expressions(case: &mut Case) -> Result<bool, String> {
    Ok(!case.again.reads().has_ids && !case.on.exceeds(case.off))
}

/// With the indexes of the ID and those of the time, there is more to choose from than without the hooks, and more to be wrong about: such as
/// that the rows for a LIMIT are spread evenly. That is so where the time is a column with the same indexes, too. With statistics of the time,
/// a plan may also cost more than PostgreSQL believes without.
fn misled(case: &mut Case) -> Result<bool, String> {
    let is_as_without = case.on.cost <= case.off.cost || case.on.is_estimated_as(case.off);
    let is_as_a_column = case.on.is_estimated_as(case.column) && case.column.is_estimated_as(case.on);
    Ok(!case.on.exceeds(case.column) && (is_as_without || is_as_a_column))
}

/// An index on a column is enough for an index-only scan; one on an expression is not, as PostgreSQL asks it for the column. What knows nothing of
/// the time may do less by luck, but is not estimated as what is done with a column.
fn fetched(case: &mut Case) -> Result<bool, String> {
    if !case.again.reads().has_index_on_time {
        return Ok(false);
    }
    let column = case.again.column("enable_indexonlyscan = off")?.work;
    let is_as_a_column = case.on.is_estimated_as(&column) && column.is_estimated_as(case.on);
    Ok(!case.on.exceeds(&column) && (is_as_a_column || !case.on.exceeds(case.off)))
}

/// The same, where a column has another good plan without an index-only scan.
fn fetched_without_the_id(case: &mut Case) -> Result<bool, String> {
    let with_it = case.again.on_with_the_id()?;
    Ok(!case.on.exceeds(case.off) && !with_it.work.exceeds(case.column) && with_it.work.cost < case.on.cost)
}

/// Partitions by a column come one after the other in its order, and a LIMIT ends the scan in the first. The order by an expression is not that
/// of partitions by another one.
fn merged(case: &mut Case) -> Result<bool, String> {
    // A descent of a small index, and the row. Each row that is passed until then is on a page of its own.
    const OF_EACH: f64 = 4.0;
    let first = OF_EACH * case.on.merged + case.on.passed_to_merge;
    // A partition without such an index is sorted, before the merge here, and where its turn comes by a column. No others are.
    let is_sorted_too = case.on.sorted_members <= case.column.sorted_members;
    let (rows, pages) = if is_sorted_too { case.on.sorted_to_merge } else { (0.0, 0.0) };
    let pages = case.on.pages - first - pages;
    let without = Work { pages, rows: case.on.rows - rows, ..*case.on };
    Ok(case.on.merged > 0.0 && !case.on.exceeds(case.off) && !without.exceeds(case.column))
}

/// PostgreSQL joins the partitions of two tables one by one where their keys are what is equal.
fn joined_as_a_whole(case: &mut Case) -> Result<bool, String> {
    let column = as_a_column_without(case, "enable_partitionwise_join")?;
    Ok(column.is_some_and(|column| column.work.total() > case.column.total()))
}

/// A time that is equal to one and above another is nothing for a btree on the time. Ranges of IDs are compared, too, but which conditions of an
/// OR are combined with others depends on their cost.
fn contradicted(case: &mut Case) -> Result<bool, String> {
    Ok(case.column.pages == 0.0 && !case.on.exceeds(case.off))
}

/// Conditions beside a list exclude elements before they are looked for; those of an OR do not.
fn excluded_elements(case: &mut Case) -> Result<bool, String> {
    let has_both = case.again.text().contains(" OR ") && case.again.text().contains("ANY (ARRAY(SELECT");
    Ok(has_both && !case.on.exceeds(case.off))
}

/// What is known when the query is planned prunes there, too: see `cases.rs`.
fn pruned_later(case: &mut Case) -> Result<bool, String> {
    if !case.again.reads().is_union || case.on.cost > case.off.cost {
        return Ok(false);
    }
    let column = case.again.column("enable_partition_pruning = off")?;
    Ok(!case.on.exceeds(&column.work))
}

/// What is chosen between at nearly the same cost depends on a page more or less.
fn tied(case: &mut Case) -> Result<bool, String> {
    has_another_plan(case, |other, on| other.is_estimated_as(on))
}

/// A column would be read in the same way by a comparison, and by this condition is not read by its index at all.
fn served_by_no_column(case: &mut Case) -> Result<bool, String> {
    Ok(has_made(case) && case.on.cost * 2.0 <= case.off.cost && case.on.rows <= case.off.rows)
}

/// So an index that fetches each row may cost less than to read all. It does not where no page stays.
fn kept_in_memory(case: &mut Case) -> Result<bool, String> {
    if !has_made(case) || case.on.cost > case.off.cost || case.on.rows > case.off.rows {
        return Ok(false);
    }
    let forgotten = case.again.on("effective_cache_size = '8kB'")?;
    Ok(!forgotten.work.exceeds(case.off) && !forgotten.work.exceeds(case.column))
}

/// Whether the query compares what is made of a time.
fn has_made(case: &Case) -> bool {
    let made = [
        "date_trunc('",
        "date_bin('",
        "::date",
        "AT TIME ZONE",
        "interval '",
        "extract(",
        "date_part(",
        "range(",
        "IS TRUE",
        "IS NOT FALSE",
        "IS FALSE",
        "IS NOT TRUE",
    ];
    made.iter().any(|form| case.again.text().contains(form))
}

/// As [`misled`], where PostgreSQL believes that a column has fewer such rows than there are: it has no statistics of what is made of one. In
/// another order than that of an index, no more is done.
fn spread(case: &mut Case) -> Result<bool, String> {
    if !has_made(case) || !case.again.text().contains(" LIMIT ") || case.on.cost > case.off.cost {
        return Ok(false);
    }
    let sorted = case.again.on("enable_indexscan = off; SET LOCAL enable_indexonlyscan = off")?;
    Ok(!sorted.work.exceeds(case.off) && !sorted.work.exceeds(case.column))
}

/// So it is for a column, too, where an index serves the condition. Planned for its value, no more is done; and no more rows are looked at before.
fn unknown(case: &mut Case) -> Result<bool, String> {
    if case.on.cost > case.off.cost || case.on.rows > case.off.rows {
        return Ok(false);
    }
    let known = case.again.on("plan_cache_mode = force_custom_plan")?;
    Ok(!known.work.exceeds(case.off) && !known.work.exceeds(case.column))
}

/// Several scans cost more than one, and the more if each is believed to read a page of its own.
fn scanned_apiece(case: &mut Case) -> Result<bool, String> {
    const MORE: f64 = 1.5;
    let has_list = [" IN ('", "= ANY ('{"].iter().any(|list| case.again.text().contains(list));
    Ok(has_list && !case.on.exceeds(case.off) && has_another_plan(case, |other, on| other.cost <= MORE * on.cost)?)
}

/// Each element has a descent of its own here, as of a column's index before 17. No more rows are looked at.
fn descended_for_each(case: &mut Case) -> Result<bool, String> {
    let has_list = [" IN (", "= ANY ("].iter().any(|list| case.again.text().contains(list));
    // From 18 on, EXPLAIN has rows of loops as averages with two decimals.
    let are_more = case.on.rows > 1.02 * case.column.rows + 1.0;
    Ok(has_list && case.again.major()? >= 17 && case.on.cost <= case.off.cost && !are_more)
}

/// Whether there is another plan, chosen where one kind of node is turned off, that does enough and is estimated like this.
fn has_another_plan(case: &mut Case, is_estimated: fn(&Work, &Work) -> bool) -> Result<bool, String> {
    for kind in KINDS {
        let other: Run = case.again.on(&format!("enable_{kind} = off"))?;
        let best = if case.off.total() < case.column.total() { case.off } else { case.column };
        if is_estimated(&other.work, case.on) && !other.work.exceeds(best) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`misled`]. What stands for an index on the ID is one on the column and the ID, of which PostgreSQL believes that it follows the order of
/// the rows less.
fn misled_alone(case: &mut Case) -> Result<bool, String> {
    if case.on.cost > case.off.cost {
        return Ok(false);
    }
    let column = case.again.column_alone()?;
    Ok(!case.on.exceeds(&column.work))
}

/// As [`misled`], where PostgreSQL would as soon have chosen the same with a column.
fn nearly_misled(case: &mut Case) -> Result<bool, String> {
    if case.on.cost > case.off.cost {
        return Ok(false);
    }
    for kind in KINDS {
        let column = case.again.column(&format!("enable_{kind} = off"))?;
        if column.work.is_estimated_as(case.column) && !case.on.exceeds(&column.work) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// From 19 on, rows of one time are added up before they are joined by it, where that is a column.
fn aggregated_early(case: &mut Case) -> Result<bool, String> {
    Ok(case.again.major()? >= 19 && as_a_column_without(case, "enable_eager_aggregate")?.is_some())
}

/// With as many conditions, an index is chosen that evaluates them, and reads no fewer rows. Where an operator costs nothing, that is not so.
fn called_by_the_hundred(case: &mut Case) -> Result<bool, String> {
    const MANY: usize = 200;
    if case.again.text().matches(" AND ").count() < MANY || case.on.exceeds(case.off) {
        return Ok(false);
    }
    let (on, column) = (case.again.on("cpu_operator_cost = 0")?, case.again.column("cpu_operator_cost = 0")?);
    Ok(!on.work.exceeds(&column.work))
}

/// Of a column, there are; and an extended statistics object on the time has them, too. Without, PostgreSQL takes it that each row has its own time.
fn without_statistics(case: &mut Case) -> Result<bool, String> {
    let with_them = case.again.on_with_statistics()?;
    Ok(!case.on.exceeds(case.off) && !with_them.work.exceeds(case.column))
}

/// To read all rows seems to cost more by the calls for each of them, which filters do not make. Without the hooks, no less is done.
fn called_for_each(case: &mut Case) -> Result<bool, String> {
    if case.on.exceeds(case.off) || !case.on.is_estimated_as(case.column) {
        return Ok(false);
    }
    let free = case.again.on("cpu_operator_cost = 0")?;
    Ok(!free.work.exceeds(case.column))
}

/// See `DOUBT` in `src/planner/twins.rs`, which is the same number.
fn doubted(case: &mut Case) -> Result<bool, String> {
    const DOUBT: f64 = 4.0;
    if case.on.exceeds(case.off) || !case.again.reads().has_index_on_time {
        return Ok(false);
    }
    let trusted = case.again.on("enable_incremental_sort = off")?;
    Ok(trusted.work.cost <= DOUBT * case.on.cost && !trusted.work.exceeds(case.column))
}
