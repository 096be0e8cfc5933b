//! IDs as text, in the forms that URLs, files and other systems use. Each form has one text for an ID, and each text
//! that reads is one ID: other lengths, foreign characters and numbers beyond 2^63 - 1 are errors.
//!
//! All forms are positional numbers and differ in alphabet and width, so one table and one loop serve them all; the
//! tests compare with the crates that do one of them each.

use std::fmt;

/// A way to write an ID as text.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The name.
    pub name: &'static str,
    /// The digits, lowest first. ASCII.
    alphabet: &'static str,
    /// How many digits, with leading zeros; `None` for as few as it takes.
    width: Option<usize>,
    /// Bits that stand empty below the number, as bytes end within a digit.
    padding: u32,
    /// Whether letters are read in either case.
    any_case: bool,
    /// What else is read as which digit.
    aliases: &'static [(char, char)],
}

const DIGITS_UPPER_LOWER: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE_64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const PLAIN: Form = Form { name: "", alphabet: "", width: None, padding: 0, any_case: false, aliases: &[] };

/// All forms.
pub const FORMS: &[Form] = &[
    Form { name: "decimal", alphabet: "0123456789", width: Some(19), ..PLAIN },
    Form { name: "hex", alphabet: "0123456789abcdef", width: Some(16), any_case: true, ..PLAIN },
    // crockford.com/base32.html
    Form {
        name: "base32",
        alphabet: "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
        width: Some(13),
        any_case: true,
        aliases: &[('O', '0'), ('I', '1'), ('L', '1')],
        ..PLAIN
    },
    // bwmarrin/snowflake: Base36
    Form { name: "base36", alphabet: "0123456789abcdefghijklmnopqrstuvwxyz", any_case: true, ..PLAIN },
    // Bitcoin's alphabet
    Form {
        name: "base58",
        alphabet: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        width: Some(11),
        ..PLAIN
    },
    // bwmarrin/snowflake: Base58; lower case first, as at Flickr
    Form { name: "base58-bwmarrin", alphabet: "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", ..PLAIN },
    Form { name: "base62", alphabet: DIGITS_UPPER_LOWER, width: Some(11), ..PLAIN },
    // RFC 4648, section 5, of the eight bytes, the highest first; without padding
    Form { name: "base64url", alphabet: BASE_64_URL, width: Some(11), padding: 2, ..PLAIN },
    // Instagram: the number, not its bytes
    Form { name: "shortcode", alphabet: BASE_64_URL, ..PLAIN },
];

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// No digit of the form.
    Foreign {
        /// The character.
        character: char,
        /// Its place, counted from 1.
        at: usize,
    },
    /// A form of fixed width, and another number of characters.
    Length {
        /// How many there are.
        found: usize,
        /// How many there must be.
        width: usize,
    },
    /// A form without leading zeros, and a zero first; or no digit at all.
    NotShortest,
    /// The number is above 2^63 - 1.
    TooLarge,
    /// The last digit has bits below the number, which would be lost.
    BitsBelow,
}

impl std::error::Error for TextError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { character, at } => write!(f, "character {at}, \"{character}\", is no digit of the form"),
            Self::Length { found, width } => write!(f, "the text has {found} characters, and the form {width}"),
            Self::NotShortest => f.write_str("the form has at least one digit, and no leading zeros"),
            Self::TooLarge => f.write_str("the number is above 9223372036854775807"),
            Self::BitsBelow => f.write_str("the last character has bits below the number"),
        }
    }
}

impl Form {
    /// The form of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.name == name)
    }

    /// Whether texts sort as their IDs do, byte by byte, as under the C collation.
    pub fn keeps_order(&self) -> bool {
        self.width.is_some() && self.alphabet.as_bytes().is_sorted()
    }

    /// The text of an ID; `None` for a negative number.
    pub fn write(&self, id: i64) -> Option<String> {
        let mut number = u128::from(u64::try_from(id).ok()?) << self.padding;
        let digits = self.alphabet.as_bytes();
        let base = digits.len() as u128;
        let mut text = Vec::with_capacity(20);
        while number > 0 || text.len() < self.width.unwrap_or(1) {
            text.push(digits[(number % base) as usize]);
            number /= base;
        }
        text.reverse();
        String::from_utf8(text).ok()
    }

    /// The ID of a text.
    ///
    /// # Errors
    /// Where no ID is written so.
    pub fn read(&self, text: &str) -> Result<i64, TextError> {
        let base = self.alphabet.len() as u128;
        let mut number: u128 = 0;
        for (index, character) in text.chars().enumerate() {
            let digit = self.digit(character).ok_or(TextError::Foreign { character, at: index + 1 })?;
            number = number.saturating_mul(base).saturating_add(digit as u128);
        }
        let found = text.len(); // only ASCII is left
        match self.width {
            Some(width) if found != width => return Err(TextError::Length { found, width }),
            None if found != 1 && text.chars().next().is_none_or(|first| self.digit(first) == Some(0)) => {
                return Err(TextError::NotShortest);
            }
            _ => {}
        }
        if number & ((1 << self.padding) - 1) != 0 {
            return Err(TextError::BitsBelow);
        }
        i64::try_from(number >> self.padding).map_err(|_| TextError::TooLarge)
    }

    fn digit(&self, character: char) -> Option<usize> {
        let find = |character: char| self.alphabet.find(character);
        if let Some(digit) = find(character) {
            return Some(digit);
        }
        if !self.any_case {
            return None;
        }
        let upper = character.to_ascii_uppercase();
        let alias = self.aliases.iter().find(|(alias, _)| *alias == upper).map(|(_, digit)| *digit);
        find(alias.unwrap_or(upper)).or_else(|| find(character.to_ascii_lowercase()))
    }
}
