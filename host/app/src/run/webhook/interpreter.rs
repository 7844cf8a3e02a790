//! Karmada's questions to its interpreter, answered by plugins.

use std::sync::Arc;

use bulkhead_api::webhook::serve;
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;

/// Where questions are posted.
pub(super) const PATH: &str = "/interpret";

/// Answers a question. An error means that it was none. A plugin may take its whole budget, so this runs where it
/// keeps nobody else from working.
pub(super) async fn answer(registry: Arc<Registry>, body: bytes::Bytes) -> anyhow::Result<Vec<u8>> {
    let now = Time::new(crate::run::now());
    let answered = tokio::task::spawn_blocking(move || serve::answer(&registry.policies(), &body, now)).await?;
    Ok(serde_json::to_vec(&answered.map_err(anyhow::Error::msg)?)?)
}
