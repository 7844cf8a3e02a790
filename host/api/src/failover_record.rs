//! Records of failovers, one for each binding that had one. They have no spec: nothing is desired.

use std::fmt::Debug;

use bulkhead_core::model::FailoverRecordStatus;
use kube::Resource;
use kube::core::{ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use schemars::SchemaGenerator;
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::object::api_resource;
use crate::schemas::{HasDefinition, Schemas};

/// Record of either kind.
pub trait AnyFailoverRecord:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Creates a record.
    fn new(metadata: ObjectMeta, status: FailoverRecordStatus) -> Self;

    /// Returns the steps.
    fn status(&self) -> &FailoverRecordStatus;
}

macro_rules! failover_record {
    ($(#[doc = $doc:literal])* $name:ident, $plural:literal, $scope:ty) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        pub struct $name {
            /// Kubernetes metadata. The binding is the owner.
            #[serde(default)]
            pub metadata: ObjectMeta,
            /// Steps, and their counts.
            #[serde(default, deserialize_with = "crate::object::null_is_default")]
            pub status: FailoverRecordStatus,
        }

        api_resource!($name, "bulkhead.dev", "v1alpha1", $plural, $scope);

        impl AnyFailoverRecord for $name {
            fn new(metadata: ObjectMeta, status: FailoverRecordStatus) -> Self {
                Self { metadata, status }
            }

            fn status(&self) -> &FailoverRecordStatus {
                &self.status
            }
        }

        impl HasDefinition for $name {
            fn schemas(generator: &mut SchemaGenerator) -> Schemas {
                Schemas {
                    description: [$($doc),*].concat().trim().to_owned(),
                    required: "status",
                    fields: vec![("status", generator.root_schema_for::<FailoverRecordStatus>())],
                }
            }
        }

        /// Serializes `apiVersion` and `kind` too, which a body sent to an API server needs.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct(stringify!($name), 4)?;
                object.serialize_field("apiVersion", "bulkhead.dev/v1alpha1")?;
                object.serialize_field("kind", stringify!($name))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("status", &self.status)?;
                object.end()
            }
        }
    };
}

failover_record!(
    /// Latest steps of the failovers of the ResourceBinding with the same namespace and name.
    FailoverRecord,
    "failoverrecords",
    NamespaceResourceScope
);

failover_record!(
    /// Latest steps of the failovers of the ClusterResourceBinding with the same name.
    ClusterFailoverRecord,
    "clusterfailoverrecords",
    ClusterResourceScope
);
