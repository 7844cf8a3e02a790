//! Checks that the modules of a crate do not import each other in a circle.
//!
//! The rule holds at every level: of the modules in one parent, none imports another one that imports it, directly or
//! through others. The imports of a module include those of all modules inside of it, and so do its contents. An import
//! through a re-export counts as one of the module that has the item. A parent and its children are one unit to their
//! neighbours: a child may use items of its parent, and the parent those of its children.
//!
//! Names that come from a glob import are not followed. Tests do not count.

mod paths;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::MetadataCommand;

use self::paths::{Written, written};
use self::sources::{Module, modules};

/// Maximum number of re-exports between a name and its module.
const REEXPORTS_MAX: usize = 10;

/// Imports between the modules of one parent, each with the first path that makes it.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// Modules of a crate with the paths in their source.
struct Crate {
    written: BTreeMap<Module, Vec<Written>>,
    /// All modules, those without a file of their own included.
    modules: BTreeSet<Module>,
}

impl Crate {
    fn new(sources: Vec<(Module, String)>) -> Self {
        let mut found = BTreeMap::<Module, Vec<Written>>::new();
        for (module, source) in sources {
            found.entry(module).or_default().extend(written(&source));
        }
        let parents = |module: &Module| (0..=module.len()).map(|end| module[..end].to_vec()).collect::<Vec<_>>();
        Self {
            modules: found.keys().flat_map(parents).collect(),
            written: found,
        }
    }

    /// Returns the module in which a path ends; `depth` is the number of re-exports before it.
    fn module_of(&self, from: &Module, path: &[String], depth: usize) -> Module {
        let (mut module, mut rest) = (from.clone(), path);
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ => break,
            }
            rest = others;
        }
        while let [name, others @ ..] = rest {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            if !self.modules.contains(&child) {
                break;
            }
            (module, rest) = (child, others);
        }
        let reexport = rest.first().and_then(|name| {
            let imports = self.written.get(&module)?;
            imports.iter().find(|import| import.name.as_ref() == Some(name))
        });
        match reexport {
            Some(import) if depth < REEXPORTS_MAX && import.path.first() != rest.first() => {
                self.module_of(&module, &import.path, depth + 1)
            }
            _ => module,
        }
    }

    /// Returns the imports between the children of each module.
    fn graphs(&self) -> BTreeMap<Module, Graph> {
        let mut graphs = BTreeMap::<Module, Graph>::new();
        for (from, paths) in &self.written {
            for Written { path, .. } in paths {
                let Some(first) = path.first() else { continue };
                let is_own = self
                    .modules
                    .contains(&[from.as_slice(), std::slice::from_ref(first)].concat());
                if !is_own && !["crate", "self", "super"].contains(&first.as_str()) {
                    continue;
                }
                let to = self.module_of(from, path, 0);
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if let (Some(importing), Some(imported)) = (from.get(common), to.get(common)) {
                    let graph = graphs.entry(from[..common].to_vec()).or_default();
                    let edges = graph.entry(importing.clone()).or_default();
                    let by = || format!("{} by {}", from.join("::"), path.join("::"));
                    edges.entry(imported.clone()).or_insert_with(by);
                }
            }
        }
        graphs
    }
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(next) = open.pop() {
        for to in graph.get(&next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

/// Returns the largest sets of modules that all import each other, directly or not.
fn circles(graph: &Graph) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<_, _> = graph
        .keys()
        .map(|module| (module.clone(), reachable(graph, module)))
        .collect();
    let circle = |module: &String| -> Vec<String> {
        let mutual = reach[module]
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(module)));
        mutual.cloned().collect()
    };
    graph.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// Returns each circle of a crate with the imports that make it.
fn problems(name: &str, sources: Vec<(Module, String)>) -> Vec<String> {
    let mut problems = Vec::new();
    for (parent, graph) in Crate::new(sources).graphs() {
        for circle in circles(&graph) {
            let edges = circle
                .iter()
                .flat_map(|from| graph[from].iter().filter(|(to, _)| circle.contains(to)));
            let edges: Vec<_> = edges.map(|(to, by)| format!("{to} in {by}")).collect();
            let place = [&[name.to_owned()], parent.as_slice()].concat().join("::");
            let modules = circle.join(", ");
            problems.push(format!("{place}: {modules} import each other: {}", edges.join("; ")));
        }
    }
    problems
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let manifest = super::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    let of_package = |package: &cargo_metadata::Package| {
        let folder = package.manifest_path.parent().unwrap();
        problems(package.name.as_str(), modules(folder.join("src").as_std_path()))
    };
    let problems: Vec<_> = metadata.packages.iter().flat_map(of_package).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Returns the circles of a crate with these modules, each as the names of its modules.
fn circles_of(sources: &[(&str, &str)]) -> Vec<String> {
    let module = |path: &str| {
        path.split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let sources = sources
        .iter()
        .map(|(path, source)| (module(path), (*source).to_owned()));
    let graphs = Crate::new(sources.collect()).graphs();
    let circles = graphs.values().flat_map(circles);
    circles.map(|circle| circle.join(" ")).collect()
}

#[test]
fn modules_that_reach_each_other_are_a_circle() {
    let sources = [
        ("", "mod a; mod b; mod c; mod d; mod f; mod g;"),
        ("a", "use crate::b::B;"),
        ("b", "use super::c;"),
        ("c", "fn f() { crate::a::f(crate::d::g()) }"),
        ("d", ""),
        ("f", "use crate::{d::D, g::{E, F}};"),
        ("g", "use crate::f;"),
    ];
    assert_eq!(circles_of(&sources), ["a b c", "f g"]);
}

#[test]
fn an_import_through_a_reexport_is_one_of_the_module_with_the_item() {
    let root = "mod a; mod b; pub use a::A; pub use b::{inner::B as C};";
    let sources = [
        ("", root),
        ("a", "use crate::C;"),
        ("b", ""),
        ("b::inner", "use crate::A;"),
    ];
    assert_eq!(circles_of(&sources), ["a b"]);
    let sources = [
        ("", root),
        ("a", "use crate::C;"),
        ("b", ""),
        ("b::inner", "use crate::Other;"),
    ];
    assert_eq!(circles_of(&sources), [""; 0]);
}

#[test]
fn neighbours_are_compared_at_every_level_with_all_that_is_inside_of_them() {
    let inner = [
        ("", "mod a;"),
        ("a", "mod b; mod c;"),
        ("a::b", "mod d;"),
        ("a::b::d", "use crate::a::c::C;"),
        ("a::c", "use super::b::B;"),
    ];
    assert_eq!(circles_of(&inner), ["b c"]);
}

#[test]
fn a_parent_and_its_children_are_one_unit() {
    let sources = [
        ("", "mod a; mod b;"),
        ("a", "mod inner; pub struct A; fn f() { inner::f() } use crate::b;"),
        ("a::inner", "use super::A; use crate::a::f;"),
        ("b", "struct B;"),
    ];
    assert_eq!(circles_of(&sources), [""; 0]);
}
