//! The functions that SQL calls. A file of `sql/parts` declares those of the file of the same name here; `time` has
//! none here, as it is SQL alone. Three files serve others: [`batch`], functions that return numbers block by block; [`checks`], what
//! `snowflake_preflight()` finds; and [`named_layouts`], layouts that a query names.
//!
//! A `timestamptz` is passed as the number that it is ([`crate::postgres::time::timestamptz`]), a text as
//! [`crate::postgres::given::Given`]: pgrx's `&str` has no bound, and panics in a database that is not UTF-8.

/// Exports functions under the names by which SQL finds them, with the record that says they have PostgreSQL's calling
/// convention, version 1. The names are those of the SQL functions, with `_in` for the one that takes a layout as its
/// last argument. They are our own and not those of pgrx's wrappers (`..._wrapper`): a database keeps the names of the
/// version that it was created or updated by, so a library must have the names of all releases.
macro_rules! export {
    ($($function:path as $symbol:ident),+ $(,)?) => {
        $(
            const _: () = {
                #[unsafe(export_name = stringify!($symbol))]
                unsafe extern "C-unwind" fn call(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                    // SAFETY: PostgreSQL's call, passed on as it came.
                    #[allow(unused_unsafe, reason = "a function that does not look at the call is safe")]
                    unsafe {
                        $function(call)
                    }
                }

                #[unsafe(export_name = concat!("pg_finfo_", stringify!($symbol)))]
                extern "C" fn version_1() -> &'static pgrx::pg_sys::Pg_finfo_record {
                    const VERSION_1: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
                    &VERSION_1
                }
            };
        )+
    };
}

/// Declares functions that return rows: what each is given, and any iterator of what its rows are made of; then, for all of them, what a row
/// is made of, and its columns, each with its type and its value. The columns are those of the declaration in `sql/parts`, in their order.
/// pgrx needs them in the signature of each function.
macro_rules! rows {
    ($(fn $function:ident $given:tt $body:block)+ row $($row:tt)+) => {
        rows! { @each [$($function $given $body)+] [$($row)+] }
    };
    (@each [$($function:ident $given:tt $body:block)+] $row:tt) => {
        $(rows! { @one $function $given $body $row })+
    };
    (@one $function:ident $given:tt $body:block
        [$row:pat $(, let $name:ident = $init:expr)* => { $($column:ident: $type:ty = $value:expr;)+ }]) => {
        #[pgrx::pg_extern(sql = "")]
        fn $function $given -> pgrx::iter::TableIterator<'static, ($(pgrx::name!($column, $type),)+)> {
            pgrx::iter::TableIterator::new(IntoIterator::into_iter($body).map(|$row| {
                $(let $name = $init;)*
                ($($value,)+)
            }))
        }
    };
}

/// Declares functions of one value, an ID or an instant, two for each: by the layout of the database, and by one that the caller names. What
/// is given is first converted.
macro_rules! of_both_layouts {
    ($($of_database:ident, $of_named:ident: $function:ident($convert:ident($value:ident)) -> $result:ty;)+) => {
        $(
            #[pgrx::pg_extern(sql = "")]
            fn $of_database(value: $value) -> $result {
                $function(crate::record::layout(), $convert(value))
            }

            #[pgrx::pg_extern(sql = "")]
            fn $of_named(value: $value, layout: crate::postgres::given::Given) -> $result {
                $function(&crate::sql::named_layouts::find(layout), $convert(value))
            }
        )+
    };
}

mod batch;
mod bounds;
mod checks;
mod database;
mod decode;
mod id_type;
mod layouts;
mod leases;
mod moving;
mod named_layouts;
mod next;
mod partitions;
mod preflight;
mod range;
mod segments;
mod status;
mod text;
