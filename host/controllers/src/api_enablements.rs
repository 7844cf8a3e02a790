//! APIs that a member cluster serves, read from its discovery.

use bulkhead_core::model::{ApiEnablement, ApiResource};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::client::Body;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIVersionDiscovery};

/// Media type of aggregated discovery, which Kubernetes has since 1.30.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Maximum size of one document of aggregated discovery, in bytes. A cluster with 1,000 definitions has about 1 MiB.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Freshness of a version whose server did not answer the aggregator.
const STALE: &str = "Stale";

/// APIs of a member, sorted by group and version, without subresources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApiEnablements {
    pub(crate) found: Vec<ApiEnablement>,
    /// False if a part of the discovery failed, so that APIs may be missing.
    pub(crate) is_complete: bool,
}

/// Discovery of one member, with the documents of the last request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    core: Document,
    groups: Document,
}

/// Document of aggregated discovery: `/api` or `/apis`.
#[derive(Clone, Debug, Default)]
struct Document {
    /// Entity tag, with which the server sends the document again only if it changed.
    etag: Option<HeaderValue>,
    apis: ApiEnablements,
}

impl Discovery {
    /// Reads the APIs of a member. A server without aggregated discovery is asked for each version of each group.
    pub(crate) async fn read(&mut self, client: &Client) -> ApiEnablements {
        let is_aggregated =
            self.core.update(client, "/api").await.is_some() && self.groups.update(client, "/apis").await.is_some();
        if !is_aggregated {
            *self = Self::default();
            return by_version(client).await;
        }
        let (core, groups) = (&self.core.apis, &self.groups.apis);
        let found = core.found.iter().chain(&groups.found).cloned().collect();
        sorted(found, core.is_complete && groups.is_complete)
    }
}

impl Document {
    /// Brings the document up to date. `None` if the server does not answer or has no aggregated discovery.
    async fn update(&mut self, client: &Client, path: &str) -> Option<()> {
        let mut request = Request::get(path).header(header::ACCEPT, AGGREGATED);
        if let Some(etag) = &self.etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let response = client.send(request.body(Body::empty()).ok()?).await.ok()?;
        match response.status() {
            StatusCode::NOT_MODIFIED if self.etag.is_some() => return Some(()),
            StatusCode::OK => {}
            _ => return None,
        }
        let content_type = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
        if !content_type.contains("as=APIGroupDiscoveryList") {
            return None;
        }
        let etag = response.headers().get(header::ETAG).cloned();
        let body = Limited::new(response.into_body(), DOCUMENT_BYTES_MAX)
            .collect()
            .await
            .ok()?
            .to_bytes();
        let list: APIGroupDiscoveryList = serde_json::from_slice(&body).ok()?;
        *self = Self {
            etag,
            apis: apis_of(list),
        };
        Some(())
    }
}

fn apis_of(list: APIGroupDiscoveryList) -> ApiEnablements {
    let mut apis = ApiEnablements {
        found: Vec::new(),
        is_complete: true,
    };
    for group in list.items {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            if version.freshness.as_deref() == Some(STALE) {
                apis.is_complete = false;
            } else {
                apis.found.push(enablement(&name, version));
            }
        }
    }
    apis
}

/// Subresources are inside of their resource. One without a resource has an entry without a kind.
fn enablement(group: &str, version: APIVersionDiscovery) -> ApiEnablement {
    let name = version.version.unwrap_or_default();
    let group_version = if group.is_empty() {
        name
    } else {
        format!("{group}/{name}")
    };
    let resources = version.resources.into_iter().filter_map(|resource| {
        let kind = resource.response_kind?.kind.filter(|kind| !kind.is_empty())?;
        Some(ApiResource {
            name: resource.resource?,
            kind,
        })
    });
    ApiEnablement {
        group_version,
        resources: by_name(resources.collect()),
    }
}

async fn by_version(client: &Client) -> ApiEnablements {
    let (mut found, mut is_complete) = (Vec::new(), true);
    let mut add = |list: kube::Result<APIResourceList>| match list {
        Ok(list) => {
            let top_level = list
                .resources
                .into_iter()
                .filter(|resource| !resource.name.contains('/'));
            let resources = top_level.map(|resource| ApiResource {
                name: resource.name,
                kind: resource.kind,
            });
            let resources = by_name(resources.collect());
            found.push(ApiEnablement {
                group_version: list.group_version,
                resources,
            });
        }
        Err(_) => is_complete = false,
    };
    add(client.list_core_api_resources("v1").await);
    match client.list_api_groups().await {
        Ok(groups) => {
            for version in groups.groups.iter().flat_map(|group| &group.versions) {
                add(client.list_api_group_resources(&version.group_version).await);
            }
        }
        Err(_) => is_complete = false,
    }
    sorted(found, is_complete)
}

fn by_name(mut resources: Vec<ApiResource>) -> Vec<ApiResource> {
    resources.sort_by(|a, b| a.name.cmp(&b.name));
    resources
}

fn sorted(mut found: Vec<ApiEnablement>, is_complete: bool) -> ApiEnablements {
    found.sort_by(|a, b| a.group_version.cmp(&b.group_version));
    ApiEnablements { found, is_complete }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    /// Returns a client of a server with these answers by path: status, content type, body. The server notes each
    /// request with its entity tag. It has the entity tag `"1"` for every document.
    fn client(answers: Vec<(&'static str, u16, &'static str, Value)>, requests: &Arc<Mutex<Vec<String>>>) -> Client {
        let requests = Arc::clone(requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let known = request.headers().get(header::IF_NONE_MATCH).cloned();
            let path = request.uri().path().to_owned();
            requests
                .lock()
                .unwrap()
                .push(format!("{path}{}", if known.is_some() { " known" } else { "" }));
            let found = answers.iter().find(|(at, ..)| *at == path);
            let (status, content_type, body) = match found {
                Some((_, status, ..)) if known.is_some() && *status == 200 => (304, "", String::new()),
                Some((_, status, content_type, body)) => (*status, *content_type, body.to_string()),
                None => (
                    404,
                    "application/json",
                    json!({"kind": "Status", "code": 404}).to_string(),
                ),
            };
            let response = http::Response::builder().status(status).header(header::ETAG, "\"1\"");
            let response = response
                .header(header::CONTENT_TYPE, content_type)
                .body(Body::from(body.into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(response.unwrap()) }
        });
        Client::new(service, "default")
    }

    fn group(name: &str, version: &str, freshness: &str, resources: &Value) -> Value {
        let versions = json!([{"version": version, "freshness": freshness, "resources": resources}]);
        json!({"metadata": {"name": name}, "versions": versions})
    }

    fn list(groups: &[Value]) -> Value {
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups})
    }

    fn resource(name: &str, kind: &str) -> Value {
        json!({"resource": name, "responseKind": {"kind": kind}, "subresources": [{"subresource": "status"}]})
    }

    fn described(apis: &ApiEnablements) -> String {
        let of = |api: &ApiEnablement| {
            let names: Vec<_> = api.resources.iter().map(|resource| &*resource.name).collect();
            format!("{}: {}", api.group_version, names.join(" "))
        };
        apis.found.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    #[tokio::test]
    async fn two_requests_find_all_apis_and_unchanged_documents_are_not_sent_again() {
        let pods = json!([resource("pods", "Pod"), resource("configmaps", "ConfigMap"), {"resource": "orphans"}]);
        let deployments = json!([resource("deployments", "Deployment")]);
        let answers = vec![
            ("/api", 200, AGGREGATED, list(&[group("", "v1", "Current", &pods)])),
            (
                "/apis",
                200,
                AGGREGATED,
                list(&[group("apps", "v1", "Current", &deployments)]),
            ),
        ];
        let requests = Arc::default();
        let client = client(answers, &requests);
        let mut discovery = Discovery::default();
        let first = discovery.read(&client).await;
        assert_eq!(described(&first), "apps/v1: deployments, v1: configmaps pods");
        assert!(first.is_complete);
        assert_eq!(discovery.read(&client).await, first);
        assert_eq!(
            *requests.lock().unwrap(),
            ["/api", "/apis", "/api known", "/apis known"]
        );
    }

    #[tokio::test]
    async fn a_version_whose_server_is_away_is_left_out_and_the_list_is_incomplete() {
        let nodes = json!([resource("nodes", "NodeMetrics")]);
        let answers = vec![
            ("/api", 200, AGGREGATED, list(&[])),
            (
                "/apis",
                200,
                AGGREGATED,
                list(&[group("metrics.k8s.io", "v1beta1", "Stale", &nodes)]),
            ),
        ];
        let apis = Discovery::default().read(&client(answers, &Arc::default())).await;
        assert_eq!((described(&apis).as_str(), apis.is_complete), ("", false));
    }

    #[tokio::test]
    async fn a_server_without_aggregated_discovery_is_asked_for_each_version() {
        let version = json!({"groupVersion": "apps/v1", "version": "v1"});
        let groups = json!({"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [version]}]});
        let resource =
            |name: &str| json!({"name": name, "kind": "K", "singularName": "", "namespaced": true, "verbs": []});
        let resources = |group_version: &str, names: &[&str]| {
            let resources: Vec<_> = names.iter().map(|name| resource(name)).collect();
            json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources})
        };
        let json = "application/json";
        let answers = vec![
            ("/api", 200, json, json!({"kind": "APIVersions", "versions": ["v1"]})),
            ("/api/v1", 200, json, resources("v1", &["pods", "pods/status"])),
            ("/apis", 200, json, groups),
            ("/apis/apps/v1", 200, json, resources("apps/v1", &["deployments"])),
        ];
        let apis = Discovery::default().read(&client(answers, &Arc::default())).await;
        assert_eq!(
            (described(&apis).as_str(), apis.is_complete),
            ("apps/v1: deployments, v1: pods", true)
        );
    }
}
