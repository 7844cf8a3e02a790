//! Checks that the roles of each mode match `host/controllers/src/permissions.rs`, and that this file covers every
//! controller and every kind.

use std::collections::BTreeSet;
use std::fs;

use self::permissions::{Mode, Place, Rule};
use super::{at, one_yaml, path, text, yaml};

#[path = "../../../../host/controllers/src/permissions.rs"]
#[expect(unreachable_pub, reason = "the program's own file, which is public there")]
pub(crate) mod permissions;
#[path = "../../../../host/controllers/src/roles.rs"]
#[expect(unreachable_pub, reason = "the program's own file, which is public there")]
mod roles;

/// Environment variable that rewrites the manifests instead of comparing them.
const UPDATE: &str = "UPDATE_RBAC";
const FOLDER: &str = "host/deploy/chart/rbac";

/// Returns the manifest of a mode with a note about its origin.
fn manifest(mode: Mode) -> String {
    let text = roles::roles(mode, roles::NAMESPACE);
    let (head, documents) = text.split_once("---\n").unwrap();
    format!(
        "{head}# Generated from host/controllers/src/permissions.rs by `{UPDATE}=1 cargo test -p bulkhead-tidy`.\n\
         ---\n{documents}"
    )
}

#[test]
fn the_account_is_that_of_the_roles() {
    let account = roles::account(roles::NAMESPACE);
    let written = text(&format!("{FOLDER}/account.yaml"));
    assert!(
        written.contains(account.trim_start_matches("---\n")),
        "{FOLDER}/account.yaml lacks:\n{account}"
    );
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
    assert!(
        stale.is_empty(),
        "{UPDATE}=1 cargo test -p bulkhead-tidy rewrites: {}",
        stale.join(", ")
    );
}

#[test]
fn every_mode_can_be_applied_by_its_folder() {
    for mode in Mode::ALL {
        let kustomization = one_yaml(&format!("{FOLDER}/{}/kustomization.yaml", mode.name()));
        assert_eq!(
            kustomization["resources"],
            serde_json::json!(["rbac.yaml"]),
            "{}",
            mode.name()
        );
        for document in yaml(&format!("{FOLDER}/{}/rbac.yaml", mode.name())) {
            let kind = at(&document, "/kind");
            assert!(
                ["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"].contains(&kind),
                "{kind}"
            );
        }
    }
}

/// Returns the quoted names that follow a text in a file.
fn quoted_after(name: &str, before: &str) -> Vec<String> {
    let source = text(name);
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    source
        .split(before)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
        .collect()
}

#[test]
fn every_controller_has_a_duty_in_mode_all() {
    let source = text("host/controllers/src/manager.rs");
    let list = source
        .split("static CONTROLLERS")
        .nth(1)
        .and_then(|rest| rest.split("];").next())
        .unwrap_or_default();
    let controllers: Vec<_> = list
        .split("(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(controllers.len() > 10, "{controllers:?}");
    let duties: BTreeSet<_> = Mode::All.duties().iter().map(|duty| duty.name).collect();
    let missing: Vec<_> = controllers
        .iter()
        .filter(|controller| !duties.contains(*controller))
        .collect();
    assert!(
        missing.is_empty(),
        "host/controllers/src/permissions.rs does not know {missing:?}"
    );
}

#[test]
fn every_kind_that_the_program_uses_is_read_and_no_other() {
    let kinds = "host/api/src/kinds.rs";
    let registered: BTreeSet<_> = quoted_after(kinds, "group: \"")
        .into_iter()
        .zip(quoted_after(kinds, "plural: \""))
        .collect();
    assert!(registered.len() > 10, "{registered:?}");
    let groups: BTreeSet<_> = registered.iter().map(|(group, _)| group.as_str()).collect();
    let rules = Mode::All.duties().iter().flat_map(|duty| duty.rules);
    let read: BTreeSet<_> = rules
        .filter(|rule| rule.verbs.contains(&"watch") && groups.contains(rule.group))
        .map(|rule| (rule.group.to_owned(), rule.resource.to_owned()))
        .collect();
    assert_eq!(read, registered);
}

/// A process that only interprets decides about no binding.
#[test]
fn mode_interpret_reads_no_bindings_and_no_works() {
    let rules = Mode::Interpret.duties().iter().flat_map(|duty| duty.rules);
    let read: Vec<_> = rules.filter(|rule| rule.group == "work.karmada.io").collect();
    assert!(read.is_empty(), "{read:?}");
}

#[test]
fn the_role_of_queries_allows_every_path_of_the_endpoint_and_nothing_else() {
    let role = one_yaml(&format!("{FOLDER}/queries.yaml"));
    assert_eq!(
        (at(&role, "/kind"), at(&role, "/metadata/name")),
        ("ClusterRole", "bulkhead-queries")
    );
    let paths = quoted_after("host/server/src/queries/mod.rs", "&str = \"");
    assert!(paths.len() == 2, "{paths:?}");
    assert_eq!(
        role["rules"],
        serde_json::json!([{"nonResourceURLs": paths, "verbs": ["get"]}])
    );
}

#[test]
fn everyone_who_may_view_a_namespace_may_read_records_of_failovers_and_nothing_else() {
    let role = one_yaml(&format!("{FOLDER}/view.yaml"));
    assert_eq!(
        (at(&role, "/kind"), at(&role, "/metadata/name")),
        ("ClusterRole", "bulkhead-view")
    );
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    assert_eq!(role["metadata"]["labels"][label], "true");
    let written = Mode::All.duties().iter().find(|duty| duty.name == "failoverRecord");
    let kinds: BTreeSet<_> = written.unwrap().rules.iter().map(|rule| rule.resource).collect();
    let resources: BTreeSet<_> = role["rules"][0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|plural| plural.as_str())
        .collect();
    assert_eq!(resources, kinds);
    assert_eq!(role["rules"].as_array().unwrap().len(), 1);
    assert_eq!(role["rules"][0]["apiGroups"], serde_json::json!(["bulkhead.dev"]));
    assert_eq!(role["rules"][0]["verbs"], serde_json::json!(["get", "list", "watch"]));
}

#[test]
fn administrators_of_trust_have_a_role_that_no_role_of_namespaces_includes() {
    let role = one_yaml(&format!("{FOLDER}/trust.yaml"));
    assert_eq!(at(&role, "/metadata/name"), "bulkhead-trust-admin");
    let labels = role["metadata"]["labels"].to_string();
    assert!(
        !labels.contains("kubernetes.io/aggregate-to"),
        "owners of namespaces do not decide about trust: {labels}"
    );
    assert_eq!(role["rules"][0]["resources"], serde_json::json!(["plugintrusts"]));
    assert_eq!(role["rules"][1]["verbs"], serde_json::json!(["get", "list", "watch"]));
}

/// After a conflict the object is read, so a role without `get` would meet a refusal that costs a retry.
#[test]
fn a_role_may_get_what_it_changes() {
    // A server-side apply and an event are not repeated on a fresh copy.
    let is_applied = |rule: &Rule| rule.verbs == ["create", "patch"];
    let changes = |rule: &Rule| rule.verbs.iter().any(|verb| ["patch", "update"].contains(verb)) && !is_applied(rule);
    let of = |rule: &Rule| {
        let resource = rule.resource.split('/').next().unwrap_or_default();
        (rule.group, resource, rule.place, rule.object)
    };
    let mut seen = 0;
    for mode in Mode::ALL {
        let rules: Vec<_> = mode.duties().iter().flat_map(|duty| duty.rules).collect();
        for changed in rules.iter().filter(|rule| changes(rule)) {
            let is_read = rules
                .iter()
                .any(|rule| of(rule) == of(changed) && rule.verbs.contains(&"get"));
            assert!(is_read, "{}: {changed:?} needs get", mode.name());
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} rules change an object");
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
    // Every writing mode reports the state of plugins and of their trust, and those that evict the steps of failovers.
    let tells = |rule: &Rule| {
        let reports = [
            "plugins/status",
            "plugintrusts/status",
            "events",
            "failoverrecords",
            "clusterfailoverrecords",
        ];
        reports.contains(&rule.resource)
    };
    // A review stores nothing.
    let reviews =
        |rule: &Rule| ["tokenreviews", "subjectaccessreviews"].contains(&rule.resource) && rule.verbs == ["create"];
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
                || reviews(rule)
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
