//! Manifests of the account and the roles of each mode, made from [`permissions`](super::permissions).
//!
//! `host/deploy/chart/rbac` has them for the namespace `karmada-system`, and `tests/tidy` compares. `bulkhead account`
//! prints and applies them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::permissions::{Duty, Mode, Place, Rule};

/// Default namespace of the account and of the Lease.
pub const NAMESPACE: &str = "karmada-system";
/// Name of the account.
pub const ACCOUNT: &str = "bulkhead";

const LABELS: &str = "  labels:\n    app.kubernetes.io/name: bulkhead\n    app.kubernetes.io/component: rbac\n";
/// Verbs, in output order.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// All permissions of one mode on one kind of object.
struct Merged {
    rule: Rule,
    /// Verbs with their position in the output.
    verbs: BTreeSet<(usize, &'static str)>,
    /// Components that need these verbs, with the purpose.
    notes: Vec<String>,
}

fn merged(mode: Mode, place: Place) -> Vec<Merged> {
    let mut all: Vec<Merged> = Vec::new();
    let rules = |duty: &'static Duty| duty.rules.iter().map(|rule| (duty.name, *rule));
    for (duty, rule) in mode
        .duties()
        .iter()
        .flat_map(rules)
        .filter(|(_, rule)| rule.place == place)
    {
        let known = |known: &Merged| {
            let (known, rule) = (&known.rule, &rule);
            (known.group, known.resource, known.object) == (rule.group, rule.resource, rule.object)
        };
        let index = all.iter().position(known).unwrap_or_else(|| {
            all.push(Merged {
                rule,
                verbs: BTreeSet::new(),
                notes: Vec::new(),
            });
            all.len() - 1
        });
        let Some(entry) = all.get_mut(index) else { continue };
        let rank = |verb: &str| VERBS.iter().position(|known| *known == verb).unwrap_or(VERBS.len());
        entry.verbs.extend(rule.verbs.iter().map(|verb| (rank(verb), *verb)));
        entry
            .notes
            .push(format!("{duty}, {}: {}", rule.verbs.join(" "), rule.why));
    }
    all
}

/// Returns the name of a role and its binding. Accounts of different namespaces have roles of their own: the namespace
/// is part of the name, unless it is the default one. A mode and a namespace contain no dot.
fn role_name(mode: Mode, place: Place, account_namespace: &str) -> String {
    // The role for the Lease has its own name, because its namespace may be one that other roles use.
    let lease = if place == Place::LeaseNamespace { "-lease" } else { "" };
    let name = format!("bulkhead-{}{lease}", mode.name());
    if account_namespace == NAMESPACE {
        name
    } else {
        format!("{name}.{account_namespace}")
    }
}

fn role(mode: Mode, place: Place, account_namespace: &str) -> String {
    let name = role_name(mode, place, account_namespace);
    let (kind, namespace) = match place {
        Place::Everywhere => ("ClusterRole", None),
        Place::LeaseNamespace => ("Role", Some(account_namespace)),
        Place::Namespace(namespace) => ("Role", Some(namespace)),
    };
    let mut out = String::new();
    let metadata = |out: &mut String| {
        let _ = writeln!(out, "metadata:\n  name: {name}");
        if let Some(namespace) = namespace {
            let _ = writeln!(out, "  namespace: {namespace}");
        }
        out.push_str(LABELS);
    };
    let _ = writeln!(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}");
    metadata(&mut out);
    out.push_str("rules:\n");
    for Merged { rule, verbs, notes } in merged(mode, place) {
        for note in notes {
            let _ = writeln!(out, "# {note}");
        }
        let verbs: Vec<_> = verbs.into_iter().map(|(_, verb)| verb).collect();
        let _ = writeln!(
            out,
            "- apiGroups: [\"{}\"]\n  resources: [\"{}\"]",
            rule.group, rule.resource
        );
        if let Some(object) = rule.object {
            let _ = writeln!(out, "  resourceNames: [\"{object}\"]");
        }
        let _ = writeln!(out, "  verbs: [{}]", verbs.join(", "));
    }
    let _ = writeln!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding"
    );
    metadata(&mut out);
    let _ = writeln!(
        out,
        "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}"
    );
    let _ = writeln!(
        out,
        "subjects:\n- kind: ServiceAccount\n  name: {ACCOUNT}\n  namespace: {account_namespace}"
    );
    out
}

/// Returns the ServiceAccount as a YAML document.
pub fn account(namespace: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {ACCOUNT}\n  namespace: {namespace}\n{LABELS}\
         automountServiceAccountToken: false\n"
    )
}

/// Returns the roles of a mode and their bindings as YAML documents, for the account in `namespace`.
pub fn roles(mode: Mode, namespace: &str) -> String {
    let rules = mode.duties().iter().flat_map(|duty| duty.rules);
    let places: BTreeSet<_> = rules.map(|rule| rule.place).collect();
    let roles: String = places.into_iter().map(|place| role(mode, place, namespace)).collect();
    format!(
        "# Permissions of `bulkhead run` in mode {} on its control plane, for the account {namespace}/{ACCOUNT}.\n\
         # The comments above each rule name the parts of the program that need it, their verbs and the purpose.\n\
         {roles}",
        mode.name(),
    )
}
