//! IDs as text.

use crate::errors::Error;
use pgrx::prelude::*;
use snowflake_core::text::Form;

export!(snowflake_to_text_wrapper as snowflake_to_text, snowflake_from_text_wrapper as snowflake_from_text,);

fn form(name: &str) -> &'static Form {
    Form::named(name).unwrap_or_else(|| Error::NoSuchForm(name.to_owned()).raise())
}

#[pg_extern(sql = "")]
fn snowflake_to_text(id: i64, form_name: &str) -> String {
    form(form_name).write(id).unwrap_or_else(|| Error::NoText(id).raise())
}

#[pg_extern(sql = "")]
fn snowflake_from_text(text: &str, form_name: &str) -> i64 {
    let form = form(form_name);
    form.read(text)
        .unwrap_or_else(|problem| Error::NotInForm { text: text.to_owned(), form: form.name, problem }.raise())
}
