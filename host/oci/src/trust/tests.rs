use std::path::Path;

use bulkhead_core::manifest::trust::object::{TrustObject, read_objects};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use super::*;
use crate::signature::authority::{Authority, ISSUER, SUBJECT, Signing};
use crate::signature::{CONFORMANCE, SigningKey};

fn parse(rules: &str) -> Result<Trust, TrustError> {
    let text = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules:\n{rules}");
    Trust::parse("trust.yaml", &text, Path::new("/nowhere"))
}

fn image(text: &str) -> Reference {
    text.parse().unwrap()
}

#[test]
fn the_longest_prefix_counts_and_an_image_without_a_rule_is_refused() {
    let trust = parse(
        "- {images: r.io/plugins/, unsigned: true}\n\
         - {images: r.io/plugins/team, unsigned: true, kinds: [health], requireDigest: true}\n",
    )
    .unwrap();
    let check = |text: &str, expected: Result<bool, &str>| match (trust.requirements(&image(text)), expected) {
        (Ok(requirements), Ok(is_limited)) => assert_eq!(requirements.kinds.is_some(), is_limited, "{text}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "no {part:?} in: {error}"),
        (found, _) => panic!("{text}: {found:?}"),
    };
    let digest = Digest::of(b"x");
    check("r.io/plugins/a:1", Ok(false));
    check(&format!("r.io/plugins/team/a@{digest}"), Ok(true));
    check(&format!("r.io/plugins/team@{digest}"), Ok(true));
    check("r.io/plugins/teams:1", Ok(false));
    check(
        "r.io/plugins/team/a:1",
        Err("r.io/plugins/team/a:1 has no digest, which requireDigest demands"),
    );
    check(
        "r.io/plugins-of-others/a:1",
        Err("trust.yaml: no rule trusts r.io/plugins-of-others/a"),
    );
    check("other.io/a:1", Err("no rule trusts other.io/a"));
}

#[test]
fn a_rule_limits_budgets() {
    let trust = parse("- {images: r.io, unsigned: true, maxBudget: {steps: 5, wallClockMs: 100}}\n").unwrap();
    let grant = trust.requirements(&image("r.io/a:1")).unwrap().into_grant();
    assert_eq!(grant.rule, "trust.yaml rule \"r.io\"");
    let limits = grant.max_budget;
    assert_eq!(
        (limits.steps, limits.wall_clock_ms, limits.memory_bytes),
        (Some(5), Some(100), None)
    );
    let check = |limits: &str, part: &str| {
        let rule = format!("- {{images: r.io, unsigned: true, maxBudget: {limits}}}\n");
        let message = parse(&rule).unwrap_err().to_string();
        assert!(message.contains(part), "no {part:?} in: {message}");
    };
    check(
        "{memoryBytes: 0}",
        "maxBudget.memoryBytes is 0, so that no plugin could answer",
    );
    check("{replyBytes: 1}", "replyBytes");
    check("{steps: -1}", "maxBudget");
}

#[test]
fn a_rule_limits_plugins_to_a_tenant() {
    let grant = |rule: &str| {
        let trust = parse(&format!("- {{images: r.io, unsigned: true, {rule}}}\n"))?;
        Ok::<_, TrustError>(trust.requirements(&image("r.io/a:1")).unwrap().into_grant())
    };
    let all = grant("namespaces: [team-a, 'team-a-*']").unwrap();
    let tenancy = all.tenancy.unwrap();
    assert!(
        ["team-a", "team-a-web"]
            .iter()
            .all(|name| tenancy.namespaces.iter().any(|one| one.matches(name)))
    );
    assert_eq!(all.kinds, Some(BTreeSet::from(Tenancy::KINDS)));
    let health = grant("namespaces: [team-a], kinds: [health]").unwrap();
    assert_eq!(health.kinds, Some(BTreeSet::from([CallKind::Health])));
    let check = |rule: &str, part: &str| {
        let message = grant(rule).unwrap_err().to_string();
        assert!(message.contains(part), "no {part:?} in: {message}");
    };
    check(
        "namespaces: []",
        "namespaces is empty, so that no plugin could be asked",
    );
    check("namespaces: [Team]", "\"Team\" is not a name");
    check(
        "namespaces: [team-a], kinds: [health, cluster-taint]",
        "kinds has cluster-taint, and the plugins of namespaces may only answer health and eviction-check",
    );
}

#[test]
fn a_key_of_the_rule_must_have_signed() {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let pem = pair.public_key_pem().replace('\n', "\n      ");
    let trust = parse(&format!(
        "- images: r.io\n  keys:\n  - name: team\n    pem: |\n      {pem}\n"
    ))
    .unwrap();
    let (image, digest) = (image("r.io/a:1"), Digest::of(b"manifest"));
    let signing = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let signature = signing.sign(&image, &digest).unwrap();
    let requirements = trust.requirements(&image).unwrap();
    assert!(requirements.needs_signature());
    let code = Digest::of(b"code");
    let signer = requirements.verify(&image, &digest, &code, &[signature]).unwrap();
    assert_eq!(signer.as_deref(), Some("team"));
    let error = requirements
        .verify(&image, &digest, &code, &[])
        .unwrap_err()
        .to_string();
    let expected = format!("trust.yaml rule \"r.io\": r.io/a@{digest} is not trusted: it has no signature");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn mistakes_name_the_rule_and_the_remedy() {
    let check = |rules: &str, part: &str| {
        let message = parse(rules).unwrap_err().to_string();
        assert!(message.contains(part), "{rules}: no {part:?} in: {message}");
    };
    check("- {images: r.io}", "trust.yaml:4:3: rules[0]: needs either keys");
    check(
        "- {images: r.io, unsigned: true, keys: [{file: a.pub}]}",
        "rules[0]: needs either keys",
    );
    check(
        "- {images: 'oci://r.io', unsigned: true}",
        "is not a registry or a repository",
    );
    check("- {images: r.io, unsigned: true, kinds: []}", "kinds is empty");
    check(
        "- {images: r.io, unsigned: true, requireConformance: 0.1.0}",
        "requireConformance needs keys",
    );
    check(
        "- {images: r.io, keys: [{file: a.pub}], requireConformance: '0.1'}",
        "requireConformance \"0.1\" is not a version of the contract",
    );
    check(
        "- {images: r.io, unsigned: true, kind: [health]}",
        "rules[0].kind: unknown field, did you mean kinds?",
    );
    check(
        "- {images: r.io, keys: [{name: a}]}",
        "rules[0].keys[0]: needs exactly one of file and pem",
    );
    check("- {images: r.io, keys: [{file: a.pub}]}", "cannot read /nowhere/a.pub");
    check(
        "- {images: r.io, keys: [{pem: x}]}",
        "rules[0].keys[0].pem: is not a public key in PEM",
    );
    check(
        "- {images: r.io, unsigned: true}\n- {images: r.io/, unsigned: true}",
        "rules[1]: images \"r.io\" has a rule",
    );
    let other = Trust::parse("t", "apiVersion: v1\nkind: PluginTrust\nrules: []", Path::new("."));
    assert!(
        other
            .unwrap_err()
            .to_string()
            .contains("a trust file is bulkhead.dev/v1alpha1 PluginTrust")
    );
}

#[test]
fn a_revoked_digest_is_refused_in_spite_of_its_signature() {
    let rules = "- {images: r.io, unsigned: true}\n";
    let digests = [Digest::of(b"manifest"), Digest::of(b"code")];
    let check = |revoked: &Digest, part: Option<&str>| {
        let trust = parse(&format!(
            "{rules}revoked:\n- {{digest: '{revoked}', reason: CVE-2026-1}}\n"
        ))
        .unwrap();
        let image = image("r.io/a:1");
        let requirements = trust.requirements(&image).unwrap();
        let verified = requirements.verify(&image, &digests[0], &digests[1], &[]);
        match part {
            None => assert_eq!(verified, Ok(None)),
            Some(part) => {
                let message = verified.unwrap_err().to_string();
                assert!(message.contains(part), "no {part:?} in: {message}");
            }
        }
    };
    check(&Digest::of(b"other"), None);
    check(&digests[0], Some("it is revoked by digest: CVE-2026-1; list an image"));
    check(&digests[1], Some("its code is revoked by digest: CVE-2026-1"));
    let mistake = parse(&format!("{rules}revoked: [{{digest: abc}}]"))
        .unwrap_err()
        .to_string();
    assert!(
        mistake.starts_with("trust.yaml:5:11: revoked[0].digest: \"abc\" is not a digest"),
        "{mistake}"
    );
}

#[test]
fn a_signed_conformance_report_is_required() {
    let pairs = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap());
    let [key, other] = [0, 1].map(|at| SigningKey::parse("key.pem", &pairs[at].serialize_pem()).unwrap());
    let pem = pairs[0].public_key_pem().replace('\n', "\n      ");
    let trust = parse(&format!(
        "- images: r.io\n  requireConformance: 0.2.0\n  keys:\n  - pem: |\n      {pem}\n"
    ))
    .unwrap();
    let (image, digest, code) = (image("r.io/a:1"), Digest::of(b"manifest"), Digest::of(b"code"));
    let requirements = trust.requirements(&image).unwrap();
    let report = |key: &SigningKey, digest: &Digest, contract: &str, passed: bool| {
        let predicate = serde_json::json!({"contract": contract, "passed": passed, "checks": []});
        key.attest(digest, CONFORMANCE, &predicate).unwrap()
    };
    let check = |report: Option<Signature>, part: Option<&str>| {
        let mut signatures = vec![key.sign(&image, &digest).unwrap()];
        signatures.extend(report);
        let verified = requirements.verify(&image, &digest, &code, &signatures);
        assert_eq!(requirements.lacks_signatures(&digest, &signatures), part.is_some());
        match (verified, part) {
            (Ok(found), None) => assert!(found.is_some()),
            (Err(error), Some(part)) => {
                let message = error.to_string();
                assert!(
                    message.contains(part) && message.contains("(ConformanceMissing)"),
                    "{message}"
                );
            }
            (found, part) => panic!("{found:?}, not {part:?}"),
        }
    };
    let contract = "bulkhead:policy@0.2.0";
    check(Some(report(&key, &digest, contract, true)), None);
    check(Some(report(&key, &digest, "bulkhead:policy@1.0.0", true)), None);
    let missing = Some("it has no conformance report that a key of the rule has signed");
    check(None, missing);
    check(Some(report(&other, &digest, contract, true)), missing);
    check(Some(report(&key, &Digest::of(b"other"), contract, true)), missing);
    check(Some(report(&key, &digest, contract, false)), Some("has failed checks"));
    check(
        Some(report(&key, &digest, "bulkhead:policy@0.1.9", true)),
        Some("is of bulkhead:policy@0.1.9, and requireConformance demands 0.2.0"),
    );
    // A report alone is no signature.
    let alone = [report(&key, &digest, contract, true)];
    let error = requirements
        .verify(&image, &digest, &code, &alone)
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has no signature"), "{error}");
}

/// Returns the rules of objects with these specs, by name.
fn objects(specs: &[(&str, Value)]) -> ObjectTrust {
    let object = |(name, spec): &(&str, Value)| TrustObject {
        name: (*name).to_owned(),
        generation: 1,
        spec: spec.as_object().unwrap().clone(),
    };
    let all: Vec<_> = specs.iter().map(object).collect();
    ObjectTrust::of(read_objects(&all))
}

#[test]
fn the_file_comes_before_the_objects_and_one_object_denies_by_default() {
    let file = parse("- {images: r.io/file, unsigned: true, kinds: [filter]}\n").unwrap();
    let some = objects(&[
        (
            "b",
            json!({"rules": [{"images": "r.io/file/deep", "unsigned": true}, {"images": "r.io", "unsigned": true}]}),
        ),
        (
            "a",
            json!({"rules": [{"images": "r.io/a", "unsigned": true, "kinds": ["health"]}]}),
        ),
    ]);
    let (none, empty) = (ObjectTrust::default(), objects(&[("a", json!({"rules": []}))]));
    let check = |file: Option<&Trust>, objects: &ObjectTrust, name: &str, expected: Result<Option<&str>, &str>| {
        let found = requirements(file, objects, &image(&format!("{name}:1")));
        let found = found.map(|found| found.map(|found| found.origin));
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected, "{name}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "no {part:?} in: {error}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    };
    let of_file = Ok(Some("trust.yaml rule \"r.io/file\""));
    check(None, &none, "r.io/x", Ok(None));
    check(
        None,
        &empty,
        "r.io/x",
        Err("PluginTrust objects: no rule trusts r.io/x; add one"),
    );
    check(Some(&file), &none, "r.io/x", Err("trust.yaml: no rule trusts r.io/x"));
    check(
        Some(&file),
        &some,
        "other.io/x",
        Err("trust.yaml and the PluginTrust objects: no rule trusts other.io/x"),
    );
    check(Some(&file), &some, "r.io/file/x", of_file);
    // A longer prefix of an object does not count beside the file.
    check(Some(&file), &some, "r.io/file/deep/x", of_file);
    check(
        None,
        &some,
        "r.io/file/deep/x",
        Ok(Some("PluginTrust b rule \"r.io/file/deep\"")),
    );
    check(
        Some(&file),
        &some,
        "r.io/a/x",
        Ok(Some("PluginTrust a rule \"r.io/a\"")),
    );
    check(Some(&file), &some, "r.io/x", Ok(Some("PluginTrust b rule \"r.io\"")));
}

#[test]
fn a_mistake_in_an_object_opens_nothing() {
    let rules = objects(&[(
        "a",
        json!({"rules": [
            {"images": "r.io", "unsigned": true},
            {"images": "r.io/team", "unsigned": true, "kinds": ["healt"]},
            {"images": "r.io/keys", "keys": [{"pem": "x"}]},
        ]}),
    )]);
    let of = |name: &str| requirements(None, &rules, &image(name));
    assert!(of("r.io/other:1").unwrap().is_some());
    let message = of("r.io/team/a:1").unwrap_err().to_string();
    let part = "PluginTrust a rule \"r.io/team\": it has a mistake and trusts no image: spec.rules[1].kinds: unknown";
    assert!(
        message.contains(part) && message.contains("(TrustRuleInvalid)"),
        "{message}"
    );
    let without_keys = of("r.io/keys:1").unwrap().unwrap();
    let (digest, code) = (Digest::of(b"manifest"), Digest::of(b"code"));
    assert!(without_keys.verify(&image("r.io/keys:1"), &digest, &code, &[]).is_err());
    let unreadable = objects(&[("a", json!({"rule": 3}))]);
    assert!(requirements(None, &unreadable, &image("r.io/a:1")).is_err());
}

#[test]
fn revocations_of_the_file_and_of_objects_count_together() {
    let digests = [Digest::of(b"manifest"), Digest::of(b"code")];
    let revoked = |digest: &Digest| json!({"rules": [], "revoked": [{"digest": digest.to_string()}]});
    let of_object = objects(&[("a", revoked(&digests[0]))]);
    let file = parse(&format!(
        "- {{images: r.io, unsigned: true}}\nrevoked: [{{digest: '{}'}}]\n",
        digests[1]
    ))
    .unwrap();
    let check = |objects: &ObjectTrust, code: &Digest, part: Option<&str>| {
        let image = image("r.io/a:1");
        let found = requirements(Some(&file), objects, &image).unwrap().unwrap();
        let verified = found.verify(&image, &digests[0], code, &[]);
        let message = verified.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(part.unwrap_or_default()), "no {part:?} in: {message}");
        assert_eq!(message.is_empty(), part.is_none(), "{message}");
    };
    let other = Digest::of(b"other");
    check(&ObjectTrust::default(), &other, None);
    check(
        &ObjectTrust::default(),
        &digests[1],
        Some("its code is revoked by digest"),
    );
    check(&of_object, &other, Some("it is revoked by digest"));
}

#[test]
fn a_key_of_an_object_must_have_signed() {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let rules = objects(&[(
        "a",
        json!({"rules": [{"images": "r.io", "keys": [{"name": "team", "pem": pair.public_key_pem()}]}]}),
    )]);
    let (image, digest, code) = (image("r.io/a:1"), Digest::of(b"manifest"), Digest::of(b"code"));
    let signing = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let signature = signing.sign(&image, &digest).unwrap();
    let found = requirements(None, &rules, &image).unwrap().unwrap();
    let signer = found.verify(&image, &digest, &code, &[signature]).unwrap();
    assert_eq!(signer.as_deref(), Some("team"));
    assert!(found.verify(&image, &digest, &code, &[]).is_err());
}

#[test]
fn an_identity_of_a_file_or_an_object_must_have_signed_until_it_is_removed() {
    let authority = Authority::new();
    let (image, digest, code) = (image("r.io/a:1"), Digest::of(b"manifest"), Digest::of(b"code"));
    let signatures = authority.sign(&Signing::default(), &digest);
    let (root, signer) = (authority.root().to_string(), format!("{SUBJECT} ({ISSUER})"));
    let check = |found: Requirements, expected: Result<(), &str>| {
        assert_eq!(found.lacks_signatures(&digest, &signatures), expected.is_err());
        match (found.verify(&image, &digest, &code, &signatures), expected) {
            (Ok(found), Ok(())) => assert_eq!(found.as_deref(), Some(signer.as_str())),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "no {part:?} in: {error}"),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
    };
    let of_file = |identities: &str| {
        let text = format!(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\ntrustedRoot: {{json: '{root}'}}\n\
             rules:\n- {{images: r.io, identities: [{identities}]}}\n"
        );
        Trust::parse("trust.yaml", &text, Path::new("/nowhere"))
    };
    let identity = |subject: &str| format!("{{issuer: '{ISSUER}', subject: '{subject}'}}");
    let in_force = |identities: &str| of_file(identities).unwrap().requirements(&image).unwrap();
    check(in_force(&identity(SUBJECT)), Ok(()));
    check(in_force(&identity("other@example.com")), Err("(IdentityMismatch)"));
    let mistake = of_file(&format!("{{issuer: '{ISSUER}'}}")).unwrap_err().to_string();
    assert!(
        mistake.contains("rules[0].identities[0]: needs exactly one of subject and subjectRegex"),
        "{mistake}"
    );
    let of_object = |subject: &str| {
        let rule = json!({"images": "r.io", "identities": [{"issuer": ISSUER, "subjectRegex": subject}]});
        let rules = objects(&[("a", json!({"rules": [rule], "trustedRoot": {"json": root}}))]);
        requirements(None, &rules, &image).unwrap().unwrap()
    };
    check(of_object("https://git[.]example[.]com/acme/.*"), Ok(()));
    check(
        of_object("https://git[.]example[.]com/acme/"),
        Err("(IdentityMismatch)"),
    );
}

#[test]
fn the_trusted_root_of_a_file_is_read_and_required_by_identities() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.json");
    std::fs::write(&path, Authority::new().root().to_string()).unwrap();
    let check = |root: &str, expected: Result<(), &str>| {
        let text = format!(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\n{root}\n\
             rules: [{{images: r.io, identities: [{{issuer: '{ISSUER}', subject: a}}]}}]\n"
        );
        match (Trust::parse("trust.yaml", &text, folder.path()), expected) {
            (Ok(trust), Ok(())) => assert_eq!(trust.files(), std::slice::from_ref(&path)),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "no {part:?} in: {error}"),
            (found, _) => panic!("{root}: {found:?}"),
        }
    };
    check("trustedRoot: {file: root.json}", Ok(()));
    check("", Err("rules[0]: identities need trustedRoot"));
    check("trustedRoot: {file: gone.json}", Err("trustedRoot: cannot read "));
    check(
        "trustedRoot: {file: root.json, json: '{}'}",
        Err("trustedRoot: needs exactly one of file and json"),
    );
    check("trustedRoot: {json: '{}'}", Err("trustedRoot.json: has the media type"));
}

#[test]
fn an_identity_may_sign_the_conformance_report() {
    let authority = Authority::new();
    let (image, digest, code) = (image("r.io/a:1"), Digest::of(b"manifest"), Digest::of(b"code"));
    let rule = json!({
        "images": "r.io",
        "identities": [{"issuer": ISSUER, "subject": SUBJECT}],
        "requireConformance": "0.1.0",
    });
    let rules = objects(&[(
        "a",
        json!({"rules": [rule], "trustedRoot": {"json": authority.root().to_string()}}),
    )]);
    let found = requirements(None, &rules, &image).unwrap().unwrap();
    let report = Signing {
        predicate_type: CONFORMANCE.to_owned(),
        predicate: json!({"contract": "bulkhead:policy@0.1.0", "passed": true}),
        ..Signing::default()
    };
    let of_other = Signing {
        subject: "other@example.com".to_owned(),
        ..report.clone()
    };
    let verified = |report: &Signing| {
        let mut signatures = authority.sign(&Signing::default(), &digest);
        signatures.extend(authority.sign(report, &digest));
        found.verify(&image, &digest, &code, &signatures)
    };
    assert!(verified(&report).is_ok());
    let message = verified(&of_other).unwrap_err().to_string();
    assert!(message.contains("(ConformanceMissing)"), "{message}");
}
