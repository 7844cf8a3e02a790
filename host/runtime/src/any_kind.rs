//! Objects whose kind is determined at run time.

/// Implements [`kube::Resource`], as `DynamicObject` does, for a type with a field `metadata`. A type parameter follows its
/// type.
macro_rules! resource_of_any_kind {
    ($object:ty $(, $parameter:ident)?) => {
        impl$(<$parameter>)? ::kube::Resource for $object {
            type DynamicType = ::kube::api::ApiResource;
            type Scope = ::kube::core::DynamicResourceScope;

            fn kind(resource: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                ::kube::api::DynamicObject::kind(resource)
            }

            fn group(resource: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                ::kube::api::DynamicObject::group(resource)
            }

            fn version(resource: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                ::kube::api::DynamicObject::version(resource)
            }

            fn plural(resource: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                ::kube::api::DynamicObject::plural(resource)
            }

            fn meta(&self) -> &::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use resource_of_any_kind;
