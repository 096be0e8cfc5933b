//! What the catalog says of relations, columns and roles. Names are bytes in the server's encoding.

use crate::postgres::process;
use pgrx::datum::Interval;
use pgrx::{IntoDatum, direct_function_call_as_datum, pg_sys};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

/// What the catalog says of a relation.
pub struct RelationFacts {
    /// Its name, without its schema.
    pub name: CString,
    /// The OID of its schema.
    pub schema: pg_sys::Oid,
    /// The OID of the role that owns it.
    pub owner: pg_sys::Oid,
    /// Whether it is a temporary one.
    pub is_temporary: bool,
}

/// A table, its partitions and all that inherit from it, without a lock: some may be gone, where they are not locked before. None where
/// there is no such table.
pub fn with_heirs(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut open = vec![table];
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    while let Some(table) = open.pop() {
        // A table may inherit by several ways. PostgreSQL's function ends the call where there is no such table.
        if !known.insert(table) || relation(table).is_none() {
            continue;
        }
        found.push(table);
        // SAFETY: makes a list of OIDs in the current memory context, or returns NULL.
        open.extend(unsafe {
            let list = pg_sys::find_inheritance_children(table, pg_sys::NoLock as pg_sys::LOCKMODE);
            let length = list.as_ref().map_or(0, |list| list.length as usize);
            (0..length).map(move |place| (*(*list).elements.add(place)).oid_value)
        });
    }
    found
}

/// What the catalog says of a relation; `None` where there is no such relation.
pub fn relation(relation: pg_sys::Oid) -> Option<RelationFacts> {
    let cache = pg_sys::SysCacheIdentifier::RELOID;
    // SAFETY: a row of this cache is one of pg_class. It stays until it is released, and nothing in between can fail.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache as _, relation.into());
        if row.is_null() {
            return None;
        }
        let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>();
        let facts = RelationFacts {
            name: CStr::from_ptr(form.relname.data.as_ptr()).to_owned(),
            schema: form.relnamespace,
            owner: form.relowner,
            is_temporary: form.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP,
        };
        pg_sys::ReleaseSysCache(row);
        Some(facts)
    }
}

/// The name of a relation, without its schema; `None` where there is no such relation.
pub fn relation_name(of: pg_sys::Oid) -> Option<CString> {
    relation(of).map(|relation| relation.name)
}

/// The schema and the name of a relation; `None` where there is none.
pub fn qualified_name(of: pg_sys::Oid) -> Option<(CString, CString)> {
    let relation = relation(of)?;
    Some((schema_name(relation.schema)?, relation.name))
}

/// Functions that ask PostgreSQL for a name or another text, and return a copy of it: `None` where PostgreSQL returns NULL.
macro_rules! texts {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $text:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $type),*) -> Option<CString> {
            // SAFETY: each of these takes any OID, and any text that is NUL-terminated. It returns NULL or a NUL-terminated text in the
            // current memory context, or raises an error.
            unsafe {
                let text: *const c_char = $text;
                (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
            }
        }
    )*};
}

texts! {
    /// The name of a schema; `None` where there is no such schema.
    fn schema_name(schema: pg_sys::Oid) = pg_sys::get_namespace_name(schema);

    /// The name of a role; `None` where there is no such role.
    fn role_name(role: pg_sys::Oid) = pg_sys::GetUserNameFromId(role, true);

    /// A type, as SQL writes it.
    fn type_name(of: pg_sys::Oid) = pg_sys::format_type_be(of);

    /// The name of a column, by its number. Ends the call with an error where there is no such column.
    fn column_name(table: pg_sys::Oid, number: i16) = pg_sys::get_attname(table, number, false);

    /// The partition key of a table, as SQL writes it; `None` where the table is not partitioned.
    fn partition_key(table: pg_sys::Oid) =
        direct_function_call_as_datum(pg_sys::pg_get_partkeydef, &[table.into_datum()])
            .map_or(ptr::null(), |key| pg_sys::text_to_cstring(key.cast_mut_ptr()).cast_const());

    /// An interval, as the session's `intervalstyle` writes it.
    fn interval(interval: Interval) =
        direct_function_call_as_datum(pg_sys::interval_out, &[interval.into_datum()])
            .map_or(ptr::null(), |text| text.cast_mut_ptr::<c_char>().cast_const());

    /// A name, quoted where necessary.
    fn quoted_identifier(name: &CStr) = pg_sys::quote_identifier(name.as_ptr());

    /// `schema.name`, quoted where necessary.
    fn quoted_name(schema: &CStr, name: &CStr) = pg_sys::quote_qualified_identifier(schema.as_ptr(), name.as_ptr());
}

/// Functions that look up the OID of what has a name; `None` where there is none.
macro_rules! named {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $found:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $type),*) -> Option<pg_sys::Oid> {
            // SAFETY: the name is NUL-terminated. Where there is nothing, these return 0.
            let found = unsafe { $found };
            (found != pg_sys::InvalidOid).then_some(found)
        }
    )*};
}

named! {
    /// The schema with this name.
    fn schema_named(name: &CStr) = pg_sys::get_namespace_oid(name.as_ptr(), true);

    /// The relation with this name in a schema.
    fn relation_named(schema: pg_sys::Oid, name: &CStr) = pg_sys::get_relname_relid(name.as_ptr(), schema);
}

/// Functions that look something up by OIDs and numbers.
macro_rules! looked_up {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $function:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $type),*) -> $result {
            // SAFETY: each of these takes any OID and any number, and finds nothing where there is no such thing.
            unsafe { pg_sys::$function($($argument),*) }
        }
    )*};
}

looked_up! {
    /// The type of a column, by its number; 0 where there is no such column.
    fn column_type(table: pg_sys::Oid, number: i16) -> pg_sys::Oid = get_atttype;

    /// Whether other tables inherit from this one, or have done so.
    fn may_have_children(table: pg_sys::Oid) -> bool = has_subclass;

    /// The schema of a function; 0 where there is no such function.
    fn schema_of_function(function: pg_sys::Oid) -> pg_sys::Oid = get_func_namespace;

    /// Whether values of a type are stored as those of another one: the type is that, a domain over it, or has a cast to it that does nothing.
    fn is_stored_as(of: pg_sys::Oid, other: pg_sys::Oid) -> bool = IsBinaryCoercible;
}

/// The number of the column with this name; `None` where there is none.
pub fn column_number(table: pg_sys::Oid, name: &CStr) -> Option<i16> {
    // SAFETY: takes any OID, and a NUL-terminated name. Where there is no such column, this returns 0.
    let number = unsafe { pg_sys::get_attnum(table, name.as_ptr()) };
    (number != pg_sys::InvalidAttrNumber as i16).then_some(number)
}

/// Whether values of a type are stored as a `bigint` is.
pub fn is_stored_as_bigint(of: pg_sys::Oid) -> bool {
    is_stored_as(of, pg_sys::INT8OID)
}

/// Whether the role as which statements run now owns a table, or is a member of the role that does. Ends the call with an error where there
/// is no such table.
pub fn owns(table: pg_sys::Oid) -> bool {
    let user = process::user();
    // SAFETY: takes any OIDs, the role's being that of a role that exists.
    unsafe {
        #[cfg(not(since_pg16))]
        return pg_sys::pg_class_ownercheck(table, user);
        #[cfg(since_pg16)]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, user);
    }
}

/// Whether a role may create objects in a schema. Ends the call with an error where there is no such schema.
pub fn may_create_in(schema: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_CREATE as pg_sys::AclMode;
    // SAFETY: takes any OIDs; a role that does not exist has the privileges of PUBLIC.
    let result = unsafe {
        #[cfg(not(since_pg16))]
        let result = pg_sys::pg_namespace_aclcheck(schema, role, mode);
        #[cfg(since_pg16)]
        let result = pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, mode);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}
