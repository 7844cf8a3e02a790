//! Parsing of a method, path and query into a typed request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::status_error::StatusError;

/// Operation on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows the changes of a collection.
    Watch,
    /// Stores a new object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes part of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// Returns the verb as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Request for a resource, as passed to the predicate of a fault injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRequest {
    /// Operation.
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural of the kind.
    pub plural: String,
    /// Namespace; absent for cluster-scoped kinds and for collections over all namespaces.
    pub namespace: Option<String>,
    /// Object name; absent for collections.
    pub name: Option<String>,
    /// Subresource, such as `status`.
    pub subresource: Option<String>,
}

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/readyz`, `/healthz`, `/livez`.
    Health(Probe),
    /// `/version`.
    Version,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group { group: String },
    /// `/api/{version}` and `/apis/{group}/{version}`.
    Resources { group: String, version: String },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApi,
    /// `/openapi/v3/api/{version}` and `/openapi/v3/apis/{group}/{version}`.
    OpenApiOf { group: String, version: String },
    /// An object or a collection.
    Resource(ResourceRequest),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Ready,
    Live,
}

/// Query parameters; the last value of a repeated parameter counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    parameters: BTreeMap<String, String>,
}

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let parameters = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let text = |text: &str| decode(&text.replace('+', " ")).into_owned();
                (text(key), text(value))
            })
            .collect();
        Self { parameters }
    }

    /// Returns the value of a parameter; empty if absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1")
    }

    /// Returns a non-negative number, or `None` if the parameter is missing or empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, StatusError> {
        match self.get(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| StatusError::bad_request(format!("{name}: invalid value \"{text}\""))),
        }
    }
}

/// Determines the target of a request.
///
/// # Errors
///
/// 404 for an unknown path, 405 for a method that the path does not support.
pub(crate) fn route(method: &Method, path: &str, query: &Query) -> Result<Route, StatusError> {
    let segments: Vec<Cow<'_, str>> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(decode)
        .collect();
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let information = match segments.as_slice() {
        ["readyz" | "healthz", ..] => Some(Route::Health(Probe::Ready)),
        ["livez", ..] => Some(Route::Health(Probe::Live)),
        ["version"] => Some(Route::Version),
        ["api"] => Some(Route::CoreVersions),
        ["apis"] => Some(Route::Groups),
        ["openapi", "v2"] => Some(Route::OpenApiV2),
        ["openapi", "v3"] => Some(Route::OpenApi),
        ["openapi", "v3", "api", version] => Some(openapi_of("", version)),
        ["openapi", "v3", "apis", group, version] => Some(openapi_of(group, version)),
        ["apis", group] => Some(Route::Group {
            group: (*group).to_owned(),
        }),
        ["api", version] => Some(resources("", version)),
        ["apis", group, version] => Some(resources(group, version)),
        _ => None,
    };
    if let Some(information) = information {
        return if matches!(*method, Method::GET | Method::HEAD) {
            Ok(information)
        } else {
            Err(StatusError::method_not_allowed(method.as_str(), path))
        };
    }
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(StatusError::unknown_path(path)),
    };
    let (namespace, plural, name, subresource) = match rest {
        ["namespaces", name, subresource @ ("status" | "finalize")] => {
            (None, "namespaces", Some(*name), Some(*subresource))
        }
        ["namespaces", namespace, plural] => (Some(*namespace), *plural, None, None),
        ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name), None),
        ["namespaces", namespace, plural, name, subresource] => {
            (Some(*namespace), *plural, Some(*name), Some(*subresource))
        }
        [plural] => (None, *plural, None, None),
        [plural, name] => (None, *plural, Some(*name), None),
        [plural, name, subresource] => (None, *plural, Some(*name), Some(*subresource)),
        _ => return Err(StatusError::unknown_path(path)),
    };
    let verb =
        verb(method, name.is_some(), query).ok_or_else(|| StatusError::method_not_allowed(method.as_str(), path))?;
    Ok(Route::Resource(ResourceRequest {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    }))
}

fn openapi_of(group: &str, version: &str) -> Route {
    Route::OpenApiOf {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

fn resources(group: &str, version: &str) -> Route {
    Route::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

fn verb(method: &Method, is_named: bool, query: &Query) -> Option<Verb> {
    match (method.as_str(), is_named) {
        ("GET", _) if query.is_true("watch") => Some(Verb::Watch),
        ("GET", true) => Some(Verb::Get),
        ("GET", false) => Some(Verb::List),
        ("POST", _) => Some(Verb::Create),
        ("PUT", true) => Some(Verb::Update),
        ("PATCH", true) => Some(Verb::Patch),
        ("DELETE", true) => Some(Verb::Delete),
        ("DELETE", false) => Some(Verb::DeleteCollection),
        _ => None,
    }
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, uri: &str, expected: &str) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let actual = match route(&method, path, &Query::parse(query)) {
            Ok(Route::Resource(request)) => format!(
                "{} {}/{} {} {} {} {}",
                request.verb.as_str(),
                request.group,
                request.version,
                request.plural,
                request.namespace.unwrap_or("-".to_owned()),
                request.name.unwrap_or("-".to_owned()),
                request.subresource.unwrap_or("-".to_owned())
            ),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.code.to_string(),
        };
        assert_eq!(actual, expected, "{method} {uri}");
    }

    #[test]
    fn paths_lead_to_resources() {
        check(Method::GET, "/api/v1/pods?", "list /v1 pods - - -");
        check(
            Method::GET,
            "/api/v1/namespaces/a/pods?watch=true",
            "watch /v1 pods a - -",
        );
        check(Method::GET, "/api/v1/namespaces/a", "get /v1 namespaces - a -");
        check(
            Method::PATCH,
            "/api/v1/namespaces/a/status",
            "patch /v1 namespaces - a status",
        );
        check(
            Method::PUT,
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            "update apps/v1 deployments a b status",
        );
        check(
            Method::DELETE,
            "/apis/apps/v1/namespaces/a/deployments",
            "deletecollection apps/v1 deployments a - -",
        );
        check(
            Method::GET,
            "/apis/cluster.karmada.io",
            r#"Group { group: "cluster.karmada.io" }"#,
        );
        check(Method::GET, "/readyz", "Health(Ready)");
        check(Method::GET, "/openapi/v2", "OpenApiV2");
        check(Method::PUT, "/api/v1/pods", "405");
        check(Method::POST, "/version", "405");
        check(Method::GET, "/metrics", "404");
    }

    #[test]
    fn query_parameters_are_decoded_as_forms() {
        let query = Query::parse("&labelSelector=a+in+%28b%2Cc%29&limit=5");
        assert_eq!(query.get("labelSelector"), "a in (b,c)");
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(query.number("timeoutSeconds"), Ok(None));
    }
}
