//! Schemas that a kind contributes to its definition.

use schemars::{Schema, SchemaGenerator};

/// Schemas of a kind.
pub(crate) struct Schemas {
    pub(crate) description: String,
    /// Name of the field that every object must have.
    pub(crate) required: &'static str,
    /// Fields besides the metadata.
    pub(crate) fields: Vec<(&'static str, Schema)>,
}

/// Kind with a definition.
pub(crate) trait HasDefinition: kube::Resource<DynamicType = ()> {
    fn schemas(generator: &mut SchemaGenerator) -> Schemas;
}
