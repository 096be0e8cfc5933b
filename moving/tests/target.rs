//! Which column is chosen, of which tables.

use snowflake_moving::target::{Candidate, Table, TableKind, Unfit, choose};
use snowflake_moving::{Values, Width};

/// A column by its name: `p` is in the primary key, `n` is numbered, `t` is text, `g` is generated.
fn column(name: &str) -> Candidate {
    let has = |letter| name.contains(letter);
    Candidate {
        name: name.to_owned(),
        width: (!has('t')).then_some(Width::Four),
        type_name: "a type".to_owned(),
        is_bigint_domain: has('d'),
        is_generated: has('g'),
        is_primary: has('p'),
        is_numbered: has('n'),
    }
}

fn table(columns: &[&str]) -> Table {
    Table {
        kind: TableKind::Table,
        is_system: false,
        is_others_temporary: false,
        is_partition: false,
        parents: Vec::new(),
        columns: columns.iter().map(|name| column(name)).collect(),
    }
}

fn chosen(columns: &[&str], name: Option<&str>) -> Result<usize, Unfit> {
    choose(&table(columns), name)
}

#[test]
fn the_primary_key_comes_before_what_is_numbered() {
    assert_eq!(chosen(&["x", "p", "n"], None), Ok(1));
    assert_eq!(chosen(&["x", "n"], None), Ok(1));
    // A key of several columns, or of another type, says nothing.
    assert_eq!(chosen(&["p1", "p2n"], None), Ok(1));
    assert_eq!(chosen(&["pt", "n"], None), Ok(1));
    assert_eq!(chosen(&["pt"], None), Err(Unfit::Type("pt".to_owned(), "a type".to_owned())));
    assert_eq!(chosen(&["td"], Some("td")), Ok(0));
}

#[test]
fn what_is_not_clear_is_asked() {
    let which = |names: &[&str]| Err(Unfit::WhichColumn(names.iter().map(|&name| name.to_owned()).collect()));
    assert_eq!(chosen(&["n1", "n2", "t", "g"], None), which(&["n1", "n2"]));
    assert_eq!(chosen(&["x"], None), which(&["x"]));
    assert_eq!(chosen(&[], None), which(&[]));
    assert_eq!(chosen(&["n1", "n2"], Some("n2")), Ok(1));
    assert_eq!(chosen(&["n1"], Some("N1")), Err(Unfit::NoSuchColumn("N1".to_owned())));
    assert_eq!(chosen(&["g"], Some("g")), Err(Unfit::Generated("g".to_owned())));
}

#[test]
fn other_relations_are_refused() {
    let mut view = table(&["n"]);
    view.kind = TableKind::Other("view");
    assert_eq!(choose(&view, None), Err(Unfit::NotATable("view")));
    let mut partition = table(&["n"]);
    partition.is_partition = true;
    partition.parents = vec!["whole".to_owned()];
    assert_eq!(choose(&partition, None), Err(Unfit::Partition("whole".to_owned())));
    partition.is_partition = false;
    assert_eq!(choose(&partition, None), Err(Unfit::Child(vec!["whole".to_owned()])));
    let mut others = table(&["n"]);
    others.is_others_temporary = true;
    assert_eq!(choose(&others, None), Err(Unfit::OthersTemporary));
    others.is_system = true;
    assert_eq!(choose(&others, None), Err(Unfit::System));
}

#[test]
fn a_free_value_is_above_the_others_or_below_them() {
    let free = |lowest, highest, width| Values { lowest, highest }.free(width);
    assert_eq!(free(1, 7, Width::Two), Some(8));
    assert_eq!(free(1, i16::MAX.into(), Width::Two), Some(0));
    assert_eq!(free(1, i32::MAX.into(), Width::Four), Some(0));
    assert_eq!(free(i32::MIN.into(), i32::MAX.into(), Width::Four), None);
    assert_eq!(free(i64::MIN, i64::MAX, Width::Eight), None);
}
