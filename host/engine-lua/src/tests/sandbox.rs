use std::sync::Arc;

use bulkhead_core::call::{Call, Reply};
use bulkhead_core::manifest::{Dialect, EntryPoint};
use bulkhead_core::model::Health;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::{Engine, Entry, Module, PluginSource};
use serde_json::{Value, json};

use super::{fault_of, health_call, health_of, kind_of_fault, load, now, source, value_of};
use crate::LuaEngine;

fn check(expression: &str, expected: Value) {
    assert_eq!(value_of(expression, &json!({})), Ok(expected), "{expression}");
}

#[test]
fn nothing_but_karmadas_libraries_is_there() {
    let absent = [
        "io",
        "debug",
        "coroutine",
        "utf8",
        "bit32",
        "buffer",
        "vector",
        "gcinfo",
        "typeof",
        "rawlen",
        "os.exit",
        "os.execute",
        "os.getenv",
        "os.clock",
        "string.split",
        "string.pack",
        "table.foreach",
        "table.unpack",
        "table.create",
        "package.path",
        "package.cpath",
    ];
    for name in absent {
        check(&format!("type({name})"), json!("nil"));
    }
    for name in [
        "unpack",
        "table.getn",
        "table.maxn",
        "math.mod",
        "math.pow",
        "string.gfind",
        "os.time",
        "load",
    ] {
        check(&format!("type({name})"), json!("function"));
    }
    check("_VERSION", json!("Lua 5.1"));
    assert_eq!(kind_of_fault("os.exit(1)"), FaultKind::Trap);
    assert_eq!(kind_of_fault("io.open('/etc/passwd')"), FaultKind::Trap);
}

#[test]
fn names_are_suggested_from_all_members_of_the_libraries() {
    for (library, names) in crate::names::MEMBERS {
        let listed = format!(
            "(function() local names = {{}} for name in pairs({library}) do names[#names + 1] = name end \
             table.sort(names) return table.concat(names, ' ') end)()"
        );
        check(&listed, json!(names.join(" ")));
    }
}

#[test]
fn what_karmada_refuses_is_denied_with_its_words() {
    let check = |body: &str, name: &str| {
        let fault = fault_of(body);
        assert_eq!(fault.kind, FaultKind::Denied, "{body}");
        let words = "is not supported in karmada customized resourceinterpreter.";
        assert_eq!(
            fault.message,
            format!("test.lua:2: call function {name} {words}"),
            "{body}"
        );
    };
    check("load('return 1')", "load");
    check("loadstring('return 1')", "loadstring");
    check("setmetatable({}, {})", "setmetatable");
    check("getfenv()", "getfenv");
    check("collectgarbage()", "collectgarbage");
    check("return ('x'):rep(1000)", "rep");
    check("return string.gsub('x', 'x', 'y')", "gsub");
}

#[test]
fn only_kube_can_be_required() {
    let fault = fault_of("require('socket')");
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (
            FaultKind::Denied,
            "test.lua:2: module socket not found, the only module is kube"
        )
    );
    assert_eq!(kind_of_fault("require('./test')"), FaultKind::Denied);
}

#[test]
fn a_refusal_can_be_caught_and_is_then_no_fault() {
    let script = "function InterpretHealth(obj)
        local ok, refusal = pcall(load, 'return 1')
        return not ok and tostring(refusal):find('not supported', 1, true) ~= nil
    end";
    assert_eq!(
        health_of(script, &json!({})).map(|verdict| verdict.health),
        Ok(Health::Healthy)
    );
}

#[test]
fn no_state_survives_a_call() {
    let script = "
        counter = (counter or 0) + 1
        function InterpretHealth(obj)
            calls = (calls or 0) + 1
            string.upper = nil
            require('kube').calls = (require('kube').calls or 0) + 1
            return calls == 1 and counter == 1 and require('kube').calls == 1
        end";
    let policy = load(script, EntryPoint::Health);
    for _ in 0..3 {
        let Ok(Reply::Health(verdict)) = policy.call(&Call::Health(health_call(&Arc::new(json!({}))))) else {
            panic!("no health");
        };
        assert_eq!(verdict.health, Health::Healthy);
    }
}

#[test]
fn scripts_of_one_plugin_do_not_see_each_other() {
    let mut source = source("", &[]);
    let module = |kind: &str, code: &str| Module {
        origin: format!("{kind}.lua"),
        code: code.into(),
        entries: vec![Entry {
            point: EntryPoint::Health,
            object_kind: Some(("v1".to_owned(), kind.to_owned())),
        }],
    };
    source.modules = vec![
        module(
            "A",
            "leak = 1 type = nil function InterpretHealth(obj) leak = 2 return true end",
        ),
        module(
            "B",
            "function InterpretHealth(obj) return leak == nil and type(obj) == 'table' end",
        ),
    ];
    let policy = LuaEngine::default().load(&source).unwrap().policy;
    for kind in ["A", "B"] {
        let object = Arc::new(json!({"apiVersion": "v1", "kind": kind}));
        let Ok(Reply::Health(verdict)) = policy.call(&Call::Health(health_call(&object))) else {
            panic!("no health of {kind}");
        };
        assert_eq!(verdict.health, Health::Healthy, "{kind}");
    }
}

#[test]
fn arguments_are_private_and_real_tables() {
    let script = "function InterpretHealth(obj)
        obj.list[1] = 'changed'
        local names = 0
        for name in pairs(obj) do names = names + 1 end
        return type(obj) == 'table' and #obj.list == 2 and next(obj.empty) == nil and names == 3 and obj.gone == nil
            and obj['1'] == 'text' and obj[1] == nil
    end";
    let object = json!({"list": [1, null, 3], "empty": {}, "gone": null, "1": "text"});
    assert_eq!(
        health_of(script, &object).map(|verdict| verdict.health),
        Ok(Health::Healthy)
    );
    assert_eq!(object["list"][0], json!(1));
}

#[test]
fn library_errors_carry_the_line_of_the_script() {
    let check = |body: &str, expected: &str| {
        let fault = fault_of(body);
        assert_eq!(
            (fault.kind, fault.message.as_str()),
            (FaultKind::Trap, expected),
            "{body}"
        );
    };
    check("error('boom')", "test.lua:2: boom");
    check("error('boom', 0)", "boom");
    check(
        "\n\nlocal x = nil + 1",
        "test.lua:4: attempt to perform arithmetic (add) on nil and number",
    );
    check(
        "return ('a'):match('[a')",
        "test.lua:2: malformed pattern (missing ']')",
    );
}

#[test]
fn time_is_that_of_the_call() {
    check(
        "os.time({year = 2024, month = 1, day = 2, hour = 3})",
        json!(1_704_164_400),
    );
    check("os.date('%Y-%m-%dT%H:%M:%SZ', 0)", json!("1970-01-01T00:00:00Z"));
    check("os.date('!%H', 3600)", json!("01"));
    check("os.time()", json!(now().as_millis() / 1000));
    check("os.date('!%Y')", json!("2023"));
}

#[test]
fn randomness_is_the_same_in_every_call() {
    let value = || value_of("math.random(1000000)", &json!({}));
    assert_eq!(value(), value());
}

#[test]
fn addresses_do_not_show() {
    check("tostring({})", json!("table: 0x0"));
    check("string.format('%s %d', print, 1)", json!("function: 0x0 1"));
    check("tostring(nil)", json!("nil"));
}

#[test]
fn numbers_print_as_in_karmada() {
    check("tostring(1)", json!("1"));
    check("tostring(1.5)", json!("1.5"));
    check("tostring(1e15)", json!("1000000000000000"));
    check("2^53 .. ''", json!("9007199254740992"));
    check("tostring(1/0)", json!("+Inf"));
    check("tostring(-0)", json!("0"));
    check("string.format('%s %s', true, nil)", json!("true nil"));
    check("tostring(0.1 + 0.2)", json!("0.30000000000000004"));
    check("tostring(2^60)", json!("1152921504606846976"));
    check("tostring(2^63)", json!("9.223372036854776e+18"));
    check("tostring(-1e20)", json!("-1e+20"));
    check("tostring(0.00001)", json!("1e-05"));
    check("tostring(0.0001)", json!("0.0001"));
    check("tostring(1234567.5)", json!("1.2345675e+06"));
    check(
        "string.format('%s %5s %d%% %s', 2^60, 0/0, 7, -0)",
        json!("1152921504606846976   NaN 7% 0"),
    );
    check("table.concat({1e20, 'a', -0, 1/0}, ' ')", json!("1e+20 a 0 +Inf"));
    check("table.concat({1, 2, 3}, ',', 2, 3)", json!("2,3"));
    check("table.concat({1, 2, 3}, ',', 2)", json!("2,3"));
    check(
        "string.format('%5s|%-5s|%05d|%+d', 'a', 'b', 42, 7)",
        json!("    a|b    |00042|+7"),
    );
}

#[test]
fn texts_become_numbers_as_in_karmada() {
    check("tonumber('-ff', 16)", json!(-255));
    check("tonumber(' 0x1F ')", json!(31));
    check("tonumber('101', 2)", json!(5));
    check(
        "tostring(tonumber('inf')) .. tostring(tonumber('nan'))",
        json!("nilnil"),
    );
    check("'10' * '2' + '0x10'", json!(36));
    check("math.mod(-5, 3) + -5 % 3", json!(2));
}

#[test]
fn dates_have_the_letters_of_karmada() {
    check("os.date('%F %P %Z %z', 0)", json!("1970-01-01 am UTC +0000"));
    check("os.date('%Q 100%', 0)", json!("%Q 100%"));
    check("os.date('%%F', 0)", json!("%F"));
    check("os.date('*t', 0).year", json!(1970));
}

#[test]
fn jumps_run_as_in_karmada() {
    let check = |body: &str, expected: i32| check(&format!("(function() local n = 0 {body} end)()"), json!(expected));
    check("::top:: n = n + 1 if n < 3 then goto top end return n", 3);
    check(
        "::top:: for i = 1, 2 do n = n + 1 if n == 1 then goto top end end return n",
        3,
    );
    check(
        "for i = 1, 3 do for j = 1, 3 do n = n + 1 if i == 2 and j == 2 then goto out end end end ::out:: return n",
        5,
    );
    check(
        "while true do n = n + 1 if n == 2 then goto skip end if n == 4 then break end ::skip:: n = n + 0 end return n",
        4,
    );
    check(
        "for i = 1, 3 do for j = 1, 3 do if j == 2 then goto continue end n = n + 1 end ::continue:: end return n",
        3,
    );
    check("::unused:: return n", 0);
}

#[test]
fn output_goes_nowhere_and_does_no_harm() {
    check("print('x') == nil", json!(true));
}

/// Returns the answer of a health script in a dialect, about an object with a text.
fn answer_in(dialect: Dialect, body: &str) -> Result<Reply, Fault> {
    let script = format!("function InterpretHealth(obj)\n{body}\nend");
    let source = PluginSource {
        dialect,
        ..source(&script, &[EntryPoint::Health])
    };
    let policy = LuaEngine::default()
        .load(&source)
        .unwrap_or_else(|error| panic!("{error}"))
        .policy;
    policy.call(&Call::Health(health_call(&Arc::new(
        json!({"text": "ERROR, no such key"}),
    ))))
}

#[test]
fn scripts_of_argo_cd_may_replace_and_repeat_texts() {
    let body = "local text = obj.text:gsub('ERROR, ', '')
        local counted = string.gsub('a b', '%a', {a = '1'}) .. string.gsub('a b', '%a', function(c) return c .. c end)
        return {health = 'Healthy', message = text .. ' ' .. ('-'):rep(3) .. ' ' .. counted}";
    match answer_in(Dialect::Argo, body) {
        Ok(Reply::Health(verdict)) => assert_eq!(verdict.reason.message, "no such key --- 1 baa bb"),
        other => panic!("{other:?}"),
    }
    let denied = answer_in(Dialect::Karmada, body).unwrap_err();
    assert_eq!(denied.kind, FaultKind::Denied, "{denied}");
    let denied = answer_in(Dialect::Argo, "return string.dump(InterpretHealth)").unwrap_err();
    assert_eq!(denied.kind, FaultKind::Denied, "{denied}");
}

#[test]
fn replaced_and_repeated_texts_are_bounded() {
    for body in [
        "return ('x'):rep(1e9)",
        "return ('x'):rep(1e300)",
        "return (('x'):rep(1000)):gsub('', ('y'):rep(100000))",
        "return (('x'):rep(1000)):gsub('x', function() return ('y'):rep(10000) end)",
        "return (('x'):rep(1000)):gsub('x', {x = ('y'):rep(10000)})",
    ] {
        let fault = answer_in(Dialect::Argo, body).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Trap, "{body}: {fault}");
        assert!(
            fault.message.contains("string is longer than 1000000 bytes"),
            "{body}: {fault}"
        );
    }
}

/// An address of the host would differ in each run of a simulation, and help an attacker.
#[test]
fn an_error_that_is_no_string_has_no_address() {
    let check = |body: &str, kind: &str| {
        let fault = fault_of(body);
        let expected = format!("the script raised a {kind} as its error, not a string");
        assert_eq!((fault.kind, fault.message), (FaultKind::Trap, expected), "{body}");
    };
    check("error({code = 1})", "table");
    check("error(function() end)", "function");
    check("error(print)", "function");
    check("local _, caught = pcall(error, {}) error(caught)", "table");
    for value in ["{}", "print", "function() end", "setmetatable({}, {})"] {
        for body in [
            "error({value})",
            "error(tostring({value}))",
            "error('x' .. tostring({value}))",
            "error({{value}})",
        ] {
            let fault = fault_of(&body.replace("{value}", value));
            let digits = fault
                .message
                .split("0x")
                .skip(1)
                .map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).count());
            assert!(digits.clone().all(|digits| digits <= 1), "{body}: {}", fault.message);
        }
    }
}
