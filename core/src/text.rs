//! IDs as text, in the forms that URLs, files and other systems use. Each form has one text for an ID. What is not the
//! text of an ID is an error: other lengths, other characters, numbers above 2^63 - 1.
//!
//! Every form writes the digits of a number in some base; they differ in alphabet and width. So one table and one loop
//! serve all. Tests compare the forms with crates that implement one each.
//!
//! ```
//! use snowflake_core::text::{Form, TextError};
//!
//! let form = Form::named("base62").unwrap();
//! assert_eq!(form.write(393826547217232108).as_deref(), Some("0T5jFDIkmmy"));
//! assert_eq!(form.read("0T5jFDIkmmy"), Ok(393826547217232108));
//! assert_eq!(form.read("0T5-FDIkmmy"), Err(TextError::Foreign { character: '-', at: 4 }));
//! ```

use thiserror::Error;

/// A way to write an ID as text.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The name.
    pub name: &'static str,
    /// The digits from 0 on, in ASCII.
    alphabet: &'static str,
    /// The number of digits, with leading zeros; `None` where there are no leading zeros.
    width: Option<usize>,
    /// How many zero bits follow those of the number, to fill the last digit.
    padding: u32,
    /// Whether letters are read in either case.
    any_case: bool,
    /// Other characters that are read as a digit, in upper case, with the digit.
    aliases: &'static [(char, char)],
}

const DIGITS_UPPER_LOWER: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE_64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The greatest length of a text that is read as an ID, in bytes. IDs are shorter in every form; a text that is a little longer gets the
/// error that says what is wrong with it.
pub const LONGEST: usize = 64;

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
    // bwmarrin/snowflake: Base58; the alphabet of Flickr, with lower case first
    Form { name: "base58-bwmarrin", alphabet: "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", ..PLAIN },
    Form { name: "base62", alphabet: DIGITS_UPPER_LOWER, width: Some(11), ..PLAIN },
    // RFC 4648, section 5, of the eight bytes, the highest first; without padding
    Form { name: "base64url", alphabet: BASE_64_URL, width: Some(11), padding: 2, ..PLAIN },
    // Instagram: the number, not its bytes
    Form { name: "shortcode", alphabet: BASE_64_URL, ..PLAIN },
];

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// The text has more than [`LONGEST`] bytes.
    #[error("the text has more than {max} bytes, and an ID at most 19 characters", max = LONGEST)]
    TooLong,
    /// A character is no digit of the form.
    #[error("character {at}, \"{character}\", is no digit of the form")]
    Foreign {
        /// The character.
        character: char,
        /// Its number, counted from 1.
        at: usize,
    },
    /// The form has a fixed width, and the text another one.
    #[error("the text has {found} characters, and the form {width}")]
    Length {
        /// How many characters there are.
        found: usize,
        /// How many there must be.
        width: usize,
    },
    /// The form has no leading zeros, and the text does, or has no digit at all.
    #[error("the form has at least one digit, and no leading zeros")]
    NotShortest,
    /// The number is above 2^63 - 1.
    #[error("the number is above 9223372036854775807")]
    TooLarge,
    /// The last digit has bits after those of the number that are not zero.
    #[error("the last character has bits below the number")]
    BitsBelow,
}

impl Form {
    /// The form of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.name == name)
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
    /// Where the text is not that of an ID in this form: see [`TextError`].
    pub fn read(&self, text: &str) -> Result<i64, TextError> {
        if text.len() > LONGEST {
            return Err(TextError::TooLong);
        }
        let base = self.alphabet.len() as u128;
        let mut number: u128 = 0;
        for (index, character) in text.chars().enumerate() {
            let digit = self.digit(character).ok_or(TextError::Foreign { character, at: index + 1 })?;
            number = number.saturating_mul(base).saturating_add(digit as u128);
        }
        let found = text.len(); // all characters are ASCII
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
