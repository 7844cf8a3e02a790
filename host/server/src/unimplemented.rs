//! Objects that only Karmada's controllers act upon. In mode `all` these controllers are stopped, and the controllers
//! of this program would undo their work.

use std::error::Error;
use std::fmt;

use bulkhead_runtime::controller::is_not_found;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use tracing::warn;

use super::RETRY;
use super::connect_error::ConnectError;
use super::endpoint::State;
use super::hub::Hub;

/// Maximum number of objects in a message.
const SHOWN_MAX: usize = 10;

/// Kind of object without a controller in this program.
struct Kind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
}

const fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        version: "v1alpha1",
        kind,
        plural,
    }
}

/// Name of the controller that claims templates, and so takes the place of Karmada's controllers as a whole.
const DETECTOR: &str = "detector";

const KINDS: [Kind; 8] = [
    kind("policy.karmada.io", "FederatedResourceQuota", "federatedresourcequotas"),
    kind("autoscaling.karmada.io", "FederatedHPA", "federatedhpas"),
    kind("autoscaling.karmada.io", "CronFederatedHPA", "cronfederatedhpas"),
    kind("networking.karmada.io", "MultiClusterService", "multiclusterservices"),
    kind("networking.karmada.io", "MultiClusterIngress", "multiclusteringresses"),
    kind("remedy.karmada.io", "Remedy", "remedies"),
    kind("multicluster.x-k8s.io", "ServiceExport", "serviceexports"),
    kind("multicluster.x-k8s.io", "ServiceImport", "serviceimports"),
];

/// Objects of a kind could not be listed.
#[derive(Debug)]
pub struct NotListed {
    /// Plural and group, or group and version.
    pub what: String,
    /// Error of the request.
    pub source: Box<kube::Error>,
}

/// Returns kind and name of the objects that only Karmada's controllers act upon; none unless `controllers` take their
/// place. The list is complete up to one object more than [`listed`] shows.
///
/// # Errors
///
/// The control plane does not list a kind that it serves.
pub async fn find(client: &Client, controllers: &[&str]) -> Result<Vec<String>, NotListed> {
    let (mut found, mut served): (Vec<String>, Option<(String, Vec<String>)>) = (Vec::new(), None);
    if !controllers.contains(&DETECTOR) {
        return Ok(found);
    }
    for kind in &KINDS {
        let group_version = format!("{}/{}", kind.group, kind.version);
        if served.as_ref().is_none_or(|(known, _)| *known != group_version) {
            let plurals = served_plurals(client, &group_version).await;
            let plurals = plurals.map_err(|source| NotListed {
                what: group_version.clone(),
                source: Box::new(source),
            })?;
            served = Some((group_version, plurals));
        }
        if !served
            .as_ref()
            .is_some_and(|(_, plurals)| plurals.iter().any(|plural| plural == kind.plural))
        {
            continue;
        }
        let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let api: Api<DynamicObject> =
            Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, kind.plural));
        let limit = u32::try_from(SHOWN_MAX + 1 - found.len()).unwrap_or(1);
        let objects = api.list_metadata(&ListParams::default().limit(limit)).await;
        let not_listed = |source| {
            let what = format!("{}.{}", kind.plural, kind.group);
            NotListed {
                what,
                source: Box::new(source),
            }
        };
        let objects = objects.map_err(not_listed)?;
        for object in objects.items {
            let namespace = object
                .metadata
                .namespace
                .map(|namespace| format!("{namespace}/"))
                .unwrap_or_default();
            found.push(format!(
                "{} {namespace}{}",
                kind.kind,
                object.metadata.name.unwrap_or_default()
            ));
        }
        if found.len() > SHOWN_MAX {
            break;
        }
    }
    Ok(found)
}

/// Returns the plurals of a group and version; none if it is not served.
async fn served_plurals(client: &Client, group_version: &str) -> kube::Result<Vec<String>> {
    match client.list_api_group_resources(group_version).await {
        Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.name).collect()),
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Formats the first ten objects.
pub fn listed(objects: &[String]) -> String {
    let shown = objects
        .iter()
        .take(SHOWN_MAX)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if objects.len() > SHOWN_MAX {
        format!("{shown} and more")
    } else {
        shown
    }
}

/// Error: objects exist that only Karmada's controllers act upon.
#[derive(Debug, PartialEq, Eq)]
struct Unimplemented {
    address: String,
    objects: Vec<String>,
}

impl fmt::Display for Unimplemented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, objects } = self;
        write!(
            f,
            "cannot run in mode all on {address}: only Karmada's controllers act upon {}; choose --mode evict or finish \
             beside Karmada, delete these objects, or use --ignore-unimplemented, with which nothing acts upon them",
            listed(objects)
        )
    }
}

impl Error for Unimplemented {}

/// Checks that no objects exist that only Karmada's controllers act upon; `ignore` permits them. Waits while the API
/// server is unavailable.
///
/// # Errors
///
/// There are such objects, their kinds may not be listed, or a [`ConnectError`] that needs manual action.
pub(super) async fn check(hub: &Hub, controllers: &[&str], ignore: bool, state: &State) -> anyhow::Result<()> {
    check_objects(&hub.unguarded, &hub.address, controllers, ignore, state).await
}

async fn check_objects(
    client: &Client,
    address: &str,
    controllers: &[&str],
    ignore: bool,
    state: &State,
) -> anyhow::Result<()> {
    loop {
        let NotListed { what, source } = match find(client, controllers).await {
            Ok(objects) if objects.is_empty() => return Ok(()),
            Ok(objects) if ignore => {
                warn!(
                    "only Karmada's controllers act upon {}; --ignore-unimplemented is set",
                    listed(&objects)
                );
                return Ok(());
            }
            Ok(objects) => {
                return Err(Unimplemented {
                    address: address.to_owned(),
                    objects,
                }
                .into());
            }
            Err(error) => error,
        };
        let error = ConnectError::of(address, &source);
        // A refusal is final here: the objects may exist, and they decide whether the process may start.
        let is_refused = matches!(&*source, kube::Error::Api(status) if status.code == 403);
        if is_refused || !error.is_transient {
            return Err(anyhow::Error::from(error).context(format!("cannot list {what}")));
        }
        state.set_stage(format!("listing {what}: {error}"));
        warn!("waiting: {error}");
        tokio::time::sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind, kinds};
    use http::{Request, Response};
    use kube::api::PostParams;
    use kube::client::Body;
    use serde_json::json;
    use tower::BoxError;

    use super::*;

    const ALL: [&str; 3] = ["binding", DETECTOR, "scheduler"];

    /// Creates a control plane with the kinds of one group and `quotas` FederatedResourceQuotas.
    async fn control_plane(quotas: usize) -> Client {
        let served = KINDS.iter().filter(|kind| kind.group == "policy.karmada.io");
        let served = served.map(|kind| ResourceKind::namespaced(kind.group, kind.version, kind.kind, kind.plural));
        let all = kinds::kubernetes().into_iter().chain(served).collect();
        let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let options = Options {
            kinds: all,
            auto_create_namespaces: true,
            ..Options::new("hub", 1, clock)
        };
        let client = ApiServer::new(options).client();
        for number in 0..quotas {
            create(
                &client,
                "FederatedResourceQuota",
                "federatedresourcequotas",
                &format!("q{number:02}"),
            )
            .await;
        }
        client
    }

    async fn create(client: &Client, kind: &str, plural: &str, name: &str) {
        let gvk = GroupVersionKind::gvk("policy.karmada.io", "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let object = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "shop", &resource);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    async fn refused(client: &Client, controllers: &[&str], ignore: bool) -> Result<(), String> {
        let checked = check_objects(client, "https://karmada", controllers, ignore, &State::default()).await;
        checked.map_err(|error| format!("{error:#}"))
    }

    #[tokio::test]
    async fn objects_of_karmadas_controllers_prevent_a_start_unless_they_are_ignored() {
        let client = control_plane(0).await;
        assert_eq!(refused(&client, &ALL, false).await, Ok(()));
        create(&client, "FederatedResourceQuota", "federatedresourcequotas", "team").await;
        let error = refused(&client, &ALL, false).await.unwrap_err();
        for part in [
            "upon FederatedResourceQuota shop/team;",
            "--mode evict",
            "--ignore-unimplemented",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(refused(&client, &ALL, true).await, Ok(()));
        assert_eq!(
            refused(&client, &["scheduler"], false).await,
            Ok(()),
            "Karmada's controllers run"
        );
    }

    #[tokio::test]
    async fn the_error_names_ten_objects_at_most() {
        let ten = refused(&control_plane(10).await, &ALL, false).await.unwrap_err();
        assert!(ten.contains("shop/q09;") && !ten.contains("and more"), "{ten}");
        let eleven = refused(&control_plane(11).await, &ALL, false).await.unwrap_err();
        assert!(
            eleven.contains("shop/q09 and more;") && !eleven.contains("q10"),
            "{eleven}"
        );
    }

    #[tokio::test]
    async fn objects_that_may_not_be_listed_prevent_a_start() {
        let server = control_plane(0).await;
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if !request.uri().path().ends_with("/federatedresourcequotas") {
                    return Ok::<_, BoxError>(server.send(request).await?);
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                    "reason": "Forbidden", "message": "federatedresourcequotas is forbidden"});
                let answer = Response::builder()
                    .status(403)
                    .body(Body::from(serde_json::to_vec(&status)?))?;
                Ok(answer)
            }
        });
        let error = refused(&Client::new(service, "default"), &ALL, true).await.unwrap_err();
        assert!(
            error.starts_with("cannot list federatedresourcequotas.policy.karmada.io: "),
            "{error}"
        );
        assert!(
            error.contains("federatedresourcequotas is forbidden") && error.contains("bulkhead account"),
            "{error}"
        );
    }
}
