use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::*;
use crate::call::CallKind;
use crate::manifest::P256_START;

fn pem() -> String {
    let der = [&P256_START[..], &[4], &[7; 64]].concat();
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

fn object(name: &str, spec: Value) -> TrustObject {
    let Value::Object(spec) = spec else {
        panic!("a spec is a map")
    };
    TrustObject {
        name: name.to_owned(),
        generation: 3,
        spec,
    }
}

fn read(spec: Value) -> ReadTrust {
    read_objects(&[object("a", spec)]).remove(0)
}

fn keys(rule: &ObjectRule) -> &[ObjectKey] {
    &rule.signers.as_ref().unwrap().keys
}

fn mistakes(read: &ReadTrust) -> Vec<String> {
    read.mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_and_revocations_are_read() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let read = read(json!({
        "rules": [
            {"images": "r.io/plugins/", "keys": [{"name": "team", "pem": pem()}, {"pem": pem()}], "kinds": ["health"]},
            {"images": "r.io/open", "unsigned": true},
        ],
        "revoked": [{"digest": digest, "reason": "CVE-2026-1"}],
    }));
    assert_eq!((mistakes(&read), read.generation), (Vec::new(), 3));
    let [signed, open] = &read.rules[..] else {
        panic!("{read:?}")
    };
    assert_eq!(
        (signed.prefix.as_str(), open.prefix.as_str()),
        ("r.io/plugins", "r.io/open")
    );
    let names: Vec<_> = keys(signed).iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["team", "PluginTrust a spec.rules[0].keys[1]"]);
    assert_eq!(open.signers, None);
    let kinds = signed.terms.as_ref().unwrap().kinds.clone();
    assert_eq!(kinds.map(|kinds| kinds.len()), Some(1));
    assert_eq!(read.revoked[0].digest, digest);
}

#[test]
fn a_mistake_is_named_with_its_field_and_stops_no_other_part() {
    let check = |part: Value, expected: &str| {
        let read = read(json!({"rules": [part, {"images": "r.io/sound", "unsigned": true}]}));
        let found = mistakes(&read);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "no {expected:?} in: {found:?}"
        );
        let sound = read.rules.last().unwrap();
        assert!(sound.prefix == "r.io/sound" && sound.terms.is_ok(), "{read:?}");
        read.rules.len()
    };
    // A rule with a prefix still covers its images.
    let covers = [
        (json!({"images": "r.io"}), "spec.rules[0]: needs either keys"),
        (
            json!({"images": "r.io", "unsigned": "yes"}),
            "spec.rules[0].unsigned: invalid type: string \"yes\", expected a boolean",
        ),
        (
            json!({"images": "r.io", "unsigned": true, "kinds": ["healt"]}),
            "spec.rules[0].kinds: unknown variant `healt`, expected one of `health`",
        ),
        (
            json!({"images": "r.io", "unsigned": true, "kind": []}),
            "spec.rules[0].kind: unknown field `kind`, expected one of `images`",
        ),
        (
            json!({"images": "r.io", "keys": [{"file": "a.pub"}]}),
            "spec.rules[0].keys[0].file: is for trust files; write the key itself into pem",
        ),
        (
            json!({"images": "r.io", "keys": [{}]}),
            "spec.rules[0].keys[0].pem: is missing",
        ),
        (
            json!({"images": "r.io", "keys": [{"pem": "x"}]}),
            "spec.rules[0].keys[0].pem: is not a public key in PEM",
        ),
    ];
    for (rule, expected) in covers {
        assert_eq!(check(rule, expected), 2, "{expected}");
    }
    let without_prefix = [
        (json!({"unsigned": true}), "spec.rules[0]: images is missing"),
        (
            json!({"images": "oci://r.io", "unsigned": true}),
            "spec.rules[0]: images \"oci://r.io\" is not a registry or a repository",
        ),
        (json!("r.io"), "spec.rules[0]: images is missing"),
    ];
    for (rule, expected) in without_prefix {
        assert_eq!(check(rule, expected), 1, "{expected}");
    }
}

#[test]
fn a_key_with_a_mistake_leaves_the_other_keys() {
    let read = read(json!({"rules": [{"images": "r.io", "keys": [{"pem": "x"}, {"name": "b", "pem": pem()}]}]}));
    assert_eq!(read.mistakes.len(), 1, "{read:?}");
    let keys = keys(&read.rules[0]);
    assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn lists_and_revocations_with_mistakes_are_named() {
    let check = |spec: Value, expected: &[&str]| {
        let found = mistakes(&read(spec));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "no {expected:?} in: {found}");
        }
    };
    check(json!({}), &["spec.rules: is missing; write rules: []"]);
    check(json!({"rules": []}), &[]);
    check(json!({"rules": {}}), &["spec.rules: is not a list"]);
    check(
        json!({"rules": [], "rule": []}),
        &["spec.rule: unknown field, expected rules, trustedRoot or revoked"],
    );
    check(
        json!({"rules": [], "revoked": [{"digest": "abc"}, {"reason": "a"}, {"digest": "a", "why": ""}]}),
        &[
            "spec.revoked[0].digest: \"abc\" is not a digest",
            "spec.revoked[1]: missing field `digest`",
            "spec.revoked[2].why: unknown field `why`",
        ],
    );
}

#[test]
fn a_mistake_beside_a_digest_leaves_it_revoked() {
    let digest = format!("sha256:{}", "0".repeat(64));
    for entry in [
        json!({"digest": digest, "why": "a"}),
        json!({"digest": digest, "reason": 3}),
    ] {
        let read = read(json!({"rules": [], "revoked": [entry]}));
        assert_eq!(read.mistakes.len(), 1, "{read:?}");
        let revoked: Vec<_> = read.revoked.iter().map(|one| one.digest.as_str()).collect();
        assert_eq!(revoked, [digest.as_str()]);
    }
}

#[test]
fn the_first_object_by_name_has_the_prefix() {
    let rule = |kinds: &[&str]| json!({"rules": [{"images": "r.io", "unsigned": true, "kinds": kinds}]});
    let objects = [object("b", rule(&["filter"])), object("a", rule(&["health"]))];
    let read = read_objects(&objects);
    let [first, second] = &read[..] else { panic!("{read:?}") };
    assert_eq!((first.name.as_str(), first.mistakes.len()), ("a", 0));
    let kinds = first.rules[0].terms.as_ref().unwrap().kinds.clone().unwrap();
    assert!(kinds.contains(&CallKind::Health));
    assert!(second.rules.is_empty());
    assert_eq!(
        mistakes(second),
        [
            "spec.rules[0].images: \"r.io\" has a rule already in PluginTrust a spec.rules[0]; put its keys into that one"
        ]
    );
}

#[test]
fn identities_need_a_trusted_root_and_a_mistake_leaves_the_other_signers() {
    let identity = |subject: &str| json!({"issuer": "https://issuer.example.com", "subject": subject});
    let root = json!({
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "certificateAuthorities": [{}],
        "tlogs": [{}],
    })
    .to_string();
    let check = |trusted_root: Value, identities: Value, expected: &[&str], counted: usize| {
        let rule = json!({"images": "r.io", "keys": [{"name": "team", "pem": pem()}], "identities": identities});
        let read = read(json!({"rules": [rule], "trustedRoot": trusted_root}));
        let found = mistakes(&read);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "no {expected:?} in: {found}");
        }
        let signers = read.rules[0].signers.as_ref().unwrap();
        assert_eq!((signers.keys.len(), signers.identities.len()), (1, counted), "{read:?}");
    };
    check(json!({"json": root}), json!([identity("a"), identity("b")]), &[], 2);
    check(
        json!({"json": root}),
        json!([identity(""), identity("b")]),
        &["spec.rules[0].identities[0]: subject is empty"],
        1,
    );
    check(
        Value::Null,
        json!([identity("a")]),
        &["spec.rules[0].identities: need a valid spec.trustedRoot"],
        0,
    );
    let without = "spec.rules[0].identities: need a valid";
    let broken = [
        (json!({"file": "a.json"}), "spec.trustedRoot.file: is for trust files"),
        (json!({}), "spec.trustedRoot.json: is missing"),
        (json!({"json": "x"}), "spec.trustedRoot.json: is not JSON"),
        (json!({"text": "x"}), "spec.trustedRoot.text: unknown field"),
    ];
    for (root, expected) in broken {
        check(root, json!([identity("a")]), &[expected, without], 0);
    }
}
