//! Write request counts from the metrics of an API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::Client;

use crate::wait;

/// Pause between counts.
const PAUSE: Duration = Duration::from_secs(1);

/// Verbs of write requests.
const WRITES: &[&str] = &["PUT", "PATCH", "POST", "DELETE", "APPLY"];

/// Write requests by resource and HTTP status. An empty resource name stands for a non-resource path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Writes(BTreeMap<(String, String), f64>);

impl Writes {
    /// Returns all writes so far. Writes to a subresource count as writes to the resource.
    pub(crate) async fn of(client: &Client) -> anyhow::Result<Self> {
        let text = client
            .request_text(http::Request::get("/metrics").body(Vec::new())?)
            .await?;
        Ok(Self::parse(&text))
    }

    /// Returns the writes so far, once these resources received no write for `quiet`.
    pub(crate) async fn settled(
        client: &Client,
        resources: &[&str],
        quiet: Duration,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let (mut seen, mut since) = (Self::of(client).await?, Instant::now());
        wait::until("nothing is written any more", limit, async || {
            let now = Self::of(client).await.map_err(|error| error.to_string())?;
            if now.total(resources) > seen.total(resources) {
                (seen, since) = (now, Instant::now());
            }
            // Counting causes load on the API server as well.
            tokio::time::sleep(PAUSE).await;
            if since.elapsed() >= quiet {
                Ok(())
            } else {
                Err(format!("{} writes so far", seen.total(resources)))
            }
        })
        .await?;
        Ok(seen)
    }

    fn parse(text: &str) -> Self {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let label = |name: &str| {
                let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap_or_default();
                rest.split_once('"').unwrap_or_default().0.to_owned()
            };
            if WRITES.contains(&label("verb").as_str()) {
                let value: f64 = line
                    .rsplit(' ')
                    .next()
                    .and_then(|value| value.parse().ok())
                    .unwrap_or_default();
                *counts.entry((label(",resource"), label("code"))).or_default() += value;
            }
        }
        Self(counts)
    }

    /// Returns the writes after another count.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less = |(key, count): (&(String, String), &f64)| {
            (key.clone(), count - before.0.get(key).copied().unwrap_or_default())
        };
        Self(self.0.iter().map(less).filter(|(_, count)| *count > 0.0).collect())
    }

    /// Returns the number of writes to these resources.
    pub(crate) fn total(&self, resources: &[&str]) -> f64 {
        self.0
            .iter()
            .filter(|((resource, _), _)| resources.contains(&resource.as_str()))
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the number of writes to these resources that failed with 409 Conflict.
    pub(crate) fn conflicts(&self, resources: &[&str]) -> f64 {
        let conflict =
            |((resource, code), _): &(&(String, String), &f64)| code == "409" && resources.contains(&resource.as_str());
        // Addition turns the negative zero of an empty float sum into zero.
        self.0.iter().filter(conflict).map(|(_, count)| count).sum::<f64>() + 0.0
    }

    /// Returns the number of writes per resource.
    pub(crate) fn by_resource(&self) -> BTreeMap<&str, f64> {
        let mut counts = BTreeMap::new();
        for ((resource, _), count) in &self.0 {
            *counts.entry(resource.as_str()).or_default() += count;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_read_from_the_metrics_of_an_api_server() {
        let before = Writes::parse(
            "# TYPE apiserver_request_total counter\n\
             apiserver_request_total{code=\"200\",group=\"g\",resource=\"works\",subresource=\"status\",verb=\"PUT\"} 3\n",
        );
        let after = Writes::parse(
            "apiserver_request_total{code=\"200\",group=\"g\",resource=\"works\",subresource=\"status\",verb=\"PUT\"} 5\n\
             apiserver_request_total{code=\"409\",group=\"g\",resource=\"works\",subresource=\"\",verb=\"PATCH\"} 1\n\
             apiserver_request_total{code=\"200\",group=\"\",resource=\"pods\",subresource=\"\",verb=\"LIST\"} 9\n",
        );
        let writes = after.since(&before);
        assert_eq!(
            (
                writes.total(&["works"]),
                writes.conflicts(&["works"]),
                writes.total(&["pods"])
            ),
            (3.0, 1.0, 0.0)
        );
        assert_eq!(writes.by_resource(), BTreeMap::from([("works", 3.0)]));
    }
}
