use bulkhead_core::manifest::{Budget, Dialect, Digest, EntryPoint, Instances};
use bulkhead_core::policy::{Build, Capability, EngineKind, SignedImage};
use serde_json::Value;

use crate::module_code::ModuleCode;

/// A plugin before it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSource {
    /// Name, unique in a registry.
    pub name: String,
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Code: one component, or one or more scripts.
    pub modules: Vec<Module>,
    /// For scripts without listed functions: `(apiVersion, kind)` of the objects that the functions take; empty means
    /// every kind.
    pub object_kinds: Vec<(String, String)>,
    /// Configuration passed to the plugin when it is loaded; null if there is none.
    pub config: Value,
    /// JSON Schema of the configuration, for plugins that cannot declare it themselves: scripts.
    pub config_schema: Option<Value>,
    /// Keys of the taints that it may add and remove, for plugins that cannot declare them themselves: scripts.
    pub taint_keys: Vec<String>,
    /// Limits of one call.
    pub budget: Budget,
    /// Lifetime of an instance.
    pub instances: Instances,
    /// Time at which a script is checked for its functions.
    pub inspection: Inspection,
    /// Interface that its scripts are written for. It decides which library functions they may call; the code is
    /// translated already.
    pub dialect: Dialect,
    /// Image that the code comes from; none for a file or an object.
    pub image: Option<SignedImage>,
}

impl PluginSource {
    /// Returns a plugin without configuration, with the default budget and an instance for every call.
    pub fn new(name: impl Into<String>, engine: EngineKind, modules: Vec<Module>) -> Self {
        Self {
            name: name.into(),
            engine,
            modules,
            object_kinds: Vec::new(),
            config: Value::Null,
            config_schema: None,
            taint_keys: Vec::new(),
            budget: Budget::default(),
            instances: Instances::default(),
            inspection: Inspection::default(),
            dialect: Dialect::default(),
            image: None,
        }
    }

    /// Returns the origin of the first module, for messages.
    pub fn origin(&self) -> &str {
        self.modules.first().map_or("", |module| &module.origin)
    }

    /// Returns the digests of its code and configuration, for records of its decisions.
    pub fn build(&self) -> Build {
        let config = self.config.to_string();
        Build {
            code: self.digest().to_string(),
            config: Digest::of(std::iter::once(config.as_bytes())).to_string(),
            image: self.image.clone(),
        }
    }

    /// Returns the digest of its code.
    pub fn digest(&self) -> Digest {
        match self.modules.as_slice() {
            [module] => module.code.digest(),
            modules => Digest::of(modules.iter().map(|module| &*module.code)),
        }
    }
}

/// Time at which a script is checked for its functions. The exports of a component are known without running it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inspection {
    /// During loading: the top level runs once and must define the functions of the entries.
    #[default]
    AtLoading,
    /// During calls, as in Karmada. The script must compile nevertheless.
    AtCalls,
}

/// One piece of code.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Origin for messages: a path, or an object and field.
    pub origin: String,
    /// A component in binary form, or the text of a script.
    pub code: ModuleCode,
    /// Functions of a script that are called; empty means every function of [`EntryPoint::ALL`] that it defines.
    /// Empty for a component, whose exports declare them.
    pub entries: Vec<Entry>,
}

/// One function of a script and the kind of object that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Function.
    pub point: EntryPoint,
    /// `(apiVersion, kind)` of the objects, for functions that take one; absent for every kind.
    pub object_kind: Option<(String, String)>,
}

impl Entry {
    /// Returns one entry for each kind of object; a single entry for every kind if there are none.
    pub fn on(point: EntryPoint, object_kinds: &[(String, String)]) -> Vec<Self> {
        if object_kinds.is_empty() {
            return vec![Self {
                point,
                object_kind: None,
            }];
        }
        object_kinds
            .iter()
            .map(|kind| Self {
                point,
                object_kind: Some(kind.clone()),
            })
            .collect()
    }

    /// Returns the capability that this entry gives a policy.
    pub fn capability(&self) -> Capability {
        Capability {
            kind: self.point.call_kind(),
            object_kind: self.object_kind.clone(),
        }
    }
}
