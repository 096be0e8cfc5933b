//! Names that stand for what was meant. A name is looked up, a lock is waited for, and meanwhile the name may come to stand for
//! something else: the relation is renamed, or its schema is. So a statement takes names only from [`Held`], which proves that
//! neither can happen until the end of the transaction; the compiler refuses any other name, by [`Sql`].
//!
//! A lock on a relation, of whatever mode, excludes that it is dropped, renamed, or moved to another schema. No lock on a relation
//! excludes that its schema is renamed. The row of the schema is locked for that, as SELECT ... FOR KEY SHARE would do it: ALTER
//! SCHEMA ... RENAME changes a key of `pg_namespace`, and waits. GRANT and all else on the schema goes on.

use crate::postgres::encoding::{self, Text};
use crate::postgres::open_relation::OpenRelation;
use crate::postgres::{catalog, process};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{self, SpiClient, SpiTupleTable};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;

/// A relation with a name.
pub trait NamedRelation: Sized {
    /// Finds it, and opens it; `None` where there is none.
    fn open(relation: pg_sys::Oid) -> Option<(OpenRelation, Self)>;

    /// Its schema's and its own name.
    fn names(&self) -> (&CStr, &CStr);

    /// The same, to be shown.
    fn seen(&self) -> Seen {
        let (schema, name) = self.names();
        Seen { schema: schema.to_owned(), name: name.to_owned() }
    }

    /// Its name with the schema, quoted where necessary.
    fn quoted(&self) -> CString {
        let (schema, name) = self.names();
        catalog::quoted_name(schema, name).unwrap_or_default()
    }
}

/// A relation as it was called when it was looked at, to be shown.
pub struct Seen {
    schema: CString,
    name: CString,
}

impl Seen {
    /// Looks at a relation; `None` where there is none.
    pub fn of(relation: pg_sys::Oid) -> Option<Self> {
        catalog::qualified_name(relation).map(|(schema, name)| Self { schema, name })
    }
}

impl NamedRelation for Seen {
    /// Locked in ACCESS SHARE mode while it is open.
    fn open(relation: pg_sys::Oid) -> Option<(OpenRelation, Self)> {
        let open = OpenRelation::open(relation, pg_sys::AccessShareLock)?;
        let seen = Self::of(relation)?;
        Some((open, seen))
    }

    fn names(&self) -> (&CStr, &CStr) {
        (&self.schema, &self.name)
    }
}

/// A relation that is called this until the end of the transaction.
pub struct Held {
    schema: CString,
    name: CString,
}

impl Held {
    /// Locks a relation and its schema's row, and waits for what is in the way; `None` where there is no such relation.
    ///
    /// Ends the call with an error in recovery, where no row can be locked.
    pub fn of(relation: pg_sys::Oid, lock: u32) -> Option<Self> {
        Self::locked(&OpenRelation::open_and_keep_locked(relation, lock)?)
    }

    fn locked(open: &OpenRelation) -> Option<Self> {
        // In this order: the lock keeps the relation in its schema.
        let schema = hold_schema(open.schema())?;
        Some(Self { schema, name: open.c_name() })
    }
}

impl NamedRelation for Held {
    /// Locked in ACCESS EXCLUSIVE mode until the end of the transaction.
    fn open(relation: pg_sys::Oid) -> Option<(OpenRelation, Self)> {
        let open = OpenRelation::open_and_keep_locked(relation, pg_sys::AccessExclusiveLock)?;
        let held = Self::locked(&open)?;
        Some((open, held))
    }

    fn names(&self) -> (&CStr, &CStr) {
        (&self.schema, &self.name)
    }
}

/// Sees to it that a schema keeps its name until the end of the transaction, and returns this name, not quoted; `None` where
/// there is no such schema.
///
/// Ends the call with an error in recovery, where no row can be locked.
pub fn hold_schema(schema: pg_sys::Oid) -> Option<CString> {
    loop {
        // SAFETY: takes what others have committed, and any OID. The row that is found is released; what is kept is where it is.
        let found = unsafe {
            pg_sys::AcceptInvalidationMessages();
            let row = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::NAMESPACEOID as _, schema.into());
            let place = row.as_ref().map(|row| row.t_self);
            if !row.is_null() {
                pg_sys::ReleaseSysCache(row);
            }
            place
        };
        if let Some(name) = hold_row(found?) {
            return Some(name);
        }
        pgrx::check_for_interrupts!();
    }
}

/// Locks a row of `pg_namespace` until the end of the transaction, and returns the name in it; `None` where the row is not the
/// latest any more.
fn hold_row(place: pg_sys::ItemPointerData) -> Option<CString> {
    let schemas = OpenRelation::open_and_keep_locked(pg_sys::NamespaceRelationId, pg_sys::RowShareLock)?;
    let mut row = pg_sys::HeapTupleData { t_self: place, ..pg_sys::HeapTupleData::default() };
    let (mut buffer, mut failure) = (pg_sys::InvalidBuffer as pg_sys::Buffer, pg_sys::TM_FailureData::default());
    // SAFETY: the table is open, and the place was one of a row of it. The buffer is pinned whatever the result is; the row's data lie
    // in it until it is released. Where an error comes out, the end of the transaction releases it.
    unsafe {
        let result = pg_sys::heap_lock_tuple(
            schemas.as_ptr(),
            &raw mut row,
            pg_sys::GetCurrentCommandId(true),
            pg_sys::LockTupleMode::LockTupleKeyShare,
            pg_sys::LockWaitPolicy::LockWaitBlock,
            false,
            &raw mut buffer,
            &raw mut failure,
        );
        let name = (result == pg_sys::TM_Result::TM_Ok).then(|| {
            let form = pg_sys::GETSTRUCT(&raw mut row).cast::<pg_sys::FormData_pg_namespace>();
            CStr::from_ptr((*form).nspname.data.as_ptr()).to_owned()
        });
        pg_sys::ReleaseBuffer(buffer);
        name
    }
}

/// SQL whose names are of one kind: those that are [held](Held) can be executed, those that were [seen](Seen) can be shown.
pub struct Sql<N> {
    text: Vec<u8>,
    names: PhantomData<N>,
}

impl<N: NamedRelation> Sql<N> {
    /// Begins with this.
    pub fn new(text: &'static str) -> Self {
        Self { text: text.into(), names: PhantomData }
    }

    /// Then the name of a relation.
    pub fn name(self, of: &N) -> Self {
        self.then(of.quoted().to_bytes())
    }

    /// Then the name of a relation that is to be made in the schema of this one.
    pub fn name_beside(self, of: &N, name: &CStr) -> Self {
        self.then(catalog::quoted_name(of.names().0, name).unwrap_or_default().to_bytes())
    }

    /// Then the name of a column.
    pub fn column(self, name: &CStr) -> Self {
        self.then(catalog::quoted_identifier(name).unwrap_or_default().to_bytes())
    }

    /// Then a number.
    pub fn number(self, number: i64) -> Self {
        self.then(number.to_string().as_bytes())
    }

    /// Then this.
    pub fn text(self, text: &'static str) -> Self {
        self.then(text.as_bytes())
    }

    fn then(mut self, bytes: &[u8]) -> Self {
        self.text.extend_from_slice(bytes);
        self
    }

    /// To be shown.
    pub fn shown(&self) -> Text {
        Text(encoding::read(&self.text).into_owned())
    }
}

impl Sql<Held> {
    /// Executes it.
    pub fn update(self, client: &mut SpiClient) -> Result<(), spi::Error> {
        client.update(&*self.c_string(), None, &[]).map(drop)
    }

    /// Executes it, and returns the rows.
    pub fn select<'a>(
        self,
        client: &SpiClient<'a>,
        arguments: &[DatumWithOid],
    ) -> Result<SpiTupleTable<'a>, spi::Error> {
        client.select(&*self.c_string(), None, arguments)
    }

    fn drawn_up(text: &str) -> Self {
        Self { text: encoding::statement(text).into_bytes(), names: PhantomData }
    }

    fn c_string(self) -> CString {
        // Neither names nor our own words have a NUL.
        CString::new(self.text).unwrap_or_default()
    }
}

impl Held {
    /// A statement that was drawn up with no names but this one's, and those of what belongs to the relation: its columns, its indexes.
    pub fn statement(&self, text: &Text) -> Sql<Self> {
        Sql::drawn_up(&text.0)
    }
}

/// Relations that are held, for statements that were drawn up as a whole: the names in these are known by OID, and compared.
#[derive(Default)]
pub struct Holds {
    held: BTreeMap<u32, Held>,
}

impl Holds {
    /// Holds a relation, too. One that is gone is left out.
    pub fn hold(&mut self, relation: pg_sys::Oid, lock: u32) {
        if let Some(held) = Held::of(relation, lock) {
            self.held.insert(relation.to_u32(), held);
        }
    }

    /// Holds the name of a schema, too. One that is gone is left out.
    pub fn hold_schema(&mut self, schema: pg_sys::Oid) {
        hold_schema(schema);
    }

    /// Whether a relation is held.
    pub fn has(&self, relation: u32) -> bool {
        self.held.contains_key(&relation)
    }

    /// Whether a relation is held, and this is its name, as a statement writes it.
    pub fn is_named(&self, relation: u32, name: &str) -> bool {
        self.held.get(&relation).is_some_and(|held| encoding::read_name(&held.quoted()) == name)
    }

    /// A statement that was drawn up with names that [were compared](Self::is_named).
    pub fn statement(&self, text: &str) -> Sql<Held> {
        Sql::drawn_up(text)
    }
}

/// Whether names can be held here: not in recovery.
pub fn is_possible() -> bool {
    !process::is_in_recovery()
}
