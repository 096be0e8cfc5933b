//! Any text in any form: it is refused, or it is an ID, and what is written of that reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snowflake_core::text::FORMS;

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let form = &FORMS[usize::from(first) % FORMS.len()];

    if let Ok(text) = std::str::from_utf8(rest) {
        match form.read(text) {
            Ok(id) => {
                assert!(id >= 0);
                // The same but for case and aliases.
                let written = form.write(id).unwrap();
                assert_eq!(written.len(), text.len());
                assert_eq!(form.read(&written), Ok(id));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    if let Some(bytes) = rest.first_chunk() {
        let number = i64::from_le_bytes(*bytes);
        let id = number & i64::MAX;
        assert_eq!(form.read(&form.write(id).unwrap()), Ok(id));
        assert_eq!(form.write(number).is_none(), number < 0);
    }
});
