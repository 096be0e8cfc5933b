//! PostgreSQL's trees of nodes, as far as the planner's hooks read and build them.
//!
//! All functions here get pointers that come from the planner: to nodes that live as long as the planning of the query.

use crate::postgres::given::Given;
use pgrx::FromDatum;
use pgrx::pg_sys::{self, Node, NodeTag};

/// A type of node.
///
/// # Safety
/// Nodes with this tag are of this type.
pub unsafe trait Tagged {
    /// The tag of the type.
    const TAG: NodeTag;
}

macro_rules! tagged {
    ($($name:ident = $tag:ident),+ $(,)?) => {
        $(
            // SAFETY: PostgreSQL names tags after their types.
            unsafe impl Tagged for pg_sys::$name {
                const TAG: NodeTag = NodeTag::$tag;
            }
        )+
    };
}

tagged!(
    ArrayExpr = T_ArrayExpr,
    BoolExpr = T_BoolExpr,
    Const = T_Const,
    FromExpr = T_FromExpr,
    FuncExpr = T_FuncExpr,
    JoinExpr = T_JoinExpr,
    List = T_List,
    PlaceHolderVar = T_PlaceHolderVar,
    NullTest = T_NullTest,
    OpExpr = T_OpExpr,
    RelabelType = T_RelabelType,
    RowCompareExpr = T_RowCompareExpr,
    ScalarArrayOpExpr = T_ScalarArrayOpExpr,
    Var = T_Var,
);

/// The node as one of this type; `None` where it is NULL or of another type.
///
/// # Safety
/// The pointer is NULL, or to a node.
#[inline]
pub unsafe fn cast<'a, T: Tagged>(node: *mut Node) -> Option<&'a mut T> {
    // SAFETY: as above; the tag tells the type.
    unsafe { if !node.is_null() && (*node).type_ == T::TAG { Some(&mut *node.cast::<T>()) } else { None } }
}

/// The elements of a list of pointers; none where it is NIL. Takes no memory, as the planner's hooks look at every query.
///
/// # Safety
/// The pointer is NULL, or to a list of pointers to what `T` is, which keeps its length meanwhile.
#[inline]
pub unsafe fn elements<T>(list: *mut pg_sys::List) -> impl DoubleEndedIterator<Item = *mut T> + ExactSizeIterator {
    // SAFETY: as above; a list has so many elements.
    let length = if list.is_null() { 0 } else { unsafe { (*list).length as usize } };
    // SAFETY: as above.
    (0..length).map(move |at| unsafe { (*(*list).elements.add(at)).ptr_value.cast() })
}

/// The numbers of a set, in order. As quick as a look at its bits; a call of PostgreSQL has a price.
///
/// # Safety
/// The pointer is NULL, or to a set, which stays as it is meanwhile.
#[inline]
pub unsafe fn numbers(set: *mut pg_sys::Bitmapset) -> impl Iterator<Item = usize> {
    // SAFETY: as above; a set has so many words.
    let count = if set.is_null() { 0 } else { unsafe { (*set).nwords as usize } };
    (0..count).flat_map(move |at| {
        // SAFETY: as above.
        let mut word: pg_sys::bitmapword = unsafe { *(*set).words.as_ptr().add(at) };
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros();
            word &= word.wrapping_sub(1);
            (bit < pg_sys::bitmapword::BITS).then_some(at * pg_sys::bitmapword::BITS as usize + bit as usize)
        })
    })
}

/// A list of these.
///
/// # Safety
/// The pointers are to what lives as long as the planning.
pub unsafe fn list<T>(elements: &[*mut T]) -> *mut pg_sys::List {
    // SAFETY: lappend() makes a new list of NIL.
    elements.iter().fold(std::ptr::null_mut(), |list, &element| unsafe { pg_sys::lappend(list, element.cast()) })
}

/// The expression without the labels that change its type alone, as from a domain to its base type.
///
/// # Safety
/// The pointer is to an expression.
pub unsafe fn without_labels(mut node: *mut Node) -> *mut Node {
    // SAFETY: as above; a label has an argument.
    while let Some(label) = unsafe { cast::<pg_sys::RelabelType>(node) } {
        node = label.arg.cast();
    }
    node
}

/// A copy of an expression, for a second place in the tree.
///
/// # Safety
/// The pointer is to a node.
pub unsafe fn copy(node: *mut Node) -> *mut Node {
    // SAFETY: as above.
    unsafe { pg_sys::copyObjectImpl(node.cast()).cast() }
}

/// The value of a constant of type `text`, or its beginning; `None` where the expression is none, or NULL.
///
/// # Safety
/// The pointer is to an expression of that type.
pub unsafe fn text(expression: *mut Node) -> Option<String> {
    // SAFETY: as above.
    unsafe {
        let constant = cast::<pg_sys::Const>(expression)?;
        Given::from_datum(constant.constvalue, constant.constisnull).map(|text| text.read().into_owned())
    }
}
