use serde_json::json;

use super::*;

fn check(manifest: Value, expected: &[(&str, &str)]) {
    let text = manifest.to_string();
    let manifest: PluginManifest = serde_json::from_value(manifest).unwrap();
    let found = manifest.mistakes();
    assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
    for (problem, (field, part)) in found.iter().zip(expected) {
        assert!(
            problem.field == *field && problem.message.contains(part),
            "{text}: {problem:?}"
        );
    }
}

#[test]
fn mistakes_name_the_field_and_what_would_be_right() {
    let pods = json!([{"apiVersion": "v1", "kind": "Pod"}]);
    check(json!({"name": "a", "wasm": "a.wasm"}), &[]);
    check(
        json!({"name": "a", "lua": "a.lua", "answers": ["health"], "kinds": pods}),
        &[],
    );
    check(json!({"name": "", "wasm": "a.wasm"}), &[("name", "must be given")]);
    check(json!({"name": "a"}), &[("", "exactly one of wasm, lua and image")]);
    check(
        json!({"name": "a", "lua": "a.lua", "wasm": "a.wasm"}),
        &[("", "exactly one of wasm, lua and image")],
    );
    check(
        json!({"name": "a", "wasm": "a.wasm", "answers": ["score"]}),
        &[("answers", "by its exports")],
    );
    check(
        json!({"name": "a", "wasm": "a.wasm", "dialect": "argo"}),
        &[("dialect", "no dialects")],
    );
    check(
        json!({"name": "a", "wasm": "a.wasm", "taintKeys": ["k"]}),
        &[("taintKeys", "itself")],
    );
    check(
        json!({"name": "a", "lua": "a.lua", "instances": "reused"}),
        &[("instances", "fresh environment")],
    );
    check(
        json!({"name": "a", "wasm": "a.wasm", "sha256": "abc"}),
        &[("sha256", "64 hexadecimal digits")],
    );
}

#[test]
fn an_image_has_its_code_in_a_registry() {
    check(
        json!({"name": "a", "image": "r.io/a:1", "kinds": [{"apiVersion": "v1", "kind": "Pod"}]}),
        &[],
    );
    check(
        json!({"name": "a", "image": "r.io/a:1", "sha256": "0".repeat(64)}),
        &[("sha256", "as @sha256:DIGEST")],
    );
    check(
        json!({"name": "a", "image": "r.io/a:1", "lua": "a.lua"}),
        &[("", "exactly one of wasm, lua and image")],
    );
    check(
        json!({"name": "a", "lua": "a.lua", "movedTag": "follow"}),
        &[("movedTag", "is for images")],
    );
    let image = json!({"name": "a", "image": "r.io/a:1", "movedTag": "follow", "answers": ["score"]});
    let manifest: PluginManifest = serde_json::from_value(image).unwrap();
    assert!(
        manifest
            .code()
            .unwrap_err()
            .to_string()
            .starts_with("image is not pulled here")
    );
    let script = manifest.clone().with_code(EngineKind::Lua, "r.io/a@sha256:1");
    assert_eq!(script.code(), Ok((EngineKind::Lua, "r.io/a@sha256:1")));
    assert_eq!(script.mistakes(), []);
    let component = manifest.with_code(EngineKind::Wasm, "r.io/a@sha256:1");
    assert_eq!(component.mistakes()[0].field, "answers");
}

#[test]
fn code_is_read_once_and_its_digest_compared() {
    let digest = Digest::of([b"x".as_slice()].into_iter()).to_string().to_uppercase();
    let mut manifest = PluginManifest {
        sha256: Some(digest),
        ..PluginManifest::of_file("a", EngineKind::Lua, "a.lua")
    };
    let read = |file: &str| (format!("/lists/{file}"), Ok::<_, String>(b"x".to_vec()));
    assert_eq!(manifest.read_code(read), Ok(("/lists/a.lua".to_owned(), b"x".to_vec())));
    manifest.sha256 = Some("0".repeat(64));
    let other = manifest.read_code(read).unwrap_err();
    assert_eq!((other.field, other.kind), ("sha256", ProblemKind::Invalid));
    let missing = manifest
        .read_code(|file| (file.to_owned(), Err("no such file")))
        .unwrap_err();
    assert_eq!(
        (missing.to_string().as_str(), missing.kind),
        ("failed to fetch a.lua: no such file", ProblemKind::Unreadable)
    );
}
