//! Stand-in for the Service `bulkhead-webhook`: one address, whose connections go to the pods that are ready.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Name and port of the Service, as chart and kustomize folders have them.
pub(super) const NAME: &str = "bulkhead-webhook.karmada-system.svc:443";
/// Port of the webhook in a pod.
const PORT: u16 = 8443;

/// A running Service. It ends when it is dropped.
pub(super) struct Service {
    /// Address and port that take the place of the name.
    pub(super) address: String,
    /// Addresses of ready pods, in order of their start.
    ready: Arc<Mutex<Vec<String>>>,
    _connections: JoinSet<()>,
}

impl Service {
    /// Starts the Service on a free port, without a pod.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("finding a free port")?;
        let address = listener.local_addr()?.to_string();
        let ready = Arc::<Mutex<Vec<String>>>::default();
        let (known, mut connections) = (Arc::clone(&ready), JoinSet::new());
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                // The newest pod: old ones end soon.
                let pod = known.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
                open.spawn(async move {
                    // Without a pod, the connection is closed.
                    let Some(pod) = pod else { return };
                    if let Ok(mut server) = TcpStream::connect((pod.as_str(), PORT)).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
                while open.try_join_next().is_some() {}
            }
        });
        Ok(Self {
            address,
            ready,
            _connections: connections,
        })
    }

    /// Adds a pod that is ready.
    pub(super) fn add(&self, pod: &str) {
        self.pods().push(pod.to_owned());
    }

    /// Removes a pod that is about to end.
    pub(super) fn remove(&self, pod: &str) {
        self.pods().retain(|known| known != pod);
    }

    fn pods(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
