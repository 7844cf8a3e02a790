//! Checks of facts that were written by hand. Each installation in `goldens` is `NAME.facts.yaml`; its expected
//! output is `NAME.txt` and `NAME.json`. `UPDATE_GOLDENS=1` writes the expected output anew.

mod rehearsal;

use std::fs;
use std::path::{Path, PathBuf};

use bulkhead_api::REGISTERED;

use super::facts::{Facts, NO_ADDRESS, Permission, Served, Unread};
use super::finding::{Section, Severity};
use super::{about, checks, report};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/doctor/goldens")
}

fn read(name: &str) -> Facts {
    let path = folder().join(format!("{name}.facts.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all kinds that `bulkhead crds` installs, as discovery reports them.
fn everything() -> Vec<Served> {
    let one = |info: &bulkhead_api::KindInfo| {
        let status = info.status_subresource.then(|| format!("{}/status", info.plural));
        let resources = std::iter::once(info.plural.to_owned()).chain(status).collect();
        Served {
            group: info.group.to_owned(),
            version: info.version.to_owned(),
            resources,
        }
    };
    REGISTERED.iter().map(one).collect()
}

/// Compares the output with the golden files. An installation that lists no served kinds has all of them.
fn check(name: &str) -> Vec<Section> {
    let mut facts = read(name);
    if facts.served.is_empty() {
        facts.served = everything();
    }
    let sections = checks::all(&facts);
    let about = about(&facts).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let text = anstream::adapter::strip_str(&report::text(&about, &sections)).to_string();
    let data = format!("{:#}\n", report::data(&about, &sections));
    for (file, printed) in [(format!("{name}.txt"), text), (format!("{name}.json"), data)] {
        compare(&folder().join(file), &printed);
    }
    sections
}

/// Compares an output with its golden file.
fn compare(path: &Path, printed: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(path, printed).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        printed == expected,
        "{} is\n{expected}\nand the program says\n{printed}",
        path.display()
    );
}

fn errors(sections: &[Section]) -> Vec<String> {
    let findings = sections.iter().flat_map(|section| &section.findings);
    findings
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.place.clone())
        .collect()
}

#[test]
fn a_sound_installation_has_no_findings() {
    let sections = check("sound");
    assert!(
        sections.iter().all(|section| section.findings.is_empty()),
        "{sections:#?}"
    );
}

/// A partial installation: a role lacks a verb, one kind is missing, another has a different version, plugins do not
/// load.
#[test]
fn an_incomplete_installation_is_reported_with_the_missing_parts() {
    let errors = errors(&check("half-installed"));
    for place in [
        "patch clusters.cluster.karmada.io",
        "evictionpauses.bulkhead.dev",
        "clustertaintpolicies.policy.karmada.io",
        "plugin freeze",
    ] {
        assert!(errors.iter().any(|error| error == place), "{place}: {errors:?}");
    }
}

/// Two programs write the same fields, clocks differ, certificates expire, and members are unreachable.
#[test]
fn expiring_certificates_and_other_writers_are_reported() {
    let errors = errors(&check("worn-out"));
    for part in [
        "Lease",
        "spec.gracefulEvictionTasks",
        "https://karmada",
        "client certificate",
        "cluster member2",
    ] {
        assert!(errors.iter().any(|error| error.contains(part)), "{part}: {errors:?}");
    }
}

/// Everything is installed, but no failover can act: each policy is reported with the switch that is off.
#[test]
fn failover_that_can_never_act_is_reported_with_the_switch_that_is_off() {
    let sections = check("never-acts");
    let failover = sections
        .iter()
        .find(|section| section.check == checks::FAILOVER)
        .unwrap();
    let printed: Vec<_> = failover.findings.iter().map(|finding| finding.what.as_str()).collect();
    for part in [
        "the feature gate Failover is off",
        "NoExecute taints evict nothing",
        "the rate of evictions is 0",
        "tolerate cluster.karmada.io/not-ready:NoExecute without a time limit",
        "no interpreter reports the health of shop.example.io/v1 Till",
        "names only member1",
        "purgeMode Never",
    ] {
        assert!(printed.iter().any(|what| what.contains(part)), "{part}: {printed:#?}");
    }
}

/// An unreachable control plane is one error, and checks that depend on it are skipped.
#[test]
fn a_control_plane_that_does_not_answer_is_the_only_error() {
    let sections = check("out-of-reach");
    assert_eq!(errors(&sections), ["https://karmada:5443/"]);
}

/// A control plane that serves no access reviews is one warning.
#[test]
fn unverifiable_verbs_are_one_warning() {
    let verb = |number: usize| Permission {
        verb: "get".to_owned(),
        resource: format!("r{number}"),
        namespace: String::new(),
        object: None,
        why: Vec::new(),
        allowed: None,
    };
    let printed = |verbs: usize| {
        let mut facts = read("sound");
        facts.permissions = (0..verbs).map(verb).collect();
        let sections = checks::all(&facts);
        let section = sections
            .into_iter()
            .find(|section| section.check == checks::PERMISSIONS)
            .unwrap();
        assert!(
            section
                .findings
                .iter()
                .all(|finding| finding.severity == Severity::Warning),
            "{section:#?}"
        );
        section
            .findings
            .into_iter()
            .map(|finding| finding.place)
            .collect::<Vec<_>>()
    };
    assert_eq!(printed(61), ["61 verbs"]);
    assert_eq!(printed(2), ["get r0", "get r1"]);
}

/// Without a kubeconfig, skipped checks name the kubeconfig as the reason, not the control plane.
#[test]
fn a_kubeconfig_that_cannot_be_read_is_what_the_rest_waits_for() {
    let mut facts = read("out-of-reach");
    NO_ADDRESS.clone_into(&mut facts.control_plane.address);
    let sections = checks::all(&facts);
    let kinds = sections.iter().find(|section| section.check == checks::KINDS).unwrap();
    assert_eq!(kinds.summary, "skipped: there is no usable kubeconfig");
}

/// An aggregated API that is down is an error with its name, regardless of other findings.
#[test]
fn an_api_that_does_not_answer_is_an_error_with_its_name() {
    let mut facts = read("sound");
    facts.served = everything();
    facts.served.retain(|served| served.group != "cluster.karmada.io");
    let unread = |check: &str, what: &str, answered| Unread {
        check: check.to_owned(),
        what: what.to_owned(),
        why: "GET /apis/cluster.karmada.io/v1alpha1: no answer within 10s".to_owned(),
        answered,
    };
    facts.unread = vec![unread(checks::KINDS, "cluster.karmada.io/v1alpha1", false)];
    let sections = checks::all(&facts);
    assert_eq!(errors(&sections), ["cluster.karmada.io/v1alpha1"], "{sections:#?}");
    let text = report::text("", &sections)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains("no answer within 10s"), "{text}");
    let summary = |sections: &[Section], check: &str| {
        let section = sections.iter().find(|section| section.check == check);
        section.unwrap().summary.clone()
    };
    assert!(
        summary(&sections, checks::KINDS).ends_with(", 1 are not known"),
        "{sections:#?}"
    );
    facts.unread = vec![unread(checks::MEMBERS, "clusters", true)];
    facts.served = everything();
    facts.members.clear();
    let sections = checks::all(&facts);
    assert!(report::is_sound(&sections), "a request that is refused is a note");
    // Clusters that cannot be read are not taken for none.
    assert_eq!(
        summary(&sections, checks::MEMBERS),
        "not known, because they cannot be read"
    );
    let text = report::text("", &sections);
    assert!(!text.contains("there is no member cluster"), "{text}");
}

/// Objects that only Karmada acts upon prevent mode all, unless they are ignored.
#[test]
fn objects_of_karmadas_controllers_are_an_error_unless_they_are_ignored() {
    let mut facts = read("sound");
    facts.served = everything();
    facts.unimplemented = vec!["FederatedResourceQuota shop/team".to_owned()];
    let sections = checks::all(&facts);
    assert_eq!(errors(&sections), ["mode all"]);
    let findings: Vec<_> = sections.iter().flat_map(|section| &section.findings).collect();
    assert!(
        findings[0].what.contains("upon FederatedResourceQuota shop/team"),
        "{findings:?}"
    );
    facts.installation.flags.ignore_unimplemented = true;
    let sections = checks::all(&facts);
    assert_eq!(errors(&sections), [""; 0]);
    assert!(
        sections
            .iter()
            .any(|section| section.findings.iter().any(|finding| finding.place == "mode all"))
    );
}

/// An unknown health stays until its object changes. A kind without an interpreter has one finding, not two.
#[test]
fn a_health_that_is_unknown_for_long_is_a_warning() {
    let warnings = |mode: &str, kind: &str, has_interpreter: bool| {
        let mut facts = read("sound");
        facts.served = everything();
        facts.installation.modes = vec![mode.to_owned()];
        let unknown = serde_json::json!({
            "apiVersion": "apps/v1", "kind": kind, "works": 60, "since": "2026-01-01T00:00:00Z",
            "example": {"namespace": "karmada-es-member1", "name": "till"},
        });
        facts.unknown_health = vec![serde_json::from_value(unknown).unwrap()];
        facts.kinds.retain(|known| known.kind != kind);
        if !has_interpreter {
            let known = serde_json::json!({"apiVersion": "apps/v1", "kind": kind, "served": true});
            facts.kinds.push(serde_json::from_value(known).unwrap());
        }
        let sections = checks::all(&facts);
        let section = sections
            .into_iter()
            .find(|section| section.check == checks::INTERPRETERS);
        let findings = section.unwrap().findings.into_iter();
        findings
            .map(|finding| (finding.what, finding.remedy))
            .collect::<Vec<_>>()
    };
    let beside = warnings("finish", "Deployment", true);
    assert!(
        matches!(beside.as_slice(), [(what, remedy)] if what.contains("in 60 Works is Unknown")
            && remedy.contains("restart karmada-controller-manager")),
        "{beside:?}"
    );
    let alone = warnings("all", "Deployment", true);
    assert!(
        matches!(alone.as_slice(), [(_, remedy)] if remedy.starts_with("read the log")),
        "{alone:?}"
    );
    let without = warnings("finish", "Till", false);
    assert!(
        matches!(without.as_slice(), [(what, _)] if what.starts_with("no interpreter")),
        "{without:?}"
    );
}

#[test]
fn several_processes_may_report() {
    let summary = |mode: &str| {
        let mut facts = read("sound");
        (facts.installation.modes, facts.installation.lease) = (vec![mode.to_owned()], None);
        let sections = checks::all(&facts);
        sections
            .into_iter()
            .find(|section| section.check == checks::OWNERS)
            .unwrap()
            .summary
    };
    assert!(summary("report").ends_with("several processes may run"));
    assert_eq!(summary("evict"), "no election: there must be one process only");
}
