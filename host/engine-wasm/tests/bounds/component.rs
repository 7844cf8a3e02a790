//! Generates a component that calls one host function with arguments of any size and then answers its call.

use std::fmt::Write as _;

use crate::functions::{Function, Param};

/// Address of the arguments in the guest's memory.
const ARGUMENTS_AT: usize = 64 << 10;
/// Address of the results of host functions.
const RESULTS_AT: usize = 8 << 20;
/// Pages of the guest's memory.
const PAGES: usize = 512;

/// An argument.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Text(String),
    /// The same text many times.
    Texts(String, usize),
    Number(u32),
    /// This many bytes that are not UTF-8.
    Garbled(usize),
    /// A text or a list behind the end of the memory.
    Outside,
}

/// Number of times that the guest calls the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    Forever,
}

/// Returns the text of the component.
pub(crate) fn component(function: &Function, arguments: &[Argument], times: Times) -> String {
    let (data, operands) = laid_out(function, arguments);
    let lending_call = LendingCall::about(function.interface);
    let calls = calls(function, &operands, times);
    let (imports, exports) = (lending_call.imports(function), lending_call.exports());
    let drops: String = lending_call.inputs().map(drop_of).collect();
    let drop_imports: String = lending_call.inputs().map(drop_import).collect();
    let drop_arguments: String = lending_call.inputs().map(drop_argument).collect();
    let (params, ends) = (lending_call.params(), lending_call.ends());
    // The candidates and the task are the second input.
    let this = usize::from(matches!(function.resource, "clusters" | "eviction-task"));
    let prepare = if function.interface == "observations" {
        OBSERVE
    } else {
        ""
    };
    let observes = function.interface == "observations";
    let (observe, observe_import, observe_argument) = if observes {
        (OBSERVE_LOWERED, OBSERVE_IMPORT, OBSERVE_ARGUMENT)
    } else {
        ("", "", "")
    };
    let (core_params, core_result) = core_type(function);
    let import = import_name(function);
    let interface = function.interface;
    format!(
        r#"(component
  {imports}
  (core module $heap
    (memory (export "memory") {PAGES})
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const {RESULTS_AT})))
  (core instance $heap (instantiate $heap))
  {drops}
  {observe}
  (core func $call (canon lower (func ${interface} "{import}")
    (memory (core memory $heap "memory")) (realloc (core func $heap "realloc"))))
  (core module $code
    (import "heap" "memory" (memory 1))
    {drop_imports}
    {observe_import}
    (import "host" "call" (func $call {core_params} {core_result}))
    (data (i32.const 64) "\80\00\00\00\04\00\00\00\84\00\00\00\05\00\00\00")
    (data (i32.const 128) "test1.2.3")
    {data}
    (func (export "describe") (result i32) (i32.const 64))
    (func (export "configure") (param i32 i32) (result i32) (i32.const 256))
    (func (export "ask") {params} (result i32)
      (local $self i32)
      (local.set $self (local.get {this}))
      {prepare}
      {calls}
      {ends}
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance {drop_arguments} {observe_argument} (export "call" (func $call))))))
  {PLUGIN}
  {exports})"#
    )
}

const OBSERVE: &str = "(local.set $self (call $observe (local.get 0)))";
const OBSERVE_LOWERED: &str = r#"(core func $observe (canon lower (func $binding "[method]binding.observed")))"#;
const OBSERVE_IMPORT: &str = r#"(import "host" "observe" (func $observe (param i32) (result i32)))"#;
const OBSERVE_ARGUMENT: &str = r#"(export "observe" (func $observe))"#;

fn drop_of(name: &str) -> String {
    format!("(core func $drop-{name} (canon resource.drop ${name}-resource))\n  ")
}

fn drop_import(name: &str) -> String {
    format!(r#"(import "host" "drop-{name}" (func $drop-{name} (param i32)))"#)
}

fn drop_argument(name: &str) -> String {
    format!(r#"(export "drop-{name}" (func $drop-{name}))"#)
}

fn import_name(function: &Function) -> String {
    if function.resource.is_empty() {
        function.name.to_owned()
    } else {
        format!("[method]{}.{}", function.resource, function.name)
    }
}

/// Returns data segments with the arguments, and the operands of each call.
fn laid_out(function: &Function, arguments: &[Argument]) -> (String, String) {
    assert_eq!(function.params.len(), arguments.len(), "{function}");
    let (mut at, mut data, mut operands) = (ARGUMENTS_AT, String::new(), String::new());
    let mut put = |bytes: &[u8]| {
        writeln!(data, "(data (i32.const {at}) \"{}\")", literal(bytes)).unwrap();
        let begin = at;
        at = (at + bytes.len()).next_multiple_of(8);
        assert!(at <= RESULTS_AT, "the arguments are too large");
        begin
    };
    for argument in arguments {
        let pushed = match argument {
            Argument::Text(text) => format!("(i32.const {}) (i32.const {})", put(text.as_bytes()), text.len()),
            Argument::Texts(text, count) => {
                let text_at = put(text.as_bytes());
                let pair = [text_at, text.len()].map(|word| (word as u32).to_le_bytes()).concat();
                format!("(i32.const {}) (i32.const {count})", put(&pair.repeat(*count)))
            }
            Argument::Number(number) => format!("(i32.const {number})"),
            Argument::Garbled(count) => format!("(i32.const {}) (i32.const {count})", put(&vec![0xff; *count])),
            Argument::Outside => "(i32.const -16) (i32.const 8)".to_owned(),
        };
        operands.push_str(&pushed);
        operands.push(' ');
    }
    (data, operands)
}

/// Returns the contents of a string literal with these bytes.
fn literal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || *byte == b'/' {
            text.push(char::from(*byte));
        } else {
            write!(text, "\\{byte:02x}").unwrap();
        }
    }
    text
}

fn core_type(function: &Function) -> (String, String) {
    let mut params = if function.resource.is_empty() {
        String::new()
    } else {
        "i32 ".to_owned()
    };
    for param in function.params {
        params.push_str(if matches!(param, Param::Text | Param::Texts) {
            "i32 i32 "
        } else {
            "i32 "
        });
    }
    let result = function
        .flat
        .filter(|core| !core.is_empty())
        .map(|core| format!("(result {core})"));
    if function.flat.is_none() {
        params.push_str("i32");
    }
    (format!("(param {params})"), result.unwrap_or_default())
}

fn calls(function: &Function, operands: &str, times: Times) -> String {
    let this = if function.resource.is_empty() {
        ""
    } else {
        "(local.get $self)"
    };
    let result_at = if function.flat.is_none() {
        "(i32.const 1024)"
    } else {
        ""
    };
    let call = format!("(call $call {this} {operands} {result_at})");
    let call = if function.flat.is_some_and(|core| !core.is_empty()) {
        format!("(drop {call})")
    } else {
        call
    };
    if times == Times::Forever {
        format!("(loop {call} (br 0))")
    } else {
        call
    }
}

/// Call that lends the resource of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LendingCall {
    Health,
    Taints,
    Score,
    Eviction,
}

impl LendingCall {
    pub(crate) fn about(interface: &str) -> Self {
        match interface {
            "binding" | "observations" => Self::Eviction,
            "clusters" => Self::Score,
            "cluster" => Self::Taints,
            _ => Self::Health,
        }
    }

    /// Returns the resources that it lends.
    fn inputs(self) -> impl Iterator<Item = &'static str> {
        let inputs: &[_] = match self {
            Self::Health => &["object"],
            Self::Taints => &["cluster"],
            Self::Score => &["binding", "clusters"],
            Self::Eviction => &["binding", "eviction-task"],
        };
        inputs.iter().copied()
    }

    fn params(self) -> String {
        self.inputs().map(|_| "(param i32)").collect()
    }

    fn ends(self) -> String {
        let end = |(index, name): (usize, &str)| format!("(call $drop-{name} (local.get {index}))");
        self.inputs().enumerate().map(end).collect()
    }

    fn imports(self, function: &Function) -> String {
        let interfaces: &[_] = match self {
            Self::Health => &["object"],
            Self::Taints => &["object", "cluster"],
            Self::Score => &["object", "observations", "binding", "cluster", "clusters"],
            Self::Eviction => &["object", "observations", "binding"],
        };
        let mut imports: String = interfaces.iter().map(|interface| import(interface, function)).collect();
        if function.resource.is_empty() {
            imports.push_str(&import(function.interface, function));
        }
        imports
    }

    fn exports(self) -> String {
        let (interface, export, types, params, reply) = match self {
            Self::Health => (
                "health",
                "interpret",
                HEALTH,
                r#"(param "observed" (borrow $object-resource))"#,
                "$verdict",
            ),
            Self::Taints => (
                "taints",
                "decide",
                TAINTS,
                r#"(param "cluster" (borrow $cluster-resource))"#,
                "(list $change)",
            ),
            Self::Score => (
                "score",
                "score",
                "",
                r#"(param "binding" (borrow $binding-resource)) (param "feasible" (borrow $clusters-resource))"#,
                "(list u32)",
            ),
            Self::Eviction => (
                "eviction",
                "check",
                EVICTION,
                r#"(param "binding" (borrow $binding-resource)) (param "task" (borrow $eviction-task-resource))"#,
                "$verdict",
            ),
        };
        format!(
            r#"{types}
  (func $ask {params} (result (result {reply} (error $error)))
    (canon lift (core func $code "ask") (memory (core memory $heap "memory"))))
  (instance $answers (export "{export}" (func $ask)))
  (export "bulkhead:policy/{interface}@0.1.0" (instance $answers))"#
        )
    }
}

/// Returns the import of one interface with its resources, and of the function if it belongs to it.
fn import(interface: &str, function: &Function) -> String {
    let resources: &[&str] = match interface {
        "binding" => &["binding", "eviction-task"],
        "log" | "context" => &[],
        other => &[other],
    };
    let others: &[&str] = match interface {
        "observations" | "cluster" => &["object"],
        "binding" => &["object", "observations"],
        "clusters" => &["cluster"],
        _ => &[],
    };
    let mut text = String::new();
    for other in others {
        write!(text, r#"(export "{other}" (type ${other}' (eq ${other}-resource))) "#).unwrap();
    }
    for resource in resources {
        write!(text, r#"(export "{resource}" (type ${resource}' (sub resource))) "#).unwrap();
    }
    let observes = interface == "binding" && function.interface == "observations";
    if observes {
        text.push_str(&declaration(&crate::functions::named("binding.observed")));
    }
    if function.interface == interface {
        text.push_str(function.types);
        text.push_str(&declaration(function));
    }
    let aliases = resources
        .iter()
        .map(|resource| format!("  (alias export ${interface} \"{resource}\" (type ${resource}-resource))\n"));
    let aliases: String = aliases.collect();
    format!("(import \"bulkhead:policy/{interface}@0.1.0\" (instance ${interface} {text}))\n{aliases}  ")
}

fn declaration(function: &Function) -> String {
    let mut params = String::new();
    if !function.resource.is_empty() {
        write!(params, r#"(param "self" (borrow ${}'))"#, function.resource).unwrap();
    }
    let names = match (function.interface, function.name) {
        ("object", "get-many") => &["pointers"][..],
        ("object", "get-each") => &["in-list", "pointer"],
        ("cluster", "serves") => &["api-version", "kind"],
        ("cluster" | "clusters", "label") => &["key"],
        ("cluster", "condition") | ("clusters", "allocatable" | "free") => &["name"],
        ("log", _) => &["level", "message"],
        (_, "get") if function.params == [Param::Number] => &["index"],
        (_, "status") => &["index"],
        _ => &["pointer"],
    };
    for (name, param) in names.iter().zip(function.params) {
        let type_of = match param {
            Param::Text => "string",
            Param::Texts => "(list string)",
            Param::Number => "u32",
            Param::Level => "$level",
        };
        write!(params, r#" (param "{name}" {type_of})"#).unwrap();
    }
    let result = if function.result.is_empty() {
        String::new()
    } else {
        format!("(result {})", function.result)
    };
    format!(r#"(export "{}" (func {params} {result}))"#, import_name(function))
}

const PLUGIN: &str = r#"(type $reason' (record (field "code" string) (field "message" string)))
  (export $reason "reason" (type $reason'))
  (type $error' (variant (case "unsupported") (case "invalid-config" string) (case "internal" string)))
  (export $error "policy-error" (type $error'))
  (type $kind' (record (field "api-version" string) (field "kind" string)))
  (export $kind "object-kind" (type $kind'))
  (type $metadata' (record
    (field "name" string) (field "version" string) (field "description" string) (field "object-kinds" (list $kind))
    (field "taint-keys" (list string)) (field "config-schema" string) (field "reusable" bool)
    (field "annotations" (list (tuple string string)))))
  (export $metadata "metadata" (type $metadata'))
  (func $describe (result $metadata)
    (canon lift (core func $code "describe") (memory (core memory $heap "memory"))))
  (func $configure (param "config" string) (result (result (error $error)))
    (canon lift (core func $code "configure")
      (memory (core memory $heap "memory")) (realloc (core func $heap "realloc"))))
  (instance $plugin (export "describe" (func $describe)) (export "configure" (func $configure)))
  (export "bulkhead:policy/plugin@0.1.0" (instance $plugin))"#;

const HEALTH: &str = r#"(type $state' (enum "healthy" "unhealthy" "unknown"))
  (export $state "health-state" (type $state'))
  (type $verdict' (record (field "state" $state) (field "reason" $reason)))
  (export $verdict "verdict" (type $verdict'))"#;

const EVICTION: &str = r#"(type $hold' (record (field "reason" $reason) (field "recheck-after-s" (option u32))))
  (export $hold "hold-verdict" (type $hold'))
  (type $verdict' (variant (case "release" $reason) (case "hold" $hold) (case "abstain")))
  (export $verdict "verdict" (type $verdict'))"#;

const TAINTS: &str = r#"(type $effect' (enum "no-schedule" "prefer-no-schedule" "no-execute"))
  (export $effect "taint-effect" (type $effect'))
  (type $addition' (record
    (field "key" string) (field "value" string) (field "effect" $effect) (field "reason" $reason)))
  (export $addition "addition" (type $addition'))
  (type $removal' (record (field "key" string) (field "effect" $effect) (field "reason" $reason)))
  (export $removal "removal" (type $removal'))
  (type $change' (variant (case "add" $addition) (case "remove" $removal)))
  (export $change "change" (type $change'))"#;
