//! Addresses of estimators (Karmada: `pkg/estimator/client/service.go`, `pkg/util/names`).

/// Location of the estimators' services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Namespace of the services (`--scheduler-estimator-service-namespace`).
    pub namespace: String,
    /// Prefix of the services' names (`--scheduler-estimator-service-prefix`).
    pub prefix: String,
    /// Port of the services (`--scheduler-estimator-port`).
    pub port: u16,
}

/// Fields of a Kubernetes Service that determine an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceShape {
    /// `spec.type`.
    pub type_: String,
    /// `spec.externalName`.
    pub external_name: String,
    /// `targetPort` of the first port, if it is a number.
    pub target_port: Option<u16>,
}

/// Service that has no address of an estimator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadService {
    /// The Service has another type.
    #[error("the Service {0} has type {1}: an estimator's Service must be of type ExternalName, or not exist")]
    Type(String, String),
    /// The first port has no numeric `targetPort`.
    #[error("the Service {0} needs a first port whose targetPort is a number")]
    Port(String),
}

impl Location {
    /// Returns the name of the Service of a cluster's estimator.
    pub fn service(&self, cluster: &str) -> String {
        format!("{}-{cluster}", self.prefix)
    }

    /// Returns the addresses to try, in order. `found` is the Service, if it exists.
    pub fn addresses(&self, cluster: &str, found: Option<&ServiceShape>) -> Result<Vec<String>, BadService> {
        let (name, namespace, port) = (self.service(cluster), &self.namespace, self.port);
        let Some(service) = found else {
            let in_cluster = ["svc.cluster.local", "svc"];
            return Ok(in_cluster
                .iter()
                .map(|suffix| format!("{name}.{namespace}.{suffix}:{port}"))
                .collect());
        };
        let key = format!("{namespace}/{name}");
        if service.type_ != "ExternalName" {
            return Err(BadService::Type(key, service.type_.clone()));
        }
        let port = service.target_port.ok_or(BadService::Port(key))?;
        Ok(vec![format!("{}:{port}", service.external_name)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimator_is_found_by_its_service_or_by_dns() {
        let location = Location {
            namespace: "karmada-system".into(),
            prefix: "estimator".into(),
            port: 10352,
        };
        let check = |found: Option<(&str, Option<u16>)>, expected: Result<&[&str], &str>| {
            let service = found.map(|(type_, target_port)| ServiceShape {
                type_: type_.to_owned(),
                external_name: "10.0.0.1".to_owned(),
                target_port,
            });
            let actual = location
                .addresses("m1", service.as_ref())
                .map_err(|error| error.to_string());
            match expected {
                Ok(addresses) => assert_eq!(actual.unwrap(), addresses),
                Err(text) => assert!(actual.as_ref().is_err_and(|actual| actual.contains(text)), "{actual:?}"),
            }
        };
        let by_dns: &[&str] = &[
            "estimator-m1.karmada-system.svc.cluster.local:10352",
            "estimator-m1.karmada-system.svc:10352",
        ];
        check(None, Ok(by_dns));
        check(Some(("ExternalName", Some(30001))), Ok(&["10.0.0.1:30001"]));
        check(
            Some(("ExternalName", None)),
            Err("karmada-system/estimator-m1 needs a first port"),
        );
        check(Some(("ClusterIP", Some(1))), Err("has type ClusterIP"));
    }
}
