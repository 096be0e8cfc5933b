//! Any text in any form: it is refused, or it is an ID whose text reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snowflake_core::text::{FORMS, Form, LONGEST};

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let form = &FORMS[usize::from(first) % FORMS.len()];
    if let Ok(text) = std::str::from_utf8(rest) {
        read(form, text);
    }

    let Some((bytes, rest)) = rest.split_first_chunk() else { return };
    let number = i64::from_le_bytes(*bytes);
    assert_eq!(form.write(number).is_none(), number < 0);
    let text = form.write(number & i64::MAX).unwrap();
    assert_eq!(form.read(&text), Ok(number & i64::MAX));

    // The same text with one character replaced: often nearly an ID.
    if let [place, character, ..] = *rest {
        let place = usize::from(place) % text.len();
        read(form, &format!("{}{}{}", &text[..place], char::from(character), &text[place + 1..]));
    }
});

fn read(form: &Form, text: &str) {
    match form.read(text) {
        Ok(id) => {
            assert!(id >= 0 && text.len() <= LONGEST);
            // What is written for that ID differs from the text only by case and aliases.
            let written = form.write(id).unwrap();
            assert_eq!(written.len(), text.len());
            assert_eq!(form.read(&written), Ok(id));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
