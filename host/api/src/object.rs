//! Shape of all API objects: metadata, spec and, for some, status.

use serde::{Deserialize, Deserializer};

/// Declares a typed API object, and implements `kube::Resource` for it.
///
/// `kube`'s own derive requires the spec type to be declared beside the object; these spec types live in the core
/// model.
macro_rules! api_object {
    (
        $(#[doc = $doc:literal])*
        $name:ident {
            group: $group:literal,
            version: $version:literal,
            plural: $plural:literal,
            scope: $scope:ty,
            spec: $spec:ty
            $(, status: $status:ty)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        pub struct $name {
            /// Kubernetes metadata.
            #[serde(default)]
            pub metadata: kube::core::ObjectMeta,
            /// Desired state.
            pub spec: $spec,
            $(
                /// Observed state; absent and null are read as empty.
                #[serde(default, deserialize_with = "crate::object::null_is_default")]
                pub status: $status,
            )?
        }

        impl $name {
            /// Creates an object with a name and a spec only.
            pub fn new(name: impl Into<String>, spec: $spec) -> Self {
                let metadata = kube::core::ObjectMeta { name: Some(name.into()), ..Default::default() };
                Self { metadata, spec, $(status: <$status>::default())? }
            }
        }

        crate::object::api_resource!($name, $group, $version, $plural, $scope);

        impl crate::schemas::HasDefinition for $name {
            fn schemas(generator: &mut schemars::SchemaGenerator) -> crate::schemas::Schemas {
                crate::schemas::Schemas {
                    description: [$($doc),*].concat().trim().to_owned(),
                    required: "spec",
                    fields: vec![
                        ("spec", generator.root_schema_for::<$spec>()),
                        $(("status", generator.root_schema_for::<$status>()),)?
                    ],
                }
            }
        }

        /// Serializes `apiVersion` and `kind` too, which a body sent to an API server needs.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(stringify!($name), 5)?;
                object.serialize_field("apiVersion", concat!($group, "/", $version))?;
                object.serialize_field("kind", stringify!($name))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                $(object.serialize_field::<$status>("status", &self.status)?;)?
                object.end()
            }
        }
    };
}
pub(crate) use api_object;

/// Implements `kube::Resource` for a typed API object.
macro_rules! api_resource {
    ($name:ident, $group:literal, $version:literal, $plural:literal, $scope:ty) => {
        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($name).into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use api_resource;

/// Deserializes null as the default, as Go does.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::{ClusterSpec, ClusterStatus, ClusterTaintPolicySpec};
    use kube::Resource;
    use serde_json::json;

    use crate::{Cluster, ClusterTaintPolicy};

    #[test]
    fn an_absent_or_null_status_reads_as_empty() {
        let check = |mut object: serde_json::Value, status: Option<serde_json::Value>| {
            if let Some(status) = status {
                object["status"] = status;
            }
            let cluster: Cluster = serde_json::from_value(object).unwrap();
            assert_eq!(cluster.status, ClusterStatus::default());
        };
        let object = json!({"metadata": {"name": "member1"}, "spec": {"syncMode": "Push"}});
        check(object.clone(), None);
        check(object.clone(), Some(json!(null)));
        check(object, Some(json!({})));
    }

    #[test]
    fn bodies_carry_their_type() {
        let body = serde_json::to_value(Cluster::new("member1", ClusterSpec::default())).unwrap();
        let expected = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "member1"},
            "spec": {"syncMode": "Push"},
            "status": {},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn kinds_without_a_status_write_none() {
        let body = serde_json::to_value(ClusterTaintPolicy::new("p", ClusterTaintPolicySpec::default())).unwrap();
        assert!(body.get("status").is_none());
        assert_eq!(ClusterTaintPolicy::api_version(&()), "policy.karmada.io/v1alpha1");
    }
}
