//! Components that are not plugins, and the error messages for them.

use bulkhead_core::call::{CallKind, EvictionVerdict};
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::Capability;
use bulkhead_plugin::LoadStage;

use super::guest::{GUEST, ask, load, load_with, with};
use crate::{CacheOptions, CacheReport, Options, WasmEngine};

fn check(text: &str, stage: LoadStage, words: &[&str]) {
    let error = load(Options::default(), text, Budget::default())
        .err()
        .expect("it does not load");
    assert_eq!(error.stage, stage, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

#[test]
fn a_plugin_declares_its_capabilities_and_its_id() {
    let policy = load(Options::default(), GUEST, Budget::default()).unwrap();
    assert_eq!(policy.capabilities(), [Capability::any(CallKind::EvictionCheck)]);
    let (declared, digest) = policy.id().version.split_once('+').unwrap();
    assert_eq!(
        (declared, digest.len(), policy.id().name.as_str()),
        ("1.2.3", 12, "guest")
    );
}

#[test]
fn another_version_of_the_contract_is_refused_by_name() {
    let exported = with("bulkhead:policy/eviction@0.1.0", "bulkhead:policy/eviction@0.2.0");
    check(
        &exported,
        LoadStage::Inspected,
        &[
            "exports bulkhead:policy/eviction@0.2.0",
            "supports bulkhead:policy@0.1.0",
        ],
    );
    let imported = with("bulkhead:policy/log@0.1.0", "bulkhead:policy/log@1.0.0");
    check(
        &imported,
        LoadStage::Inspected,
        &["imports bulkhead:policy/log@1.0.0", "supports bulkhead:policy@0.1.0"],
    );
}

/// The host would call these functions without limits.
#[test]
fn the_functions_of_the_host_are_not_taken_from_a_plugin() {
    for name in ["bulkhead:snapshot/state", "wasmtime:wizer/access"] {
        let own = "  (instance $eviction (export";
        let exported = with(own, &format!("  (export \"{name}\" (instance $plugin))\n{own}"));
        check(&exported, LoadStage::Inspected, &[&format!("exports {name}")]);
    }
}

#[test]
fn an_import_without_provider_is_refused_by_name() {
    let asks = |import: &str| {
        with(
            "(import \"bulkhead:policy/log",
            &format!("{import} (import \"bulkhead:policy/log"),
        )
    };
    let http = asks("(import \"wasi:http/types@0.2.6\" (instance))");
    check(
        &http,
        LoadStage::Inspected,
        &["imports wasi:http/types@0.2.6", "object, cluster, clusters"],
    );
    let unknown = asks("(import \"wasi:cli/environment@0.2.6\" (instance (export \"set-environment\" (func))))");
    check(
        &unknown,
        LoadStage::Inspected,
        &["wasi:cli/environment@0.2.6", "set-environment"],
    );
    check(
        &asks("(import \"shout\" (func))"),
        LoadStage::Inspected,
        &["imports shout"],
    );
}

#[test]
fn a_missing_or_mistyped_function_is_found_when_loading() {
    let missing = with("(export \"check\" (func $check))", "");
    check(&missing, LoadStage::Inspected, &["check"]);
    let mistyped = with(
        "(export \"check\" (func $check))",
        "(export \"check\" (func $describe))",
    );
    check(
        &mistyped,
        LoadStage::Inspected,
        &["bulkhead:policy/eviction@0.1.0 does not have the type"],
    );
    let untyped = with(
        "(export \"write\" (func (param \"level\" $level)",
        "(export \"write\" (func (param \"level\" u8)",
    );
    check(&untyped, LoadStage::Inspected, &["bulkhead:policy/log@0.1.0"]);
}

#[test]
fn an_interface_without_a_kind_is_no_plugin() {
    let nothing = with("(export \"bulkhead:policy/eviction@0.1.0\" (instance $eviction))", "");
    check(
        &nothing,
        LoadStage::Inspected,
        &["exports no kind of policy", "eviction"],
    );
    let nameless = with("(export \"bulkhead:policy/plugin@0.1.0\" (instance $plugin))", "");
    check(
        &nameless,
        LoadStage::Inspected,
        &["does not export bulkhead:policy/plugin@0.1.0"],
    );
}

#[test]
fn what_a_plugin_does_while_it_is_loaded_has_limits_too() {
    let spins = with(
        "(func (export \"describe\") (result i32)",
        "(func (export \"describe\") (result i32) (loop (br 0))",
    );
    check(
        &spins,
        LoadStage::Described,
        &[&format!("used up its {} steps", Budget::default().steps)],
    );
    check(
        &with(";; <configure>", "unreachable"),
        LoadStage::Configured,
        &["unreachable"],
    );
    let versionless = with("\\05\\00\\00\\00\")", "\\00\\00\\00\\00\")");
    check(&versionless, LoadStage::Described, &["version"]);
    let schema = with(
        "\\05\\00\\00\\00\")",
        &format!(
            "\\05\\00\\00\\00{}\\80\\00\\00\\00\\04\\00\\00\\00\")",
            "\\00".repeat(24)
        ),
    );
    check(&schema, LoadStage::Described, &["schema is not JSON"]);
    let greedy = with("(memory (export \"memory\") 1)", "(memory (export \"memory\") 20000)");
    check(
        &greedy,
        LoadStage::Described,
        &[&format!(
            "asked for more than {} bytes of memory",
            Budget::default().memory_bytes
        )],
    );
    let crowd = format!(
        "(core module $one) {} (core module $code",
        "(core instance (instantiate $one))".repeat(20)
    );
    check(&with("(core module $code", &crowd), LoadStage::Described, &["instance"]);
}

#[test]
fn a_plugin_from_the_cache_answers_as_the_one_that_was_compiled() {
    let folder = tempfile::TempDir::new().unwrap();
    let options = Options {
        cache: Some(CacheOptions::in_folder(folder.path())),
        ..Options::default()
    };
    for (hits, misses) in [(0, 1), (1, 0)] {
        let engine = WasmEngine::new(options.clone()).unwrap();
        let policy = load_with(&engine, GUEST, Budget::default()).unwrap();
        assert_eq!(ask(&*policy), Ok(EvictionVerdict::Abstain));
        assert_eq!(
            engine.cache_report(),
            Some(CacheReport {
                hits,
                misses,
                ..CacheReport::default()
            })
        );
    }
}
