//! The planner's state of a query, and its tables: see [`nodes`](super::nodes).

use super::nodes::{At, Expr, List, NumberSet, made};
use pg_sys::{AppendRelInfo, IndexOptInfo, Node, Oid, PlannerInfo, RangeTblEntry, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;

/// The state.
pub type Planner<'p> = At<'p, PlannerInfo>;
/// A table.
pub type Rel<'p> = At<'p, RelOptInfo>;
/// What the query says that a table is.
pub type RangeEntry<'p> = At<'p, RangeTblEntry>;
/// What a table that is a member of another one has from that.
pub type MemberPlace<'p> = At<'p, AppendRelInfo>;
/// A condition.
pub type Restriction<'p> = At<'p, RestrictInfo>;
/// An index.
pub type Index<'p> = At<'p, IndexOptInfo>;
/// A condition of an index.
pub type OfIndex<'p> = At<'p, pg_sys::IndexClause>;

/// An index without expressions that is there in each database: `pg_class_oid_index`. PostgreSQL looks up the statistics of an expression by the OID of
/// an index and the number of a column. So a description with other expressions than the index has in the catalog gets this OID: with the index's
/// own, statistics of one expression would be taken for those of another, which may be of another type. Others may look for the name.
pub const WITHOUT_STATISTICS: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::ClassOidIndexId);

/// In which direction an index is read.
type Direction = pg_sys::ScanDirection::Type;

/// A type that is passed by value, in eight bytes.
enum EightBytes {
    Id,
    Time,
    Local,
    /// In four.
    Date,
}

macro_rules! numbered {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $array:ident;)+) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(self, number: u32) -> Option<At<'p, $type>> {
                // SAFETY: each of these arrays, once it is there, has so many elements: NULL, or a pointer to what is of this type.
                unsafe {
                    let root = self.as_ptr();
                    let is_there = !(*root).$array.is_null() && number < (*root).simple_rel_array_size.cast_unsigned();
                    is_there.then(|| At::new(*(*root).$array.add(number as usize))).flatten()
                }
            }
        )+
    };
}

/// What PostgreSQL makes of an expression: a changed copy.
macro_rules! changed {
    ($($(#[$doc:meta])* fn $name:ident($planner:ident, $expression:ident $(, $more:ident: $type:ty)*) = $new:expr;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(self, expression: Expr<'p> $(, $more: $type)*) -> Expr<'p> {
                let ($planner, $expression) = (self.as_ptr(), expression.as_ptr());
                // SAFETY: the function reads what the planner has and a tree, and makes a new one.
                unsafe { made($new) }
            }
        )+
    };
}

/// Functions of PostgreSQL that walk through an expression, and return a set.
macro_rules! sets {
    ($($(#[$doc:meta])* fn $name:ident($planner:ident, $expression:ident $(, $more:ident: $type:ty)?) = $set:expr;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(self, expression: Expr<'p> $(, $more: $type)?) -> NumberSet<'p> {
                let ($planner, $expression) = (self.as_ptr(), expression.as_ptr());
                // SAFETY: the function reads what the planner has and a tree, and makes a new set.
                unsafe { NumberSet::new($set) }
            }
        )+
    };
}

/// Has PostgreSQL estimate what something costs, and note it there.
macro_rules! costs {
    ($($(#[$doc:meta])* fn $name:ident($planner:ident, $what:ident: $type:ty $(, $more:ident: $type_of_more:ty)?) = $estimate:expr;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(self, $what: $type $(, $more: $type_of_more)?) {
                let ($planner, $what) = (self.as_ptr(), $what.as_ptr());
                $(let $more = $more.as_ptr();)?
                // SAFETY: what the query has, and the function sets no more than what it costs.
                unsafe { $estimate }
            }
        )+
    };
}

impl<'p> Planner<'p> {
    numbered! {
        /// The table that has this number in the query.
        rel: RelOptInfo = simple_rel_array;
        /// What the query says of it.
        entry: RangeTblEntry = simple_rte_array;
        /// What it has from the table that it is a member of.
        place: AppendRelInfo = append_rel_array;
    }

    /// Whether a row that another session has changed meanwhile is looked at again, by the scans of the plan: where rows are changed or locked.
    pub fn rechecks_rows(self) -> bool {
        let query = self.query();
        !query.locks().is_empty()
            || !matches!(query.command(), pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT)
    }

    /// The query's join tree. Some of PostgreSQL's commands plan without a query.
    #[inline]
    pub fn join_tree(self) -> Option<Expr<'p>> {
        self.query().join_tree().map(At::node)
    }

    /// Puts something else in the place of what a member has from its whole; the list of all members has it still.
    pub fn set_place(self, place: MemberPlace<'p>) {
        if self.place(place.child()).is_some() {
            // SAFETY: the array has an element of this number, as there is one.
            unsafe { *(*self.as_ptr()).append_rel_array.add(place.child() as usize) = place.as_ptr() };
        }
    }

    /// Does something for which PostgreSQL's memory is taken that lasts while the query is planned. The search for an order of joins may forget
    /// what it has allocated.
    pub fn in_memory<T>(self, function: impl FnOnce() -> T) -> T {
        match self.memory() {
            // SAFETY: the memory is there while the query is planned, and what was current before is again afterwards.
            Some(memory) => unsafe { pgrx::PgMemoryContexts::For(memory.as_ptr()).switch_to(|_| function()) },
            None => function(),
        }
    }

    sets! {
        /// The tables that an expression is of.
        fn tables_of(planner, expression) = pg_sys::pull_varnos(planner, expression);

        /// The columns of a table that an expression has, each as its number less [`pg_sys::FirstLowInvalidHeapAttributeNumber`]; 0 stands for a whole row.
        fn columns_of(_planner, expression, table: u32) = {
            let mut columns = std::ptr::null_mut();
            pg_sys::pull_varattnos(expression, table, &raw mut columns);
            columns
        };
    }

    changed! {
        /// An expression with what is known of it evaluated.
        fn folded(planner, expression) = pg_sys::eval_const_expressions(planner, expression);

        /// An expression with what it would be now, as for an estimate.
        fn estimated(planner, expression) = pg_sys::estimate_expression_value(planner, expression);

        /// A condition that is true where another one is false, which is not used any more.
        fn negated(_planner, expression) = pg_sys::negate_clause(expression);

        /// An expression of a table as one of its member, with one place; a column that the member does not have is an ERROR.
        fn of_member(planner, expression, place: MemberPlace<'p>) = {
            let mut place = place.as_ptr();
            pg_sys::adjust_appendrel_attrs(planner, expression, 1, &raw mut place)
        };

        /// An expression of one table of the query as that of another one which has the same columns.
        fn of_other(_planner, expression, from: u32, to: u32) = {
            let copy: *mut Node = pg_sys::copyObjectImpl(expression.cast()).cast();
            pg_sys::ChangeVarNodes(copy, from as i32, to as i32, 0);
            copy
        };
    }

    /// The tables of the query that are the same as this one, itself among them, each with its number. PostgreSQL may find that it is joined with itself,
    /// row by row, and read it once.
    pub fn same_tables(self, table: Rel<'p>) -> impl Iterator<Item = (u32, RangeEntry<'p>)> {
        let own = self.entry(table.number()).map(RangeEntry::oid);
        let entries = (1..).map_while(move |number| Some((number, self.entry(number)?)));
        entries.filter(move |(_, entry)| entry.kind() == pg_sys::RTEKind::RTE_RELATION && Some(entry.oid()) == own)
    }

    /// Whether an expression is NULL.
    pub fn is_null(self, expression: Expr<'p>) -> Expr<'p> {
        // SAFETY: a new node, all of whose fields are set.
        unsafe {
            let new = pgrx::PgBox::<pg_sys::NullTest>::alloc_node(pg_sys::NodeTag::T_NullTest).into_pg();
            (*new).arg = expression.as_ptr().cast();
            (*new).nulltesttype = pg_sys::NullTestType::IS_NULL;
            (*new).argisrow = false;
            (*new).location = -1;
            made(new)
        }
    }

    /// Has the plan made again where a relation changes.
    pub fn depend_on_relation(self, relation: Oid) {
        let plan = self.plan().as_ptr();
        // SAFETY: the plan's own list, which has no other user while the query is planned.
        unsafe { (*plan).relationOids = pg_sys::list_append_unique_oid((*plan).relationOids, relation) };
    }

    /// Has the plan made again where a function changes, or the user does.
    pub fn depend_on_function(self, function: Oid) {
        let plan = self.plan();
        plan.set_depends_on_role(true);
        let cache = pg_sys::SysCacheIdentifier::PROCOID;
        let none = pg_sys::Datum::from(0);
        // SAFETY: the number that the catalog's cache has for a key, which is one OID; and a note of that OID.
        unsafe {
            let hash = pg_sys::GetSysCacheHashValue(cache as _, pg_sys::Datum::from(function), none, none, none);
            // Once is enough, however often the query calls it.
            if !plan.dependencies().iter().any(|item| item.cache() == cache as i32 && item.hash() == hash) {
                pg_sys::record_plan_function_dependency(self.as_ptr(), function);
            }
        }
    }

    /// A constant `true` or `false`.
    pub fn truth(self, value: bool) -> Expr<'p> {
        Self::constant_of(pg_sys::BOOLOID, pg_sys::InvalidOid, 1, pg_sys::Datum::from(value))
    }

    /// A constant of type `bigint`.
    pub fn id(self, value: i64) -> Expr<'p> {
        self.constant(EightBytes::Id, value)
    }

    /// A constant of type `timestamptz`.
    pub fn time(self, value: i64) -> Expr<'p> {
        self.constant(EightBytes::Time, value)
    }

    /// A constant of type `text`.
    pub fn text(self, text: &str) -> Expr<'p> {
        let (value, collation) = (text.into_datum().unwrap_or(pg_sys::Datum::null()), pg_sys::DEFAULT_COLLATION_OID);
        Self::constant_of(pg_sys::TEXTOID, collation, -1, value)
    }

    /// A constant of type `timestamptz`, `timestamp` or `date`, in its own units.
    pub fn of_type(self, of_type: Oid, value: i64) -> Option<Expr<'p>> {
        let of_type = match of_type {
            pg_sys::TIMESTAMPTZOID => EightBytes::Time,
            pg_sys::TIMESTAMPOID => EightBytes::Local,
            pg_sys::DATEOID if i32::try_from(value).is_ok() => EightBytes::Date,
            _ => return None,
        };
        Some(self.constant(of_type, value))
    }

    fn constant(self, of_type: EightBytes, value: i64) -> Expr<'p> {
        let (of_type, length) = match of_type {
            EightBytes::Id => (pg_sys::INT8OID, 8),
            EightBytes::Time => (pg_sys::TIMESTAMPTZOID, 8),
            EightBytes::Local => (pg_sys::TIMESTAMPOID, 8),
            EightBytes::Date => (pg_sys::DATEOID, 4),
        };
        let value = if length == 4 { pg_sys::Datum::from(value as i32) } else { pg_sys::Datum::from(value) };
        Self::constant_of(of_type, pg_sys::InvalidOid, length, value)
    }

    /// A constant of a type of this length, which is -1 for `text`; a value that has a length is passed by value.
    fn constant_of(of_type: Oid, collation: Oid, length: i32, value: pg_sys::Datum) -> Expr<'p> {
        // SAFETY: a new node with a value of its type, as those who call this have it.
        unsafe { made(pg_sys::makeConst(of_type, -1, collation, length, value, false, length > 0)) }
    }

    /// Adds the rows of a function to the tables of a query, and returns them, and the column that they have. The call returns a set of values of this
    /// type: of `count` values, as far as is known. No part of the query has them, and they have no paths, so PostgreSQL joins them with nothing.
    pub fn with_function(self, call: Expr<'p>, of_type: Oid, count: f64, like: Rel<'p>) -> (Rel<'p>, Expr<'p>) {
        let root = self.as_ptr();
        // SAFETY: new nodes, and as PostgreSQL adds a partition to the tables of a query: the arrays have room for one more, whose number is the length
        // of the list.
        let (rows, column): (Rel<'p>, Expr<'p>) = unsafe {
            let function = pgrx::PgBox::<pg_sys::RangeTblFunction>::alloc_node(pg_sys::NodeTag::T_RangeTblFunction);
            let function = function.into_pg();
            (*function).funcexpr = call.as_ptr();
            (*function).funccolcount = 1;
            let entry = pgrx::PgBox::<RangeTblEntry>::alloc_node(pg_sys::NodeTag::T_RangeTblEntry).into_pg();
            (*entry).rtekind = pg_sys::RTEKind::RTE_FUNCTION;
            (*entry).functions = pg_sys::lappend(std::ptr::null_mut(), function.cast());
            let name = pg_sys::makeString(pg_sys::pstrdup(c"element".as_ptr()));
            (*entry).eref = pg_sys::makeAlias(c"elements".as_ptr(), pg_sys::lappend(std::ptr::null_mut(), name.cast()));
            let tables = pg_sys::lappend((*(*root).parse).rtable, entry.cast());
            (*(*root).parse).rtable = tables;
            let number = (*tables).length;
            pg_sys::expand_planner_arrays(root, 1);
            *(*root).simple_rte_array.add(number as usize) = entry;
            let rows = pg_sys::build_simple_rel(root, number, std::ptr::null_mut());
            let column = pg_sys::makeVar(number as _, 1, of_type, -1, pg_sys::InvalidOid, 0);
            (*(*rows).reltarget).exprs = pg_sys::lappend(std::ptr::null_mut(), column.cast());
            pg_sys::set_function_size_estimates(root, rows);
            (made(rows), made(column))
        };
        rows.set_kind(pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL);
        rows.set_may_be_parallel(like.may_be_parallel());
        rows.set_expected_rows(count.max(1.0));
        (rows, column.copy())
    }

    costs! {
        /// Notes in a path over an index what it costs to read it once.
        fn estimate(planner, path: At<'p, pg_sys::IndexPath>) = pg_sys::cost_index(path, planner, 1.0, false);

        /// Notes in a condition what it costs to evaluate something else in its place.
        fn price(planner, condition: Restriction<'p>, evaluated: Expr<'p>) =
            pg_sys::cost_qual_eval_node(&raw mut (*condition).eval_cost, evaluated, planner);
    }

    /// Adds a path to a table that reads it by a path over an index, which is estimated for all of it, for each of so many rows of a function: by a
    /// condition that compares the table with the row. Each time costs so many calls of an operator.
    pub fn add_loop(
        self,
        table: Rel<'p>,
        (rows, count): (Rel<'p>, f64),
        inner: At<'p, pg_sys::IndexPath>,
        by: Restriction<'p>,
        order: List<'p, Node>,
        of_each: f64,
    ) {
        use pg_sys::JoinType::JOIN_INNER;
        let (joins, has_class_joins) = (table.joins(), table.has_class_joins());
        table.set_joins([by].into_iter().collect());
        table.set_has_class_joins(false);
        let (root, rel, none, nobody) = (self.as_ptr(), table.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut());
        let (mut costs, mut extra) = (pg_sys::JoinCostWorkspace::default(), pg_sys::JoinPathExtraData::default());
        let (costs, extra) = (&raw mut costs, &raw mut extra);
        let inner: *mut pg_sys::Path = inner.as_ptr().cast();
        // SAFETY: paths of tables of the query. The one that is new is a path of the table: it has its rows, and needs nothing of others.
        unsafe {
            let outer = pg_sys::create_functionscan_path(root, rows.as_ptr(), none, nobody);
            let (startup, total) = ((*inner).startup_cost, (*inner).total_cost);
            (*inner).param_info = pg_sys::get_baserel_parampathinfo(root, rel, rows.numbers().as_ptr());
            (*inner).rows = ((*inner).rows / count).max(1.0);
            (*inner).startup_cost = startup / count;
            (*inner).total_cost = total / count;
            #[cfg(not(since_pg19))]
            pg_sys::initial_cost_nestloop(root, costs, JOIN_INNER, outer, inner, extra);
            // Whatever kind of join is turned off.
            #[cfg(since_pg19)]
            pg_sys::initial_cost_nestloop(root, costs, JOIN_INNER, 0, outer, inner, extra);
            let order = order.as_ptr();
            let new =
                pg_sys::create_nestloop_path(root, rel, JOIN_INNER, costs, extra, outer, inner, none, order, nobody);
            let new: *mut pg_sys::Path = new.cast();
            (*new).startup_cost = (*outer).startup_cost + startup;
            (*new).total_cost = (*outer).total_cost + total + count * of_each * pg_sys::cpu_operator_cost;
            pg_sys::add_path(rel, new);
        }
        table.set_joins(joins);
        table.set_has_class_joins(has_class_joins);
    }

    /// In which order an index of a table is read, forward and backward, as far as the query has a use for it; and how much of that the query itself
    /// sorts by. `None` where it has a use for no order.
    pub fn orders(self, index: Index<'p>, table: Rel<'p>) -> Option<[(i32, Direction, List<'p, Node>); 2]> {
        use pg_sys::ScanDirection::{BackwardScanDirection, ForwardScanDirection};
        let root = self.as_ptr();
        // SAFETY: these read what the planner has, and make new lists.
        unsafe {
            pg_sys::has_useful_pathkeys(root, table.as_ptr()).then(|| {
                [ForwardScanDirection, BackwardScanDirection].map(|direction| {
                    let mut wanted = 0;
                    let keys = pg_sys::build_index_pathkeys(root, index.as_ptr(), direction);
                    let keys = pg_sys::truncate_useless_pathkeys(root, table.as_ptr(), keys);
                    pg_sys::pathkeys_count_contained_in(self.order().as_ptr(), keys, &raw mut wanted);
                    (wanted, direction, List::new(keys))
                })
            })
        }
    }
}

impl<'p> Rel<'p> {
    /// What the table has from the one that it is a member of, and that; `None` where it is no member.
    #[inline]
    pub fn place(self, planner: Planner<'p>) -> Option<(MemberPlace<'p>, Self)> {
        if self.kind() != pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL {
            return None;
        }
        let place = planner.place(self.number())?;
        Some((place, planner.rel(place.parent())?))
    }
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $array:ident;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(self, at: usize) -> Option<$type> {
                // SAFETY: each of these arrays, where it is there, has an element for each key column.
                unsafe {
                    let index = self.as_ptr();
                    let is_there = !(*index).$array.is_null() && at < (*index).nkeycolumns.unsigned_abs() as usize;
                    is_there.then(|| *(*index).$array.add(at))
                }
            }
        )+
    };
}

impl<'p> Index<'p> {
    keys! {
        /// The family of operators of a key column.
        family: Oid = opfamily;
        /// The number of the table's column that a key column is; 0 of an expression.
        key: i32 = indexkeys;
        /// The type that these operators take.
        input_type: Oid = opcintype;
        /// Whether a key column is in falling order; `None` where the index has no order.
        is_falling: bool = reverse_sort;
        /// Whether NULLs come first.
        has_nulls_first: bool = nulls_first;
    }

    /// Whether a column of the index is this expression.
    pub fn has(self, at: usize, expression: Expr<'p>) -> bool {
        // SAFETY: this reads two trees, and the column of this number, which the index has.
        let is = || unsafe { pg_sys::match_index_to_operand(expression.as_ptr(), at as i32, self.as_ptr()) };
        at < self.column_count().unsigned_abs() as usize && is()
    }
}

impl<'p> OfIndex<'p> {
    /// The same condition for a column of another index, or in a comparison of rows, for several; `None` where the index has no such key column.
    pub fn of_columns(self, index: Index<'p>, column: usize, columns: impl Iterator<Item = usize>) -> Option<Self> {
        let columns: Vec<usize> = columns.collect();
        let count = index.key_count().unsigned_abs() as usize;
        if columns.iter().chain([&column]).any(|&column| column >= count) {
            return None;
        }
        let columns = self.columns().replaced(columns.iter().map(|&column| column as u32));
        let new = self.duplicate();
        // SAFETY: fields of a new condition; the columns are key columns of the index.
        unsafe {
            (*new.as_ptr()).indexcol = column as i16;
            (*new.as_ptr()).indexcols = columns.as_ptr();
        }
        Some(new)
    }
}
