//! Finds the owner of a description of an index that was made here, also from a copy of the description. A copy shares the array of
//! columns, and a pointer to the owner stands in memory just before that array.

use super::versions::Declared;
use pgrx::pg_sys::{self, IndexOptInfo};

/// Makes the array of columns for a description, with the pointer to its owner before it.
///
/// # Safety
/// The owner lives as long as the description.
pub unsafe fn of<T>(owner: *mut T, columns: &[i32]) -> *mut i32 {
    // SAFETY: the memory has room for a pointer and the columns.
    unsafe {
        let memory: *mut *mut T = pg_sys::palloc(size_of::<*mut T>() + size_of_val(columns)).cast();
        memory.write(owner);
        let array: *mut i32 = memory.add(1).cast();
        array.copy_from_nonoverlapping(columns.as_ptr(), columns.len());
        array
    }
}

/// The owner of an index whose cost is estimated by this function, and whose columns are from [`of`].
///
/// # Safety
/// An index as the planner has it. All that have this function have such columns, of an owner of this type.
pub unsafe fn owner<T>(index: *mut IndexOptInfo, estimate: Declared) -> Option<*mut T> {
    // SAFETY: as above.
    unsafe {
        let is_ours = (*index).amcostestimate.is_some_and(|function| std::ptr::fn_addr_eq(function, estimate));
        is_ours.then(|| *(*index).indexkeys.cast::<*mut T>().sub(1))
    }
}
