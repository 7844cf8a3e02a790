//! Leader election on the runtime of leases and probes.

use std::sync::Arc;

use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::connection::WritePermit;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinSet;

use super::leader::{Candidate, Elected, Election};

/// Candidate whose requests run on a runtime that controllers cannot block.
pub(super) struct Elector {
    candidate: Arc<Mutex<Candidate>>,
    runtime: Handle,
}

impl Elector {
    /// Creates an elector. `client` belongs to `runtime`, and `clock` is that of the controllers.
    pub(super) fn new(election: Election, client: Client, permit: WritePermit, clock: Clock, runtime: Handle) -> Self {
        let candidate = Arc::new(Mutex::new(Candidate::new(election, client, permit, clock)));
        Self { candidate, runtime }
    }

    /// Waits until the candidate holds the lease, see [`Candidate::acquire`].
    pub(super) async fn acquire(&self, waiting: impl FnMut(&str) + Send + 'static) -> Elected {
        self.run(|mut candidate| async move { candidate.acquire(waiting).await })
            .await
    }

    /// Renews the lease until that fails, see [`Candidate::hold`].
    pub(super) async fn hold(&self) -> String {
        self.run(|mut candidate| async move { candidate.hold().await }).await
    }

    /// Returns true if the candidate held the lease when it was last read.
    pub(super) async fn holds(&self) -> bool {
        self.candidate.lock().await.holds()
    }

    /// Releases the lease.
    pub(super) async fn release(&self) {
        self.run(|mut candidate| async move { candidate.release().await }).await;
    }

    /// Runs work with the candidate on its runtime. The work stops when the future is dropped.
    async fn run<T, F>(&self, work: impl FnOnce(OwnedMutexGuard<Candidate>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let candidate = Arc::clone(&self.candidate).lock_owned().await;
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work(candidate), &self.runtime);
        match tasks.join_next().await {
            Some(Ok(value)) => value,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime is shutting down, and the process with it.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use bulkhead_apiserver::{ApiServer, Options, kinds};
    use bulkhead_runtime::connection::permitted;
    use http::{Method, Request};
    use k8s_openapi::jiff::Timestamp;
    use kube::client::Body;
    use tokio::runtime::{Builder, Runtime};
    use tower::{Service, ServiceExt, service_fn};

    use super::*;

    /// Timeout of every step on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(90);

    fn runtime(workers: usize) -> Runtime {
        Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .unwrap()
    }

    fn counting(hub: &ApiServer, renewals: mpsc::Sender<()>) -> Client {
        let service = hub.service();
        let counting = service_fn(move |request: Request<Body>| {
            if request.method() == Method::PUT {
                let _ = renewals.send(());
            }
            let mut service = service.clone();
            async move { service.ready().await?.call(request).await }
        });
        Client::new(permitted(counting, &WritePermit::unlimited()), "default")
    }

    #[test]
    fn the_lease_is_renewed_while_every_worker_is_busy() {
        let (runtime, lease_runtime) = (runtime(2), runtime(1));
        let (renewed, renewals) = mpsc::channel();
        let client = {
            let _entered = lease_runtime.enter();
            let clock = bulkhead_apiserver::Clock::new(Timestamp::UNIX_EPOCH);
            let kinds = kinds::kubernetes();
            let hub = ApiServer::new(Options {
                kinds,
                auto_create_namespaces: true,
                ..Options::new("hub", 1, clock)
            });
            counting(&hub, renewed)
        };
        let election = Election {
            namespace: "default".to_owned(),
            name: "bulkhead".to_owned(),
            identity: "a".to_owned(),
            lease_duration: TIMEOUT * 2,
            renew_deadline: TIMEOUT,
            retry_period: Duration::from_millis(10),
            modes: "all".to_owned(),
            queries: None,
        };
        let decision_clock = Clock::new(crate::now);
        let elector = Elector::new(
            election,
            client,
            WritePermit::none(),
            decision_clock,
            lease_runtime.handle().clone(),
        );
        // Every worker is blocked until the test ends, as by plugins.
        let (began, begins) = mpsc::channel();
        let release: Vec<_> = (0..2)
            .map(|_| {
                let (began, (release, released)) = (began.clone(), mpsc::channel::<()>());
                runtime.spawn(async move {
                    began.send(()).unwrap();
                    let _ = released.recv();
                });
                release
            })
            .collect();
        for _ in 0..2 {
            begins.recv_timeout(TIMEOUT).expect("the workers are occupied");
        }
        let (seen, enough) = tokio::sync::oneshot::channel();
        let holding = std::thread::spawn(move || {
            runtime.block_on(async {
                elector.acquire(|_| {}).await;
                tokio::select! {
                    why = elector.hold() => panic!("{why}"),
                    _ = enough => {}
                }
            });
            runtime.shutdown_background();
        });
        for _ in 0..5 {
            renewals.recv_timeout(TIMEOUT).expect("the lease is renewed");
        }
        seen.send(()).unwrap();
        holding.join().unwrap();
        drop(release);
        lease_runtime.shutdown_background();
    }
}
