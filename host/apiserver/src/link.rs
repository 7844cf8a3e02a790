//! Connection between a client and a server, which can be slow or down.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use thiserror::Error;
use tokio::sync::Notify;

/// Failure below HTTP: the client gets no response, or an incomplete one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The connection was refused; the server did not receive the request.
    #[error("connection refused by {server}")]
    Refused {
        /// Name of the server.
        server: String,
    },
    /// The connection broke; the server may have carried out the request.
    #[error("connection to {server} reset")]
    Reset {
        /// Name of the server.
        server: String,
    },
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Requests are not delayed.
    Up,
    /// Requests are refused immediately; open watches break.
    Down,
    /// Requests reach the server after this delay; open watches are not delayed.
    Slow(Duration),
}

/// Shared handle of one connection; clones control the same connection.
#[derive(Clone, Debug)]
pub struct Link {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    status: Mutex<Status>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Status {
    state: LinkState,
    /// Number of times the link went down. A connection opened before a drop does not survive it, even if the link is
    /// up again before the drop is noticed.
    drops_total: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl Link {
    /// Returns a link that is up.
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                status: Mutex::new(Status {
                    state: LinkState::Up,
                    drops_total: 0,
                }),
                changed: Notify::new(),
            }),
        }
    }

    /// Sets the state of the link.
    pub fn set(&self, state: LinkState) {
        let mut status = self.inner.status.lock().unwrap_or_else(PoisonError::into_inner);
        if state == LinkState::Down && status.state != LinkState::Down {
            status.drops_total += 1;
        }
        status.state = state;
        drop(status);
        self.inner.changed.notify_waiters();
    }

    /// Returns the state of the link.
    pub fn state(&self) -> LinkState {
        self.status().state
    }

    fn status(&self) -> Status {
        *self.inner.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the delay of the link. Returns an error if the link is or goes down.
    pub(crate) async fn pass(&self, server: &str) -> Result<(), ConnectionError> {
        let refused = || ConnectionError::Refused {
            server: server.to_owned(),
        };
        match self.state() {
            LinkState::Up => Ok(()),
            LinkState::Down => Err(refused()),
            LinkState::Slow(delay) => {
                let opened = self.status().drops_total;
                tokio::select! {
                    biased;
                    () = self.dropped_since(opened) => Err(refused()),
                    () = tokio::time::sleep(delay) => Ok(()),
                }
            }
        }
    }

    async fn dropped_since(&self, drops_total: u64) {
        loop {
            let mut notified = pin!(self.inner.changed.notified());
            notified.as_mut().enable();
            if self.status().drops_total != drops_total {
                return;
            }
            notified.await;
        }
    }

    /// Wraps a stream so that it ends with an error when the link goes down.
    pub(crate) fn cut(
        &self,
        server: &str,
        lines: impl Stream<Item = Result<Bytes, ConnectionError>> + Send + 'static,
    ) -> impl Stream<Item = Result<Bytes, ConnectionError>> + Send + 'static {
        let opened = self.status().drops_total;
        let link = self.clone();
        let server = server.to_owned();
        stream::unfold(Some(lines.boxed()), move |lines| {
            let (link, server) = (link.clone(), server.clone());
            async move {
                let mut lines = lines?;
                tokio::select! {
                    biased;
                    () = link.dropped_since(opened) => Some((Err(ConnectionError::Reset { server }), None)),
                    line = lines.next() => line.map(|line| (line, Some(lines))),
                }
            }
        })
    }
}
