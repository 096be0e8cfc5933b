//! How names of hosts become addresses.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A look-up, which blocks until the system's resolver answers or gives up.
pub type Lookup = Box<dyn FnOnce() + Send>;

type Start = dyn Fn(&str, Lookup) -> io::Result<()> + Send + Sync;

/// Who waits for the system's resolver. Nothing ends its wait for a name server that is away.
#[derive(Clone, Default)]
pub struct Resolver(Option<Arc<Start>>);

impl Resolver {
    /// The caller of a registry, whatever its deadline is. No thread is started.
    pub fn here() -> Self {
        Self(None)
    }

    /// Somebody else, such as a thread that this starts for a name: a call of the registry ends in time, and the look-up goes on by
    /// itself.
    pub fn elsewhere(start: impl Fn(&str, Lookup) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(start)))
    }

    /// What starts a look-up elsewhere; `None` where it is run here.
    pub(crate) fn start(&self) -> Option<&Start> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver(…)")
    }
}
