//! The messages of a server, looked at before the client gets them: the client would keep messages of any length and any number in
//! memory, and send the password to any server that asks for it.

use crate::net::{Allowance, Fault, Inspect, Inspected, Stream};
use std::pin::Pin;
use std::sync::Arc;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// The longest message. A row has a few thousand bytes at most, as its longest column is a path.
const LONGEST: usize = 1 << 16;

/// The highest number of columns. Ours are fewer.
const MOST_COLUMNS: u16 = 16;

/// The memory that the client needs for a message, beside its bytes.
const COST: usize = 64;

/// How long the first bytes of a message are that are looked at: its type, its length, and what is asked of the client.
const LONGEST_HEAD: usize = 9;

/// Whether a server that asks for the password in clear text gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClearText {
    /// Nobody can listen, or the URL says that it does not matter.
    Sent,
    /// It would go over the network.
    Refused,
}

/// A stream of messages.
pub(super) type Frames<S> = Inspected<S, Look>;

/// Where in a message the stream is.
pub(super) struct Look {
    allowance: Arc<Allowance>,
    clear_text: ClearText,
    /// The first bytes of the message, as far as they were seen, and how many these are.
    head: [u8; LONGEST_HEAD],
    seen: usize,
    /// How many bytes of the message are left.
    rest: usize,
}

impl Inspect for Look {
    fn inspect(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let (_, after) = bytes.split_at(self.rest.min(bytes.len()));
                self.rest -= bytes.len() - after.len();
                bytes = after;
                continue;
            }
            self.head[self.seen] = bytes[0];
            self.seen += 1;
            bytes = &bytes[1..];
            if self.seen >= 5 {
                self.at_head()?;
            }
        }
        Ok(())
    }
}

impl Look {
    pub fn new(allowance: Arc<Allowance>, clear_text: ClearText) -> Self {
        Self { allowance, clear_text, head: [0; LONGEST_HEAD], seen: 0, rest: 0 }
    }

    /// Checks the message, once enough of it was seen.
    fn at_head(&mut self) -> Result<(), Fault> {
        let [tag, a, b, c, d, body @ ..] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(length) = length.checked_sub(4) else {
            return Err(Fault::Broken("it does not answer as PostgreSQL does".to_owned()));
        };
        if length > LONGEST {
            return Err(Fault::Unclear("a message is too long, and was not read".to_owned()));
        }
        let needed = match tag {
            b'R' => 4,
            b'T' | b'D' => 2,
            _ => 0,
        };
        if self.seen < 5 + needed.min(length) {
            return Ok(());
        }
        let value = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
        if tag == b'R' && value == 3 && self.clear_text == ClearText::Refused {
            return Err(Fault::Tls(
                "the server asks for the password in clear text, over a connection without TLS, and did not get it. Have \
                 it ask for scram-sha-256, or give it TLS and say sslmode=verify-full; sslmode=disable would send it"
                    .to_owned(),
            ));
        }
        if matches!(tag, b'T' | b'D') && u16::from_be_bytes([body[0], body[1]]) > MOST_COLUMNS {
            return Err(Fault::Unclear("a row has more columns than were asked for".to_owned()));
        }
        self.allowance.spend(COST)?;
        self.rest = length - (self.seen - 5);
        self.seen = 0;
        Ok(())
    }
}

impl<S: TlsStream + Unpin> TlsStream for Frames<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// Encrypts a connection, and looks at the messages in it.
pub(super) struct Encrypt<T>(pub T);

impl<T> TlsConnect<Stream> for Encrypt<T>
where
    T: TlsConnect<Stream>,
    T::Future: 'static,
{
    type Stream = Frames<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>>>>;

    fn connect(self, stream: Stream) -> Self::Future {
        let allowance = stream.allowance();
        let connected = self.0.connect(stream);
        Box::pin(
            async move { Ok(Frames { stream: connected.await?, inspector: Look::new(allowance, ClearText::Sent) }) },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(clear_text: ClearText) -> Look {
        Look::new(Arc::default(), clear_text)
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    /// The result of these bytes, whole and one by one.
    fn of(clear_text: ClearText, bytes: &[u8]) -> Result<(), Fault> {
        let whole = look(clear_text).inspect(bytes);
        let mut one_by_one = look(clear_text);
        assert_eq!(bytes.chunks(1).try_for_each(|byte| one_by_one.inspect(byte)), whole);
        whole
    }

    #[test]
    fn a_password_in_clear_text_is_refused_wherever_it_is_asked_for() {
        let ready = message(b'Z', b"I");
        let asked = message(b'R', &[0, 0, 0, 3]);
        for bytes in [asked.clone(), [ready.clone(), asked.clone()].concat(), [&asked[..], b"x"].concat()] {
            assert!(matches!(of(ClearText::Refused, &bytes), Err(Fault::Tls(_))), "{bytes:?}");
        }
        assert_eq!(of(ClearText::Sent, &asked), Ok(()));
        for body in [&[0, 0, 0, 0][..], &[0, 0, 0, 5, 1, 2, 3, 4], &[0, 0, 0, 10], &[3]] {
            assert_eq!(of(ClearText::Refused, &[message(b'R', body), ready.clone()].concat()), Ok(()), "{body:?}");
        }
    }

    #[test]
    fn messages_have_bounds() {
        let of = |bytes: &[u8]| of(ClearText::Sent, bytes);
        assert_eq!(of(&message(b'E', &vec![b'x'; LONGEST])), Ok(()));
        assert!(of(&message(b'E', &vec![b'x'; LONGEST + 1])).is_err());
        assert!(of(b"D\0\0\0\x03").is_err());
        assert!(of(b"D\xff\xff\xff\xff").is_err());
        for tag in [b'T', b'D'] {
            assert_eq!(of(&[message(tag, &[0, 16]), message(tag, &[]), message(tag, &[0])].concat()), Ok(()));
            assert!(of(&message(tag, &[0, 17, 0, 0])).is_err());
        }
        let many = message(b'n', &[]).repeat(Allowance::ONE / COST);
        assert_eq!(of(&many), Ok(()));
        assert!(of(&[many, message(b'n', &[])].concat()).is_err());
    }
}
