//! How long a call may wait.

use super::fault::Fault;
use crate::Stop;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The longest wait between two looks at whether the caller wants to stop.
const SLICE: Duration = Duration::from_millis(100);

/// When a call must end, and how it learns that the caller wants to stop.
#[derive(Clone)]
pub(crate) struct Deadline {
    at: Instant,
    stop: Stop,
}

impl Deadline {
    pub fn new(length: Duration, stop: &Stop) -> Self {
        Self { at: Instant::now() + length, stop: stop.clone() }
    }

    /// The share of one of so many hosts that are left to try, and no more than `longest`.
    pub fn share(&self, hosts_left: usize, longest: Option<Duration>) -> Self {
        let share = self.left() / u32::try_from(hosts_left.max(1)).unwrap_or(u32::MAX);
        let share = longest.map_or(share, |longest| share.min(longest));
        Self { at: Instant::now() + share, stop: self.stop.clone() }
    }

    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Waits for a future, and drops it when the time is over.
    ///
    /// # Errors
    /// [`Fault::Interrupted`], [`Fault::Timeout`], and those of the future.
    pub async fn wait_for<T>(&self, future: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut future = pin!(future);
        loop {
            if self.stop.is_wanted() {
                return Err(Fault::Interrupted);
            }
            let left = self.left();
            if left.is_zero() {
                return Err(Fault::Timeout);
            }
            if let Ok(result) = timeout(left.min(SLICE), future.as_mut()).await {
                return result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn wait(deadline: &Deadline, future: impl Future<Output = Result<u8, Fault>>) -> Result<u8, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(deadline.wait_for(future))
    }

    #[test]
    fn a_wait_ends_by_its_result_its_deadline_or_a_stop() {
        let long = Duration::from_secs(60);
        assert_eq!(wait(&Deadline::new(long, &Stop::never()), async { Ok(1) }), Ok(1));
        assert_eq!(wait(&Deadline::new(long, &Stop::never()), async { Err(Fault::Timeout) }), Err(Fault::Timeout));
        let short = Deadline::new(Duration::from_millis(150), &Stop::never());
        assert_eq!(wait(&short, std::future::pending()), Err(Fault::Timeout));
        assert!(short.left().is_zero());
        // No time: nothing is begun.
        assert_eq!(wait(&short, async { panic!("it was begun") }), Err(Fault::Timeout));

        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let stop = Stop::when(move || count.fetch_add(1, Ordering::Relaxed) == 2);
        let begun = Instant::now();
        assert_eq!(wait(&Deadline::new(long, &stop), std::future::pending()), Err(Fault::Interrupted));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert!(begun.elapsed() >= SLICE * 2 && begun.elapsed() < long);
    }

    #[test]
    fn hosts_share_what_is_left() {
        let deadline = Deadline::new(Duration::from_secs(60), &Stop::never());
        let share = deadline.share(3, None).left();
        assert!(share > Duration::from_secs(15) && share <= Duration::from_secs(20), "{share:?}");
        assert!(deadline.share(3, Some(Duration::from_secs(2))).left() <= Duration::from_secs(2));
        assert!(deadline.share(0, None).left() <= Duration::from_secs(60));
    }
}
