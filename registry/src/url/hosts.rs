//! The hosts of a URL, separated by commas.

use super::error::UrlError;
use crate::address::Host;
use std::net::Ipv6Addr;

/// # Errors
/// [`UrlError::NoHost`], [`UrlError::Host`], [`UrlError::Port`], each with the number of the host, of which the first is 1.
pub(crate) fn parse_hosts(text: &str, default_port: u16) -> Result<Vec<Host>, UrlError> {
    text.split(',').enumerate().map(|(index, text)| parse_host(index + 1, text, default_port)).collect()
}

fn parse_host(number: usize, text: &str, default_port: u16) -> Result<Host, UrlError> {
    let (name, port) = split(number, text)?;
    if name.is_empty() {
        return Err(UrlError::NoHost(number));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c)) {
        return Err(UrlError::Host(number));
    }
    let port = match port {
        None => default_port,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port(number))?
        }
        // More than one colon: an IPv6 address without brackets.
        Some(port) if port.contains(':') => return Err(UrlError::Host(number)),
        Some(_) => return Err(UrlError::Port(number)),
    };
    Ok(Host { name: name.to_owned(), port })
}

/// The name, and the port where there is one.
fn split(number: usize, text: &str) -> Result<(&str, Option<&str>), UrlError> {
    let Some(rest) = text.strip_prefix('[') else {
        return Ok(text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))));
    };
    let (address, port) = rest.split_once(']').ok_or(UrlError::Host(number))?;
    address.parse::<Ipv6Addr>().map_err(|_| UrlError::Host(number))?;
    match port.is_empty() {
        true => Ok((address, None)),
        false => Ok((address, Some(port.strip_prefix(':').ok_or(UrlError::Host(number))?))),
    }
}
