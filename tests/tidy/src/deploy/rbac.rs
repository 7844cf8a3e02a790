//! Checks that the roles of each mode match `host/controllers/src/permissions.rs`, and that this file covers every
//! controller and every kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use self::permissions::{Duty, Mode, Place, Rule};
use super::{at, one_yaml, path, text, yaml};

#[path = "../../../../host/controllers/src/permissions.rs"]
#[expect(unreachable_pub, reason = "the program's own file, which is public there")]
mod permissions;

/// Environment variable that rewrites the manifests instead of comparing them.
const UPDATE: &str = "UPDATE_RBAC";
/// Namespace of the Lease and of the account in the manifests. Helm and kustomize replace it.
const NAMESPACE: &str = "karmada-system";
const FOLDER: &str = "host/deploy/chart/rbac";
/// Verbs, in output order.
const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// All permissions of one mode on one kind of object.
struct Merged {
    rule: Rule,
    verbs: BTreeSet<usize>,
    /// Components that need these verbs, with the purpose.
    notes: Vec<String>,
}

fn merged(mode: Mode, place: Place) -> Vec<Merged> {
    let mut all: Vec<Merged> = Vec::new();
    let rules = |duty: &'static Duty| duty.rules.iter().map(|rule| (duty.name, *rule));
    for (duty, rule) in mode.duties().iter().flat_map(rules).filter(|(_, rule)| rule.place == place) {
        let known = |known: &Merged| {
            let (known, rule) = (&known.rule, &rule);
            (known.group, known.resource, known.object) == (rule.group, rule.resource, rule.object)
        };
        let index = all.iter().position(known).unwrap_or_else(|| {
            all.push(Merged { rule, verbs: BTreeSet::new(), notes: Vec::new() });
            all.len() - 1
        });
        let Some(entry) = all.get_mut(index) else { continue };
        for verb in rule.verbs {
            let rank = VERBS.iter().position(|known| known == verb);
            entry.verbs.insert(rank.unwrap_or_else(|| panic!("{verb} is no verb")));
        }
        entry.notes.push(format!("{duty}, {}: {}", rule.verbs.join(" "), rule.why));
    }
    all
}

fn role(mode: Mode, place: Place) -> Option<String> {
    let rules = merged(mode, place);
    let name = format!("bulkhead-{}", mode.name());
    let (kind, namespace) = match place {
        Place::Everywhere => ("ClusterRole", None),
        Place::LeaseNamespace => ("Role", Some(NAMESPACE)),
        Place::Namespace(namespace) => ("Role", Some(namespace)),
    };
    // The role for the Lease has its own name, because its namespace may be one that other roles use.
    let name = if place == Place::LeaseNamespace { format!("{name}-lease") } else { name };
    let mut out = String::new();
    let metadata = |out: &mut String| {
        let _ = writeln!(out, "metadata:\n  name: {name}");
        if let Some(namespace) = namespace {
            let _ = writeln!(out, "  namespace: {namespace}");
        }
        let _ = writeln!(out, "  labels:\n    app.kubernetes.io/name: bulkhead\n    app.kubernetes.io/component: rbac");
    };
    let _ = writeln!(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}");
    metadata(&mut out);
    out.push_str("rules:\n");
    for Merged { rule, verbs, notes } in &rules {
        for note in notes {
            let _ = writeln!(out, "# {note}");
        }
        let verbs: Vec<_> = verbs.iter().filter_map(|rank| VERBS.get(*rank).copied()).collect();
        let _ = writeln!(out, "- apiGroups: [\"{}\"]\n  resources: [\"{}\"]", rule.group, rule.resource);
        if let Some(object) = rule.object {
            let _ = writeln!(out, "  resourceNames: [\"{object}\"]");
        }
        let _ = writeln!(out, "  verbs: [{}]", verbs.join(", "));
    }
    let _ = writeln!(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding");
    metadata(&mut out);
    let _ = writeln!(out, "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}");
    let _ = writeln!(out, "subjects:\n- kind: ServiceAccount\n  name: bulkhead\n  namespace: {NAMESPACE}");
    (!rules.is_empty()).then_some(out)
}

fn manifest(mode: Mode) -> String {
    let rules = mode.duties().iter().flat_map(|duty| duty.rules);
    let places: BTreeSet<_> = rules.map(|rule| rule.place).collect();
    let roles: String = places.into_iter().filter_map(|place| role(mode, place)).collect();
    format!(
        "# Permissions of `bulkhead run` in mode {} on its control plane, for the account {NAMESPACE}/bulkhead.\n\
         # The comments above each rule name the parts of the program that need it, their verbs and the purpose.\n\
         # Generated from host/controllers/src/permissions.rs by `{UPDATE}=1 cargo test -p bulkhead-tidy`.\n{roles}",
        mode.name(),
    )
}

#[test]
fn the_roles_are_those_that_the_program_says_it_needs() {
    let mut stale = Vec::new();
    for mode in Mode::ALL {
        let (name, wanted) = (format!("{FOLDER}/{}/rbac.yaml", mode.name()), manifest(mode));
        if std::env::var_os(UPDATE).is_some() {
            fs::create_dir_all(path(&name).parent().unwrap()).unwrap();
            fs::write(path(&name), &wanted).unwrap();
        }
        if fs::read_to_string(path(&name)).unwrap_or_default() != wanted {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "{UPDATE}=1 cargo test -p bulkhead-tidy rewrites: {}", stale.join(", "));
}

#[test]
fn every_mode_can_be_applied_by_its_folder() {
    for mode in Mode::ALL {
        let kustomization = one_yaml(&format!("{FOLDER}/{}/kustomization.yaml", mode.name()));
        assert_eq!(kustomization["resources"], serde_json::json!(["rbac.yaml"]), "{}", mode.name());
        for document in yaml(&format!("{FOLDER}/{}/rbac.yaml", mode.name())) {
            let kind = at(&document, "/kind");
            assert!(["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"].contains(&kind), "{kind}");
        }
    }
}

/// Returns the quoted names that follow a text in a file.
fn quoted_after(name: &str, before: &str) -> Vec<String> {
    let source = text(name);
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    source.split(before).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[test]
fn every_controller_has_a_duty_in_mode_all() {
    let source = text("host/controllers/src/manager.rs");
    let list = source.split("const CONTROLLERS").nth(1).and_then(|rest| rest.split("];").next()).unwrap_or_default();
    let controllers: Vec<_> = list.split("(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(controllers.len() > 10, "{controllers:?}");
    let duties: BTreeSet<_> = Mode::All.duties().iter().map(|duty| duty.name).collect();
    let missing: Vec<_> = controllers.iter().filter(|controller| !duties.contains(*controller)).collect();
    assert!(missing.is_empty(), "host/controllers/src/permissions.rs does not know {missing:?}");
}

#[test]
fn every_kind_that_the_program_uses_is_read_and_no_other() {
    let kinds = "host/api/src/kinds.rs";
    let registered: BTreeSet<_> =
        quoted_after(kinds, "group: \"").into_iter().zip(quoted_after(kinds, "plural: \"")).collect();
    assert!(registered.len() > 10, "{registered:?}");
    let informers = Mode::All.duties().iter().find(|duty| duty.name == "informers").unwrap();
    let read: BTreeSet<_> =
        informers.rules.iter().map(|rule| (rule.group.to_owned(), rule.resource.to_owned())).collect();
    assert_eq!(read, registered);
}

/// Broader permissions need the operator's consent. This test lists the permissions that only mode `all` may have.
#[test]
fn no_mode_but_all_reads_secrets_or_templates_or_writes_anything_else() {
    // Bulkhead's own objects: selected by name, or created and therefore without a name (the Lease, the webhook
    // certificate).
    let own = |rule: &Rule| {
        rule.object.is_some()
            || (rule.place == Place::LeaseNamespace && rule.verbs.iter().all(|verb| *verb == "create"))
    };
    let reads = |rule: &Rule| {
        rule.verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb))
            && !["*", "secrets"].contains(&rule.resource)
    };
    // Every writing mode reports the state of plugins.
    let tells = |rule: &Rule| ["plugins/status", "events"].contains(&rule.resource);
    let allowed = |mode: Mode, rule: &Rule| match mode {
        Mode::All => true,
        Mode::Report => reads(rule),
        Mode::Interpret => own(rule) || reads(rule) || tells(rule),
        Mode::Finish | Mode::Evict => {
            let resource = rule.resource.split('/').next().unwrap_or_default();
            let wanted = ["resourcebindings", "clusterresourcebindings"];
            let evicts = mode == Mode::Evict && ["clusters", "clusterdrains"].contains(&resource);
            own(rule)
                || reads(rule)
                || tells(rule)
                || ((wanted.contains(&resource) || evicts) && !rule.verbs.contains(&"delete"))
        }
    };
    for mode in Mode::ALL {
        for duty in mode.duties() {
            for rule in duty.rules {
                assert!(allowed(mode, rule), "{}: {} {rule:?}", mode.name(), duty.name);
            }
        }
    }
}
