//! Addresses of webhooks and of their redirects.

use bulkhead_core::policy::{Fault, FaultKind};
use http::Uri;
use k8s_openapi::api::core::v1::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transport rules for webhook interpreters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookTransport {
    /// HTTPS, at the configured address. Anything else is a fault.
    #[default]
    Strict,
    /// As Karmada's client: plain HTTP if the address says so, and up to ten redirects. Anyone on the network path
    /// can read the objects and answer in the webhook's place.
    Karmada,
}

/// Address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    /// Name that the certificate must be valid for; none without TLS.
    pub(super) server_name: Option<String>,
    /// Path and query.
    pub(super) path: String,
}

pub(super) fn unreachable(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Unreachable, message)
}

impl Address {
    /// Returns the address of a URL.
    pub(super) fn of_url(url: &str, transport: WebhookTransport) -> Result<Self, Fault> {
        let uri: Uri = url
            .parse()
            .map_err(|error| unreachable(format!("its url {url:?} is not valid: {error}")))?;
        let (is_tls, default_port) = match (uri.scheme_str(), transport) {
            (Some("https"), _) => (true, 443),
            (Some("http"), WebhookTransport::Karmada) => (false, 80),
            _ => return Err(unreachable(format!("its url {url:?} must use https"))),
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| unreachable("its url has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let server_name = is_tls.then(|| host.clone());
        Ok(Self {
            server_name,
            host,
            port: uri.port_u16().unwrap_or(default_port),
            path,
        })
    }

    /// Returns the address of a service, as Kubernetes resolves it from outside of the cluster's network. A service
    /// that does not exist is addressed by `dns_name`. The certificate must be valid for `dns_name` in any case, also
    /// for an ExternalName. (Karmada: `customized/webhook/serviceresolvers.go`.)
    pub(super) fn of_service(service: Option<&Service>, port: i32, dns_name: &str, path: &str) -> Result<Self, Fault> {
        let number = u16::try_from(port).map_err(|_| unreachable(format!("its port {port} is not valid")))?;
        let host = match service.and_then(|service| service.spec.as_ref()) {
            None => dns_name.to_owned(),
            // API servers default the type, so a service without one is not valid.
            Some(spec) => match spec.type_.as_deref().unwrap_or_default() {
                "ExternalName" => spec.external_name.clone().unwrap_or_default(),
                "ClusterIP" | "NodePort" | "LoadBalancer" => {
                    if !spec.ports.iter().flatten().any(|declared| declared.port == port) {
                        return Err(unreachable(format!("its service {dns_name} has no port {port}")));
                    }
                    let address = spec
                        .cluster_ip
                        .clone()
                        .filter(|address| !matches!(address.as_str(), "" | "None"));
                    address.ok_or_else(|| unreachable(format!("its service {dns_name} has no address")))?
                }
                other => return Err(unreachable(format!("its service {dns_name} is of the type {other:?}"))),
            },
        };
        Ok(Self {
            host,
            port: number,
            server_name: Some(dns_name.to_owned()),
            path: path.to_owned(),
        })
    }

    /// Returns the address with one more parameter in its query.
    pub(super) fn with_parameter(mut self, parameter: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(parameter);
        self
    }

    /// Returns the address that the `Location` of a response from here leads to.
    pub(super) fn redirected(&self, location: &str, transport: WebhookTransport) -> Result<Self, Fault> {
        if location.contains("://") {
            return Self::of_url(location, transport);
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let path = self.path.split('?').next().unwrap_or_default();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        Ok(Self { path, ..self.clone() })
    }

    /// Returns the value of the `Host` header.
    pub(super) fn authority(&self) -> String {
        let name = self.server_name.as_ref().unwrap_or(&self.host);
        if name.contains(':') {
            format!("[{name}]:{}", self.port)
        } else {
            format!("{name}:{}", self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_url_has_to_be_safe_unless_karmadas_way_is_asked_for() {
        let check = |url: &str, transport, expected: Option<(&str, u16, &str, bool)>| {
            let actual = Address::of_url(url, transport);
            let actual = actual
                .ok()
                .map(|it| (it.host, it.port, it.path, it.server_name.is_some()));
            let expected = expected.map(|(host, port, path, tls)| (host.to_owned(), port, path.to_owned(), tls));
            assert_eq!(actual, expected, "{url}");
        };
        for transport in [WebhookTransport::Strict, WebhookTransport::Karmada] {
            check(
                "https://h.example.io",
                transport,
                Some(("h.example.io", 443, "/", true)),
            );
            check(
                "https://h.example.io:8443/x",
                transport,
                Some(("h.example.io", 8443, "/x", true)),
            );
            check("https://[::1]:8443/x", transport, Some(("::1", 8443, "/x", true)));
            check("ftp://h.example.io", transport, None);
            check("h.example.io", transport, None);
            check("", transport, None);
        }
        check("http://h.example.io/x", WebhookTransport::Strict, None);
        check(
            "http://h.example.io/x",
            WebhookTransport::Karmada,
            Some(("h.example.io", 80, "/x", false)),
        );
    }

    #[test]
    fn a_service_is_where_its_type_says() {
        let check = |spec: Value, expected: Option<(&str, u16)>| {
            let service: Service = serde_json::from_value(json!({"spec": spec})).unwrap();
            let actual = Address::of_service(Some(&service), 8443, "s.n.svc", "/").ok();
            let actual = actual.map(|actual| {
                // The name in the certificate is that of the service, wherever the service leads.
                assert_eq!(actual.server_name.as_deref(), Some("s.n.svc"), "{spec}");
                (actual.host, actual.port)
            });
            assert_eq!(actual, expected.map(|(host, port)| (host.to_owned(), port)), "{spec}");
        };
        let ports = json!([{"port": 8443}]);
        for type_ in ["ClusterIP", "NodePort", "LoadBalancer"] {
            check(
                json!({"type": type_, "clusterIP": "10.0.0.1", "ports": ports}),
                Some(("10.0.0.1", 8443)),
            );
        }
        check(
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 1}]}),
            None,
        );
        check(json!({"type": "ClusterIP", "clusterIP": "None", "ports": ports}), None);
        check(
            json!({"type": "ExternalName", "externalName": "h.example.io"}),
            Some(("h.example.io", 8443)),
        );
        check(json!({"type": "Other", "clusterIP": "10.0.0.1", "ports": ports}), None);
        check(json!({"clusterIP": "10.0.0.1", "ports": ports}), None);
        let absent = Address::of_service(None, 443, "s.n.svc", "/x").unwrap();
        assert_eq!(
            (absent.host.as_str(), absent.port, absent.path.as_str()),
            ("s.n.svc", 443, "/x")
        );
        assert_eq!(absent.server_name.as_deref(), Some("s.n.svc"));
    }

    #[test]
    fn a_redirect_leads_where_its_location_says() {
        let from = Address::of_url("https://h.example.io:8443/a/b?timeout=1s", WebhookTransport::Karmada).unwrap();
        let check = |location: &str, expected: Option<&str>| {
            let actual = from.redirected(location, WebhookTransport::Karmada).ok();
            let actual = actual.map(|actual| format!("{}{}", actual.authority(), actual.path));
            assert_eq!(actual.as_deref(), expected, "{location}");
        };
        check("/c", Some("h.example.io:8443/c"));
        check("c", Some("h.example.io:8443/a/c"));
        check("https://o.example.io/c", Some("o.example.io:443/c"));
        check("http://o.example.io/c", Some("o.example.io:80/c"));
        check("file:///etc", None);
    }
}
