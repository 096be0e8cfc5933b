//! Reading and writing beside the requests.

use tokio::task::JoinHandle;

/// A task that reads and writes a connection for a client. It ends with the session, also if the server never answers.
pub(crate) struct Driver(JoinHandle<()>);

impl Driver {
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
