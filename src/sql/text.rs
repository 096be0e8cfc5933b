//! IDs as text.

use crate::errors::Error;
use crate::errors::values::ValueError;
use crate::postgres::given::Given;
use pgrx::prelude::*;
use snowflake_core::text::Form;

export!(snowflake_to_text_wrapper as snowflake_to_text, snowflake_from_text_wrapper as snowflake_from_text,);

fn form(name: Given) -> &'static Form {
    let name = name.read();
    Form::named(&name).unwrap_or_else(|| Error::from(ValueError::NoSuchForm(name.into_owned())).raise())
}

#[pg_extern(sql = "")]
fn snowflake_to_text(id: i64, form_name: Given) -> String {
    form(form_name).write(id).unwrap_or_else(|| Error::from(ValueError::NoText(id)).raise())
}

#[pg_extern(sql = "")]
fn snowflake_from_text(text: Given, form_name: Given) -> i64 {
    let (text, form) = (text.read(), form(form_name));
    form.read(&text).unwrap_or_else(|problem| {
        Error::from(ValueError::NotInForm { text: text.into_owned(), form: form.name, problem }).raise()
    })
}
