//! The host's tables behave like tables that the script has built itself.

use std::sync::Arc;

use bulkhead_core::call::{Interpretation, Operation};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::Fault;
use serde_json::{Value, json};

use crate::tests::interpret;

/// An object with members that scripts name, members whose names they compute, short and long lists, empty values and
/// nulls.
fn object() -> Value {
    let long: Vec<_> = (1..=40)
        .map(|index| json!({"index": index, "unsaid": {"deeper": index * 2}}))
        .collect();
    json!({
        "kind": "Widget",
        "named": {"one": 1, "two": {"three": [1, 2, 3]}, "unsaid": {"deep": {"deeper": [true, "x", {"y": 0.5}]}}},
        "unsaid": {"a": 1, "b": {"c": 2}},
        "list": [3, 1, 2],
        "holes": [1, null, 3, null],
        "null": null,
        "long": long,
        "numbers": (1..=30).collect::<Vec<_>>(),
        "texts": ["b", "a", "c"],
        "empty": {}, "none": [], "nulls": {"a": null, "b": null}, "1": "text", "key.with/signs": "value",
        "template": {"spec": {
            "serviceAccountName": "web",
            "nodeSelector": {"zone": "a"},
            "containers": [{"name": "web", "resources": {"requests": {"cpu": "250m"}}}],
        }},
    })
}

/// Formats a value as a Lua expression, with the host's conventions.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(elements) => {
            let elements: Vec<_> = elements
                .iter()
                .filter(|element| !element.is_null())
                .map(literal)
                .collect();
            format!("{{{}}}", elements.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| format!("[{}] = {}", json!(name), literal(member));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the results of `body` for `object`, once as passed by the host and once as built by the script.
fn both(body: &str) -> [Result<Value, Fault>; 2] {
    let (from_host, object) = (Arc::new(object()), object());
    let before = "local kube = require('kube')
        local function names(table) local found = {} for name in pairs(table) do found[#found + 1] = tostring(name) end
            table_sort(found) return table_concat(found, ' ') end";
    let before = format!("local table_sort, table_concat = table.sort, table.concat {before}");
    ["", &format!("object = {}", literal(&object))].map(|built| {
        let script = format!("{before} function ReflectStatus(object) {built} {body} end");
        match interpret(
            &script,
            EntryPoint::ReflectStatus,
            Operation::ReflectStatus { object: &from_host },
        )? {
            Interpretation::Status(Some(status)) => Ok(status),
            other => panic!("{other:?}"),
        }
    })
}

fn check(body: &str) {
    let [handed_over, built] = both(body);
    assert!(built.is_ok(), "{body}: {built:?}");
    assert_eq!(handed_over, built, "{body}");
}

/// Checks each expression in a separate call, so that no table is completed beforehand.
fn check_each(expressions: &[&str]) {
    for expression in expressions {
        check(&format!("return {{ {expression} }}"));
    }
}

/// Checks that failing expressions have the same message.
fn check_failures(expressions: &[&str]) {
    for expression in expressions {
        check(&format!(
            "local fine, words = pcall(function() return {expression} end) return {{ fine, tostring(words) }}"
        ));
    }
}

#[test]
fn members_are_there_by_any_name() {
    check_each(&[
        "object.named.one, object.named.two.three[2], object.named.unsaid.deep.deeper[3].y",
        "object['na' .. 'med']['o' .. 'ne'], object['un' .. 'sai' .. 'd'].b.c",
        "object['key.with/' .. 'signs'], object['1'], tostring(object[1]), object['key.with/signs']",
        "tostring(object.missing), tostring(object['mis' .. 'sing']), tostring(object[true]), tostring(object[object])",
        "tostring(object.null), tostring(object['nu' .. 'll']), tostring(object.nulls.a)",
        "object.long[40].index, object.long[1]['unsaid'].deeper, tostring(object.long[41]), tostring(object.long.x)",
        "object.list[1], tostring(object.list[0]), tostring(object.list[-1]), tostring(object.list['1'])",
        "object.holes[1], object.holes[2], tostring(object.holes[3]), #object.holes",
    ]);
}

#[test]
fn types_lengths_and_texts_are_those_of_tables() {
    check_each(&[
        "type(object), type(object.named), type(object['un' .. 'said']), type(object.long), type(object.long[2])",
        "#object, #object.list, #object['li' .. 'st'], #object.long, #object['lo' .. 'ng'], #object.none, #object.empty",
        "tostring(object), tostring(object.long), string.format('%s', object['un' .. 'said'])",
        "object.named == object.named, object.long == object['lo' .. 'ng'], object.named == object.unsaid",
        "object.long[1] == object.long[1], object.named ~= nil, not object.named, object and 1, object.missing or 2",
        "select('#', object, object.long), select(2, 1, object).kind, (assert(object, 'x')).kind",
    ]);
    check(
        "local seen = {[object.named] = 'n', [object['lo' .. 'ng']] = 'l'} return {seen[object.named], seen[object.long]}",
    );
    check(
        "local named = object.named for name, member in pairs(object) do
        if name == 'named' then return {member == named, member == object.named} end end",
    );
}

#[test]
fn walks_find_everything_once() {
    let each = [
        "object",
        "object.named",
        "object['un' .. 'said']",
        "object.long",
        "object['lo' .. 'ng']",
        "object.list",
        "object.empty",
        "object.none",
        "object.nulls",
        "object.holes",
        "object.named.two",
        "object.long[7]",
    ];
    for table in each {
        check(&format!("return {{ names({table}) }}"));
        check(&format!(
            "local count = 0 for name, member in pairs({table}) do count = count + 1 end return {{count}}"
        ));
        check(&format!(
            "local count = 0 for name, member in {table} do count = count + 1 end return {{count}}"
        ));
        check(&format!(
            "local count = 0 for index, member in ipairs({table}) do count = count + index end return {{count}}"
        ));
        check(&format!(
            "local count, list = 0, {table} for name in next, list do count = count + 1 end return {{count}}"
        ));
        check(&format!(
            "local list, key, count = {table}, nil, 0
            repeat key = next(list, key) count = count + 1 until key == nil return {{count}}"
        ));
        check(&format!("return {{ next({table}) == nil }}"));
        check(&format!(
            "local list = {table} for name in pairs(list) do list[name] = nil end return {{ next(list) == nil }}"
        ));
    }
    check("local copy = {} for i = 1, #object.long do copy[i] = object.long[i].unsaid.deeper + object['lo' .. 'ng'][i].index end
        return copy");
}

#[test]
fn the_table_library_works_on_them() {
    for list in [
        "object.list",
        "object['li' .. 'st']",
        "object.numbers",
        "object['num' .. 'bers']",
    ] {
        check(&format!("return {{ table.concat({list}, ',') }}"));
        check(&format!("return {{ table.concat({list}, ',', 2, 3) }}"));
        check(&format!("return {{ table.getn({list}), table.maxn({list}) }}"));
        check(&format!("return {{ unpack({list}) }}"));
        check(&format!("return {{ (select(3, unpack({list}))) }}"));
        check(&format!("local list = {list} table.insert(list, 99) return list"));
        check(&format!("local list = {list} table.insert(list, 1, 99) return list"));
        check(&format!(
            "local list = {list} return {{ table.remove(list), table.remove(list, 1), #list }}"
        ));
        check(&format!("local list = {list} table.sort(list) return list"));
        check(&format!(
            "local list = {list} table.sort(list, function(a, b) return a > b end) return list"
        ));
        check(&format!("{list}[#{list} + 1] = 4 return {list}"));
    }
    check("table.sort(object.long, function(a, b) return a.index > b.index end) return object.long");
    check("local list = {} table.insert(list, object.long) table.insert(list, object['un' .. 'said']) return list");
}

#[test]
fn writing_changes_them_for_good() {
    for write in [
        "object.fresh = 1",
        "object['fre' .. 'sh'] = {1}",
        "object.named = nil",
        "object['na' .. 'med'] = nil",
        "object.named = 5",
        "object.unsaid = nil object.unsaid = 3",
        "object['un' .. 'said'] = nil",
        "object['un' .. 'said'].b = nil",
        "object.missing = nil",
        "object.null = 1",
        "object.named.one = nil object.named['tw' .. 'o'] = nil",
        "object.long[41] = 'x'",
        "object.long[40] = nil",
        "object.long[3].index = nil",
        "object['lo' .. 'ng'][3]['un' .. 'said'] = object",
        "object.list.x = nil",
        "object.list[2] = 'x'",
        "object.named.self = nil object[1] = nil object[true] = nil",
        "local named = object.named object.named = nil object.again = named named.one = 2",
        "for name in pairs(object.named) do object.named[name] = 0 end",
        "object.status = {conditions = {object.unsaid}}",
    ] {
        let read = "tostring(object.named), tostring(object['na' .. 'med']), tostring(object.unsaid),
            tostring(object['un' .. 'said']), tostring(object.null), tostring(object.missing), tostring(object.fresh),
            names(object), tostring(object.long[3].index), #object.long, #object.list, tostring(object.list.x)";
        check(&format!("{write} return {{ {read} }}"));
        check(&format!("{write} return {{ names(object), {read} }}"));
    }
}

#[test]
fn they_can_be_returned_whole_and_in_parts() {
    check_each(&[
        "object",
        "object.named, object['un' .. 'said']",
        "x = object.long[2], y = object['lo' .. 'ng']",
        "object.list, object.empty, object.none, object.nulls, object.holes",
        "a = object.named, b = object.named, c = {object.named.two}",
    ]);
    check("return object");
    check("object.named.one = nil return object");
    check("return object.long");
    check("local found = {} for name, member in pairs(object) do found[name] = member end return found");
}

#[test]
fn kube_reads_them() {
    check_each(&[
        "kube.accuratePodRequirements(object.template)",
        "kube.accuratePodRequirements(object['tem' .. 'plate'])",
        "kube.getPodDependencies(object.template, 'ns')",
        "kube.accuratePodRequirements({spec = {containers = object['tem' .. 'plate'].spec.containers}})",
    ]);
    check("object.template.spec.nodeSelector = nil return { kube.accuratePodRequirements(object.template) }");
}

#[test]
fn what_fails_fails_with_the_same_words() {
    check_failures(&[
        "object.missing.x",
        "object['mis' .. 'sing'].x",
        "object.list.x.y",
        "object.long[41].x",
        "object + 1",
        "-object.named",
        "object.named .. 'x'",
        "object.named < object.unsaid",
        "object.long < 1",
        "object()",
        "object.named()",
        "object:missing()",
        "#object.kind.x",
        "(function() object[nil] = 1 end)()",
        "(function() object[0 / 0] = 1 end)()",
        "(function() object.long[nil] = 1 end)()",
        "(function() object.missing.x = 1 end)()",
        "math.floor(object)",
        "string.upper(object.named)",
        "tonumber(object)",
        "error(object.kind)",
        "select(object)",
        "setmetatable(object, nil)",
        "getmetatable(object)",
        "rawget(object, 'kind')",
        "rawset(object, 'kind', 1)",
    ]);
}

#[test]
fn tables_that_are_collected_do_not_disturb_those_that_take_their_place() {
    let body = "local sum, list = 0, object['lo' .. 'ng']
        for round = 1, 300 do
            local garbage = {}
            for index = 1, 100 do garbage[index] = {index, {}} end
        end
        while #list > 0 do
            local last = table.remove(list)
            sum = sum + last['un' .. 'said']['dee' .. 'per']
            local other = {deeper = nil, other = {}}
            assert(other.deeper == nil and next(other.other) == nil)
        end
        return {sum}";
    assert_eq!(both(body)[0], Ok(json!([1640])));
    check(body);
}
