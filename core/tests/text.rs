//! Text forms: published texts, what other crates write, and what holds for every form.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use snowflake_core::text::{FORMS, Form, TextError};

fn form(name: &str) -> &'static Form {
    Form::named(name).unwrap()
}

#[test]
fn published_texts() {
    for (name, id, text, source) in [
        ("base36", 1116817865006120960, "8hgmw4blvlkw", "bwmarrin/snowflake"),
        ("base58-bwmarrin", 1428076403798048768, "4jgmnx8Js8A", "bwmarrin/snowflake"),
        ("base32", 38390726480144748, "0123456789ABC", "f4b6a3/tsid-creator"),
        ("base32", 38358284406638839, "01226N0640J7Q", "f4b6a3/tsid-creator"),
        ("base32", i64::MAX, "7ZZZZZZZZZZZZ", "the maximum"),
        ("base32", 10, "000000000000A", "Crockford"),
        ("base62", 393826547217232108, "0T5jFDIkmmy", "digits, upper, lower"),
        ("hex", 393823322797740148, "05772439bb9f9074", "16 digits"),
        ("shortcode", 1787135824035452364, "BjNLpA1AhXM", "Instagram, subzeroid/instagrapi"),
        ("shortcode", 908540701891980503, "ybyPRoQWzX", "Instagram, subzeroid/instagrapi"),
        ("decimal", 20, "0000000000000000020", "19 digits"),
    ] {
        assert_eq!(form(name).write(id).as_deref(), Some(text), "{source}");
        assert_eq!(form(name).read(text), Ok(id), "{source}");
    }
}

#[test]
fn base32_reads_either_case_and_look_alikes() {
    for text in ["0123456789abc", "O123456789ABC", "o123456789abc", "0I23456789ABC", "0L23456789aBc", "0i23456789ABC"] {
        assert_eq!(form("base32").read(text), Ok(38390726480144748), "{text}");
    }
    assert_eq!(form("base32").read("0123456789ABU"), Err(TextError::Foreign { character: 'U', at: 13 }));
    assert_eq!(form("base32").read("u123456789ABC"), Err(TextError::Foreign { character: 'u', at: 1 }));
}

#[test]
fn texts_that_are_no_ids_are_errors() {
    for (name, text, error) in [
        ("decimal", "9223372036854775808", TextError::TooLarge),
        ("decimal", "20", TextError::Length { found: 2, width: 19 }),
        ("decimal", "-000000000000000001", TextError::Foreign { character: '-', at: 1 }),
        ("decimal", "", TextError::Length { found: 0, width: 19 }),
        ("hex", "8000000000000000", TextError::TooLarge),
        ("hex", "ffffffffffffffff", TextError::TooLarge),
        ("hex", "05772439bb9f907g", TextError::Foreign { character: 'g', at: 16 }),
        ("base32", "8000000000000", TextError::TooLarge),
        ("base32", "ZZZZZZZZZZZZZ", TextError::TooLarge),
        ("base32", "01234 6789ABC", TextError::Foreign { character: ' ', at: 6 }),
        ("base36", "1y2p0ij32e8e8", TextError::TooLarge), // 2^63
        ("base36", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", TextError::TooLarge),
        ("base36", "08hgmw4blvlkw", TextError::NotShortest),
        ("base36", "", TextError::NotShortest),
        ("base58", "zzzzzzzzzzz", TextError::TooLarge),
        ("base58", "1111111110l", TextError::Foreign { character: '0', at: 10 }),
        ("base62", "ÄÖÜ", TextError::Foreign { character: 'Ä', at: 1 }),
        ("base62", "0T5jFDIkmm", TextError::Length { found: 10, width: 11 }),
        ("base64url", "__________8", TextError::TooLarge),
        ("base64url", "AAAAAAAAAAB", TextError::BitsBelow),
        ("shortcode", "ABjNLpA1AhXM", TextError::NotShortest),
    ] {
        assert_eq!(form(name).read(text), Err(error), "{name} {text}");
    }
    for form in FORMS {
        assert_eq!(form.write(-1), None);
        assert_eq!(form.write(i64::MIN), None);
    }
}

/// Whose texts sort as their IDs do, compared byte by byte, as the C collation of PostgreSQL does.
const SORTED: [&str; 5] = ["decimal", "hex", "base32", "base58", "base62"];

#[test]
fn texts_of_other_forms_do_not_sort_as_numbers() {
    for form in FORMS.iter().filter(|form| !SORTED.contains(&form.name)) {
        assert!((0..5000).any(|id| form.write(id) > form.write(id + 1)), "{}", form.name);
    }
}

fn any_id() -> impl Strategy<Value = i64> {
    prop_oneof![0..=i64::MAX, 0..=10_000_i64, (0..63_u32).prop_map(|bits| 1 << bits), Just(i64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_form_reads_what_it_writes(id in any_id()) {
        for form in FORMS {
            let text = form.write(id).unwrap();
            prop_assert_eq!(form.read(&text), Ok(id), "{} {}", form.name, text);
        }
    }

    #[test]
    fn texts_of_sorted_forms_sort_as_numbers(a in any_id(), b in any_id()) {
        for form in SORTED.map(form) {
            prop_assert_eq!(form.write(a).cmp(&form.write(b)), a.cmp(&b), "{}", form.name);
        }
    }

    #[test]
    fn any_text_is_an_id_or_an_error(text in "\\PC{0,30}|[0-9a-zA-Z_-]{0,22}") {
        for form in FORMS {
            if let Ok(id) = form.read(&text) {
                prop_assert!(id >= 0);
                // What is written for that ID differs from the text only by case and aliases.
                let canonical = form.write(id).unwrap();
                prop_assert_eq!(canonical.len(), text.len());
                prop_assert_eq!(form.read(&canonical), Ok(id));
            }
        }
    }

    #[test]
    fn other_crates_write_the_same(id in any_id()) {
        let bytes = id.to_be_bytes();
        prop_assert_eq!(form("base64url").write(id).unwrap(), URL_SAFE_NO_PAD.encode(bytes));
        prop_assert_eq!(form("hex").write(id).unwrap(), format!("{id:016x}"));
        prop_assert_eq!(form("decimal").write(id).unwrap(), format!("{id:019}"));
        // bs58 writes a 1 for each leading zero byte, and then the number; so it gets the number without them.
        let number: Vec<u8> = bytes.into_iter().skip_while(|&byte| byte == 0).collect();
        let bitcoin = bs58::encode(&number).into_string();
        prop_assert_eq!(form("base58").write(id).unwrap(), format!("{bitcoin:1>11}"));
        let flickr = bs58::encode(&number).with_alphabet(bs58::Alphabet::FLICKR).into_string();
        let ours = form("base58-bwmarrin").write(id).unwrap();
        prop_assert_eq!(ours, if id == 0 { "1".to_owned() } else { flickr });
    }
}
