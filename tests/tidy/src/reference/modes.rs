//! The page about modes has the controllers and the permissions of each mode.

use std::collections::{BTreeMap, BTreeSet};

use super::{golden, read};
use crate::deploy::rbac::permissions::{Mode, Place};

const MANAGER: &str = "host/controllers/src/manager.rs";
const CONTROLLERS: &str = "host/controllers/src";

/// Returns the text of the list of controllers.
fn list(source: &str) -> &str {
    source
        .split("static CONTROLLERS")
        .nth(1)
        .and_then(|rest| rest.split_once("= &["))
        .and_then(|(_, rest)| rest.split("];").next())
        .unwrap_or_default()
}

/// Returns the name and the module of each controller.
fn controllers(source: &str) -> Vec<(String, String)> {
    let entry = |entry: &str| {
        let (name, rest) = entry.trim().strip_prefix('(')?.split_once(", ")?;
        let module = rest.split_once("Box::pin(")?.1.split_once("::")?.0;
        let name = match name.strip_prefix('"') {
            Some(name) => name.trim_end_matches('"'),
            None => source
                .split_once(&format!("const {name}: &str = \""))?
                .1
                .split('"')
                .next()?,
        };
        Some((name.to_owned(), module.to_owned()))
    };
    list(source).split("}),").filter_map(entry).collect()
}

/// Returns the first sentence of a module's documentation, without its origin in Karmada.
fn task(module: &str) -> String {
    let file = [
        format!("{CONTROLLERS}/{module}.rs"),
        format!("{CONTROLLERS}/{module}/mod.rs"),
    ];
    let file = file.iter().find(|file| crate::root().join(file).is_file());
    let source = read(file.unwrap_or_else(|| panic!("there is no module {module}")));
    let lines = source.lines().map_while(|line| line.strip_prefix("//! "));
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text
        .split(" (Karmada:")
        .next()
        .unwrap_or_default()
        .split(". ")
        .next()
        .unwrap_or_default();
    assert!(!text.is_empty(), "{module} has no documentation");
    golden::prose(text.trim_end_matches('.'))
}

/// Returns true if a mode runs a controller. Mode `report` runs those of mode `evict`.
fn runs(mode: Mode, controller: &str) -> bool {
    let deciding = if mode == Mode::Report { Mode::Evict } else { mode };
    deciding.duties().iter().any(|duty| duty.name == controller)
}

fn controller((name, module): &(String, String)) -> Vec<String> {
    let modes = Mode::ALL.into_iter().filter(|mode| runs(*mode, name));
    let modes: Vec<_> = modes.map(|mode| format!("`{}`", mode.name())).collect();
    vec![format!("`{name}`"), task(module), modes.join(", ")]
}

/// Rules with one place, group, resource and object.
type Key = (Place, &'static str, &'static str, Option<&'static str>);

/// Returns a row for each kind of object with the verbs of each mode.
fn permissions() -> Vec<Vec<String>> {
    let mut all: BTreeMap<Key, BTreeMap<Mode, BTreeSet<&'static str>>> = BTreeMap::new();
    for mode in Mode::ALL {
        for rule in mode.duties().iter().flat_map(|duty| duty.rules) {
            let modes = all
                .entry((rule.place, rule.group, rule.resource, rule.object))
                .or_default();
            modes.entry(mode).or_default().extend(rule.verbs.iter().copied());
        }
    }
    let mut rows = Vec::new();
    for ((place, group, resource, object), modes) in all {
        let place = match place {
            Place::Everywhere => "–".to_owned(),
            Place::LeaseNamespace => "of the Lease".to_owned(),
            Place::Namespace(name) => format!("`{name}`"),
        };
        let kind = if group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        let kind = object.map_or_else(|| format!("`{kind}`"), |object| format!("`{kind}` `{object}`"));
        let verbs = |mode: Mode| {
            let verbs: Vec<_> = modes.get(&mode).into_iter().flatten().copied().collect();
            if verbs.is_empty() {
                "–".to_owned()
            } else {
                verbs.join(" ")
            }
        };
        rows.push([kind, place].into_iter().chain(Mode::ALL.map(verbs)).collect());
    }
    rows
}

#[test]
fn the_page_of_modes_has_the_controllers_and_permissions_of_the_program() {
    let source = read(MANAGER);
    let controllers = controllers(&source);
    let count = list(&source).matches("Box::pin(").count();
    assert!(
        count > 10 && controllers.len() == count,
        "{count} controllers, found {controllers:?}"
    );
    let rows: Vec<_> = controllers.iter().map(controller).collect();
    let mut head = vec!["object", "namespace"];
    head.extend(Mode::ALL.map(Mode::name));
    let parts = [
        ("controllers", golden::table(&["controller", "task", "modes"], &rows)),
        ("permissions", golden::table(&head, &permissions())),
    ];
    golden::check("modes-and-roles.md", &parts);
}
