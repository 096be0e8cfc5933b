//! What a database has on record about its IDs: the layout, and the copy of the server's reservation, as numbers in
//! three sequences of the schema `_snowflake`. A dump has one `setval` for each sequence, and that replaces the number.
//! Publications of tables, TRUNCATE, and tools that compare a schema with a model leave sequences alone.
//!
//! A session reads the layout once in each transaction that needs it, as a restore may replace it at any time.
//!
//! Once IDs were made in the database, its layout must not change any more: they would all be misread. From then on it
//! is also *kept*, where no SQL gets at it (see [`form`]), and what is kept counts. [`restore`] has a `setval` of another
//! one leave the record as it is; [`keep`] repairs a record that was replaced in other ways.

mod form;
pub mod page;
pub mod restore;
pub mod rights;

use self::form::{Content, SequenceTuple};
use self::page::{Page, Place};
use crate::errors::Error;
use crate::errors::record::RecordError;
use crate::postgres::{catalog, process};
use crate::settings;
use crate::shared::admission;
use pgrx::pg_sys;
use snowflake_core::reservation::{DatabaseCopy, explained};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The schema of internal objects.
const SCHEMA: &CStr = c"_snowflake";
/// The copy of the reservation: milliseconds since 1970, and as `log_cnt` the register's generation.
const RESERVATION: &CStr = c"reservation";
/// The layout's fields and tick: see [`Layout::to_numbers`].
const LAYOUT: &CStr = c"layout";
/// The layout's epoch, in microseconds since 1970.
const EPOCH: &CStr = c"epoch";
/// Since when the database makes IDs, in milliseconds since 1970.
const SINCE: &CStr = c"since";

/// A place for a layout that is never freed, or for none. A process of PostgreSQL has one thread, so nothing orders the accesses: an atomic
/// only because a static must be sound for threads.
struct KeptLayout(AtomicPtr<Layout>);

impl KeptLayout {
    const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    fn get(&self) -> Option<&'static Layout> {
        // SAFETY: null, or from the reference that `set` got, which is good for as long as the process lives.
        unsafe { self.0.load(Relaxed).as_ref() }
    }

    fn set(&self, layout: Option<&'static Layout>) {
        self.0.store(layout.map_or(ptr::null_mut(), |layout| ptr::from_ref(layout).cast_mut()), Relaxed);
    }
}

/// The layout of this database; none until it is read in this transaction.
static KNOWN: KeptLayout = KeptLayout::none();

/// The sequences: reservation, layout, epoch. 0 until they are found, and again after one was dropped or changed. Of this process alone.
static SEQUENCES: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

thread_local! {
    /// Where the layout and its epoch were read. Nothing as long as the sequences are not known.
    static PLACES: Cell<Option<[Place; 2]>> = const { Cell::new(None) };
    /// The numbers of the layout that was read last, and what they say.
    static LAST: Cell<Option<((i64, i64), &'static Layout)>> = const { Cell::new(None) };
}

/// The layout of this database's IDs. Ends the call with an error where it is not on record.
#[inline]
pub fn layout() -> &'static Layout {
    match KNOWN.get() {
        Some(layout) => layout,
        None => read_layout().unwrap_or_else(|error| error.raise()),
    }
}

/// The layout of this database's IDs; `None` until it is read in this transaction.
#[inline]
pub fn layout_at_once() -> Option<&'static Layout> {
    KNOWN.get()
}

/// The layout of this database's IDs; `None` where it is not on record, and so [`layout`] would end the call.
pub fn layout_on_record() -> Option<&'static Layout> {
    KNOWN.get().or_else(|| read_layout().ok())
}

/// The sequence that holds the layout: a plan that depends on it is made again when another layout is adopted.
pub fn layout_sequence() -> pg_sys::Oid {
    SEQUENCES[1].load(Relaxed).into()
}

/// The sequence of the reservation's copy, in a database with this layout, which is the server's.
///
/// # Errors
/// Where the extension is not created in this database, where what is on record is no layout, or is another layout.
pub fn reservation(layout: &Layout) -> Result<pg_sys::Oid, Error> {
    let recorded = read_layout()?;
    if recorded != layout {
        return Err(RecordError::OtherLayout(*recorded).into());
    }
    match SEQUENCES[0].load(Relaxed) {
        // Forgotten meanwhile: see `open_and_read`.
        0 => find(RESERVATION),
        known => Ok(known.into()),
    }
}

/// The copy as it stands.
///
/// # Errors
/// Where the extension is not created in this database, or was dropped a moment ago.
pub fn read_copy(reservation: pg_sys::Oid) -> Result<DatabaseCopy, Error> {
    read(reservation).map(copy_from).inspect_err(|_| forget())
}

/// The copy that a tuple holds.
pub const fn copy_from(tuple: SequenceTuple) -> DatabaseCopy {
    let until = tuple.last_value.saturating_mul(1000);
    DatabaseCopy { until: UnixMicros(until), generation: tuple.log_cnt, used: tuple.is_called }
}

/// The tuple of a copy.
pub const fn copy_to(copy: DatabaseCopy) -> SequenceTuple {
    SequenceTuple { last_value: copy.until.0.div_euclid(1000), log_cnt: copy.generation, is_called: copy.used }
}

/// Whether IDs were made in this database, or in the one that its record is from.
///
/// # Errors
/// As [`read_copy`].
pub fn has_ids() -> Result<bool, Error> {
    Ok(read_copy(find(RESERVATION)?)?.used || is_kept()?)
}

/// Whether IDs were made in this very database, so that it keeps its layout.
///
/// # Errors
/// Where the extension is not created in this database, or a sequence is damaged.
pub fn is_kept() -> Result<bool, Error> {
    Ok(kept_in(read_contents()?).is_some())
}

/// The numbers of the layout that is kept, where one is.
fn kept_in([layout, epoch]: [Content; 2]) -> Option<(i64, i64)> {
    layout.kept.zip(epoch.kept)
}

/// Has the database keep this layout, the server's, as IDs of it are made; and puts it on record again where something
/// has replaced it there. Returns the numbers that were on record then.
///
/// # Errors
/// Where the extension was dropped, or a sequence is damaged.
pub fn keep(layout: &Layout) -> Result<Option<(i64, i64)>, Error> {
    let (form, epoch) = layout.to_numbers();
    let found = read_contents()?;
    let is_done = |content: Content, number: i64| content.kept == Some(number) && content.tuple.last_value == number;
    if is_done(found[0], form) && is_done(found[1], epoch) {
        return Ok(None);
    }
    // The layout last: as long as that is not kept, nothing is.
    for (name, value) in [(EPOCH, epoch), (LAYOUT, form)] {
        open(find(name)?)?.prepare().keep(SequenceTuple { last_value: value, log_cnt: 0, is_called: true })?;
    }
    let on_record = (found[0].tuple.last_value, found[1].tuple.last_value);
    Ok(kept_in(found).is_some().then_some(on_record).filter(|&numbers| numbers != (form, epoch)))
}

/// What is on record and does not count, as the layout that is kept is another one.
pub fn replaced() -> Option<(i64, i64)> {
    let found = read_contents().ok()?;
    let on_record = found.map(|content| content.tuple.last_value).into();
    kept_in(found).is_some_and(|kept| kept != on_record).then_some(on_record)
}

/// How far ahead of the clock the copy of a database may be and still raise the line of the server. Not further than any
/// claim may be, or all databases would have to wait.
pub fn explained_lead(layout: &Layout) -> Micros {
    explained(layout, settings::reserve_ahead(), settings::max_burst()).min(settings::max_lead())
}

/// Puts the server's layout on record.
///
/// # Errors
/// Where the extension is not created in this database.
pub fn record_layout() -> Result<(), Error> {
    let (form, epoch) = settings::layout().to_numbers();
    // Only the commit of a transaction with an ID is flushed, and waits for synchronous standbys. `setval` takes one,
    // too.
    process::assign_transaction();
    for (name, value) in [(LAYOUT, form), (EPOCH, epoch)] {
        let mut page = open(find(name)?)?;
        page.prepare().apply(|_| Some(SequenceTuple { last_value: value, log_cnt: 0, is_called: true }))?;
        page.announce_change();
    }
    forget();
    Ok(())
}

/// Since when this database makes IDs: it has made none with an earlier time. `None` where it did before that was on record.
pub fn since() -> Option<UnixMicros> {
    let tuple = read(find(SINCE).ok()?).ok().filter(|tuple| tuple.is_called)?;
    Some(UnixMicros(tuple.last_value.saturating_mul(1000)))
}

/// Puts on record that this database makes IDs from now on; the scripts of releases up to 0.3.0 have no place for that.
///
/// # Errors
/// Where the sequence is gone.
pub fn record_since(now: UnixMicros) -> Result<(), Error> {
    let Ok(since) = find(SINCE) else { return Ok(()) };
    let value = now.0.div_euclid(1000);
    open(since)?.prepare().apply(|_| Some(SequenceTuple { last_value: value, log_cnt: 0, is_called: true }))?;
    Ok(())
}

/// Forgets the layout and the sequences, and withdraws this session's admission; so the next claim reads them again.
pub fn forget() {
    KNOWN.set(None);
    PLACES.set(None);
    SEQUENCES.iter().for_each(|sequence| sequence.store(0, Relaxed));
    admission::withdraw();
}

/// The layout, read from the sequences.
///
/// # Errors
/// Where the extension is not created in this database, or what is on record is no layout.
#[cold]
#[inline(never)]
pub fn read_layout() -> Result<&'static Layout, Error> {
    let found = read_contents()?;
    let (form, epoch) = kept_in(found).unwrap_or_else(|| found.map(|content| content.tuple.last_value).into());
    let layout = match LAST.get() {
        Some((last, layout)) if last == (form, epoch) => layout,
        _ => {
            let layout = Layout::from_numbers(form, epoch).ok_or(RecordError::NoRecord { form, epoch })?;
            // Lives as long as the process. Where it is the last one again, as always, it is used again.
            let layout = &*Box::leak(Box::new(layout));
            LAST.set(Some(((form, epoch), layout)));
            layout
        }
    };
    KNOWN.set(Some(layout));
    Ok(layout)
}

/// What the sequences of the layout and of its epoch hold.
fn read_contents() -> Result<[Content; 2], Error> {
    watch();
    let again = PLACES.get().and_then(|[layout, epoch]| Some([layout.read()?, epoch.read()?]));
    again.map_or_else(open_and_read, Ok)
}

/// The same, of sequences that are opened to read them.
fn open_and_read() -> Result<[Content; 2], Error> {
    if SEQUENCES[2].load(Relaxed) == 0 {
        // All three before any is stored: looking one up may tell this session of changes, and then `forget` sets the numbers to 0.
        let found = [find(RESERVATION)?, find(LAYOUT)?, find(EPOCH)?];
        SEQUENCES.iter().zip(found).for_each(|(sequence, oid)| sequence.store(oid.to_u32(), Relaxed));
    }
    // All three before any is opened: that may find that one was dropped, and then `forget` sets the numbers to 0.
    let [_, layout, epoch] = [0, 1, 2].map(|index: usize| pg_sys::Oid::from(SEQUENCES[index].load(Relaxed)));
    let value = |sequence| {
        let page = open(sequence)?;
        Ok::<_, Error>((page.content()?, page.place()))
    };
    let read = || Ok::<_, Error>([value(layout)?, value(epoch)?]);
    let [(layout, place), (epoch, place_of_epoch)] = read().inspect_err(|_| forget())?;
    // Unless `forget` was called meanwhile: opening one tells this session of changes, also of what it has just read.
    PLACES.set((SEQUENCES[1].load(Relaxed) != 0).then_some([place, place_of_epoch]));
    Ok([layout, epoch])
}

fn read(relation: pg_sys::Oid) -> Result<SequenceTuple, Error> {
    Ok(open(relation)?.read()?)
}

/// Opens one of the sequences.
///
/// # Errors
/// Where it is gone.
pub fn open(relation: pg_sys::Oid) -> Result<Page, Error> {
    Page::open(relation).ok_or(RecordError::NotCreated.into())
}

fn find(name: &CStr) -> Result<pg_sys::Oid, Error> {
    let found = catalog::schema_named(SCHEMA).and_then(|schema| catalog::relation_named(schema, name));
    found.ok_or(RecordError::NotCreated.into())
}

/// Has PostgreSQL call [`forget`] when one of the sequences is dropped or altered, by whichever session; and at the end
/// of each transaction, forgets the layout: of a `setval`, other sessions are not informed.
fn watch() {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    if !WATCHING.swap(true, Relaxed) {
        // SAFETY: the callbacks live as long as the process, do nothing but store numbers, and cannot fail.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(Some(on_change), pg_sys::Datum::from(0));
            pg_sys::RegisterXactCallback(Some(on_transaction), ptr::null_mut());
        }
    }
}

extern "C-unwind" fn on_change(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    let ours = |known: &AtomicU32| relation == known.load(Relaxed).into();
    if relation == pg_sys::InvalidOid || SEQUENCES.iter().any(ours) {
        forget();
    }
}

extern "C-unwind" fn on_transaction(_event: pg_sys::XactEvent::Type, _argument: *mut std::ffi::c_void) {
    KNOWN.set(None);
}
