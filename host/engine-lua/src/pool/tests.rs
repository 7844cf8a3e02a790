//! A reused state is equivalent to a new one; a state that is not is dropped.

use bulkhead_core::policy::FaultKind;
use serde_json::{Value, json};

use super::*;
use crate::encode::EmptyTables;
use crate::machine::Global;
use crate::mentioned::Mentioned;

/// Reports everything that a script can observe at its start: values reachable from the globals and from `kube`,
/// their order and identity, and the behaviour of the functions.
const INSPECTOR: &str = include_str!("inspector.lua");

fn budget() -> Budget {
    Budget {
        steps: 200_000,
        wall_clock_ms: 10_000,
        memory_bytes: 4 << 20,
        reply_bytes: 256 << 10,
    }
}

fn pool(scripts: &[&str]) -> Pool {
    let compiler = mlua::chunk::Compiler::new()
        .set_optimization_level(1)
        .set_debug_level(1);
    let script = |(index, code): (usize, &&str)| {
        let bytecode = compiler.compile(code).unwrap_or_else(|error| panic!("{error}: {code}"));
        let mentioned = Mentioned::read(code.as_bytes());
        Script {
            origin: format!("{index}.lua"),
            bytecode,
            mentioned,
            text: (*code).to_owned(),
        }
    };
    Pool::new(
        Arc::new(Library::compile(&compiler, Default::default())),
        scripts.iter().enumerate().map(script).collect(),
        budget(),
    )
}

/// Returns the result of the script's function `f`.
fn call(pool: &Pool, script: usize) -> Result<Value, Fault> {
    let (config, object) = (json!({"list": [1, 2]}), json!({"a": {"b": [1]}}));
    let setting = CallSettings {
        script,
        config: &config,
        now: None,
    };
    pool.session(&setting, |session| {
        session.run()?;
        let Global::Function(function) = session.global("f") else {
            return Err(Fault::new(FaultKind::MissingExport, "no f"));
        };
        let results = session.call(&function, [&object])?;
        let result = results.front().unwrap_or(&mlua::Value::Nil);
        session
            .encode(result, &EmptyTables::Kept, 256 << 10)
            .map_err(|error| Fault::new(FaultKind::BadReply, error.to_string()))
    })
}

fn idle(pool: &Pool) -> usize {
    pool.idle.lock().unwrap().len()
}

fn idle_bytes(pool: &Pool) -> usize {
    pool.idle.lock().unwrap().iter().map(Machine::used_bytes).sum()
}

#[test]
fn nothing_that_a_call_does_can_be_seen_by_the_next_one() {
    let tricks = [
        "leak = 1",
        "_G.leak = {}",
        "_G[1], _G[true], _G[print] = 1, 2, 3",
        "_G = nil",
        "_G = {}",
        "_VERSION = 'x'",
        "for name in pairs(_G) do _G[name] = nil end",
        "for _, library in next, {math, os, string, table, package} do for name in next, library do library[name] = 1 end end",
        "string.upper = nil",
        "string.len = function() return 0 end",
        "string = {upper = function() return 'hijacked' end}",
        "string = nil",
        "math.floor, math.huge, math.pi = nil, 0, 3",
        "math.randomseed(7)",
        "for i = 1, 10 do math.random() end",
        "table.insert, table.sort = error, nil",
        "os.time, os.date = nil, nil",
        "pairs, ipairs, next, type, tostring, error, pcall, select, unpack = nil",
        "tostring = function() return 'x' end",
        "require = function() return {} end",
        "package.loaded.kube = {}",
        "package.loaded._G = {}",
        "package.preload.kube = nil",
        "package.preload.evil = function() return 1 end require('evil')",
        "package.loaders[1] = error",
        "package = nil",
        "local kube = require('kube') for name in pairs(kube) do kube[name] = nil end kube.leak = 1",
        "require('kube').resourceAdd = function() return 'hijacked' end",
        "config.list[3], config.leak, config.self = 3, 1, config",
        "config = nil",
        "object = nil function f() return 'hijacked' end",
        "kept = function() kept_calls = (kept_calls or 0) + 1 return kept end kept()",
        "local calls = 0 counter = function() calls = calls + 1 return calls end counter()",
        "matches = string.gmatch('a b c', '%a') matches()",
        "xpcall(error, function(reason) caught = reason end, {})",
        "pcall(getmetatable, '') pcall(setmetatable, {}, {}) pcall(setmetatable, _G, {__index = error})",
        "pcall(getfenv, 1) pcall(setfenv, 1, {}) pcall(setfenv, print, {})",
        "pcall(rawset, string, 'upper', nil) pcall(rawset, _G, 'leak', 1)",
        "pcall(load, 'leak = 1') pcall(loadstring, 'leak = 1') pcall(newproxy, true) pcall(module, 'leak')",
        "pcall(collectgarbage, 'stop') pcall(collectgarbage, 'setpause', 10000)",
        "pcall(function() string.format.x = 1 end) pcall(function() ('').x = 1 end)",
        "_G.__index, _G.__newindex, _G.__metatable = error, error, 1",
        "string.__index, string.__concat, string.__len = error, error, error",
        "local function deep(n) if n > 0 then return 1 + deep(n - 1) end return 0 end deep(5000)",
        "local t = {} for i = 1, 20000 do t[i] = {i} end garbage = t",
        "local s = 'x' for i = 1, 18 do s = s .. s end garbage = s",
        "pcall(function() local s = 'x' while #s < 1e9 do s = s .. s end end)",
        "error({leak = _G})",
        "error(nil)",
        "error(setmetatable)",
        "local t = {} t.t = t result = t",
        "result = print",
        "local t = nil + 1",
        "require('nothing')",
    ];
    let new = call(&pool(&[INSPECTOR]), 0).unwrap();
    for trick in tricks {
        // Any of the scripts may be the state's first call.
        for first in [0, 1, 2] {
            let pool = pool(&[
                INSPECTOR,
                &format!("function f(object) {trick} return result end"),
                trick,
            ]);
            // In a function, twice in a row, and in a top level.
            let outcomes = [first, 1, 1, 2].map(|script| call(&pool, script).map(|_| ()));
            assert_eq!(call(&pool, 0).as_ref(), Ok(&new), "after {trick}, {outcomes:?}");
            assert_eq!(
                idle(&pool),
                1,
                "the state was not used again after {trick}, {outcomes:?}"
            );
        }
    }
}

#[test]
fn a_state_that_hit_a_limit_is_thrown_away() {
    let check = |body: &str, expected: FaultKind| {
        let pool = pool(&["function f() return 1 end", &format!("function f() {body} end")]);
        assert_eq!((call(&pool, 0), idle(&pool)), (Ok(json!(1)), 1));
        assert_eq!(
            (call(&pool, 1).map_err(|fault| fault.kind), idle(&pool)),
            (Err(expected), 0),
            "{body}"
        );
        assert_eq!((call(&pool, 0), idle(&pool)), (Ok(json!(1)), 1), "after {body}");
    };
    check("while true do end", FaultKind::OutOfFuel);
    check(
        "while pcall(function() while true do end end) or true do end",
        FaultKind::OutOfFuel,
    );
    check("local s = 'x' while true do s = s .. s end", FaultKind::Memory);
}

#[test]
fn a_used_state_gives_a_call_the_steps_that_a_new_one_gives() {
    let body = |count: usize| format!("function f() for i = 1, {count} do end end");
    let check = |count: usize, expected: bool| {
        let pool = pool(&[&body(150_000), &body(count)]);
        assert_eq!(call(&pool, 1).is_ok(), expected, "{count} in a new state");
        assert!((0..3).all(|_| call(&pool, 0).is_ok()));
        assert_eq!(idle(&pool), 1);
        assert_eq!(call(&pool, 1).is_ok(), expected, "{count} in a used state");
    };
    let steps = usize::try_from(budget().steps).unwrap();
    check(steps - 10, true);
    check(steps + 1, false);
}

#[test]
fn a_used_state_gives_a_call_the_memory_that_a_new_one_gives() {
    // Many strings, so that it ends close to the limit and not at the next power of two of a table.
    let hoard = |kib: usize| {
        format!(
            "local block = 'x' for i = 1, 10 do block = block .. block end
             function f() local t = {{}} for i = 1, {kib} do t[i % 1024 + 1 + (i - i % 1024)] = block .. i end return #t end"
        )
    };
    let litter = "function f() local t = {} for i = 1, 6000 do t[i] = {i} end end";
    let fits = |kib: usize, littered: bool| {
        let pool = pool(&[&hoard(kib), litter]);
        if littered {
            assert!((0..7).all(|_| call(&pool, 1).is_ok()));
            assert!(idle_bytes(&pool) > 500_000, "no litter: {}", idle_bytes(&pool));
        }
        match call(&pool, 0) {
            Ok(_) => true,
            Err(fault) => {
                assert_eq!(fault.kind, FaultKind::Memory, "{fault}");
                false
            }
        }
    };
    let most = |littered: bool| {
        (20..32)
            .map(|step| step * 128)
            .take_while(|kib| fits(*kib, littered))
            .last()
            .unwrap()
    };
    let (new, used) = (most(false), most(true));
    assert!(new > 2560 && new < 4096, "{new}");
    // Memory is allocated in pages, so the results are not equal to the byte.
    assert!(
        new.abs_diff(used) <= 128,
        "{new} KiB in a new state, {used} KiB in a used one"
    );
}

#[test]
fn memory_does_not_grow_with_the_number_of_calls() {
    let churn = "function f(object)
        local t = {} for i = 1, 200 do t[i] = {tostring(i) .. 'x'} end
        kept = t
        return object.a.b[1]
    end";
    let pool = pool(&[churn]);
    let mut highest = 0;
    for index in 0..3000 {
        assert_eq!(call(&pool, 0), Ok(json!(1)));
        let used = idle_bytes(&pool);
        assert!(used > 0, "thrown away after {index} calls");
        highest = highest.max(used);
    }
    assert!(highest < 3 << 20, "{highest} bytes");
}

#[test]
fn a_state_that_stays_large_is_thrown_away() {
    let large = "function f() garbage = {} for i = 1, 60000 do garbage[i] = i .. '' end end";
    let pool = pool(&["function f() end", large]);
    assert!(call(&pool, 0).is_ok());
    let fault = call(&pool, 1).err();
    assert_eq!(fault, None);
    assert!(idle_bytes(&pool) < 2 << 20, "{} bytes", idle_bytes(&pool));
}

#[test]
fn calls_at_the_same_time_have_a_state_each_and_few_are_kept() {
    fn nest(pool: &Pool, depth: usize) -> usize {
        let (config, object) = (Value::Null, json!({"depth": depth}));
        let nested = pool.session(
            &CallSettings {
                script: 0,
                config: &config,
                now: None,
            },
            |session| {
                session.run()?;
                let deeper = if depth > 0 { nest(pool, depth - 1) } else { 0 };
                // The session is intact after the nested ones.
                let Global::Function(function) = session.global("f") else {
                    panic!("no f")
                };
                session.call(&function, [&object])?;
                Ok(deeper + 1)
            },
        );
        nested.unwrap()
    }
    let script = "local mine function f(object) assert(mine == nil) mine = object.depth end";
    let pool = pool(&[script]);
    assert_eq!(nest(&pool, 2 * IDLE_MAX), 2 * IDLE_MAX + 1);
    assert_eq!(idle(&pool), IDLE_MAX);
}

#[test]
fn a_panic_takes_its_state_along() {
    let pool = pool(&["function f() return 1 end"]);
    assert_eq!((call(&pool, 0), idle(&pool)), (Ok(json!(1)), 1));
    let config = Value::Null;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.session(
            &CallSettings {
                script: 0,
                config: &config,
                now: None,
            },
            |_| -> Result<(), Fault> { panic!("of the host") },
        )
    }));
    assert!(panicked.is_err());
    assert_eq!(idle(&pool), 0);
    assert_eq!((call(&pool, 0), idle(&pool)), (Ok(json!(1)), 1));
}
