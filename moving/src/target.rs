//! Which column of a table is meant, and whether such a table can be adopted at all.

use crate::Width;

/// What kind of relation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A table, partitioned or not.
    Table,
    /// Anything else, such as `a view`.
    Other(&'static str),
}

/// A table of which a column is to be chosen.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it is.
    pub kind: TableKind,
    /// Whether it is a table of PostgreSQL's own.
    pub is_system: bool,
    /// Whether it is the temporary table of another session.
    pub is_others_temporary: bool,
    /// Whether its parents have it as a partition.
    pub is_partition: bool,
    /// The names of the tables that it is a partition of, or inherits from.
    pub parents: Vec<String>,
    /// Its columns.
    pub columns: Vec<Candidate>,
}

/// A column that could be chosen.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name as it is, not quoted.
    pub name: String,
    /// Its integer type; `None` for any other type.
    pub width: Option<Width>,
    /// Its type, as SQL writes it.
    pub type_name: String,
    /// Whether it is a domain over `bigint`.
    pub is_bigint_domain: bool,
    /// Whether it is a generated column.
    pub is_generated: bool,
    /// Whether it is in the primary key.
    pub is_primary: bool,
    /// Whether its values come from an identity, a sequence, or `snowflake_next()`.
    pub is_numbered: bool,
}

impl Candidate {
    fn is_integer(&self) -> bool {
        self.width.is_some() || self.is_bigint_domain
    }
}

/// Why no column is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no table, but this, with its article.
    NotATable(&'static str),
    /// It is PostgreSQL's own.
    System,
    /// It is the temporary table of another session.
    OthersTemporary,
    /// It is a partition of this table.
    Partition(String),
    /// It inherits from these tables.
    Child(Vec<String>),
    /// There is no such column.
    NoSuchColumn(String),
    /// The caller must say which column; these could be it.
    WhichColumn(Vec<String>),
    /// The column, the first, has a type that cannot hold IDs, the second.
    Type(String, String),
    /// The column is generated.
    Generated(String),
}

/// The number of the column in [`Table::columns`]: the one that is named; else the primary key's only column, if it is an
/// integer; else the only one with an identity, a sequence or `snowflake_next()`.
///
/// # Errors
/// Where the table cannot be adopted, or the column is not clear.
pub fn choose(table: &Table, name: Option<&str>) -> Result<usize, Unfit> {
    check(table)?;
    let index = match name {
        Some(name) => table
            .columns
            .iter()
            .position(|column| column.name == name)
            .ok_or_else(|| Unfit::NoSuchColumn(name.to_owned()))?,
        None => unnamed(table)?,
    };
    let column = &table.columns[index];
    if column.is_generated {
        return Err(Unfit::Generated(column.name.clone()));
    }
    if !column.is_integer() {
        return Err(Unfit::Type(column.name.clone(), column.type_name.clone()));
    }
    Ok(index)
}

fn check(table: &Table) -> Result<(), Unfit> {
    if let TableKind::Other(kind) = table.kind {
        return Err(Unfit::NotATable(kind));
    }
    if table.is_system {
        return Err(Unfit::System);
    }
    if table.is_others_temporary {
        return Err(Unfit::OthersTemporary);
    }
    match &*table.parents {
        [] => Ok(()),
        [parent, ..] if table.is_partition => Err(Unfit::Partition(parent.clone())),
        parents => Err(Unfit::Child(parents.to_vec())),
    }
}

fn unnamed(table: &Table) -> Result<usize, Unfit> {
    let all = |is: fn(&Candidate) -> bool| -> Vec<usize> {
        (0..table.columns.len()).filter(|&index| is(&table.columns[index])).collect()
    };
    let (primary, numbered) = (all(|column| column.is_primary), all(|column| column.is_numbered));
    match (&*primary, &*numbered) {
        (&[only], _) if table.columns[only].is_integer() => Ok(only),
        (_, &[only]) | (&[only], []) => Ok(only),
        _ => {
            let integers = all(|column| column.is_integer() && !column.is_generated);
            Err(Unfit::WhichColumn(integers.into_iter().map(|index| table.columns[index].name.clone()).collect()))
        }
    }
}
