//! Rehearsals on folders of objects: `goldens/rehearsal/NAME/*.yaml` is a control plane; its expected output is
//! `NAME.txt` and `NAME.json` beside the folder. `UPDATE_GOLDENS=1` writes the expected output anew.

use std::fs;
use std::sync::Arc;

use bulkhead_apiserver::{ApiServer, Clock, Contents, Options, ResourceKind, kinds};
use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::permissions::Mode;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Engine, Registry, limits_of_files, read_documents};
use bulkhead_simulator::takeover::Effect;
use serde_json::{Value, json};

use super::super::gather::copy;
use super::super::{Gathered, rehearse};
use super::*;

/// Returns the objects of a folder.
fn objects(name: &str) -> Vec<Value> {
    let folder = folder().join("rehearsal").join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        read_documents::<Value>(&path.display().to_string(), &text, &limits_of_files())
            .unwrap()
            .documents
    };
    paths.into_iter().flat_map(read).collect()
}

/// Creates a control plane with these objects.
fn control_plane(now: Time, objects: Vec<Value>) -> ApiServer {
    let registered = |info: &bulkhead_api::KindInfo| {
        let kind = if info.namespaced {
            ResourceKind::namespaced(info.group, info.version, info.kind, info.plural)
        } else {
            ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural)
        };
        if info.status_subresource {
            kind.with_status()
        } else {
            kind
        }
    };
    let hub = ApiServer::new(Options {
        kinds: kinds::kubernetes()
            .into_iter()
            .chain(REGISTERED.iter().map(registered))
            .collect(),
        ..Options::new("hub", 1, Clock::new(now.timestamp()))
    });
    let version = u64::try_from(objects.len()).unwrap();
    let numbered = |(index, mut object): (usize, Value)| {
        object["metadata"]["resourceVersion"] = json!((index + 1).to_string());
        object
    };
    let objects = objects.into_iter().enumerate().map(numbered).collect();
    let left_out = hub.restore(Contents { version, objects });
    assert!(left_out.is_empty(), "{left_out:?}");
    hub
}

/// Returns the facts of an installation that would start in a mode, without any problem.
fn installation(mode: Mode) -> Facts {
    let mut facts = read("sound");
    facts.served = everything();
    facts.installation.modes = vec![mode.name().to_owned()];
    let all = bulkhead_controllers::controller_names();
    let of_mode = all.filter(|name| mode.duties().iter().any(|duty| duty.name == *name));
    facts.installation.controllers = of_mode.map(str::to_owned).collect();
    facts
}

fn registry(flags: &Flags) -> Arc<Registry> {
    let engines: Vec<Arc<dyn Engine>> = vec![Arc::new(LuaEngine::default())];
    Arc::new(bulkhead_defaults::registry::build(flags, engines))
}

/// Rehearses a mode on the objects of a folder, as the command does. Checks that the control plane got no writes.
fn rehearsed(mode: Mode, objects: Vec<Value>) -> Facts {
    let mut facts = installation(mode);
    let hub = control_plane(facts.now, objects);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let copy = runtime.block_on(async { copy(&hub.client(), &mut facts).await });
    let registry = registry(&facts.installation.flags);
    let facts = rehearse(Gathered {
        copy: copy.map(|copy| (copy, registry)),
        facts,
    });
    assert_eq!(hub.writes().len(), 0, "{:?}", hub.writes());
    facts
}

/// Compares the output of a rehearsal with its golden files.
fn check(name: &str, mode: Mode) -> (Facts, Section) {
    let facts = rehearsed(mode, objects(name));
    let sections: Vec<_> = checks::all(&facts)
        .into_iter()
        .filter(|section| section.check == checks::REHEARSAL)
        .collect();
    let text = anstream::adapter::strip_str(&report::text(name, &sections)).to_string();
    let data = format!("{:#}\n", report::data(name, &sections));
    for (file, printed) in [(format!("{name}.txt"), text), (format!("{name}.json"), data)] {
        compare(&folder().join("rehearsal").join(file), &printed);
    }
    let section = sections.into_iter().next().unwrap();
    (facts, section)
}

fn effects(facts: &Facts) -> Vec<Effect> {
    let changes = facts.rehearsal.iter().flat_map(|outcome| &outcome.changes);
    changes.map(|change| change.effect).collect()
}

/// A Work has another image than its template, as if a program that Bulkhead does not replace had written it; two
/// others are as Karmada makes them.
#[test]
fn a_work_that_would_be_rewritten_is_an_error_with_a_diff() {
    let (facts, section) = check("over", Mode::All);
    let errors: Vec<_> = section
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    assert_eq!(errors.len(), 1, "{section:#?}");
    let image = "spec.template.spec.containers[0].image";
    assert_eq!(
        errors[0].diff,
        [
            format!("- {image}: \"registry.example/nginx:1\""),
            format!("+ {image}: \"nginx:1\"")
        ]
    );
    assert!(
        errors[0].what.contains("last written by karmada-controller-manager"),
        "{errors:?}"
    );
    assert!(!report::is_sound(&[section]));
    let rewritten = |effect: &&Effect| **effect == Effect::Rewritten;
    assert_eq!(effects(&facts).iter().filter(rewritten).count(), 1);
}

/// A cluster is lost and tainted: mode evict would move its workloads, mode finish would not.
#[test]
fn evictions_of_a_mode_are_warnings_with_an_example() {
    let (_, section) = check("storm", Mode::Evict);
    let evictions: Vec<_> = section
        .findings
        .iter()
        .filter(|finding| finding.what == "an eviction would begin")
        .collect();
    assert!(
        matches!(evictions.as_slice(), [one] if one.severity == Severity::Warning && one.place.starts_with("2 Res")),
        "{section:#?}"
    );
    assert!(report::is_sound(&[section]), "warnings are no errors");
    let finish = rehearsed(Mode::Finish, objects("storm"));
    assert!(effects(&finish).is_empty(), "{finish:#?}");
}

#[test]
fn objects_that_cannot_be_read_are_not_rehearsed() {
    let mut facts = installation(Mode::Evict);
    facts.unread = vec![Unread {
        check: checks::REHEARSAL.to_owned(),
        what: "works".to_owned(),
        why: "works.work.karmada.io is forbidden".to_owned(),
        answered: true,
    }];
    let sections = checks::all(&facts);
    let section = sections
        .iter()
        .find(|section| section.check == checks::REHEARSAL)
        .unwrap();
    assert!(section.summary.starts_with("skipped"), "{section:?}");
    assert_eq!(section.findings.len(), 1);
    facts.unread.clear();
    let sections = checks::all(&facts);
    assert!(sections.iter().all(|section| section.check != checks::REHEARSAL));
}
