//! `bulkhead plugin push`, `pull`, `save`, `load`, `list`, `sign` and `verify` against a registry in process.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use crate::registry::{Authentication, Fault, Registry};

/// Registry, and a folder with the script `mine` and keys.
struct Place {
    registry: Registry,
    folder: PathBuf,
}

/// Result of a command.
struct Ended {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl Place {
    fn new(name: &str, authentication: Authentication) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("images-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("docker")).unwrap();
        let place = Self {
            registry: Registry::start(authentication),
            folder,
        };
        let host = place.registry.address.to_string();
        let config = format!(r#"{{"auths": {{"{host}": {{"username": "user", "password": "password"}}}}}}"#);
        place.write("docker/config.json", &config);
        for name in ["team", "other"] {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
            place.write(&format!("{name}.key"), &pair.serialize_pem());
            place.write(&format!("{name}.pub"), &pair.public_key_pem());
        }
        let rule = format!("rules: [{{images: '{host}', keys: [{{name: team, file: team.pub}}]}}]\n");
        place.write(
            "trust.yaml",
            &format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\n{rule}"),
        );
        place.succeeds(&["new", "mine", "--kind", "eviction-check", "--lang", "lua"]);
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    fn image(&self) -> String {
        self.registry.image("plugins/mine:1")
    }

    /// Runs `bulkhead plugin`. The commands of images get their arguments.
    fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, &[])
    }

    /// Does the same with more environment variables.
    fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = super::bulkhead();
        command.arg("plugin").args(arguments).current_dir(&self.folder);
        if !["new", "test"].contains(&arguments[0]) {
            command.args(["--plain-http", &self.registry.address.to_string()]);
            if !arguments.contains(&"--image-cache") {
                command.args(["--image-cache", "cache"]);
            }
        }
        let output = command
            .env("DOCKER_CONFIG", self.folder.join("docker"))
            .env_remove("COSIGN_PASSWORD")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let Output { status, stdout, stderr } = output;
        Ended {
            code: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            errors: String::from_utf8(stderr).unwrap(),
        }
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let Ended { code, out, errors } = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {out}{errors}");
        out
    }

    /// Checks that a command ends with a code and a message.
    fn fails(&self, arguments: &[&str], expected: i32, part: &str) {
        let Ended { code, out, errors } = self.run(arguments);
        assert_eq!(code, Some(expected), "{arguments:?}: {out}{errors}");
        let text = out + &errors;
        assert!(text.contains(part), "{arguments:?}: no {part:?} in: {text}");
    }
}

#[test]
fn a_plugin_is_pushed_and_pulled() {
    let place = Place::new("push", Authentication::Token);
    let image = place.image();
    let pushed = place.succeeds(&["push", &image, "mine", "--licence", "Apache-2.0"]);
    let prefix = format!("{}@sha256:", place.registry.image("plugins/mine"));
    assert!(pushed.starts_with(&prefix) && pushed.lines().count() == 1, "{pushed}");
    assert_eq!(
        place.succeeds(&["push", &image, "mine", "--licence", "Apache-2.0"]),
        pushed,
        "it has one digest"
    );
    assert_eq!(place.succeeds(&["pull", &image, "--file", "pulled.lua"]), pushed);
    let code = |name: &str| fs::read_to_string(place.folder.join(name)).unwrap();
    assert_eq!(code("pulled.lua"), code("mine/mine.lua"));
    let data: Value = serde_json::from_str(&place.succeeds(&["pull", pushed.trim(), "-o", "json"])).unwrap();
    assert_eq!(data["engine"], "lua");
    assert_eq!(data["annotations"]["org.opencontainers.image.licenses"], "Apache-2.0");
    assert_eq!(data["annotations"]["dev.bulkhead.plugin.kinds"], "eviction-check");
    assert_eq!(
        place.registry.count("GET /v2/plugins/mine/blobs/"),
        2,
        "code and configuration, once"
    );
    let list: Value = serde_json::from_str(&place.succeeds(&["list", "-o", "json"])).unwrap();
    assert_eq!(list[0]["image"], image.as_str());
    assert!(place.succeeds(&["list"]).contains(&image));
    // The tag moves.
    place.write("mine/mine.lua", &format!("{}\n-- another\n", code("mine/mine.lua")));
    let another = place.succeeds(&["push", &image, "mine"]);
    let Ended { out, errors, .. } = place.run(&["pull", &image]);
    assert_eq!(out, another);
    assert!(
        errors.contains("warning: the tag") && errors.contains("has moved from sha256:"),
        "{errors}"
    );
}

#[test]
fn a_mirror_stands_in_for_a_registry() {
    let place = Place::new("mirror", Authentication::Token);
    let pushed = place.succeeds(&["push", &place.image(), "mine"]);
    let (_, digest) = pushed.trim().split_once('@').unwrap();
    let mirrors = format!("registry.invalid/team={}/plugins", place.registry.address);
    let pinned = format!("registry.invalid/team/mine@{digest}");
    let pulled = place.succeeds(&["pull", &pinned, "--registry-mirrors", &mirrors]);
    assert_eq!(pulled.trim(), pinned, "it keeps its own name");
    let tagged = [
        "pull",
        "registry.invalid/team/mine:1",
        "--registry-mirrors",
        &mirrors,
        "--registry-mirror-tags",
        "true",
    ];
    assert_eq!(place.succeeds(&tagged).trim(), pinned);
    let invalid = ["pull", &pinned, "--registry-mirrors", "registry.invalid"];
    place.fails(&invalid, 2, "mirror \"registry.invalid\": write PREFIX=MIRROR");
}

#[test]
fn a_key_that_cosign_has_encrypted_signs() {
    let place = Place::new("encrypted", Authentication::Basic);
    let (image, label) = (place.image(), "ENCRYPTED SIGSTORE PRIVATE KEY");
    place.succeeds(&["push", &image, "mine"]);
    let body = include_str!("../../../oci/tests/data/encrypted-key.b64");
    place.write(
        "cosign.key",
        &format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n"),
    );
    place.write("cosign.pub", include_str!("../../../oci/tests/data/encrypted-key.pub"));
    let sign = ["sign", image.as_str(), "--key", "cosign.key"];
    place.fails(
        &sign,
        2,
        "cosign.key: is encrypted; COSIGN_PASSWORD has to have its password",
    );
    let sign = |password: &str| place.run_with(&sign, &[("COSIGN_PASSWORD", password)]);
    let wrong = sign("wrong");
    assert_eq!(wrong.code, Some(2), "{}", wrong.errors);
    assert!(
        wrong.errors.contains("cosign.key: cannot be decrypted"),
        "{}",
        wrong.errors
    );
    let signed = sign("correct horse");
    assert_eq!(signed.code, Some(0), "{}", signed.errors);
    place.succeeds(&["verify", &image, "--key", "cosign.pub"]);
}

#[test]
fn a_component_is_pushed_with_its_interfaces() {
    let place = Place::new("component", Authentication::None);
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let guest = workspace
        .join("target/guests/deployment-health.wasm")
        .display()
        .to_string();
    let image = place.registry.image("plugins/health:1");
    let pushed = place.succeeds(&["push", &image, &guest]);
    place.succeeds(&["pull", &image, "--file", "pulled.wasm"]);
    assert_eq!(
        fs::read(place.folder.join("pulled.wasm")).unwrap(),
        fs::read(guest).unwrap()
    );
    let manifest = place.registry.manifest("plugins/health", "1").unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert!(
        manifest["annotations"]["dev.bulkhead.plugin.contract"].is_string(),
        "{manifest}"
    );
    assert!(pushed.contains("plugins/health@sha256:"));
}

#[test]
fn plugins_are_carried_to_a_site_without_a_registry() {
    let place = Place::new("layout", Authentication::None);
    let image = place.image();
    let pushed = place.succeeds(&["push", &image, "mine"]);
    place.succeeds(&["sign", &image, "--key", "team.key"]);
    assert_eq!(place.succeeds(&["save", "mine.tar", &image]), "mine.tar: 1 images\n");
    place.succeeds(&["save", "layout/", &image]);
    place.registry.fail("", Fault::Status(503), usize::MAX);
    let loaded = place.succeeds(&[
        "load",
        "mine.tar",
        "--image-cache",
        "site",
        "--plugin-trust",
        "trust.yaml",
    ]);
    assert_eq!(loaded, pushed);
    assert_eq!(
        place.succeeds(&["load", "layout", "--image-cache", "other-site"]),
        pushed
    );
    let pulled = [
        "pull",
        pushed.trim(),
        "--image-cache",
        "site",
        "--plugin-trust",
        "trust.yaml",
    ];
    assert_eq!(place.succeeds(&pulled), pushed, "also its signature is in the archive");
    place.fails(
        &["pull", &image, "--image-cache", "site"],
        2,
        "the registry has failed (503)",
    );
    place.write("torn.tar", "no archive");
    place.fails(&["load", "torn.tar"], 2, "torn.tar: ");
}

#[test]
fn signatures_are_required_as_soon_as_there_is_trust() {
    let place = Place::new("sign", Authentication::Basic);
    let image = place.image();
    let pushed = place.succeeds(&["push", &image, "mine"]);
    let trusted = ["pull", &image, "--plugin-trust", "trust.yaml"];
    place.fails(&trusted, 2, "is not trusted: it has no signature");
    place.fails(&["verify", &image, "--key", "team.pub"], 1, "it has no signature");
    place.succeeds(&["sign", &image, "--key", "other.key"]);
    place.fails(&trusted, 2, "none of its 1 signatures is by team");
    assert_eq!(place.succeeds(&["sign", pushed.trim(), "--key", "team.key"]), pushed);
    assert_eq!(place.succeeds(&trusted), pushed);
    let verified = place.succeeds(&["verify", &image, "--plugin-trust", "trust.yaml"]);
    assert_eq!(verified, format!("{} is signed by team\n", pushed.trim()));
    let data = place.succeeds(&["verify", &image, "--key", "other.pub", "-o", "json"]);
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(
        (&data["trusted"], &data["signer"]),
        (&Value::Bool(true), &Value::from("other.pub"))
    );
    place.write(
        "trust.yaml",
        "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: []\n",
    );
    place.fails(&trusted, 2, "no rule trusts ");
}

#[test]
fn an_identity_needs_an_issuer_and_a_trusted_root() {
    let place = Place::new("identity", Authentication::Basic);
    let image = place.image();
    place.succeeds(&["push", &image, "mine"]);
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&pair).unwrap().pem();
    let certificate: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let chain = json!({"certificates": [{"rawBytes": certificate}]});
    let authority = json!([{"uri": "https://ca.example.com", "certChain": chain}]);
    let root = json!({
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "certificateAuthorities": authority,
        "timestampAuthorities": authority,
    });
    place.write("root.json", &root.to_string());
    place.write("broken.json", "{}");
    let identity = ["verify", &image, "--certificate-identity", "team@example.com"];
    let issuer = ["--certificate-oidc-issuer", "https://issuer.example.com"];
    place.fails(&identity, 2, "--certificate-oidc-issuer");
    let named = [&identity[..], &issuer].concat();
    place.fails(&named, 2, "--trusted-root");
    place.fails(
        &[&named[..], &["--trusted-root", "broken.json"]].concat(),
        2,
        "broken.json: has the media type",
    );
    let whole = [&named[..], &["--trusted-root", "root.json"]].concat();
    place.fails(&whole, 1, "it has no signature");
    place.succeeds(&["sign", &image, "--key", "team.key"]);
    place.fails(
        &whole,
        1,
        "none of its 1 signatures is by team@example.com (https://issuer.example.com)",
    );
    place.succeeds(&[&whole[..], &["--key", "team.pub"]].concat());
    let without = ["verify", &image, "--trusted-root", "root.json"];
    place.fails(
        &[&without[..], &issuer].concat(),
        2,
        "name the subject with --certificate-identity or --certificate-identity-regexp",
    );
}

#[test]
fn a_conformance_report_is_attached_and_required() {
    let place = Place::new("report", Authentication::Token);
    let image = place.image();
    let pushed = place.succeeds(&["push", &image, "mine"]);
    let rule = "keys: [{file: team.pub}], requireConformance: 0.1.0";
    let host = place.registry.address;
    place.write(
        "trust.yaml",
        &format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules: [{{images: '{host}', {rule}}}]\n"),
    );
    let trusted = ["pull", &image, "--plugin-trust", "trust.yaml"];
    place.succeeds(&["sign", &image, "--key", "team.key"]);
    let missing = "it has no conformance report that a key of the rule has signed";
    place.fails(&trusted, 2, missing);
    let report = place.succeeds(&["test", "mine", "-o", "json"]);
    let attach = |report: &str, key: &str| {
        place.write("report.json", report);
        place.run(&["sign", &image, "--key", key, "--report", "report.json"])
    };
    let refused = |report: &str, part: &str| {
        let Ended { code, errors, .. } = attach(report, "team.key");
        assert!(code == Some(2) && errors.contains(part), "no {part:?} in: {errors}");
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut data: Value = serde_json::from_str(&report).unwrap();
        change(&mut data);
        data.to_string()
    };
    refused("text", "report.json is not JSON");
    refused("{}", "report.json: is not a conformance report");
    refused(
        &changed(&|data| data["passed"] = false.into()),
        "the report has failed checks",
    );
    refused(
        &changed(&|data| data["sha256"] = "ab".into()),
        "is about code with SHA-256 ab",
    );
    assert_eq!(attach(&report, "other.key").code, Some(0));
    place.fails(&trusted, 2, missing);
    assert_eq!(attach(&report, "team.key").code, Some(0));
    assert_eq!(place.succeeds(&trusted), pushed);
}

#[test]
fn unusable_input_ends_with_2_and_a_reason() {
    let place = Place::new("mistakes", Authentication::Basic);
    let image = place.image();
    place.fails(
        &["pull", "mine:1"],
        2,
        "it has no registry; write REGISTRY/REPOSITORY:TAG",
    );
    place.fails(
        &["pull", &place.registry.image("plugins/mine")],
        2,
        "it names no version",
    );
    place.fails(&["pull", &image], 2, "does not have it (404)");
    place.fails(
        &["sign", &image, "--key", "team.pub"],
        2,
        "team.pub: is not a private key in PEM",
    );
    place.fails(&["verify", &image], 2, "name the keys that may have signed with --key");
    place.fails(
        &["verify", &image, "--key", "team.key"],
        2,
        "team.key: is not a public key in PEM",
    );
    place.fails(&["push", &image, "gone.lua"], 2, "gone.lua");
    place.write("docker/config.json", r#"{"auths": {}}"#);
    place.fails(&["push", &image, "mine"], 2, "the registry requires credentials (401)");
    let host = place.registry.address.to_string();
    let helper = format!(r#"{{"credHelpers": {{"{host}": "bulkhead-test-absent"}}}}"#);
    place.write("docker/config.json", &helper);
    place.fails(
        &["pull", &image],
        2,
        "cannot run docker-credential-bulkhead-test-absent",
    );
}
