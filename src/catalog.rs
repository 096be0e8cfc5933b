//! What the catalog of this database says of the extension: where its reservation is, and for which layout it was
//! created. Looked up once, and again after the relation was dropped or changed.

use crate::admission;
use crate::errors::Error;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_sys;
use pgrx::tupdesc::PgTupleDesc;
use snowflake_core::Layout;
use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The reservation's relation, once it is found and the layout is compared; 0 before.
static RESERVATION: AtomicU32 = AtomicU32::new(0);

/// The relation of this database's reservation. The layout of this server is that of the database.
///
/// # Errors
/// Where the extension is not created in this database, or was created for another layout.
pub fn reservation(layout: &Layout) -> Result<pg_sys::Oid, Error> {
    let known = RESERVATION.load(Relaxed);
    if known != 0 {
        return Ok(known.into());
    }
    watch();
    let relation = find(c"snowflake_reservation")?;
    let layouts = find(c"snowflake_layout")?;
    // Text that is no layout comes from a newer version, or from somebody's hand: it is not this server's.
    let (same, others): (Vec<_>, Vec<_>) = recorded(layouts).into_iter().partition(|text| text.parse() == Ok(*layout));
    if let Some(other) = others.into_iter().next() {
        return Err(if same.is_empty() { Error::OtherLayout(other) } else { Error::SeveralLayouts(other) });
    }
    RESERVATION.store(relation.to_u32(), Relaxed);
    Ok(relation)
}

/// The same relation, for looking at: whatever the layout.
///
/// # Errors
/// Where the extension is not created in this database.
pub fn reservation_of_any_layout() -> Result<pg_sys::Oid, Error> {
    find(c"snowflake_reservation")
}

/// Forgets what was found, and makes the next claim look again.
pub fn forget() {
    RESERVATION.store(0, Relaxed);
    admission::withdraw();
}

/// Has [`forget`] called when the relation is dropped or changed, by whomever.
fn watch() {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    if !WATCHING.swap(true, Relaxed) {
        // SAFETY: the callback lives as long as the process, does nothing but store numbers, and cannot fail.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(on_change), pg_sys::Datum::from(0)) };
    }
}

unsafe extern "C-unwind" fn on_change(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    let known = RESERVATION.load(Relaxed);
    if known != 0 && (relation == known.into() || relation == pg_sys::InvalidOid) {
        forget();
    }
}

/// The schema of the extension, where it is created in this database.
fn schema() -> Option<pg_sys::Oid> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: the scan's key and name live until it ends, the tuple is read before it does, and has the form of its
    // catalog.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::ExtensionRelationId, lock);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_extension_extname as i16,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::F_NAMEEQ.into(),
            pg_sys::Datum::from(c"pg_snowflake".as_ptr()),
        );
        let index = pg_sys::ExtensionNameIndexId.into();
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &raw mut key);
        let tuple = pg_sys::systable_getnext(scan);
        let schema = (!tuple.is_null()).then(|| {
            let form = (*tuple).t_data.cast::<u8>().add((*(*tuple).t_data).t_hoff.into());
            (*form.cast::<pg_sys::FormData_pg_extension>()).extnamespace
        });
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
        schema
    }
}

/// A relation in the extension's schema, where all of its objects are.
fn find(name: &CStr) -> Result<pg_sys::Oid, Error> {
    let schema = schema().ok_or(Error::NotCreated)?;
    // SAFETY: a lookup by a NUL-terminated name.
    match unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) } {
        pg_sys::InvalidOid => Err(Error::NotCreated),
        relation => Ok(relation),
    }
}

/// The layouts that the table of the database holds: one from its creation, and one from each dump restored into it.
/// Read past the table's privileges, which nobody has.
fn recorded(table: pg_sys::Oid) -> Vec<String> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut layouts = Vec::new();
    // SAFETY: the tuple is read, and its text copied, before the scan goes on.
    unsafe {
        let relation = pg_sys::table_open(table, lock);
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let description = PgTupleDesc::from_pg_copy((*relation).rd_att);
            let row = PgHeapTuple::from_heap_tuple(description, tuple);
            layouts.extend(row.get_by_index::<String>(NonZeroUsize::MIN).ok().flatten());
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
    layouts
}
