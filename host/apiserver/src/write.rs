//! Rules for creating and updating objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{Admission, AdmissionRequest, DenialReason, Operation};
use crate::clock::{Clock, rfc3339};
use crate::content::Content;
use crate::definition;
use crate::json::{array, text};
use crate::kind::{KindId, ResourceKind};
use crate::kubectl::apply::{self, Applied, Author};
use crate::kubectl::schema::{self, UnknownFields};
use crate::object::{ChangeType, Object, ObjectKey, has_finalizers};
use crate::shape::{
    Part, SERVER_METADATA, bump_generation, check_identity, check_new_finalizers, check_shape,
    differs_outside_metadata_and_status, is_same, keep_only_status, keep_server_fields, metadata_mut, remove,
    with_status_of,
};
use crate::state::State;
use crate::status_error::StatusError;
use crate::{cluster_ip, node_port, validation};

/// Dependencies of the write rules other than the state.
pub(crate) struct Rules {
    pub(crate) clock: Clock,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) auto_create_namespaces: bool,
    pub(crate) fidelity: Fidelity,
    pub(crate) namespace_objects: Vec<Value>,
}

/// Degree to which a server follows Kubernetes, for features that cost time at each write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fidelity {
    /// Features relevant to controllers; for simulations with many writes.
    #[default]
    Controllers,
    /// Features relevant to people and their tools: schema validation, field ownership and server-side apply.
    People,
}

/// Remarks about a valid object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Paths of the fields that the schema does not declare, and that were removed.
    pub unknown_fields: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Completes an object with the defaults of its kind and validates it, as a server with [`Fidelity::People`] does with a
/// new object. Removes fields that the schema does not declare.
///
/// # Errors
///
/// 400 if a value cannot be decoded, 422 if a field is invalid.
pub fn conform(kind: &ResourceKind, object: &mut Value) -> Result<Remarks, StatusError> {
    let unknown_fields = schema::drop_unknown(kind, object);
    schema::complete(kind, object);
    let name = text(object, "/metadata/name").to_owned();
    let warnings = validation::validate(kind, &name, object, None, true)?;
    Ok(Remarks {
        unknown_fields,
        warnings,
    })
}

/// Write options of a client.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Name of the field manager.
    pub(crate) manager: String,
    /// True if nothing is stored.
    pub(crate) dry_run: bool,
    /// True if the object comes from an apply and already has its managed fields.
    pub(crate) applies: bool,
    pub(crate) unknown_fields: UnknownFields,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            manager: "unknown".to_owned(),
            dry_run: false,
            applies: false,
            unknown_fields: UnknownFields::Ignore,
        }
    }
}

/// Write transaction: the locked state and the rules to apply.
pub(crate) struct Writer<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) rules: &'a Rules,
    pub(crate) terms: Terms,
    /// Warnings for the client in addition to the response.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(state: &'a mut State, rules: &'a Rules, terms: Terms) -> Self {
        Self {
            state,
            rules,
            terms,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn create(
        &mut self,
        kind_id: KindId,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, StatusError> {
        let kind = self.state.kind(kind_id);
        // An apply provides its managed fields.
        let owners = object["metadata"].get("managedFields").cloned();
        let name = self.prepare_new(&kind, namespace, &mut object)?;
        self.check_namespace(&kind, namespace, &name)?;
        if self.state.get(kind_id, namespace, &name).is_some() {
            return Err(StatusError::already_exists(&kind, &name));
        }
        self.conform(&kind, &name, Part::Main, &mut object, None)?;
        if kind.status_subresource {
            remove(&mut object, "status");
        }
        if kind.is_namespace() {
            object["status"] = json!({"phase": "Active"});
        } else if self.rules.fidelity == Fidelity::People && kind.is_pod() {
            object["status"] = json!({"phase": "Pending"});
        }
        self.admit(&kind, namespace, None, &mut object)?;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(self.state.rng.uuid());
        object["metadata"]["creationTimestamp"] = json!(rfc3339(self.rules.clock.now()));
        if self.counts_generations(&kind) {
            object["metadata"]["generation"] = json!(1);
        }
        if self.rules.fidelity == Fidelity::People {
            match owners {
                Some(owners) if self.terms.applies => object["metadata"]["managedFields"] = owners,
                _ => apply::created(&kind, &mut object, &self.author(Part::Main)),
            }
        }
        if kind.is_definition() {
            self.accept_definition(&kind, &name, &mut object)?;
        }
        if self.rules.fidelity == Fidelity::People {
            cluster_ip::allocate(self.state, &kind, &mut object)?;
            node_port::assign(self.state, &kind, None, &mut object)?;
        }
        let stored = self.put(ObjectKey::new(kind_id, namespace, &name), Content::from(object));
        self.define(&kind, &stored);
        if kind.is_namespace() && !self.terms.dry_run {
            self.furnish(&name);
        }
        Ok(stored)
    }

    /// Creates the objects that every namespace has.
    fn furnish(&mut self, namespace: &str) {
        let rules = self.rules;
        for object in &rules.namespace_objects {
            let kind = self
                .state
                .kind_by_name(text(object, "/apiVersion"), text(object, "/kind"));
            if let Some(kind) = kind {
                // The owner of the server passes valid objects, and the namespace is empty.
                let _ = self.create(kind, namespace, object.clone());
            }
        }
    }

    /// Stores an object, unless the request is a dry run.
    fn put(&mut self, key: ObjectKey, content: Content) -> Arc<Object> {
        if self.terms.dry_run {
            let version = self.state.get_key(&key).map_or(0, |object| object.resource_version());
            return Arc::new(Object::new(content, version, ChangeType::Modified));
        }
        self.state.put(key, content)
    }

    /// Returns true if objects of this kind have a generation. With [`Fidelity::Controllers`] all of them do.
    fn counts_generations(&self, kind: &ResourceKind) -> bool {
        self.rules.fidelity == Fidelity::Controllers || kind.counts_generations()
    }

    fn author(&self, part: Part) -> Author {
        let now = self.rules.clock.now();
        Author {
            manager: self.terms.manager.clone(),
            subresource: part.subresource(),
            now,
        }
    }

    /// Drops fields that the schema does not declare and records warnings.
    fn decode(&mut self, kind: &ResourceKind, object: &mut Value) -> Result<(), StatusError> {
        if self.rules.fidelity == Fidelity::People {
            self.warnings
                .extend(schema::decode(kind, object, self.terms.unknown_fields)?);
        }
        Ok(())
    }

    /// Decodes an object, sets its defaults and validates it. `old` is the stored object.
    fn conform(
        &mut self,
        kind: &ResourceKind,
        name: &str,
        part: Part,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        if self.rules.fidelity != Fidelity::People {
            return Ok(());
        }
        self.decode(kind, object)?;
        schema::complete(kind, object);
        if let Some(old) = old {
            cluster_ip::keep(kind, old, object);
            node_port::assign(self.state, kind, Some(old), object)?;
        }
        self.warnings
            .extend(validation::validate(kind, name, object, old, part == Part::Main)?);
        Ok(())
    }

    /// Applies a configuration: creates the object or changes the configured fields. Returns true if it was created.
    pub(crate) fn apply(
        &mut self,
        key: &ObjectKey,
        part: Part,
        mut configuration: Value,
        force: bool,
    ) -> Result<(Arc<Object>, bool), StatusError> {
        let kind = self.state.kind(key.kind);
        check_shape(&kind, &key.namespace, &mut configuration)?;
        if !array(&configuration, "/metadata/managedFields").is_empty() {
            return Err(StatusError::bad_request("metadata.managedFields must be nil"));
        }
        let name = text(&configuration, "/metadata/name");
        if name != key.name {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        self.decode(&kind, &mut configuration)?;
        match part {
            Part::Main if kind.status_subresource => remove(&mut configuration, "status"),
            Part::Main => {}
            Part::Status => keep_only_status(&mut configuration),
        }
        let live = self.state.get_key(key).cloned();
        if let Some(live) = &live {
            check_identity(&kind, live, &configuration)?;
        }
        let author = self.author(part);
        let live_value = live.as_ref().map(|live| live.content().to_value());
        let object = match apply::apply(&kind, live_value.as_ref(), &configuration, &author, force)? {
            Applied::Unchanged => return Ok((self.existing(key)?, false)),
            Applied::Changed(object) => object,
        };
        self.terms.applies = true;
        if live.is_some() {
            return Ok((self.update(key, part, object)?, false));
        }
        if part == Part::Status {
            return Err(StatusError::not_found(&kind, &key.name));
        }
        Ok((self.create(key.kind, &key.namespace, object)?, true))
    }

    /// Checks a new object and returns its name.
    fn prepare_new(&mut self, kind: &ResourceKind, namespace: &str, object: &mut Value) -> Result<String, StatusError> {
        check_shape(kind, namespace, object)?;
        if !text(object, "/metadata/resourceVersion").is_empty() {
            return Err(StatusError::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let metadata = metadata_mut(object);
        for field in SERVER_METADATA {
            metadata.remove(field);
        }
        let given = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        let name = if !given.is_empty() {
            given.to_owned()
        } else if !prefix.is_empty() {
            format!("{prefix}{}", self.state.rng.name_suffix())
        } else {
            return Err(StatusError::invalid(
                kind,
                "",
                "metadata.name",
                "name or generateName is required",
            ));
        };
        let is_path_segment = !matches!(name.as_str(), "." | "..") && !name.contains(['/', '%']);
        if name.len() > 253 || !is_path_segment {
            return Err(StatusError::invalid(
                kind,
                &name,
                "metadata.name",
                "must be a path segment of at most 253 characters",
            ));
        }
        Ok(name)
    }

    fn check_namespace(&mut self, kind: &ResourceKind, namespace: &str, name: &str) -> Result<(), StatusError> {
        // Without the Namespace kind there is nothing to check against.
        let Some(namespaces) = self.state.kind_by_path("", "v1", "namespaces") else {
            return Ok(());
        };
        if !kind.is_namespaced() {
            return Ok(());
        }
        match self.state.get(namespaces, "", namespace) {
            Some(found) if found.is_terminating() => Err(StatusError::forbidden(
                kind,
                name,
                &format!("unable to create new content in namespace {namespace} because it is being terminated"),
            )),
            Some(_) => Ok(()),
            None if self.rules.auto_create_namespaces => self
                .create(namespaces, "", json!({"metadata": {"name": namespace}}))
                .map(|_| ()),
            None => Err(StatusError::not_found(&self.state.kind(namespaces), namespace)),
        }
    }

    pub(crate) fn update(
        &mut self,
        key: &ObjectKey,
        part: Part,
        mut object: Value,
    ) -> Result<Arc<Object>, StatusError> {
        let kind = self.state.kind(key.kind);
        let old = self.existing(key)?;
        check_shape(&kind, &key.namespace, &mut object)?;
        check_identity(&kind, &old, &object)?;
        let mut new = if self.reads_only_status(part) {
            with_status_of(old.content(), object)
        } else {
            Content::from(self.replacement(&kind, key, part, &old, object)?)
        };
        new.share(old.content());
        if is_same(part, old.content(), &new) {
            return Ok(old);
        }
        let counts_generations = part == Part::Main && self.counts_generations(&kind);
        if counts_generations && differs_outside_metadata_and_status(old.content(), &new) {
            new.edit("metadata", bump_generation);
        }
        let stored = self.put(key.clone(), new);
        if self.terms.dry_run {
            return Ok(stored);
        }
        self.define(&kind, &stored);
        if stored.is_terminating() && !has_finalizers(stored.content()) {
            return Ok(self.finish_deletion(key).unwrap_or(stored));
        }
        Ok(stored)
    }

    /// Returns the object that replaces a stored one, with the fields that the client cannot change.
    fn replacement(
        &mut self,
        kind: &ResourceKind,
        key: &ObjectKey,
        part: Part,
        old: &Object,
        mut object: Value,
    ) -> Result<Value, StatusError> {
        // Schemas and field ownership compare with the whole stored object.
        let old_value = (self.rules.fidelity == Fidelity::People).then(|| old.content().to_value());
        self.conform(kind, &key.name, part, &mut object, old_value.as_ref())?;
        let owners = object["metadata"].get("managedFields").cloned();
        let mut new = match part {
            Part::Main => object,
            Part::Status => with_status_of(old.content(), object).to_value(),
        };
        if part == Part::Main {
            keep_server_fields(kind, old.content(), &mut new);
            self.admit(kind, &key.namespace, Some(old.content()), &mut new)?;
            check_new_finalizers(kind, old.content(), &new)?;
        }
        if let Some(old_value) = &old_value {
            match owners {
                Some(owners) if self.terms.applies => new["metadata"]["managedFields"] = owners,
                owners => apply::updated(kind, old_value, &mut new, owners.as_ref(), &self.author(part)),
            }
        }
        if kind.is_definition() && part == Part::Main {
            self.accept_definition(kind, &key.name, &mut new)?;
        }
        Ok(new)
    }

    fn accept_definition(&self, kind: &ResourceKind, name: &str, definition: &mut Value) -> Result<(), StatusError> {
        if self.rules.fidelity == Fidelity::People {
            schema::check_definition(kind, name, definition)?;
        }
        definition::accept(definition, self.rules.clock.now())
    }

    /// Serves the kinds of a stored definition.
    fn define(&mut self, kind: &ResourceKind, stored: &Object) {
        if kind.is_definition() && !self.terms.dry_run {
            for defined in definition::kinds(stored.content()).unwrap_or_default() {
                self.state.register(defined);
            }
        }
    }

    /// Returns true if an update of this part reads no fields but [`STATUS_FIELDS`](crate::shape::STATUS_FIELDS).
    pub(crate) fn reads_only_status(&self, part: Part) -> bool {
        part == Part::Status && self.rules.fidelity == Fidelity::Controllers
    }

    pub(crate) fn existing(&self, key: &ObjectKey) -> Result<Arc<Object>, StatusError> {
        self.state
            .get_key(key)
            .cloned()
            .ok_or_else(|| StatusError::not_found(&self.state.kind(key.kind), &key.name))
    }

    fn admit(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        old: Option<&Content>,
        object: &mut Value,
    ) -> Result<(), StatusError> {
        let Some(admission) = &self.rules.admission else {
            return Ok(());
        };
        let name = text(object, "/metadata/name").to_owned();
        let old = old.map(Content::to_value);
        let (rng, table) = self.state.rng_and_table(kind);
        let objects = || table.into_iter().flat_map(|table| table.scan(None, None));
        admission
            .admit(AdmissionRequest {
                operation: if old.is_some() {
                    Operation::Update
                } else {
                    Operation::Create
                },
                kind,
                namespace: kind.is_namespaced().then_some(namespace),
                old: old.as_ref(),
                object,
                others: &|| objects().map(|object| object.content().to_value()).collect(),
                ids: &mut || rng.uuid(),
                now: self.rules.clock.now(),
            })
            .map_err(|denied| match denied.reason {
                DenialReason::Forbidden => StatusError::forbidden(kind, &name, &denied.message),
                DenialReason::Invalid => StatusError::invalid(kind, &name, &denied.field, &denied.message),
            })
    }
}
