//! Library functions with arbitrary arguments.

use std::sync::{Arc, OnceLock};

use bulkhead_core::call::{Call, InterpretCall, Operation};
use bulkhead_core::policy::{Blame, Fault, Policy};
use bulkhead_plugin::EntryPoint;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{load, now, value_of};

/// Calls a function by name with a list of arguments, which may have holes, and returns only the type of the result.
const CALLER: &str = "
    function ReflectStatus(obj)
        local library = { kube = require('kube'), string = string, table = table, os = os, math = math, _G = _G }
        local called = library[obj.library][obj.name]
        local arguments = {}
        for index, argument in pairs(obj.arguments) do arguments[index] = argument.value end
        local fine, result = pcall(called, unpack(arguments, 1, obj.count))
        return { fine = fine, type = type(result) }
    end";

/// Library functions that do work of the host or of the Lua machine in one step.
const FUNCTIONS: [(&str, &str); 26] = [
    ("kube", "resourceAdd"),
    ("kube", "accuratePodRequirements"),
    ("kube", "getPodDependencies"),
    ("kube", "getResourceQuantity"),
    ("string", "byte"),
    ("string", "char"),
    ("string", "find"),
    ("string", "format"),
    ("string", "gmatch"),
    ("string", "lower"),
    ("string", "match"),
    ("string", "rep"),
    ("string", "sub"),
    ("table", "concat"),
    ("table", "insert"),
    ("table", "maxn"),
    ("table", "remove"),
    ("table", "sort"),
    ("os", "date"),
    ("os", "time"),
    ("math", "random"),
    ("_G", "load"),
    ("_G", "next"),
    ("_G", "require"),
    ("_G", "tonumber"),
    ("_G", "unpack"),
];

fn argument() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-5..2_000_i64).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[0-9]{1,70}[a-zA-Z%]{0,3}".prop_map(Value::from),
        (0..60_000_usize).prop_map(|count| Value::from("9".repeat(count))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop::sample::select(vec!["spec", "containers", "volumes", "name", "resources", "limits", "x|\\"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns one plugin for all cases: a case must not affect the next one.
fn policy() -> &'static dyn Policy {
    static POLICY: OnceLock<Arc<dyn Policy>> = OnceLock::new();
    POLICY.get_or_init(|| load(CALLER, EntryPoint::ReflectStatus)).as_ref()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_function_of_the_library_takes_any_arguments(
        function in prop::sample::select(FUNCTIONS.to_vec()),
        arguments in prop::collection::vec(argument(), 0..5),
    ) {
        let (library, name) = function;
        let arguments: Vec<_> = arguments.into_iter().map(|value| json!({ "value": value })).collect();
        let count = arguments.len();
        let object = json!({"library": library, "name": name, "arguments": arguments, "count": count});
        let operation = Operation::ReflectStatus { object: &Arc::new(object) };
        let reply = policy().call(&Call::Interpret(InterpretCall { operation, now: now() }));
        if let Err(fault) = reply {
            prop_assert_eq!(fault.kind.blame(), Blame::Guest, "{:?}", fault);
            prop_assert!(fault.message.len() < 5_000);
        }
    }
}

#[test]
fn a_quantity_that_is_too_long_says_so() {
    let of = |count: usize| format!("kube.resourceAdd('1', '{}')", "9".repeat(count));
    assert!(value_of(&of(63), &json!({})).is_ok());
    let expected = "test.lua:3: argument #2 to resourceAdd has 64 bytes, a quantity has at most 63";
    let Err(Fault { message, .. }) = value_of(&of(64), &json!({})) else { panic!("64 digits are taken") };
    assert_eq!(message, expected);
}
