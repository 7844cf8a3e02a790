//! Functions that a guest may import, with their types.

/// An import of the contract.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub(crate) interface: &'static str,
    /// Resource of a method; empty for a function.
    pub(crate) resource: &'static str,
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Param],
    /// Types that the result needs, exported by the interface.
    pub(crate) types: &'static str,
    pub(crate) result: &'static str,
    /// Core type of a result that needs no memory.
    pub(crate) flat: Option<&'static str>,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    Text,
    Texts,
    Number,
    Level,
}

use Param::{Level, Number, Text, Texts};

const VALUE: &str = r#"(type $value' (variant (case "null") (case "boolean" bool) (case "integer" s64) (case "number" f64)
    (case "text" string) (case "array" u32) (case "fields" u32))) (export "value" (type $value (eq $value')))"#;
const KIND: &str = r#"(type $kind' (record (field "api-version" string) (field "kind" string)))
    (export "object-kind" (type $kind (eq $kind')))"#;
const TARGET: &str = r#"(type $target' (record (field "cluster" string) (field "replicas" u32)))
    (export "target" (type $target (eq $target')))"#;
const CONDITION: &str = r#"(type $status' (enum "true" "false" "unknown"))
    (export "condition-status" (type $status (eq $status')))
    (type $condition' (record (field "name" string) (field "status" $status) (field "reason" string)
      (field "message" string) (field "last-transition-s" (option s64))))
    (export "condition" (type $condition (eq $condition')))"#;
const TAINT: &str = r#"(type $effect' (enum "no-schedule" "prefer-no-schedule" "no-execute"))
    (export "taint-effect" (type $effect (eq $effect')))
    (type $taint' (record (field "key" string) (field "value" string) (field "effect" $effect)
      (field "time-added-s" (option s64))))
    (export "taint" (type $taint (eq $taint')))"#;
const STATE: &str = r#"(type $state' (enum "healthy" "unhealthy" "unknown"))
    (export "health-state" (type $state (eq $state')))"#;
const LEVEL: &str = r#"(type $level' (enum "debug" "info" "warn")) (export "level" (type $level (eq $level')))"#;

/// Returns a method whose result needs memory.
const fn method(
    resource: &'static str,
    name: &'static str,
    params: &'static [Param],
    result: &'static str,
) -> Function {
    let interface = match resource.as_bytes() {
        b"eviction-task" => "binding",
        _ => resource,
    };
    Function {
        interface,
        resource,
        name,
        params,
        types: "",
        result,
        flat: None,
    }
}

/// Returns a function whose result needs memory.
const fn function(
    interface: &'static str,
    name: &'static str,
    params: &'static [Param],
    result: &'static str,
) -> Function {
    Function {
        interface,
        resource: "",
        name,
        params,
        types: "",
        result,
        flat: None,
    }
}

impl Function {
    const fn types(self, types: &'static str) -> Self {
        Self { types, ..self }
    }

    const fn flat(self, core: &'static str) -> Self {
        Self {
            flat: Some(core),
            ..self
        }
    }
}

/// All functions of all interfaces.
pub(crate) const ALL: [Function; 61] = [
    method("object", "get", &[Text], "(option $value)").types(VALUE),
    method("object", "get-many", &[Texts], "(list (option $value))").types(VALUE),
    method("object", "get-each", &[Text, Text], "(list (option $value))").types(VALUE),
    method("object", "get-string", &[Text], "(option string)"),
    method("object", "get-s64", &[Text], "(option s64)"),
    method("object", "get-f64", &[Text], "(option f64)"),
    method("object", "get-bool", &[Text], "(option bool)"),
    method("object", "get-quantity-milli", &[Text], "(option s64)"),
    method("object", "length", &[Text], "(option u32)"),
    method("object", "keys", &[Text], "(list string)"),
    method("object", "json", &[Text], "(option string)"),
    method("binding", "namespace", &[], "(option string)"),
    method("binding", "name", &[], "string"),
    method("binding", "workload-kind", &[], "$kind").types(KIND),
    method("binding", "workload-name", &[], "string"),
    method("binding", "replicas", &[], "u32").flat("i32"),
    method("binding", "targets", &[], "(list $target)").types(TARGET),
    method("binding", "evicting-from", &[], "(list string)"),
    method("binding", "observed", &[], "(own $observations')").flat("i32"),
    method("binding", "document", &[], "(own $object')").flat("i32"),
    method("eviction-task", "from-cluster", &[], "string"),
    method("eviction-task", "reason", &[], "string"),
    method("eviction-task", "producer", &[], "string"),
    method("eviction-task", "since-s", &[], "(option s64)"),
    method("eviction-task", "grace-period-s", &[], "(option u32)"),
    method("eviction-task", "replicas", &[], "(option u32)"),
    method("eviction-task", "document", &[], "(own $object')").flat("i32"),
    method("cluster", "name", &[], "string"),
    method("cluster", "label", &[Text], "(option string)"),
    method("cluster", "provider", &[], "string"),
    method("cluster", "region", &[], "string"),
    method("cluster", "zones", &[], "(list string)"),
    method("cluster", "taints", &[], "(list $taint)").types(TAINT),
    method("cluster", "conditions", &[], "(list $condition)").types(CONDITION),
    method("cluster", "condition", &[Text], "(option $condition)").types(CONDITION),
    method("cluster", "serves", &[Text, Text], "bool").flat("i32"),
    method("cluster", "document", &[], "(own $object')").flat("i32"),
    method("clusters", "len", &[], "u32").flat("i32"),
    method("clusters", "names", &[], "(list string)"),
    method("clusters", "ready", &[], "(list bool)"),
    method("clusters", "current", &[], "(list bool)"),
    method("clusters", "replicas", &[], "(list u32)"),
    method("clusters", "label", &[Text], "(list (option string))"),
    method("clusters", "regions", &[], "(list string)"),
    method("clusters", "providers", &[], "(list string)"),
    method("clusters", "allocatable", &[Text], "(list f64)"),
    method("clusters", "free", &[Text], "(list f64)"),
    method("clusters", "text", &[Text], "(list (option string))"),
    method("clusters", "number", &[Text], "(list f64)"),
    method("clusters", "get", &[Number], "(option (own $cluster'))"),
    method("observations", "len", &[], "u32").flat("i32"),
    method("observations", "clusters", &[], "(list string)"),
    method("observations", "applied", &[], "(list bool)"),
    method("observations", "health", &[], "(list (option $state))").types(STATE),
    method("observations", "number", &[Text], "(list f64)"),
    method("observations", "text", &[Text], "(list (option string))"),
    method("observations", "status", &[Number], "(option (own $object'))"),
    function("log", "write", &[Level, Text], "").types(LEVEL).flat(""),
    function("context", "now-ms", &[], "s64").flat("i64"),
    function("context", "seed", &[], "u64").flat("i64"),
    function("context", "plugin-name", &[], "string"),
];

/// Returns the function with this name, such as `object.get` or `log.write`.
pub(crate) fn named(name: &str) -> Function {
    let found = ALL.into_iter().find(|function| function.to_string() == name);
    found.unwrap_or_else(|| panic!("there is no function {name}"))
}

impl std::fmt::Display for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = if self.resource.is_empty() {
            self.interface
        } else {
            self.resource
        };
        write!(f, "{of}.{}", self.name)
    }
}
