//! The type `snowflake_id`. What it does not have from `bigint` is how the functions of JSON write it.

use crate::encoding::Text;
use pgrx::prelude::*;

export!(snowflake_id_to_json_wrapper as snowflake_id_to_json);

/// The JSON of an ID: a text, as JavaScript's numbers are too small. A value of type `json` is stored as a text is.
#[pg_extern(sql = "")]
fn snowflake_id_to_json(id: i64) -> Text {
    Text(format!("\"{id}\""))
}
