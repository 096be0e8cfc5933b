//! A bound on how much a server can send.

use super::fault::Fault;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of bytes that may still be read from a connection. A client keeps an answer in memory until it is whole, and a server
/// that has gone mad sends without an end.
pub(crate) struct Allowance(AtomicUsize);

impl Allowance {
    /// For an answer of one record, or none. The longest that there is has a few thousand bytes.
    pub const ONE: usize = 1 << 20;

    /// For all records of a namespace. Those of 65,536 workers, as many as a field of 16 bits has, take about 25 MB.
    pub const ALL: usize = 48 << 20;

    /// From now on, so much.
    pub fn renew(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }

    /// Takes what was read from it, or what it costs to keep that.
    ///
    /// # Errors
    /// [`Fault::Unclear`], where there is not so much left.
    pub fn spend(&self, bytes: usize) -> Result<(), Fault> {
        let left = self.0.load(Relaxed).checked_sub(bytes);
        self.0.store(left.unwrap_or(0), Relaxed);
        left.map(drop).ok_or_else(|| Fault::Unclear("its answer is too long, and was not read to the end".to_owned()))
    }
}

/// For what a server says while the connection is made.
impl Default for Allowance {
    fn default() -> Self {
        Self(AtomicUsize::new(Self::ONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone_until_it_is_renewed() {
        let allowance = Allowance::default();
        allowance.renew(10);
        assert_eq!(allowance.spend(4), Ok(()));
        assert_eq!(allowance.spend(6), Ok(()));
        assert!(allowance.spend(1).is_err());
        allowance.renew(10);
        assert!(allowance.spend(11).is_err());
        assert!(allowance.spend(1).is_err());
        allowance.renew(1);
        assert_eq!(allowance.spend(1), Ok(()));
    }
}
