//! The parameters of a URL, after the `?`.

use super::encoding::decoded;
use super::error::UrlError;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The parameters that the URL of every kind of registry can have.
pub(crate) const COMMON: [&str; 4] = ["sslrootcert", "sslcert", "sslkey", "connect_timeout"];

/// Parameters, each with its value, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// # Errors
    /// [`UrlError::Parameter`], where one is none of those that are known; [`UrlError::Twice`]; those of decoding.
    pub fn parse(query: &str, known: &[&'static str]) -> Result<Self, UrlError> {
        let mut parameters: Vec<(&'static str, String)> = Vec::new();
        for (index, text) in query.split('&').filter(|_| !query.is_empty()).enumerate() {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(UrlError::Parameter { number: index + 1, known: known.join(", ") });
            };
            if parameters.iter().any(|(other, _)| other == name) {
                return Err(UrlError::Twice(name));
            }
            parameters.push((name, decoded(value, "a parameter")?));
        }
        Ok(Self(parameters))
    }

    /// The value of one, where it is there.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    /// The value of one that is a number.
    ///
    /// # Errors
    /// [`UrlError::Value`].
    pub fn number(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
        must_be: &'static str,
    ) -> Result<Option<u32>, UrlError> {
        let number = |value: &str| value.parse().ok().filter(|number| range.contains(number));
        self.get(name).map(|value| number(value).ok_or(UrlError::Value { name, must_be })).transpose()
    }

    /// The files of the certificate to show to the server, and of its key.
    ///
    /// # Errors
    /// [`UrlError::Value`], where there is one without the other.
    pub fn own_certificate(&self) -> Result<Option<(PathBuf, PathBuf)>, UrlError> {
        match (self.get("sslcert"), self.get("sslkey")) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
            (None, Some(_)) => Err(UrlError::Value { name: "sslcert", must_be: "set where sslkey is set" }),
            (Some(_), None) => Err(UrlError::Value { name: "sslkey", must_be: "set where sslcert is set" }),
        }
    }
}
