//! Second process in mode `report`: it makes all decisions and must not write (S5).
//!
//! Its requests are counted at the API servers, behind the permit that is supposed to reject its writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bulkhead_apiserver::ApiServer;
use bulkhead_controllers::permissions::Mode;
use bulkhead_controllers::{Components, Manager, MemberError, Members, Stores, controller_names};
use bulkhead_core::journal::Journal;
use bulkhead_emulator::MemberCluster;
use bulkhead_runtime::clock::Clock;
use bulkhead_runtime::connection::{WritePermit, permitted};
use bulkhead_runtime::dynamic::DynamicStores;
use bulkhead_runtime::events;
use bulkhead_runtime::failures::Failures;
use bulkhead_runtime::kinds::Kinds;
use bulkhead_runtime::write_priority::is_read;
use http::Request;
use kube::Client;
use kube::client::Body;
use tower::{Service, ServiceExt, service_fn};

/// Maximum number of recorded decisions: none are needed.
const RECORDS_MAX: usize = 0;

/// Process in mode `report`.
pub(super) struct ReportOnlyProcess {
    writes: Arc<AtomicU64>,
    _manager: Manager,
}

struct Watched(std::collections::BTreeMap<String, Client>);

impl Members for Watched {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        let found = self.0.get(cluster).cloned();
        found.ok_or_else(|| MemberError::Broken(format!("there is no member cluster {cluster}")))
    }
}

/// Creates a client without write permission that counts the writes that reach the server.
fn client(server: &ApiServer, writes: &Arc<AtomicU64>) -> Client {
    let (service, writes) = (server.service(), Arc::clone(writes));
    let counting = service_fn(move |request: Request<Body>| {
        if !is_read(request.method()) {
            writes.fetch_add(1, Ordering::Relaxed);
        }
        let mut service = service.clone();
        async move { service.ready().await?.call(request).await }
    });
    Client::new(permitted(counting, &WritePermit::report_only()), "default")
}

impl ReportOnlyProcess {
    /// Starts the process beside the controllers with these components.
    pub(super) fn start<'a>(
        hub: &ApiServer,
        members: impl Iterator<Item = (&'a str, &'a MemberCluster)>,
        clock: Clock,
        components: Components,
    ) -> Self {
        let writes: Arc<AtomicU64> = Arc::default();
        let hub = client(hub, &writes);
        let members = members
            .map(|(name, member)| (name.to_owned(), client(member.server(), &writes)))
            .collect();
        let (emitter, writer) = events::events(hub.clone(), clock.clone());
        let context = Components {
            clock,
            stores: Arc::new(Stores::default()),
            kinds: Arc::new(Kinds::new(hub.clone())),
            members: Arc::new(Watched(members)),
            journal: Arc::new(Journal::new(RECORDS_MAX)),
            events: emitter,
            failures: Arc::new(Failures::default()),
            metrics: Arc::default(),
            templates: Arc::new(DynamicStores::new(None)),
            member_objects: Arc::new(DynamicStores::new(Some("karmada.io/managed=true"))),
            uncovered: Arc::default(),
            contacts: Arc::default(),
            failover_notes: Arc::default(),
            hub,
            ..components
        };
        let manager = Manager::watch(context);
        manager.tasks().spawn(writer.run());
        let decides = |name: &str| Mode::Evict.duties().iter().any(|duty| duty.name == name);
        for name in controller_names().filter(|name| decides(name)) {
            manager.start_controller(name);
        }
        Self {
            writes,
            _manager: manager,
        }
    }

    /// Returns the number of writes sent.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}
