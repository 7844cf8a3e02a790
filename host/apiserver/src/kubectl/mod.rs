//! Surface of the server that `kubectl` and other tools of people rely on: discovery, OpenAPI, schemas, tables,
//! server-side apply, protobuf bodies.
//!
//! Controllers need little of it. Schemas and field ownership apply with [`Fidelity::People`](crate::Fidelity) only.

pub(crate) mod apply;
pub(crate) mod discovery;
pub(crate) mod form;
pub(crate) mod openapi;
pub(crate) mod openapi_v2;
pub(crate) mod protobuf;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod topology;
