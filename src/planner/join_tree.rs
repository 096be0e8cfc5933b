//! The join tree of a query whose expressions are preprocessed: parts within parts, each with conditions that are combined by AND.

use super::nodes::{At, Expr, List};
use super::state::Planner;
use pg_sys::{FromExpr, JoinExpr, JoinType, Node};
use pgrx::pg_sys;

/// A part of the tree, which has parts in turn, or tables.
#[derive(Clone, Copy)]
pub enum JoinNode<'p> {
    /// Parts that are joined by no more than the conditions.
    From(At<'p, FromExpr>),
    /// Two parts.
    Join(At<'p, JoinExpr>),
}

/// All parts of the tree, each after those within it. Some of PostgreSQL's commands plan without a query: there, none.
pub fn parts(planner: Planner<'_>) -> Vec<JoinNode<'_>> {
    let mut all = Vec::new();
    planner.join_tree().into_iter().for_each(|top| collect(top, &mut all));
    all
}

fn collect<'p>(node: Expr<'p>, all: &mut Vec<JoinNode<'p>>) {
    if let Some(from) = node.cast::<FromExpr>() {
        from.fromlist().iter().for_each(|part| collect(part, all));
        all.push(JoinNode::From(from));
    } else if let Some(join) = node.cast::<JoinExpr>() {
        collect(join.left(), all);
        collect(join.right(), all);
        all.push(JoinNode::Join(join));
    }
}

impl<'p> JoinNode<'p> {
    /// Its conditions, of which there may be none.
    pub fn conditions(self) -> List<'p, Node> {
        let conditions = match self {
            Self::From(from) => from.quals(),
            Self::Join(join) => join.quals(),
        };
        conditions.and_then(Expr::list).unwrap_or(List::EMPTY)
    }

    /// Puts others in their place, where something makes others of them. It is not asked about no conditions.
    pub fn change(self, others: impl FnOnce(List<'p, Node>) -> Option<List<'p, Node>>) {
        let conditions = self.conditions();
        if conditions.is_empty() {
            return;
        }
        match (others(conditions).and_then(List::node), self) {
            (None, _) => {}
            (new, Self::From(from)) => from.set_quals(new),
            (new, Self::Join(join)) => join.set_quals(new),
        }
    }

    /// Whether rows without a match come, too.
    pub fn is_outer_join(self) -> bool {
        self.join_type().is_some_and(|kind| kind != JoinType::JOIN_INNER)
    }

    /// Whether it is a FULL JOIN, which can use only conditions of equality.
    pub fn is_full_join(self) -> bool {
        self.join_type() == Some(JoinType::JOIN_FULL)
    }

    fn join_type(self) -> Option<JoinType::Type> {
        match self {
            Self::From(_) => None,
            Self::Join(join) => Some(join.jointype()),
        }
    }
}
