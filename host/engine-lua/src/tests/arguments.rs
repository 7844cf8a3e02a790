//! Library functions with arbitrary arguments. `PROPTEST_CASES` sets the number of cases, by default 256.

use std::sync::{Arc, OnceLock};

use bulkhead_core::call::{Call, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::manifest::{Budget, EntryPoint};
use bulkhead_core::policy::{Blame, Fault, Policy};
use bulkhead_plugin::Engine;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{load, now, source, value_of};
use crate::LuaEngine;

/// Calls a function by name with a list of arguments, which may have holes, and returns only the type of the result.
/// An argument is a value of JSON, or the name of one that JSON does not have.
const CALLER: &str = "
    local cyclic = {}
    cyclic.spec = cyclic
    local special = {
        nan = 0 / 0, infinite = 1 / 0, least = -1e308, bytes = '\\255\\0\\254', cyclic = cyclic, own = print,
        fails = function() error(cyclic) end,
    }
    function ReflectStatus(obj)
        local library = { kube = require('kube'), string = string, table = table, os = os, math = math, _G = _G }
        local called = library[obj.library][obj.name]
        local arguments = {}
        for index, argument in pairs(obj.arguments) do
            if argument.special then
                arguments[index] = special[argument.special]
            else
                arguments[index] = argument.value
            end
        end
        local fine, result = pcall(called, unpack(arguments, 1, obj.count))
        return { fine = fine, type = type(result) }
    end";

/// Every function of every library.
const FUNCTIONS: [(&str, &str); 6] = [
    (
        "kube",
        "accuratePodRequirements getPodDependencies getResourceQuantity resourceAdd",
    ),
    (
        "string",
        "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper",
    ),
    ("table", "concat getn insert maxn remove sort"),
    ("os", "date time"),
    (
        "math",
        "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min mod modf pow rad \
         random randomseed sin sinh sqrt tan tanh",
    ),
    (
        "_G",
        "assert collectgarbage dofile error getfenv getmetatable ipairs load loadfile loadstring module newproxy next \
         pairs pcall print rawequal rawget rawset require select setfenv setmetatable tonumber tostring type unpack \
         xpcall",
    ),
];

/// Returns the functions of [`FUNCTIONS`], each with its library.
fn functions() -> Vec<(&'static str, &'static str)> {
    FUNCTIONS
        .iter()
        .flat_map(|(library, names)| names.split(' ').map(move |name| (*library, name)))
        .collect()
}

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
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop::sample::select(vec![
            "spec",
            "containers",
            "volumes",
            "name",
            "resources",
            "limits",
            "x|\\",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    let special = prop::sample::select(vec!["nan", "infinite", "least", "bytes", "cyclic", "own", "fails"]);
    prop_oneof![
        5 => value.prop_map(|value| json!({ "value": value })),
        1 => special.prop_map(|name| json!({ "special": name })),
    ]
}

/// Plugins of all cases: a case must not affect the next one, nor the neighbour.
struct Lab {
    policy: Arc<dyn Policy>,
    /// A plugin with exactly the steps that it needs.
    neighbour: Arc<dyn Policy>,
    first: Result<Reply, Fault>,
}

fn lab() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    LAB.get_or_init(|| {
        let neighbour = neighbour();
        let first = reflected(&*neighbour, json!({"a": 1}));
        assert!(first.is_ok(), "{first:?}");
        Lab {
            policy: load(CALLER, EntryPoint::ReflectStatus),
            neighbour,
            first,
        }
    })
}

fn reflected(policy: &dyn Policy, object: Value) -> Result<Reply, Fault> {
    let operation = Operation::ReflectStatus {
        object: &Arc::new(object),
    };
    policy.call(&Call::Interpret(InterpretCall { operation, now: now() }))
}

/// Returns a plugin that uses the libraries, with the fewest steps that it answers with.
fn neighbour() -> Arc<dyn Policy> {
    const SCRIPT: &str = "
        local kube = require('kube')
        function ReflectStatus(obj)
            local sum, names = kube.resourceAdd('1', '1500m'), {}
            for name in pairs(obj) do table.insert(names, name) end
            return { sum = sum, text = ('x'):upper() .. math.random(1000), names = table.concat(names, ',') }
        end";
    let with_steps = |steps: u64| {
        let mut source = source(SCRIPT, &[EntryPoint::ReflectStatus]);
        source.budget = Budget { steps, ..source.budget };
        LuaEngine::default().load(&source).ok().map(|loaded| loaded.policy)
    };
    let answers = |policy: &Arc<dyn Policy>| reflected(&**policy, json!({"a": 1})).is_ok();
    (1..1_000)
        .find_map(|steps| with_steps(steps).filter(answers))
        .expect("1000 steps suffice")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_function_of_the_library_takes_any_arguments(
        function in prop::sample::select(functions()),
        arguments in prop::collection::vec(argument(), 0..5),
    ) {
        let (library, name) = function;
        let count = arguments.len();
        let object = json!({"library": library, "name": name, "arguments": arguments, "count": count});
        let Lab { policy, neighbour, first } = lab();
        if let Err(fault) = reflected(&**policy, object) {
            prop_assert_eq!(fault.kind.blame(), Blame::Guest, "{:?}", fault);
            prop_assert!(fault.message.len() < 5_000);
        }
        prop_assert_eq!(&reflected(&**neighbour, json!({"a": 1})), first);
    }
}

#[test]
fn every_function_of_the_library_is_called_with_arbitrary_arguments() {
    const SCRIPT: &str = "
        function ReflectStatus(obj)
            local found = {}
            local libraries = { kube = require('kube'), string = string, table = table, os = os, math = math, _G = _G }
            for library, members in pairs(libraries) do
                for name, member in pairs(members) do
                    if type(member) == 'function' and member ~= ReflectStatus then
                        table.insert(found, library .. ' ' .. name)
                    end
                end
            end
            table.sort(found)
            return { found = found }
        end";
    let policy = load(SCRIPT, EntryPoint::ReflectStatus);
    let Ok(Reply::Interpret(Some(Interpretation::Status(Some(status))))) = reflected(&*policy, json!({})) else {
        panic!("it lists no functions");
    };
    let mut listed: Vec<_> = functions()
        .into_iter()
        .map(|(library, name)| format!("{library} {name}"))
        .collect();
    listed.sort();
    assert_eq!(status, json!({ "found": listed }));
}

#[test]
fn a_quantity_that_is_too_long_says_so() {
    let of = |count: usize| format!("kube.resourceAdd('1', '{}')", "9".repeat(count));
    assert!(value_of(&of(63), &json!({})).is_ok());
    let expected = "test.lua:3: argument #2 to resourceAdd has 64 bytes, a quantity has at most 63";
    let Err(Fault { message, .. }) = value_of(&of(64), &json!({})) else {
        panic!("64 digits are taken")
    };
    assert_eq!(message, expected);
}
