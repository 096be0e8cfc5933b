//! The type `snowflake_id`. What it does not have from `bigint` is how the functions of JSON write it.

use crate::postgres::encoding::Text;
use pgrx::pg_sys::{Datum, FunctionCallInfo};
use pgrx::prelude::*;

export!(
    snowflake_id_to_json_wrapper as snowflake_id_to_json,
    id_in as snowflake_id_in,
    id_out as snowflake_id_out,
    id_recv as snowflake_id_recv,
    id_send as snowflake_id_send,
    id_of_integer as snowflake_id_of_integer,
    id_of_smallint as snowflake_id_of_smallint,
    id_of_numeric as snowflake_id_of_numeric,
    id_to_numeric as snowflake_id_to_numeric,
);

/// Functions of `bigint`, under names of ours. Declared by the names that PostgreSQL has for them, they would be aliases of its own
/// functions with other types, which its regression tests list.
macro_rules! as_of_bigint {
    ($($name:ident: $function:ident;)+) => {
        $(
            #[pg_guard]
            unsafe extern "C-unwind" fn $name(call: FunctionCallInfo) -> Datum {
                // SAFETY: PostgreSQL's call, passed on as it came. The values of the type are those of bigint.
                unsafe { pg_sys::$function(call) }
            }
        )+
    };
}

as_of_bigint! {
    id_in: int8in;
    id_out: int8out;
    id_recv: int8recv;
    id_send: int8send;
    id_of_integer: int48;
    id_of_smallint: int28;
    id_of_numeric: numeric_int8;
    id_to_numeric: int8_numeric;
}

/// The JSON of an ID: a text, as JavaScript's numbers are too small. A value of type `json` is stored as a text is.
#[pg_extern(sql = "")]
fn snowflake_id_to_json(id: i64) -> Text {
    Text(format!("\"{id}\""))
}
