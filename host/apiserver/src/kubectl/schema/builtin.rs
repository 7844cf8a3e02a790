//! Schemas of Kubernetes' own kinds, from the types of `k8s-openapi`. They are generated on first use.

use std::sync::OnceLock;

use k8s_openapi::api::{
    admissionregistration, apps, autoscaling, batch, coordination, core, discovery, networking, node, policy, rbac,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::kind::ResourceKind;

/// Prefix of references to schemas.
pub(crate) const PREFIX: &str = "#/components/schemas/";
/// Name of the schema of `metadata`.
pub(crate) const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the schemas by name, such as `io.k8s.api.core.v1.Pod`.
pub(crate) fn schemas() -> &'static Map<String, Value> {
    static SCHEMAS: OnceLock<Map<String, Value>> = OnceLock::new();
    SCHEMAS.get_or_init(generate)
}

/// Returns the schema that a reference points to.
pub(super) fn referenced(reference: &str) -> Option<&'static Value> {
    schemas().get(reference.strip_prefix(PREFIX)?)
}

/// Returns the schema of `metadata`, common to all kinds.
pub(super) fn object_meta() -> &'static Value {
    schemas().get(METADATA).unwrap_or(&Value::Null)
}

/// Returns the name of the schema of a kind, if it is one of Kubernetes' own.
pub(crate) fn name(kind: &ResourceKind) -> Option<&'static str> {
    let wanted = gvk(&kind.group, &kind.version, &kind.kind);
    let named = |schema: &Value| schema["x-kubernetes-group-version-kind"][0] == wanted;
    schemas()
        .iter()
        .find(|(_, schema)| named(schema))
        .map(|(name, _)| name.as_str())
}

/// Returns the schema of a kind, if it is one of Kubernetes' own.
pub(super) fn schema(kind: &ResourceKind) -> Option<&'static Value> {
    schemas().get(name(kind)?)
}

/// Returns a group, version and kind in the format of OpenAPI documents.
pub(crate) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn generate() -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    add::<ObjectMeta>(&mut generator);
    let kinds = [
        add::<core::v1::Namespace>(&mut generator),
        add::<core::v1::Node>(&mut generator),
        add::<core::v1::Pod>(&mut generator),
        add::<core::v1::Service>(&mut generator),
        add::<core::v1::ConfigMap>(&mut generator),
        add::<core::v1::Secret>(&mut generator),
        add::<core::v1::ServiceAccount>(&mut generator),
        add::<core::v1::PersistentVolumeClaim>(&mut generator),
        add::<core::v1::Event>(&mut generator),
        add::<apps::v1::Deployment>(&mut generator),
        add::<apps::v1::StatefulSet>(&mut generator),
        add::<apps::v1::DaemonSet>(&mut generator),
        add::<apps::v1::ReplicaSet>(&mut generator),
        add::<batch::v1::Job>(&mut generator),
        add::<batch::v1::CronJob>(&mut generator),
        add::<coordination::v1::Lease>(&mut generator),
        add::<rbac::v1::Role>(&mut generator),
        add::<rbac::v1::RoleBinding>(&mut generator),
        add::<rbac::v1::ClusterRole>(&mut generator),
        add::<rbac::v1::ClusterRoleBinding>(&mut generator),
        add::<networking::v1::Ingress>(&mut generator),
        add::<scheduling::v1::PriorityClass>(&mut generator),
        add::<policy::v1::PodDisruptionBudget>(&mut generator),
        add::<core::v1::Endpoints>(&mut generator),
        add::<core::v1::LimitRange>(&mut generator),
        add::<core::v1::PodTemplate>(&mut generator),
        add::<core::v1::ReplicationController>(&mut generator),
        add::<core::v1::ResourceQuota>(&mut generator),
        add::<core::v1::PersistentVolume>(&mut generator),
        add::<apps::v1::ControllerRevision>(&mut generator),
        add::<autoscaling::v2::HorizontalPodAutoscaler>(&mut generator),
        add::<discovery::v1::EndpointSlice>(&mut generator),
        add::<networking::v1::NetworkPolicy>(&mut generator),
        add::<networking::v1::IngressClass>(&mut generator),
        add::<node::v1::RuntimeClass>(&mut generator),
        add::<storage::v1::StorageClass>(&mut generator),
        add::<admissionregistration::v1::ValidatingWebhookConfiguration>(&mut generator),
        add::<admissionregistration::v1::MutatingWebhookConfiguration>(&mut generator),
        add::<apiextensions::v1::CustomResourceDefinition>(&mut generator),
    ];
    let mut schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    for schema in schemas.values_mut().filter_map(Value::as_object_mut) {
        // Types that hold arbitrary JSON, such as defaults in the schemas of definitions, are generated as objects.
        if schema.get("type").is_some_and(|type_| type_ == "object")
            && !["properties", "additionalProperties"]
                .iter()
                .any(|key| schema.contains_key(*key))
        {
            schema.remove("type");
            schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
        }
    }
    for name in kinds {
        if let Some(schema) = schemas.get_mut(&name) {
            let (package, kind) = name.rsplit_once('.').unwrap_or_default();
            let (package, version) = package.rsplit_once('.').unwrap_or_default();
            let group = match package.rsplit_once('.').unwrap_or_default().1 {
                "core" => "",
                "coordination" => "coordination.k8s.io",
                "rbac" => "rbac.authorization.k8s.io",
                "networking" => "networking.k8s.io",
                "node" => "node.k8s.io",
                "scheduling" => "scheduling.k8s.io",
                "admissionregistration" => "admissionregistration.k8s.io",
                "discovery" => "discovery.k8s.io",
                "storage" => "storage.k8s.io",
                "apiextensions" => "apiextensions.k8s.io",
                same => same,
            };
            schema["x-kubernetes-group-version-kind"] = json!([gvk(group, version, kind)]);
        }
    }
    schemas
}

/// Adds a type and all types that it contains. Returns its name.
fn add<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    generator.subschema_for::<T>();
    T::schema_name().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::kinds;

    #[test]
    fn every_built_in_kind_has_a_schema() {
        for kind in kinds::kubernetes().into_iter().chain(kinds::stored()) {
            let schema = schema(&kind).unwrap_or_else(|| panic!("{} has none", kind.group_resource()));
            assert!(
                schema["properties"]["metadata"].is_object(),
                "{}",
                kind.group_resource()
            );
        }
        assert!(object_meta()["properties"]["labels"].is_object());
    }
}
