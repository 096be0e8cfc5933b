//! What the catalogue says of a column that holds IDs, and of all columns that must hold the same.

use crate::functions::Function;
use crate::partitioned::PartitionedByKey;
use crate::sequences::Sequence;
use crate::views::View;
use crate::writers::Writer;

/// The number of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Oid(pub u32);

/// A role that owns a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its number.
    pub oid: Oid,
    /// Its name, quoted.
    pub name: String,
    /// Whether the caller is this role.
    pub is_caller: bool,
    /// Whether it may create objects in the schema of the relation.
    pub may_create: bool,
}

/// PostgreSQL's integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// `smallint`.
    Two,
    /// `integer`.
    Four,
    /// `bigint`.
    Eight,
}

/// A table. Its name has the schema, and is quoted.
#[derive(Clone, Debug)]
pub struct Relation {
    /// Its number.
    pub oid: Oid,
    /// Its name, as a statement writes it.
    pub name: String,
    /// The role that owns it. Its statements are run as this role, since they may run code that belongs to it.
    pub owner: Role,
    /// Whether the caller owns it, or is a member of the role that does.
    pub is_owned: bool,
    /// Its partitions and the tables that inherit from it which belong to other roles, each with its role: `public.p to other`.
    pub heirs_of_others: Vec<String>,
    /// Whether it is a partition.
    pub is_partition: bool,
    /// Its own partitions, and theirs.
    pub partitions: Vec<String>,
    /// Whether sequences of its identity columns begin as unlogged ones: those of an unlogged table do, from PostgreSQL 15 on.
    pub has_unlogged_sequences: bool,
    /// Whether it is a foreign table, which LOCK TABLE refuses.
    pub is_foreign: bool,
    /// The size with indexes and TOAST, in bytes.
    pub bytes: i64,
}

/// A column that holds values of the key.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its table.
    pub relation: Oid,
    /// Its number in its table.
    pub number: i16,
    /// Its name, as a statement writes it.
    pub name: String,
    /// Its integer type, or that of its domain if that is `bigint`; `None` for any other type.
    pub width: Option<Width>,
    /// Its type, as SQL writes it.
    pub type_name: String,
    /// The tables that it inherits the column from, among those of [`Facts::columns`].
    pub parents: Vec<Oid>,
    /// Its default, as SQL writes it.
    pub default: Option<String>,
    /// Whether that is `snowflake_next()`.
    pub makes_ids: bool,
    /// What PostgreSQL does not let a column change its type for, such as `view public.v`.
    pub dependents: Vec<String>,
}

/// A foreign key that a column of [`Facts::columns`] is part of, on either side.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// Its name, quoted.
    pub name: String,
    /// The table that refers.
    pub from: Oid,
    /// The table that is referred to.
    pub to: Oid,
    /// Its columns, quoted: that which refers, and that which is referred to.
    pub columns: Vec<(String, String)>,
    /// Other columns, quoted, that the index has which it depends on: those that are INCLUDEd.
    pub included: Vec<String>,
    /// What makes it again, after `ADD CONSTRAINT` and the name.
    pub definition: String,
    /// Its comment.
    pub comment: Option<String>,
    /// Whether one of the triggers that check it is disabled, or made for replicas.
    pub is_disabled: bool,
}

/// Where the column's values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The caller gives them.
    Given,
    /// An identity.
    Identity {
        /// `GENERATED ALWAYS`, and not `BY DEFAULT`.
        is_always: bool,
    },
    /// `snowflake_next()`.
    Snowflake,
    /// Another default: its expression.
    Default(String),
}

/// The values that the column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// The lowest.
    pub lowest: i64,
    /// The highest.
    pub highest: i64,
}

impl Values {
    /// A value that no row has, and that a column of this type holds: above the others, or below them.
    pub fn free(self, width: Width) -> Option<i64> {
        let (least, most) = match width {
            Width::Two => (i16::MIN.into(), i16::MAX.into()),
            Width::Four => (i32::MIN.into(), i32::MAX.into()),
            Width::Eight => (i64::MIN, i64::MAX),
        };
        let above = self.highest.checked_add(1).filter(|&value| value <= most);
        above.or_else(|| self.lowest.checked_sub(1).filter(|&value| value >= least))
    }
}

/// All that a plan is made of.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The tables of the columns, and those at the other ends of their foreign keys.
    pub relations: Vec<Relation>,
    /// The column that is to get IDs comes first; then all that hold the same values: of partitions, of tables that
    /// inherit, and of foreign keys.
    pub columns: Vec<Column>,
    /// The foreign keys between these tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// Who may insert rows of the first column's table, its partitions and heirs, or of views that PostgreSQL writes through.
    pub writers: Vec<Writer>,
    /// Where the first column's values come from.
    pub source: Source,
    /// The sequences of the first column.
    pub sequences: Vec<Sequence>,
    /// The first column's values; `None` where the table is empty.
    pub values: Option<Values>,
    /// The function that makes IDs, as a statement writes it: `public.snowflake_next()`.
    pub next: String,
    /// Functions that run for a row of one of the tables, or name one.
    pub functions: Vec<Function>,
    /// Those of the tables that are partitioned by the key.
    pub partitioned: Vec<PartitionedByKey>,
    /// The views that depend on the columns that become wider, also by way of other views.
    pub views: Vec<View>,
    /// The CHECK constraints on these columns, each with its name and expression.
    pub checks: Vec<String>,
    /// Constraints of the columns' domains that no new ID passes: `public.small: CHECK (VALUE < 10)`.
    pub refused_by: Vec<String>,
    /// Expressions that cast one of the columns to a smaller type: `index public.i casts id to integer: (id)::integer`.
    pub casts: Vec<String>,
    /// CHECK constraints on one of the columns alone that no new ID passes: `t_id_check: (id < 10)`.
    pub refused_by_checks: Vec<String>,
    /// Statements that give what PostgreSQL makes again by itself, when a column's type changes, what it then leaves out.
    pub left_out: Vec<String>,
    /// Statistics for which that would take another role than the owner of the table: `statistics public.s belong to role r`.
    pub statistics_of_others: Vec<String>,
    /// Publications that one of the tables is in.
    pub publications: Vec<String>,
    /// How many other sessions are open in the database.
    pub sessions: u64,
}

/// Adds what is not there yet.
fn add<T: Clone, K: PartialEq>(all: &mut Vec<T>, more: &[T], key: impl Fn(&T) -> K) {
    for item in more {
        if !all.iter().any(|known| key(known) == key(item)) {
            all.push(item.clone());
        }
    }
}

impl Facts {
    /// The same, if nothing is missing: the key, and each table that something is said of. What is dropped while the catalogue is read
    /// leaves gaps.
    pub fn whole(self) -> Option<Self> {
        let ends = self.foreign_keys.iter().flat_map(|key| [key.from, key.to]);
        let mut tables = self.columns.iter().map(|column| column.relation).chain(ends);
        let is_whole = !self.columns.is_empty() && tables.all(|oid| self.relation(oid).is_some());
        is_whole.then_some(self)
    }

    /// What is known of several columns, as one: the first of them comes first, and what concerns each alone is left to its own facts.
    /// `None` where there are none.
    pub fn of_all(keys: &[Self]) -> Option<Self> {
        let (first, more) = keys.split_first()?;
        let mut all = first.clone();
        for key in more {
            add(&mut all.relations, &key.relations, |it| it.oid);
            add(&mut all.columns, &key.columns, |it| (it.relation, it.number));
            add(&mut all.foreign_keys, &key.foreign_keys, |it| (it.from, it.name.clone()));
            add(&mut all.views, &key.views, |it| it.oid);
            add(&mut all.functions, &key.functions, |it| it.oid);
            for (texts, more) in [
                (&mut all.checks, &key.checks),
                (&mut all.refused_by, &key.refused_by),
                (&mut all.casts, &key.casts),
                (&mut all.refused_by_checks, &key.refused_by_checks),
                (&mut all.left_out, &key.left_out),
                (&mut all.statistics_of_others, &key.statistics_of_others),
                (&mut all.publications, &key.publications),
            ] {
                add(texts, more, String::clone);
            }
        }
        Some(all)
    }

    /// The column that is to get IDs, or to lose them.
    ///
    /// # Panics
    /// Where there are no columns: not of facts that are [whole](Self::whole).
    pub fn key(&self) -> &Column {
        &self.columns[0]
    }

    /// The table and the column that are to get IDs, or to lose them.
    ///
    /// # Panics
    /// Where there are no columns: not of facts that are [whole](Self::whole).
    pub fn key_names(&self) -> (&str, &str) {
        (self.name(self.key().relation), &self.key().name)
    }

    /// The name of a table. Facts that are [whole](Self::whole) have it.
    pub(crate) fn name(&self, oid: Oid) -> &str {
        self.relation(oid).map_or("", |relation| &relation.name)
    }

    /// The key in the table itself, in its partitions, and in the tables that inherit from it.
    pub(crate) fn key_columns(&self) -> Vec<&Column> {
        let mut found = vec![self.key()];
        let mut next = 0;
        while next < found.len() {
            let parent = found[next].relation;
            let heirs = self.columns.iter().filter(|column| {
                column.parents.contains(&parent)
                    && column.name == self.key().name
                    && !found.iter().any(|known| known.relation == column.relation)
            });
            let heirs: Vec<&Column> = heirs.collect();
            found.extend(heirs);
            next += 1;
        }
        found
    }

    /// The table that is to get IDs, or to lose them; `None` where there is none, which cannot be.
    pub fn table(&self) -> Option<&Relation> {
        self.relation(self.key().relation)
    }

    /// Whether the table, its partitions and the tables that inherit from it belong to one role. Only then can they be read
    /// as one: a query of the table runs code of all their owners.
    pub fn has_one_owner(&self) -> bool {
        self.table().is_some_and(|table| table.heirs_of_others.is_empty())
    }

    /// Those of these tables that belong to another role than the table of the key does.
    pub(crate) fn owned_by_others(&self, tables: &[Oid]) -> Vec<&Relation> {
        let owner = self.table().map(|table| table.owner.oid);
        let relations = tables.iter().filter_map(|&oid| self.relation(oid));
        relations.filter(|relation| Some(relation.owner.oid) != owner).collect()
    }

    /// What is known of a table.
    pub fn relation(&self, oid: Oid) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.oid == oid)
    }

    /// A column with its table: `public.orders.id`.
    pub(crate) fn column_name(&self, column: &Column) -> String {
        format!("{}.{}", self.name(column.relation), column.name)
    }
}
