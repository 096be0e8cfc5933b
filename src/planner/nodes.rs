//! PostgreSQL's trees of nodes, as far as the planner's hooks read and build them; so the other modules need no pointers.
//!
//! [`At`] is the address of something that PostgreSQL has. Its lifetime, `'p`, is the call of a hook. It can be read and copied freely because of
//! what is true while a hook runs:
//!
//! * What the planner has, and what is allocated for it, lives until the query is planned, which is after the hook returns: PostgreSQL gives back
//!   the whole memory context. Nothing that is called here frees or moves a node before.
//! * PostgreSQL and other extensions change nodes through pointers of their own, also while a function of PostgreSQL runs that is called here.
//!   So there are no references to nodes, shared or exclusive. A field is read by copying it, and written by one assignment.
//! * A list is only made here, and never changed: PostgreSQL may use one in several places.
//!
//! The table [`fields`] says of what type each field is, also where PostgreSQL declares a list or an expression of any kind. PostgreSQL's functions
//! look at the tags of the nodes that they get, and raise an ERROR where they know no such node. An operator gets values of the types that it takes:
//! see [`Comparing`](super::operators::Comparing).

use crate::errors::Error;
use crate::postgres::{catalog, value};
use pg_sys::{Node, NodeTag, Oid};
use pgrx::prelude::*;
use snowflake_core::inverse::{Kind, Value};
use std::cell::Cell;
use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The address of something of PostgreSQL's that is there for `'p`, and a whole value of its type.
#[repr(transparent)]
pub struct At<'p, T>(NonNull<T>, PhantomData<&'p Cell<T>>);

/// An expression, or any other node of a query's tree.
pub type Expr<'p> = At<'p, Node>;

impl<T> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for At<'_, T> {}

impl<T> PartialEq for At<'_, T> {
    /// Whether it is the same one, at the same address.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for At<'_, T> {}

/// The call of a hook, or of another function that PostgreSQL calls while it plans.
pub struct HookCall(());

impl HookCall {
    /// Begins one, which ends where this is dropped.
    pub const fn begin() -> Self {
        Self(())
    }

    /// What PostgreSQL passes to it; `None` where that is NULL.
    ///
    /// # Safety
    /// The pointer is an argument of this call, or NULL, and to what the type says: see the rules of the [module](self).
    #[inline]
    pub unsafe fn lend<T>(&self, pointer: *mut T) -> Option<At<'_, T>> {
        NonNull::new(pointer).map(|pointer| At(pointer, PhantomData))
    }
}

impl<'p, T> At<'p, T> {
    /// `None` where the pointer is NULL.
    ///
    /// # Safety
    /// The pointer is NULL, or to what the type says, for as long as the lifetime says: see the rules of the [module](self).
    #[inline]
    pub unsafe fn new(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Self(pointer, PhantomData))
    }

    /// For PostgreSQL.
    #[inline]
    pub const fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// A type of node.
///
/// # Safety
/// Nodes with this tag are of this type, which is one of C that begins with the tag, and has no array at its end.
pub unsafe trait Tagged: Copy {
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
    AppendRelInfo = T_AppendRelInfo,
    ArrayExpr = T_ArrayExpr,
    BoolExpr = T_BoolExpr,
    BooleanTest = T_BooleanTest,
    Const = T_Const,
    FromExpr = T_FromExpr,
    FuncExpr = T_FuncExpr,
    IndexClause = T_IndexClause,
    IndexOptInfo = T_IndexOptInfo,
    IndexPath = T_IndexPath,
    JoinExpr = T_JoinExpr,
    NullTest = T_NullTest,
    OpExpr = T_OpExpr,
    Param = T_Param,
    PlaceHolderVar = T_PlaceHolderVar,
    RelabelType = T_RelabelType,
    RestrictInfo = T_RestrictInfo,
    RowCompareExpr = T_RowCompareExpr,
    ScalarArrayOpExpr = T_ScalarArrayOpExpr,
    TargetEntry = T_TargetEntry,
    Var = T_Var,
);

impl<'p, T: Tagged> At<'p, T> {
    /// The same, as any node.
    #[inline]
    pub const fn node(self) -> Expr<'p> {
        At(self.0.cast(), PhantomData)
    }

    /// Another one, which has all that this one has. What it points to, both have.
    pub fn duplicate(self) -> Self {
        // SAFETY: new memory for one of the type, into which a whole one is copied.
        unsafe {
            let new: *mut T = pg_sys::palloc(size_of::<T>()).cast();
            new.copy_from_nonoverlapping(self.as_ptr(), 1);
            made(new)
        }
    }
}

impl<'p> At<'p, pg_sys::Path> {
    /// The path as one over an index; `None` where it is another one.
    pub fn over_index(self) -> Option<At<'p, pg_sys::IndexPath>> {
        (self.tag() == NodeTag::T_IndexPath).then_some(At(self.0.cast(), PhantomData))
    }
}

/// What PostgreSQL tells of an expression.
macro_rules! told {
    ($($(#[$doc:meta])* fn $name:ident() -> $result:ty = $function:ident;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(self) -> $result {
                // SAFETY: the function walks through a tree, and looks things up in the catalog.
                unsafe { pg_sys::$function(self.as_ptr()) }
            }
        )+
    };
}

impl<'p> Expr<'p> {
    /// The node as one of this type; `None` where it is of another one.
    #[inline]
    pub fn cast<T: Tagged>(self) -> Option<At<'p, T>> {
        (self.tag() == T::TAG).then_some(At(self.0.cast(), PhantomData))
    }

    /// The node as a list of nodes.
    #[inline]
    pub fn list(self) -> Option<List<'p, Node>> {
        (self.tag() == NodeTag::T_List).then_some(List(Some(At(self.0.cast(), PhantomData)), PhantomData))
    }

    /// Whether two expressions say the same. Mostly that is seen at once.
    pub fn says(self, other: Self) -> bool {
        // SAFETY: equal() reads two nodes.
        let are_equal = || unsafe { pg_sys::equal(self.as_ptr().cast(), other.as_ptr().cast()) };
        self == other || self.tag() == other.tag() && are_equal()
    }

    /// A copy of an expression, for a second place in the tree.
    pub fn copy(self) -> Self {
        // SAFETY: copyObject() returns a node of the same type.
        unsafe { made(pg_sys::copyObjectImpl(self.as_ptr().cast())) }
    }

    /// Whether values of its type are stored as those of another one, or are read as such.
    pub fn is_stored_as(self, of_type: Oid) -> bool {
        catalog::is_stored_as(self.type_of(), of_type)
    }

    /// The type of the value.
    #[inline]
    pub fn type_of(self) -> Oid {
        // Most have it themselves.
        let of_column = self.cast::<pg_sys::Var>().map(At::vartype);
        let of_constant = || self.cast::<pg_sys::Const>().map(At::consttype);
        let of_call = || self.cast::<pg_sys::FuncExpr>().map(At::resulttype);
        of_column.or_else(of_constant).or_else(of_call).unwrap_or_else(|| self.looked_up_type())
    }

    told! {
        /// The type of the value, whatever the expression is.
        fn looked_up_type() -> Oid = exprType;

        /// Whether it may have another value each time that it is evaluated.
        fn is_volatile() -> bool = contain_volatile_functions;

        /// Whether it has a query within.
        fn has_subplan() -> bool = contain_subplans;
    }

    /// The expression without the labels that change its type alone, as from a domain to its base type.
    #[inline]
    pub fn without_labels(mut self) -> Self {
        while let Some(label) = self.cast::<pg_sys::RelabelType>() {
            self = label.arg();
        }
        self
    }

    /// The value of a constant of type `text`, or its beginning; `None` where the expression is none, or NULL.
    pub fn text(self) -> Option<String> {
        match self.values()?.pop()? {
            Value::Text(text) if self.type_of() == pg_sys::TEXTOID => Some(text),
            _ => None,
        }
    }

    /// The value of a constant, as a condition of a time has it; of an array, its elements. `None` where the expression is no constant.
    pub fn values(self) -> Option<Vec<Value>> {
        let constant = self.cast::<pg_sys::Const>()?;
        // SAFETY: a constant of this type.
        Some(unsafe { value::read(constant.constvalue(), constant.constisnull(), constant.consttype()) })
    }

    /// The elements of a constant array as constants, without those that are NULL; `None` where the expression is none, or NULL.
    pub fn constants(self) -> Option<Vec<Self>> {
        let constant = self.cast::<pg_sys::Const>().filter(|constant| !constant.constisnull())?;
        // SAFETY: a look-up of the type in the catalog. The elements are of that type, and are in the array, which stays.
        unsafe {
            let of_type = pg_sys::get_base_element_type(constant.consttype());
            if of_type == pg_sys::InvalidOid {
                return None;
            }
            let (mut length, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(of_type, &raw mut length, &raw mut by_value);
            let elements = value::elements(constant.constvalue(), of_type).into_iter().filter(|(_, is_null)| !is_null);
            let new = |datum| pg_sys::makeConst(of_type, -1, pg_sys::InvalidOid, length.into(), datum, false, by_value);
            Some(elements.map(|(datum, _)| made(new(datum))).collect())
        }
    }

    /// The instants of a constant of type `timestamptz[]`, without NULLs; `None` where the expression is none, or NULL.
    pub fn instants(self) -> Option<Vec<i64>> {
        let of_type = |it: &At<'_, pg_sys::Const>| !it.constisnull() && it.consttype() == pg_sys::TIMESTAMPTZARRAYOID;
        let values = self.cast::<pg_sys::Const>().filter(of_type).and_then(|_| self.values())?;
        let instant = |value| match value {
            Value::Of(Kind::Instant, instant) => Some(instant),
            _ => None,
        };
        Some(values.into_iter().filter_map(instant).collect())
    }
}

/// A comparison by an operator and its function, by their OIDs, of sides that are of the type that they take.
pub fn compared<'p>((operator, function): (u32, u32), left: Expr<'p>, right: Expr<'p>) -> Expr<'p> {
    let (none, left, right) = (pg_sys::InvalidOid, left.as_ptr().cast(), right.as_ptr().cast());
    // SAFETY: this makes a new node.
    unsafe {
        let new = pg_sys::make_opclause(operator.into(), pg_sys::BOOLOID, false, left, right, none, none);
        (*new.cast::<pg_sys::OpExpr>()).opfuncid = function.into();
        made(new)
    }
}

impl<'p> At<'p, pg_sys::OpExpr> {
    /// The same comparison of other sides, which are of the types that it takes.
    pub fn of(self, left: Expr<'p>, right: Expr<'p>) -> Expr<'p> {
        compared((self.opno().to_u32(), self.opfuncid().to_u32()), left, right)
    }
}

impl<'p> At<'p, pg_sys::ScalarArrayOpExpr> {
    /// The comparison with an element of the array, which is of the type of its elements.
    pub fn with_element(self, left: Expr<'p>, element: Expr<'p>) -> Expr<'p> {
        compared((self.opno().to_u32(), self.opfuncid().to_u32()), left, element)
    }
}

/// What a function of PostgreSQL has made.
///
/// # Safety
/// The pointer is to such a thing, which is new.
pub unsafe fn made<'p, T, U>(pointer: *mut U) -> At<'p, T> {
    // PostgreSQL raises an ERROR where it cannot make a node.
    At(NonNull::new(pointer.cast()).unwrap_or_else(|| Error::PlannedByOthers.raise()), PhantomData)
}

/// A list of pointers to nodes of a type.
pub struct List<'p, T>(Option<At<'p, pg_sys::List>>, PhantomData<At<'p, T>>);

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<'p, T> List<'p, T> {
    /// NIL.
    pub const EMPTY: Self = Self(None, PhantomData);

    /// # Safety
    /// The pointer is NULL, or to a list of pointers to what `T` is: see the rules of the [module](self).
    #[inline]
    pub unsafe fn new(list: *mut pg_sys::List) -> Self {
        Self(NonNull::new(list).map(|pointer| At(pointer, PhantomData)), PhantomData)
    }

    /// For PostgreSQL: NULL where it is NIL.
    #[inline]
    pub fn as_ptr(self) -> *mut pg_sys::List {
        self.0.map_or(std::ptr::null_mut(), At::as_ptr)
    }

    /// As the tree has it: `None` where it is NIL.
    pub fn node(self) -> Option<Expr<'p>> {
        self.0.map(|list| At(list.0.cast(), PhantomData))
    }

    /// How many elements there are.
    #[inline]
    pub fn len(self) -> usize {
        self.0.map_or(0, |list| list.length().unsigned_abs() as usize)
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        // PostgreSQL has no list without elements.
        self.0.is_none()
    }

    /// The element at this place; `None` where there is none, or where it is NULL.
    #[inline]
    pub fn get(self, at: usize) -> Option<At<'p, T>> {
        let list = self.0.filter(|list| list.has(at))?.as_ptr();
        // SAFETY: an element of the list's array, which is a pointer, as the type says. The array may be elsewhere when it is read again.
        unsafe { At::new((*(*list).elements.add(at)).ptr_value.cast()) }
    }

    /// The elements in their order, without those that are NULL. Takes no memory, as the planner's hooks look at every query.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = At<'p, T>> {
        (0..self.len()).filter_map(move |at| self.get(at))
    }

    /// A list with other elements, of which those that are NULL stay so.
    pub fn mapped(self, function: impl Fn(At<'p, T>) -> At<'p, T>) -> Self {
        Self::built((0..self.len()).map(|at| self.get(at).map(&function)))
    }

    /// A list with one more element at the end.
    pub fn with(self, element: At<'p, T>) -> Self {
        self.with_all([element].into_iter())
    }

    /// A list with more elements at the end.
    pub fn with_all(self, elements: impl Iterator<Item = At<'p, T>>) -> Self {
        Self::built((0..self.len()).map(|at| self.get(at)).chain(elements.map(Some)))
    }

    /// A new list, where `None` becomes NULL. It is made at once, as PostgreSQL's `new_list()` does, and not element by element: this is called for each
    /// node that is copied.
    fn built(elements: impl Iterator<Item = Option<At<'p, T>>>) -> Self {
        let Some(most) = elements.size_hint().1 else {
            return Self::built(elements.collect::<Vec<_>>().into_iter());
        };
        if most == 0 {
            return Self::EMPTY;
        }
        let mut length = 0;
        // SAFETY: a new list with room for so many elements, of the type; no iterator has more than it says.
        unsafe {
            let list = pg_sys::palloc(size_of::<pg_sys::List>() + most * size_of::<pg_sys::ListCell>());
            let list = list.cast::<pg_sys::List>();
            let first = list.add(1).cast::<pg_sys::ListCell>();
            for element in elements.take(most) {
                (*first.add(length)).ptr_value = element.map_or(std::ptr::null_mut(), At::as_ptr).cast();
                length += 1;
            }
            if length == 0 {
                return Self::EMPTY;
            }
            (*list).type_ = NodeTag::T_List;
            (*list).length = length as i32;
            (*list).max_length = most as i32;
            (*list).elements = first;
            Self::new(list)
        }
    }
}

impl<'p> List<'p, Node> {
    /// The conditions, combined by AND.
    pub fn all_of(self) -> Expr<'p> {
        self.combined(pg_sys::BoolExprType::AND_EXPR)
    }

    /// The conditions, combined by OR.
    pub fn any_of(self) -> Expr<'p> {
        self.combined(pg_sys::BoolExprType::OR_EXPR)
    }

    fn combined(self, how: pg_sys::BoolExprType::Type) -> Expr<'p> {
        // SAFETY: a list of conditions becomes that of a new node.
        unsafe { made(pg_sys::makeBoolExpr(how, self.as_ptr(), -1)) }
    }

    /// Whether two lists of expressions say the same.
    pub fn says(self, other: Self) -> bool {
        let mut others = (0..other.len()).map(|at| other.get(at));
        let is_same = |at| match (self.get(at), others.next().flatten()) {
            (Some(one), Some(other)) => one.says(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.len() == other.len() && (0..self.len()).all(is_same)
    }
}

impl<'p, T> FromIterator<At<'p, T>> for List<'p, T> {
    fn from_iter<I: IntoIterator<Item = At<'p, T>>>(elements: I) -> Self {
        Self::built(elements.into_iter().map(Some))
    }
}

/// A list of these.
pub fn list<'p, T>(elements: &[At<'p, T>]) -> List<'p, T> {
    elements.iter().copied().collect()
}

impl NumberSet<'_> {
    /// For PostgreSQL: NULL where it is empty.
    pub fn as_ptr(self) -> *mut pg_sys::Bitmapset {
        self.0.map_or(std::ptr::null_mut(), At::as_ptr)
    }
}

impl At<'_, pg_sys::List> {
    /// Whether there is an element at this place.
    #[inline]
    fn has(self, at: usize) -> bool {
        at < self.length().unsigned_abs() as usize
    }

    /// The number at this place of a list of integers or OIDs; both are stored in the same way.
    fn number(self, at: usize) -> Option<u32> {
        let is_of_numbers = matches!(self.tag(), NodeTag::T_IntList | NodeTag::T_OidList);
        // SAFETY: an element of the list's array, which is a number, as the tag says.
        let number = || unsafe { (*(*self.as_ptr()).elements.add(at)).int_value.cast_unsigned() };
        (is_of_numbers && self.has(at)).then(number)
    }
}

/// A list of OIDs or of integers.
#[derive(Clone, Copy)]
pub struct NumberList<'p>(Option<At<'p, pg_sys::List>>);

impl<'p> NumberList<'p> {
    /// For PostgreSQL: NULL where it is NIL.
    pub fn as_ptr(self) -> *mut pg_sys::List {
        self.0.map_or(std::ptr::null_mut(), At::as_ptr)
    }

    /// The number at this place.
    pub fn get(self, at: usize) -> Option<u32> {
        self.0.and_then(|list| list.number(at))
    }

    /// The numbers in their order.
    pub fn iter(self) -> impl Iterator<Item = u32> + use<'p> {
        (0..).map_while(move |at| self.get(at))
    }

    /// A list of the same kind with other numbers; NIL where this one is.
    pub fn replaced(self, numbers: impl Iterator<Item = u32>) -> Self {
        let Some(tag) = self.0.map(At::<pg_sys::List>::tag) else { return self };
        let mut list = std::ptr::null_mut();
        for number in numbers {
            // SAFETY: these make a new list of NIL, and then append to that, which nobody else has yet.
            list = unsafe {
                match tag {
                    NodeTag::T_OidList => pg_sys::lappend_oid(list, number.into()),
                    _ => pg_sys::lappend_int(list, number.cast_signed()),
                }
            };
        }
        Self(NonNull::new(list).map(|pointer| At(pointer, PhantomData)))
    }
}

/// A set of numbers, as of the tables that an expression is of.
#[derive(Clone, Copy)]
pub struct NumberSet<'p>(Option<At<'p, pg_sys::Bitmapset>>);

impl<'p> NumberSet<'p> {
    /// # Safety
    /// The pointer is NULL, or to a set: see the rules of the [module](self).
    pub unsafe fn new(set: *mut pg_sys::Bitmapset) -> Self {
        Self(NonNull::new(set).map(|pointer| At(pointer, PhantomData)))
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// The bits of so many numbers.
    #[inline]
    fn word(self, at: usize) -> Option<pg_sys::bitmapword> {
        let set = self.0?.as_ptr();
        // SAFETY: a set has an array of so many words.
        unsafe { (at < (*set).nwords.unsigned_abs() as usize).then(|| *(*set).words.as_ptr().add(at)) }
    }

    /// The numbers in order. As quick as a look at its bits; a call of PostgreSQL has a price.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> + use<'p> {
        (0..).map_while(move |at| Some((at, self.word(at)?))).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < BITS as u32).then_some(at * BITS + bit as usize)
            })
        })
    }

    /// Whether it has a number.
    pub fn has(self, number: usize) -> bool {
        self.word(number / BITS).is_some_and(|word| word >> (number % BITS) & 1 == 1)
    }

    /// The number, where there is exactly one.
    pub fn only(self) -> Option<u32> {
        let mut numbers = self.iter();
        let only = numbers.next()?;
        numbers.next().is_none().then_some(only as u32)
    }

    /// Whether they have a number in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.iter().any(|number| other.has(number))
    }

    /// Whether they have the same numbers.
    pub fn is_same(self, other: Self) -> bool {
        self.iter().eq(other.iter())
    }

    /// Whether the other one has all that this one has.
    pub fn is_within(self, other: Self) -> bool {
        self.iter().all(|number| other.has(number))
    }
}

/// How many bits a word of a set has.
const BITS: usize = pg_sys::bitmapword::BITS as usize;

/// What a field of C is here. Of this module alone.
trait Lent<Raw>: Copy {
    /// # Safety
    /// The value of a field that the table says is of this type.
    unsafe fn lent(raw: Raw) -> Self;

    /// For PostgreSQL.
    fn raw(self) -> Raw;
}

/// Of a field that is never NULL.
impl<T, U> Lent<*mut U> for At<'_, T> {
    #[inline]
    unsafe fn lent(raw: *mut U) -> Self {
        // Of a node that PostgreSQL has made, it is not; another extension may have made this one.
        Self(NonNull::new(raw.cast()).unwrap_or_else(|| Error::PlannedByOthers.raise()), PhantomData)
    }

    #[inline]
    fn raw(self) -> *mut U {
        self.as_ptr().cast()
    }
}

macro_rules! lent_or_null {
    ($([$($of:ident),*] $type:ty = $raw:ty: $to:expr, $from:expr;)+) => {
        $(
            impl<'p, $($of),*> Lent<*mut $raw> for $type {
                #[inline]
                unsafe fn lent(raw: *mut $raw) -> Self {
                    $to(NonNull::new(raw.cast()).map(|pointer| At(pointer, PhantomData)))
                }

                #[inline]
                fn raw(self) -> *mut $raw {
                    $from(self).map_or(std::ptr::null_mut(), |at| at.as_ptr().cast())
                }
            }
        )+
    };
}

lent_or_null!(
    [T, U] Option<At<'p, T>> = U: std::convert::identity, std::convert::identity::<Self>;
    [T] List<'p, T> = pg_sys::List: |list| Self(list, PhantomData), |list: Self| list.0;
    [] NumberList<'p> = pg_sys::List: Self, |list: Self| list.0;
    [] NumberSet<'p> = pg_sys::Bitmapset: Self, |set: Self| set.0;
);

macro_rules! lent_as_it_is {
    ($($type:ty),+ $(,)?) => {
        $(
            impl Lent<$type> for $type {
                #[inline]
                unsafe fn lent(raw: $type) -> Self {
                    raw
                }

                #[inline]
                fn raw(self) -> $type {
                    self
                }
            }
        )+
    };
}

lent_as_it_is!(bool, c_char, i16, i32, u32, f64, Oid, pg_sys::Datum, NodeTag);

/// What is only written has `_` for the name of its reader.
macro_rules! fields {
    ($life:lifetime; $($of:ident { $($name:tt $(/ $set:ident)?: $type:ty = $($field:ident).+;)+ })+) => {
        $(
            impl<$life> At<$life, pg_sys::$of> {
                $(
                    fields! { @get $of, $type, ($($field).+), $name }
                    fields! { @set $of, $type, ($($field).+), $($set)? }
                )+
            }
        )+
    };
    (@get $of:ident, $type:ty, ($($field:tt)+), _) => {};
    (@get $of:ident, $type:ty, ($($field:tt)+), $name:ident) => {
        #[doc = concat!("`", stringify!($($field)+), "` of PostgreSQL's `", stringify!($of), "`.")]
        #[inline]
        pub fn $name(self) -> $type {
            // SAFETY: a field of a whole value, of the type that the table says.
            unsafe { <$type as Lent<_>>::lent((*self.as_ptr()).$($field)+) }
        }
    };
    (@set $of:ident, $type:ty, ($($field:tt)+),) => {};
    (@set $of:ident, $type:ty, ($($field:tt)+), $set:ident) => {
        #[doc = concat!("Sets `", stringify!($($field)+), "` of PostgreSQL's `", stringify!($of), "`.")]
        pub fn $set(self, value: $type) {
            // SAFETY: the value is of the type that the table says, and nobody has a reference to the field.
            unsafe { (*self.as_ptr()).$($field)+ = Lent::raw(value) };
        }
    };
}

fields! { 'p;
    AppendRelInfo {
        parent: u32 = parent_relid;
        child: u32 = child_relid;
        columns / set_columns: List<'p, Node> = translated_vars;
    }
    ArrayExpr {
        elements: List<'p, Node> = elements;
        is_of_arrays: bool = multidims;
    }
    BoolExpr {
        boolop: u32 = boolop;
        args / set_args: List<'p, Node> = args;
    }
    BooleanTest {
        arg: Expr<'p> = arg;
        kind: u32 = booltesttype;
    }
    Const {
        consttype: Oid = consttype;
        constvalue: pg_sys::Datum = constvalue;
        constisnull: bool = constisnull;
    }
    EquivalenceClass {
        members: List<'p, pg_sys::EquivalenceMember> = ec_members;
    }
    EquivalenceMember {
        expr: Expr<'p> = em_expr;
        relids: NumberSet<'p> = em_relids;
        datatype: Oid = em_datatype;
        is_child: bool = em_is_child;
        is_const: bool = em_is_const;
    }
    FromExpr {
        fromlist: List<'p, Node> = fromlist;
        quals / set_quals: Option<Expr<'p>> = quals;
    }
    FuncExpr {
        funcid: Oid = funcid;
        resulttype: Oid = funcresulttype;
        _ / set_returns_set: bool = funcretset;
        collation: Oid = inputcollid;
        args: List<'p, Node> = args;
    }
    IndexClause {
        quals / set_quals: List<'p, pg_sys::RestrictInfo> = indexquals;
        restriction / set_restriction: At<'p, pg_sys::RestrictInfo> = rinfo;
        is_lossy / set_lossy: bool = lossy;
        column: i16 = indexcol;
        columns: NumberList<'p> = indexcols;
    }
    IndexOptInfo {
        oid: Oid = indexoid;
        table: At<'p, pg_sys::RelOptInfo> = rel;
        column_count: i32 = ncolumns;
        key_count: i32 = nkeycolumns;
        access_method: Oid = relam;
        order: Option<At<'p, Oid>> = sortopfamily;
        expressions: List<'p, Node> = indexprs;
        predicate: List<'p, Node> = indpred;
        entries: List<'p, pg_sys::TargetEntry> = indextlist;
        restrictions / set_restrictions: List<'p, pg_sys::RestrictInfo> = indrestrictinfo;
        is_hypothetical: bool = hypothetical;
        is_proven: bool = predOK;
    }
    IndexPath {
        index / set_index: At<'p, pg_sys::IndexOptInfo> = indexinfo;
        clauses / set_clauses: List<'p, pg_sys::IndexClause> = indexclauses;
        table: At<'p, pg_sys::RelOptInfo> = path.parent;
        parameters: Option<At<'p, pg_sys::ParamPathInfo>> = path.param_info;
        order / set_order: List<'p, Node> = path.pathkeys;
        direction / set_direction: i32 = indexscandir;
    }
    JoinExpr {
        jointype: u32 = jointype;
        left: Expr<'p> = larg;
        right: Expr<'p> = rarg;
        quals / set_quals: Option<Expr<'p>> = quals;
    }
    List {
        tag: NodeTag = type_;
        length: i32 = length;
    }
    Node {
        tag: NodeTag = type_;
    }
    NullTest {
        arg / set_arg: Expr<'p> = arg;
        kind: u32 = nulltesttype;
    }
    OpExpr {
        opno: Oid = opno;
        opfuncid: Oid = opfuncid;
        args: List<'p, Node> = args;
    }
    Param {
        paramkind: u32 = paramkind;
    }
    Path {
        tag: NodeTag = type_;
        cost: f64 = total_cost;
        parameters: Option<At<'p, pg_sys::ParamPathInfo>> = param_info;
    }
    PlaceHolderVar {
        expr: Expr<'p> = phexpr;
    }
    PlanInvalItem {
        cache: i32 = cacheId;
        hash: u32 = hashValue;
    }
    PlannerGlobal {
        dependencies: List<'p, pg_sys::PlanInvalItem> = invalItems;
        _ / set_depends_on_role: bool = dependsOnRole;
    }
    PlannerInfo {
        query: At<'p, pg_sys::Query> = parse;
        plan: At<'p, pg_sys::PlannerGlobal> = glob;
        places: List<'p, pg_sys::AppendRelInfo> = append_rel_list;
        classes: List<'p, pg_sys::EquivalenceClass> = eq_classes;
        order: List<'p, Node> = query_pathkeys;
        tables: NumberSet<'p> = all_baserels;
        parent: Option<At<'p, pg_sys::PlannerInfo>> = parent_root;
        memory: Option<At<'p, pg_sys::MemoryContextData>> = planner_cxt;
    }
    Query {
        command: u32 = commandType;
        locks: List<'p, Node> = rowMarks;
        join_tree: Option<At<'p, pg_sys::FromExpr>> = jointree;
        targets: List<'p, pg_sys::TargetEntry> = targetList;
        sorted_by: List<'p, pg_sys::SortGroupClause> = sortClause;
        grouped_by: List<'p, Node> = groupClause;
        distinct_by: List<'p, Node> = distinctClause;
        has_windows: bool = hasWindowFuncs;
        has_aggregates: bool = hasAggs;
        having: Option<Expr<'p>> = havingQual;
        combined: Option<Expr<'p>> = setOperations;
    }
    RangeTblEntry {
        kind: u32 = rtekind;
        relkind: c_char = relkind;
        oid: Oid = relid;
        has_members: bool = inh;
        guards / set_guards: List<'p, Node> = securityQuals;
    }
    RelOptInfo {
        number: u32 = relid;
        numbers: NumberSet<'p> = relids;
        kind / set_kind: u32 = reloptkind;
        may_be_parallel / set_may_be_parallel: bool = consider_parallel;
        entry_kind: u32 = rtekind;
        indexes / set_indexes: List<'p, pg_sys::IndexOptInfo> = indexlist;
        statistics: List<'p, pg_sys::StatisticExtInfo> = statlist;
        conditions / set_conditions: List<'p, pg_sys::RestrictInfo> = baserestrictinfo;
        joins / set_joins: List<'p, pg_sys::RestrictInfo> = joininfo;
        has_class_joins / set_has_class_joins: bool = has_eclass_joins;
        class_numbers: NumberSet<'p> = eclass_indexes;
        partitioning: Option<At<'p, pg_sys::PartitionSchemeData>> = part_scheme;
        paths: List<'p, pg_sys::Path> = pathlist;
        partial_paths: List<'p, pg_sys::Path> = partial_pathlist;
        lateral: NumberSet<'p> = lateral_relids;
        row_count: f64 = tuples;
        expected_rows / set_expected_rows: f64 = rows;
    }
    RelabelType {
        arg: Expr<'p> = arg;
    }
    RestrictInfo {
        clause / set_clause: Expr<'p> = clause;
        class / set_class: Option<At<'p, pg_sys::EquivalenceClass>> = parent_ec;
        _ / set_or_clause: Option<Expr<'p>> = orclause;
        numbers / set_numbers: NumberSet<'p> = clause_relids;
        _ / set_startup_cost: f64 = eval_cost.startup;
        cost_of_row: f64 = eval_cost.per_tuple;
        _ / set_selectivity: f64 = norm_selec;
        _ / set_outer_selectivity: f64 = outer_selec;
        security / set_security: u32 = security_level;
    }
    RowCompareExpr {
        opnos: NumberList<'p> = opnos;
        families: NumberList<'p> = opfamilies;
        collations: NumberList<'p> = inputcollids;
        left: List<'p, Node> = largs;
        right: List<'p, Node> = rargs;
    }
    ScalarArrayOpExpr {
        opno: Oid = opno;
        opfuncid: Oid = opfuncid;
        is_any: bool = useOr;
        args: List<'p, Node> = args;
    }
    SortGroupClause {
        operator: Oid = sortop;
        nulls_first: bool = nulls_first;
    }
    StatisticExtInfo {
        expressions: List<'p, Node> = exprs;
    }
    TargetEntry {
        expr / set_expr: Expr<'p> = expr;
        sort_group: u32 = ressortgroupref;
    }
    Var {
        attribute: i16 = varattno;
        vartype: Oid = vartype;
        levels_up: u32 = varlevelsup;
    }
}

#[cfg(not(since_pg15))]
fields! { 'p;
    Var {
        number: u32 = varno;
    }
}

#[cfg(since_pg15)]
fields! { 'p;
    Var {
        number: i32 = varno;
    }
}

#[cfg(since_pg16)]
fields! { 'p;
    Var {
        made_null_by: NumberSet<'p> = varnullingrels;
    }
}

#[cfg(since_pg17)]
fields! { 'p;
    RelOptInfo {
        not_null: NumberSet<'p> = notnullattnums;
    }
}
