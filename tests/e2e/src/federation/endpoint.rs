//! Health and metrics of the `bulkhead run` processes.

use std::fs;

use anyhow::Context as _;

use super::Federation;

impl Federation<'_> {
    /// Returns the address at which a process serves health and metrics.
    pub(crate) fn address(&self, process: usize) -> anyhow::Result<String> {
        self.logged_address(process, "health and metrics at http://")
    }

    /// Returns the address at which a process serves the console.
    pub(crate) fn console(&self, process: usize) -> anyhow::Result<String> {
        self.logged_address(process, "console at https://")
    }

    /// Returns the address that the log of a process has after a text, as a line of text or of JSON.
    fn logged_address(&self, process: usize, before: &str) -> anyhow::Result<String> {
        let process = self.bulkhead.get(process).context("there is no such process")?;
        let log = fs::read_to_string(process.log())?;
        let address = log
            .lines()
            .find_map(|line| line.split_once(before)?.1.split('"').next());
        Ok(address
            .with_context(|| format!("{} has no line with {before:?}", process.log().display()))?
            .to_owned())
    }

    /// Returns the body of `/readyz` of a process.
    pub(crate) async fn readiness(&self, process: usize) -> anyhow::Result<String> {
        http_get(&self.address(process)?, "/readyz").await
    }

    /// Returns the sum of all series of a metric of a process.
    pub(crate) async fn metric(&self, process: usize, name: &str) -> anyhow::Result<f64> {
        let text = http_get(&self.address(process)?, "/metrics").await?;
        let values = text
            .lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum())
    }
}

/// Returns the body of an HTTP response.
pub(crate) async fn http_get(address: &str, path: &str) -> anyhow::Result<String> {
    let response = http_response(address, path).await?;
    let (_, body) = response
        .split_once("\r\n\r\n")
        .context("this is no answer of an HTTP server")?;
    Ok(body.to_owned())
}

/// Returns a whole HTTP response, from its status line on.
pub(crate) async fn http_response(address: &str, path: &str) -> anyhow::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .with_context(|| format!("connecting to {address}"))?;
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())
        .await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
