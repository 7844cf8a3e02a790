//! Parses customizations as written, and reports fields that an API server would drop.

use std::path::Path;

use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::EngineKind;
use bulkhead_plugin::{Entry, Module, PluginSource, Position};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::place::Place;

/// Content of a document, with unknown fields ignored or rejected depending on the parser.
struct Raw {
    api_version: Spanned<String>,
    kind: Spanned<String>,
    metadata: Value,
    target: (String, String),
    rules: Vec<(EntryPoint, Spanned<String>)>,
}

/// Two parsers of the same shape: `strict` rejects unknown fields, `lenient` drops them as Karmada does.
macro_rules! shapes {
    ($module:ident $(, $unknown:ident)?) => {
        mod $module {
            use bulkhead_core::manifest::EntryPoint;
            use bulkhead_plugin::{Documents, limits_of_files, read_documents};
            use serde::Deserialize;
            use serde_json::Value;
            use serde_saphyr::Spanned;

            use super::Raw;

            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase" $(, $unknown)?)]
            struct Document {
                api_version: Spanned<String>,
                kind: Spanned<String>,
                #[serde(default)]
                metadata: Value,
                #[serde(default)]
                spec: Spec,
            }

            #[derive(Default, Deserialize)]
            #[serde(rename_all = "camelCase", default $(, $unknown)?)]
            struct Spec {
                target: Target,
                customizations: Rules,
            }

            #[derive(Default, Deserialize)]
            #[serde(rename_all = "camelCase", default $(, $unknown)?)]
            struct Target {
                api_version: String,
                kind: String,
            }

            #[derive(Default, Deserialize)]
            #[serde(rename_all = "camelCase", default $(, $unknown)?)]
            struct Rules {
                retention: Option<Rule>,
                replica_resource: Option<Rule>,
                component_resource: Option<Rule>,
                replica_revision: Option<Rule>,
                status_reflection: Option<Rule>,
                status_aggregation: Option<Rule>,
                health_interpretation: Option<Rule>,
                dependency_interpretation: Option<Rule>,
            }

            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase" $(, $unknown)?)]
            struct Rule {
                lua_script: Spanned<String>,
            }

            /// Parses the non-empty documents of a text. An error contains line and column.
            pub(super) fn documents(origin: &str, text: &str) -> Result<Documents<Raw>, String> {
                let read = read_documents::<Option<Document>>(origin, text, &limits_of_files())?;
                Ok(Documents {
                    documents: read.documents.into_iter().flatten().map(raw).collect(),
                    warnings: read.warnings,
                })
            }

            fn raw(document: Document) -> Raw {
                let Document { api_version, kind, metadata, spec } = document;
                let rules = spec.customizations;
                let rules = [
                    (EntryPoint::Retain, rules.retention),
                    (EntryPoint::Replicas, rules.replica_resource),
                    (EntryPoint::Components, rules.component_resource),
                    (EntryPoint::Revise, rules.replica_revision),
                    (EntryPoint::ReflectStatus, rules.status_reflection),
                    (EntryPoint::AggregateStatus, rules.status_aggregation),
                    (EntryPoint::Health, rules.health_interpretation),
                    (EntryPoint::Dependencies, rules.dependency_interpretation),
                ];
                let rules = rules.into_iter().filter_map(|(point, rule)| Some((point, rule?.lua_script))).collect();
                let target = (spec.target.api_version, spec.target.kind);
                Raw { api_version, kind, metadata, target, rules }
            }
        }
    };
}

shapes!(strict, deny_unknown_fields);
shapes!(lenient);

/// Customization with its scripts.
pub(super) struct Customization {
    /// `metadata.name`; empty if there is none.
    pub(super) name: String,
    /// `spec.target`: API version and kind.
    pub(super) target: (String, String),
    /// Scripts of the rules that are set, in the API's order.
    pub(super) scripts: Vec<Script>,
}

/// Script of one rule.
pub(super) struct Script {
    pub(super) point: EntryPoint,
    /// Field name of the rule in the API.
    pub(super) rule: &'static str,
    pub(super) code: String,
    pub(super) place: Place,
}

impl Customization {
    /// Builds the plugin source of all its scripts.
    pub(super) fn source(&self) -> PluginSource {
        PluginSource::new(
            self.name.clone(),
            EngineKind::Lua,
            self.scripts.iter().map(|s| self.module(s)).collect(),
        )
    }

    /// Builds a module of one script.
    pub(super) fn module(&self, script: &Script) -> Module {
        let entries = vec![Entry {
            point: script.point,
            object_kind: Some(self.target.clone()),
        }];
        Module {
            origin: script.place.origin.clone(),
            code: script.code.as_str().into(),
            entries,
        }
    }
}

/// Parsed content of a file.
pub(super) struct Parsed {
    /// Documents in file order.
    pub(super) documents: Vec<Result<Customization, Unfit>>,
    /// Message about the first unknown field, with line and column.
    pub(super) unread: Option<String>,
    /// Deviations from YAML that were accepted, each with its line.
    pub(super) warnings: Vec<String>,
}

/// Document that is not a valid customization.
pub(super) struct Unfit {
    /// Name of the document, or of its file if it has none.
    pub(super) source: String,
    /// Cause, with line and column.
    pub(super) message: String,
}

/// Parses the documents of a file. An error contains line and column.
pub(super) fn parse(file: &Path, text: &str) -> Result<Parsed, String> {
    let file = file.display().to_string();
    let (read, unread) = match strict::documents(&file, text) {
        Ok(read) => (read, None),
        Err(strictly) => (lenient::documents(&file, text)?, Some(strictly)),
    };
    let documents = read
        .documents
        .into_iter()
        .map(|document| customization(&file, text, document))
        .collect();
    Ok(Parsed {
        documents,
        unread,
        warnings: read.warnings,
    })
}

fn customization(file: &str, text: &str, document: Raw) -> Result<Customization, Unfit> {
    let name = document
        .metadata
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let at = |spanned: &Spanned<String>, message: String| {
        let source = if name.is_empty() { file.to_owned() } else { name.clone() };
        Unfit {
            source,
            message: format!("{file}:{}: {message}", Position::from(spanned.referenced)),
        }
    };
    let (api_version, kind) = (&document.api_version.value, &document.kind.value);
    if kind != "ResourceInterpreterCustomization" {
        let message = format!("not a ResourceInterpreterCustomization, but {api_version} {kind}");
        return Err(at(&document.kind, message));
    }
    if api_version != "config.karmada.io/v1alpha1" {
        let message = format!("apiVersion is {api_version}, not config.karmada.io/v1alpha1");
        return Err(at(&document.api_version, message));
    }
    for (field, value) in [("kind", &document.target.1), ("apiVersion", &document.target.0)] {
        if value.is_empty() {
            return Err(at(&document.kind, format!("spec.target.{field} is not set")));
        }
    }
    let scripts = document.rules.into_iter().filter_map(|(point, script)| {
        let rule = point.rule()?;
        // An empty script counts as a rule that is not set.
        let is_set = !script.value.is_empty();
        let place = Place::in_yaml(file, rule, text, &script);
        is_set.then_some(Script {
            point,
            rule,
            code: script.value,
            place,
        })
    });
    Ok(Customization {
        scripts: scripts.collect(),
        target: document.target,
        name,
    })
}
