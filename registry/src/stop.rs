//! How a call learns that it is not wanted any more.

use std::fmt;
use std::sync::Arc;

/// Says whether calls must end. Asked at least every 100 ms while a call waits.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Calls end when this returns `true`. It must not block, and must not panic.
    pub fn when(wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(wanted))
    }

    /// Calls end by their deadline only.
    pub fn never() -> Self {
        Self::when(|| false)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        (self.0)()
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::never()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop(…)")
    }
}
