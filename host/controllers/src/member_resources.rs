//! Nodes and pods of member clusters → counts and sums in the Cluster status.
//!
//! Informers keep of each node and pod only what the sums need, so that a probe lists nothing and a pod takes about a
//! hundred bytes.

mod cache;
mod nodes;
mod pods;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::decide::summary::Totals;
use bulkhead_core::model::{NodeSummary, ResourceSummary};
use bulkhead_runtime::excerpt::Excerpt;
use bulkhead_runtime::informer;
use bulkhead_runtime::tasks::Tasks;
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::Value;
use tokio::task::AbortHandle;

use self::cache::{Cache, Contents};
use self::nodes::Nodes;
use self::pods::Pods;

/// Objects per page of a list. A page is in memory as text, and a pod has some kilobytes of it.
const PAGE: u32 = 250;

/// Nodes and pods of member clusters, by the name of the cluster.
#[derive(Default)]
pub struct MemberResources {
    members: Mutex<BTreeMap<String, Watched>>,
    tasks: Tasks,
}

struct Watched {
    nodes: Informed<Nodes>,
    pods: Informed<Pods>,
}

/// Cache with the informer that fills it.
struct Informed<C> {
    cache: Arc<Cache<C>>,
    informer: AbortHandle,
}

impl<C> Informed<C> {
    fn end(&self) {
        self.informer.abort();
        self.cache.fail();
    }
}

impl MemberResources {
    /// Sums up the nodes and pods of a member cluster, also by the grades of `models`. The first call for a member
    /// starts its informers; after a failure, the next call starts them again with its client. Waits for a list in
    /// progress. Returns `None` if nodes or pods cannot be listed or watched: the previous sums are better than half of
    /// the new ones.
    pub async fn sums(
        &self,
        member: &str,
        client: &Client,
        models: &[Value],
    ) -> Option<(NodeSummary, ResourceSummary)> {
        let (nodes, pods) = self.watch(member, client);
        if !nodes.is_listed().await || !pods.is_listed().await {
            return None;
        }
        let mut totals = Totals::new(models);
        nodes.read(|nodes| nodes.add_to(&mut totals));
        pods.read(|pods| pods.add_to(&mut totals));
        Some(totals.finish())
    }

    /// Forgets a member cluster, and ends its informers: it has left, or its name has another address or other credentials
    /// now. A caller that waits for its sums gets none.
    pub fn forget(&self, member: &str) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = members.remove(member) {
            watched.nodes.end();
            watched.pods.end();
        }
    }

    /// Returns the caches of a member, whose informers run.
    fn watch(&self, member: &str, client: &Client) -> (Arc<Cache<Nodes>>, Arc<Cache<Pods>>) {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = members.entry(member.to_owned()).or_insert_with(|| Watched {
            nodes: self.informed(Arc::default(), client),
            pods: self.informed(Arc::default(), client),
        });
        self.revive(&mut watched.nodes, client);
        self.revive(&mut watched.pods, client);
        (Arc::clone(&watched.nodes.cache), Arc::clone(&watched.pods.cache))
    }

    /// Starts an informer again that waits after a failure. The member has just responded, and its credentials may have
    /// been replaced.
    fn revive<C: Contents>(&self, informed: &mut Informed<C>, client: &Client) {
        if informed.cache.has_failed() {
            informed.informer.abort();
            *informed = self.informed(Arc::clone(&informed.cache), client);
        }
    }

    fn informed<C: Contents>(&self, cache: Arc<Cache<C>>, client: &Client) -> Informed<C> {
        cache.expect_list();
        let api: Api<Excerpt<C::Value>> = Api::all_with(client.clone(), &C::resource());
        let config = watcher::Config::default().page_size(PAGE);
        let receiver = Arc::clone(&cache);
        let informer = self
            .tasks
            .spawn(async move { informer::run(&*receiver, api, config).await });
        Informed { cache, informer }
    }
}

#[cfg(test)]
mod tests;
