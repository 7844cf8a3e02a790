//! Polling for a condition; errors include the last observation.

use std::time::{Duration, Instant};

use anyhow::bail;

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(200);

/// Polls `look` until it returns `Ok`, and returns the elapsed time. The error text of `look` is its observation.
pub(crate) async fn until<F>(what: &str, limit: Duration, mut look: F) -> anyhow::Result<Duration>
where
    F: AsyncFnMut() -> Result<(), String>,
{
    let started = Instant::now();
    loop {
        match look().await {
            Ok(()) => return Ok(started.elapsed()),
            Err(seen) if started.elapsed() > limit => {
                bail!("{what}: not so within {} s; seen last: {seen}", limit.as_secs())
            }
            Err(_) => tokio::time::sleep(INTERVAL).await,
        }
    }
}

/// Polls `look` for a while and fails as soon as it returns an error.
pub(crate) async fn stays<F>(what: &str, time: Duration, mut look: F) -> anyhow::Result<()>
where
    F: AsyncFnMut() -> Result<(), String>,
{
    let started = Instant::now();
    while started.elapsed() < time {
        if let Err(seen) = look().await {
            bail!(
                "{what}: not so any more after {} s: {seen}",
                started.elapsed().as_secs()
            );
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}
