//! OpenAPI v2 document. kubectl reads it for kinds that it does not find in v3, such as those that the same `apply`
//! defines. It looks only for the query parameters of patches, so schemas are left out.

use serde_json::{Map, Value, json};

use crate::kind::ResourceKind;
use crate::kubectl::discovery::OPENAPI_VERSION;
use crate::kubectl::schema::builtin::gvk;
use crate::state::State;

/// Media type of the protobuf form, the only one that kubectl reads. Clients ask for it with `@` in place of a dot too,
/// which a media type must not contain.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const GVK: &str = "x-kubernetes-group-version-kind";

/// Returns true if a client accepts protobuf.
pub(crate) fn wants_protobuf(accept: &str) -> bool {
    accept.contains("proto-openapi.spec.v2")
}

/// Returns the body of `/openapi/v2`.
pub(crate) fn document(state: &State) -> Value {
    let kinds = state
        .tables()
        .filter(|(_, table)| table.is_served)
        .map(|(_, table)| &*table.kind);
    let paths: Map<String, Value> = kinds.map(|kind| (path(kind), item(kind))).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Bulkhead", "version": OPENAPI_VERSION},
        "paths": paths,
        "definitions": {},
    })
}

fn path(kind: &ResourceKind) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let namespace = if kind.is_namespaced() {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    format!("/{root}/{}{namespace}/{}/{{name}}", kind.api_version(), kind.plural)
}

fn item(kind: &ResourceKind) -> Value {
    let parameter = |name: &str| json!({"in": "query", "name": name, "type": "string", "uniqueItems": true});
    let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter);
    json!({"patch": {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        GVK: gvk(&kind.group, &kind.version, &kind.kind),
    }})
}

/// Encodes a document in protobuf (`openapi.v2.Document` of gnostic).
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let text = |value: &Value| value.as_str().unwrap_or_default().as_bytes().to_vec();
    let info = [
        field(1, &text(&document["info"]["title"])),
        field(2, &text(&document["info"]["version"])),
    ]
    .concat();
    let items = document["paths"].as_object().into_iter().flatten();
    let paths: Vec<u8> = items
        .flat_map(|(path, item)| {
            let patch = &item["patch"];
            let parameters = patch["parameters"].as_array().into_iter().flatten();
            let mut operation: Vec<u8> = parameters
                .flat_map(|parameter| {
                    let query = [
                        field(2, b"query"),
                        field(4, &text(&parameter["name"])),
                        field(6, b"string"),
                    ]
                    .concat();
                    // ParametersItem, Parameter, NonBodyParameter, QueryParameterSubSchema.
                    field(8, &field(1, &field(2, &field(3, &query))))
                })
                .collect();
            // NamedAny with YAML, of which JSON is a part.
            let extension = [
                field(1, GVK.as_bytes()),
                field(2, &field(2, patch[GVK].to_string().as_bytes())),
            ]
            .concat();
            operation.extend(field(13, &extension));
            field(
                2,
                &[field(1, path.as_bytes()), field(2, &field(8, &operation))].concat(),
            )
        })
        .collect();
    [field(1, &text(&document["swagger"])), field(2, &info), field(8, &paths)].concat()
}

/// Returns a field of a message: its number, the length and the content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![(number << 3) | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::kinds;

    #[test]
    fn the_document_has_the_parameters_of_every_kind() {
        let mut state = State::new(1, 10, None);
        for kind in kinds::kubernetes() {
            state.register(kind);
        }
        let document = document(&state);
        let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch[GVK]["kind"], "Deployment");
        assert_eq!(patch["parameters"][2]["name"], "fieldValidation");
        let encoded = encode(&document);
        let text = String::from_utf8_lossy(&encoded);
        assert!(text.contains("/api/v1/namespaces/{name}") && text.contains("fieldValidation"));
    }

    #[test]
    fn lengths_are_variable() {
        assert_eq!(field(1, b"ab"), [0x0A, 2, b'a', b'b']);
        assert_eq!(field(2, &[0; 300])[..3], [0x12, 0xAC, 0x02]);
    }
}
