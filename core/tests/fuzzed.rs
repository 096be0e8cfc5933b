//! Inputs that the fuzzer (`fuzz/`) found, at the edge of what the notation and the text forms accept.

use snowflake_core::notation::{LONGEST, Problem};
use snowflake_core::text::{self, FORMS, Form, TextError};
use snowflake_core::{Layout, UnixMicros};

#[test]
fn layouts_at_the_edge() {
    let year_2024 = "epoch=2024-01-01T00:00:00Z";
    for (text, written) in [
        ("timestamp=1", format!("timestamp=1 tick=1ms {year_2024}")),
        ("timestamp=1 worker=31 sequence=31", format!("timestamp=1 worker=31 sequence=31 tick=1ms {year_2024}")),
        ("timestamp=1 tick=60000000us", format!("timestamp=1 tick=60s {year_2024}")),
        ("timestamp=1 tick=59999999us", format!("timestamp=1 tick=59999999us {year_2024}")),
        ("\n\ttimestamp=3\r\n\x0Cworker=2 \r", format!("timestamp=3 worker=2 tick=1ms {year_2024}")),
        (
            "timestamp=57 tick=1us epoch=1970-01-01T00:00:00Z",
            "timestamp=57 tick=1us epoch=1970-01-01T00:00:00Z".to_owned(),
        ),
        // Its two ticks are the last two microseconds that can be written.
        (
            "timestamp=1 tick=1us epoch=9999-12-31T23:59:59.999998Z",
            "timestamp=1 tick=1us epoch=9999-12-31T23:59:59.999998Z".to_owned(),
        ),
        (
            "timestamp=4 epoch=2024-02-29T23:59:59.999Z tick=1ms",
            "timestamp=4 tick=1ms epoch=2024-02-29T23:59:59.999Z".to_owned(),
        ),
    ] {
        let layout: Layout = text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(layout.to_string(), written, "{text:?}");
        assert_eq!(written.parse(), Ok(layout), "{text:?}");
        let parts = layout.decode(layout.max_id()).unwrap();
        assert_eq!(layout.encode(&parts), Ok(layout.max_id()), "{text:?}");
        assert!(layout.end().0 <= UnixMicros::MAX_WRITTEN.0 + 1, "{text:?}");
    }
}

#[test]
fn a_long_notation_reads_up_to_its_bound() {
    let short = "timestamp=41 sequence=12";
    for blanks in [" ", "\t", "\r", "\n"] {
        let longest = blanks.repeat(LONGEST - short.len()) + short;
        let layout: Layout = longest.parse().unwrap();
        assert_eq!(layout.to_string(), format!("{short} tick=1ms epoch=2024-01-01T00:00:00Z"));
        for longer in [longest.clone() + " ", longest.clone() + "x", longest.clone() + &"\u{20AC}".repeat(1_000_000)] {
            let error = longer.parse::<Layout>().unwrap_err();
            assert_eq!((error.at, error.problem), (1, Problem::TooLong));
        }
    }
    let error = format!("timestamp=41 worker={}", "9".repeat(200)).parse::<Layout>().unwrap_err();
    assert_eq!(error.at, "timestamp=41 worker=".len() + 1);
    let nines = "9".repeat(128);
    assert_eq!(error.to_string(), format!("\"{nines}...\" is not a number of bits, at character 21"));
}

#[test]
fn texts_that_are_no_layouts() {
    for (text, at) in [
        (" default", 1),
        ("=", 1),
        ("=1", 1),
        ("tick=", 6),
        ("timestamp= sequence=1", 11),
        ("timestamp==1", 11),
        ("timestamp=1=1", 11),
        ("timestamp=4294967296", 11),
        ("timestamp=4294967295", 1),
        ("timestamp=1 datacenter=1 worker=31 sequence=31", 1),
        ("timestamp=1 tick=s", 18),
        ("timestamp=1 tick=60000001us", 1),
        ("timestamp=1 tick=9223372036854775807us", 1),
        ("timestamp=1 tick=9223372036854775807s", 18),
        ("timestamp=1 tick=88860000000000000000us", 18),
        ("timestamp=1 tick=1us epoch=9999-12-31T23:59:59.999999Z", 1),
        ("timestamp=58 tick=1us epoch=1970-01-01T00:00:00Z", 1),
        ("timestamp=1 epoch=2023-02-29T00:00:00Z", 19),
        ("timestamp=1 epoch=2016-06-31T00:00:00Z", 19),
        ("timestamp=1 epoch=1969-12-31T23:59:59.999999Z", 19),
        // Digits and spaces beyond ASCII, and characters of two to four bytes: `at` counts characters.
        ("timestamp=\u{FF14}\u{FF11}", 11),
        ("timestamp=1\u{A0}sequence=1", 11),
        ("timestamp=1\u{B}sequence=1", 11),
        ("timestamp=1 \u{20AC}=2", 13),
        ("timestamp=1 epoch=\u{1F984}", 19),
        ("timestamp=1 tick=1\u{3BC}s", 18),
        ("\u{20AC}\u{1F984}=\u{FC} timestamp=x", 1),
    ] {
        let error = text.parse::<Layout>().expect_err(text);
        assert_eq!(error.at, at, "{text:?}: {error}");
    }
}

#[test]
fn other_ways_to_write_an_epoch_are_refused_or_read_back() {
    for epoch in [
        "2016-12-31T23:59:60Z",
        "9999-12-31T23:59:60Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.0000009Z",
        "9999-10-31T23:59:59.999999999Z",
        "2024-01-01T00:00:00+00:00",
        "2024-01-01T00:00:00-00:00",
        "2024-01-01t00:00:00z",
        "2024-01-01T24:00:00Z",
        "0000-01-01T00:00:00Z",
    ] {
        if let Ok(layout) = format!("timestamp=1 epoch={epoch}").parse::<Layout>() {
            assert_eq!(layout.to_string().parse(), Ok(layout), "{epoch}");
        }
    }
}

#[test]
fn texts_at_the_edge() {
    for (name, text, read) in [
        ("decimal", "9223372036854775807", Ok(i64::MAX)),
        ("decimal", "9999999999999999999", Err(TextError::TooLarge)),
        ("hex", "7FFFFFFFffffffff", Ok(i64::MAX)),
        ("base32", "7zzzzzzzzzzzz", Ok(i64::MAX)),
        ("base32", "oOiIlL0000000", Ok(33825 << 35)),
        ("base36", "0", Ok(0)),
        ("base36", "00", Err(TextError::NotShortest)),
        ("base36", "1Y2P0IJ32E8E7", Ok(i64::MAX)),
        ("base36", "14294967296z", Ok(146475180927379979)),
        ("base58", "NQm6nKp8qFD", Err(TextError::TooLarge)),
        ("base58-bwmarrin", "1", Ok(0)),
        ("base58-bwmarrin", "11", Err(TextError::NotShortest)),
        ("base58-bwmarrin", "B1BF5qq", Ok(1332807940640)),
        ("base64url", "f_________8", Ok(i64::MAX)),
        ("base64url", "f__________", Err(TextError::BitsBelow)),
        ("base64url", "60000000us4", Err(TextError::TooLarge)),
        ("shortcode", "H__________", Ok(i64::MAX)),
        ("shortcode", "IAAAAAAAAAA", Err(TextError::TooLarge)),
        ("shortcode", "qqq5BF5qqq1", Err(TextError::TooLarge)),
        // Characters that look like, or have as their other case, a digit of the form; and ones of several bytes.
        ("hex", "\u{FF11}", Err(TextError::Foreign { character: '\u{FF11}', at: 1 })),
        ("base36", "1\u{212A}", Err(TextError::Foreign { character: '\u{212A}', at: 2 })), // Kelvin sign
        ("base36", "\u{17F}", Err(TextError::Foreign { character: '\u{17F}', at: 1 })),    // long s
        ("base32", "00\u{131}0000000000", Err(TextError::Foreign { character: '\u{131}', at: 3 })), // i without dot
        ("base62", "0T5\u{1F984}", Err(TextError::Foreign { character: '\u{1F984}', at: 4 })),
        ("base62", "0T5jFDIkmm\0", Err(TextError::Foreign { character: '\0', at: 11 })),
    ] {
        assert_eq!(Form::named(name).unwrap().read(text), read, "{name} {text:?}");
    }
}

#[test]
fn long_texts_are_refused() {
    for form in FORMS {
        // The last digit of the highest ID, and that of 0, many times: the number does not wrap around.
        let highest = form.write(i64::MAX).unwrap();
        let zero = form.write(0).unwrap();
        for length in [20, 64, 100_000] {
            let text = highest.chars().last().unwrap().to_string().repeat(length);
            assert!(form.read(&text).is_err(), "{} {length}", form.name);
            assert!(form.read(&zero.repeat(length)).is_err(), "{} {length}", form.name);
            let is_too_long = form.read(&text) == Err(TextError::TooLong);
            assert_eq!(is_too_long, length > text::LONGEST, "{} {length}", form.name);
        }
    }
}
