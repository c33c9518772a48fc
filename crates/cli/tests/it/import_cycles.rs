//! The rooms of each crate import each other without cycles, and so do the modules of a room.
//!
//! A room is a module of the root with its descendants. A module is a file; `foo.rs` is the parent of `foo/*.rs`. A parent and its
//! descendants may import each other. Paths through the `use` lines of `lib.rs` are resolved to the file of the item. Unit tests and docs do
//! not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::source_tree::{code_of, sources};

#[test]
fn no_crate_has_import_cycles() {
    for of in "sieve frontier page crawler watch cluster cli ../benches/rivals".split(' ') {
        let modules = graph_of(&modules(of));
        for graph in [rooms_of(&modules), modules] {
            if let Some(cycle) = cycles(&graph).into_iter().next() {
                let imports = |from| graph[from].intersection(&cycle).map(name_of).collect::<Vec<_>>();
                let within = cycle.iter().map(|from| (name_of(from), imports(from)));
                panic!("{of}: they import each other: {:?}", within.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_cycle_is_found_through_every_form_of_import() {
    let circles_of = |files: &[(&str, &str)]| -> Vec<String> {
        let sources = files
            .iter()
            .map(|(file, text)| (module_of(Path::new(file)), code_of(text)));
        let found = cycles(&graph_of(&sources.collect()));
        found
            .iter()
            .map(|cycle| cycle.iter().map(name_of).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let back = ("b.rs", "use crate::a::A;");
    for to_b in [
        "use crate::b::B;",
        "use crate::{\n    c::{C, D as E},\n    b,\n};",
        "pub(crate) use super::b::*;",
        "fn f() -> bool { g(crate::b::B, 1) }",
        "use crate::Exported;",
        "impl super::Exported {} // of the root",
    ] {
        let root = ("lib.rs", "mod a;\npub use b::{self, Exported};");
        assert_eq!(circles_of(&[root, ("a.rs", to_b), back]), ["a b"], "{to_b}");
    }
    for none in [
        "// use crate::b::B;",
        "    /// As [`B`](crate::b::B).",
        "#[cfg(doc)]\nuse crate::b::B;",
        "#[cfg(test)]\nuse crate::b::B;",
        "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        "use super::Unknown;",
        "use other_crate::b;",
    ] {
        assert!(circles_of(&[("a.rs", none), back]).is_empty(), "{none}");
    }
    let of_three = [
        ("a.rs", "use crate::b::x;"),
        ("b/x.rs", "use super::super::c;"),
        ("c.rs", "use crate::a;"),
    ];
    assert_eq!(
        circles_of(&[&of_three[..], &[("b.rs", "mod x;")]].concat()),
        ["a b::x c"]
    );
    let parent_and_child = [("a.rs", "mod x;\nuse crate::a::x::X;"), ("a/x.rs", "use super::A;")];
    assert!(circles_of(&parent_and_child).is_empty());
    let two = [
        ("a.rs", "use crate::b;"),
        back,
        ("c.rs", "use crate::d;"),
        ("d.rs", "use super::c;"),
    ];
    assert_eq!(circles_of(&two), ["a b", "c d"]);
}

#[test]
fn rooms_are_in_a_cycle_though_no_two_of_their_modules_are() {
    let files = [
        ("a.rs", "mod x;"),
        ("a/x.rs", "use crate::b;"),
        ("b.rs", "mod y;"),
        ("b/y.rs", "use crate::a;"),
    ];
    let sources = files.map(|(file, text)| (module_of(Path::new(file)), code_of(text)));
    let modules = graph_of(&sources.into());
    assert!(cycles(&modules).is_empty());
    let both = BTreeSet::from(["a", "b"].map(|room| vec![room.to_owned()]));
    assert_eq!(cycles(&rooms_of(&modules)), BTreeSet::from([both]));
}

/// The segments of a module's path, without the crate.
type Module = Vec<String>;

/// The imports of each module, without parents and children.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

fn name_of(module: &Module) -> String {
    module.join("::")
}

/// Returns the code of every module of a crate.
fn modules(of: &str) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    for (file, code) in sources(of) {
        let module = module_of(Path::new(&file));
        if !module.iter().any(|name| name == "tests") {
            // A crate may have a library root and a command root.
            found.entry(module).or_insert_with(String::new).push_str(&code);
        }
    }
    found
}

fn module_of(file: &Path) -> Module {
    let path: PathBuf = file.with_extension("");
    let module: Module = path
        .iter()
        .map(|segment| segment.to_string_lossy().into_owned())
        .collect();
    match module.as_slice() {
        [root] if root == "lib" || root == "main" => Module::new(),
        _ => module,
    }
}

fn graph_of(sources: &BTreeMap<Module, String>) -> Graph {
    let exports = exports_of(sources.get(&Module::new()).map_or("", String::as_str));
    let imports = |(module, code): (&Module, &String)| {
        let targets = paths_in(code)
            .into_iter()
            .filter_map(|path| resolve(&path, module, sources, &exports))
            .filter(|target| !target.starts_with(module) && !module.starts_with(target))
            .collect();
        (module.clone(), targets)
    };
    sources
        .iter()
        .filter(|(module, _)| !module.is_empty())
        .map(imports)
        .collect()
}

fn rooms_of(modules: &Graph) -> Graph {
    let mut rooms = Graph::new();
    for (from, targets) in modules {
        let targets = targets.iter().map(|target| target[..1].to_vec());
        let others = targets.filter(|room| !from.starts_with(room));
        rooms.entry(from[..1].to_vec()).or_default().extend(others);
    }
    rooms
}

/// Returns the re-exports of a root: each name with its full path.
fn exports_of(root: &str) -> BTreeMap<String, Module> {
    let statements = root.split(';').filter_map(|statement| {
        let at = statement.rfind("use ")?;
        Some(Reader::new(&statement[at + 4..]).paths())
    });
    let named = statements.flatten().filter_map(|mut path| {
        path.retain(|segment| segment != "crate");
        Some((path.last()?.clone(), path))
    });
    named.collect()
}

/// Returns all paths that start with `crate` or `super`. Groups are expanded.
fn paths_in(code: &str) -> Vec<Module> {
    let starts = ["crate::", "super::"]
        .into_iter()
        .flat_map(|word| code.match_indices(word));
    let starts = starts.map(|(at, _)| at).filter(|&at| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    });
    starts.flat_map(|at| Reader::new(&code[at..]).paths()).collect()
}

/// Returns the deepest module of a path; `None` if no file has it, or only the root.
fn resolve(
    path: &[String],
    from: &Module,
    sources: &BTreeMap<Module, String>,
    exports: &BTreeMap<String, Module>,
) -> Option<Module> {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let (base, rest) = if ups > 0 {
        (&from[..from.len() - ups], &path[ups..])
    } else {
        (&[][..], &path[1..])
    };
    let mut whole = [base, rest].concat();
    let first = whole.first()?;
    if !sources.contains_key(std::slice::from_ref(first)) {
        whole.clone_from(exports.get(first)?);
    }
    let deepest = (1..=whole.len()).rev().map(|len| whole[..len].to_vec());
    deepest.into_iter().find(|module| sources.contains_key(module))
}

/// Parses one path, or a tree of paths.
struct Reader<'c> {
    left: &'c str,
}

impl<'c> Reader<'c> {
    fn new(code: &'c str) -> Self {
        Self { left: code }
    }

    fn paths(&mut self) -> Vec<Module> {
        let mut segments = Module::new();
        loop {
            if self.takes("{") {
                let mut all = Vec::new();
                while !self.takes("}") {
                    let below = self.paths();
                    all.extend(below.into_iter().map(|path| [segments.clone(), path].concat()));
                    assert!(
                        self.takes(",") || self.left.trim_start().starts_with('}'),
                        "a group: {:.60}",
                        self.left
                    );
                }
                return all;
            }
            let word = self.word();
            match word {
                "" | "self" => {}
                word => segments.push(word.to_owned()),
            }
            if !self.takes("::") {
                break;
            }
        }
        if self.left.starts_with(" as ") {
            self.left = &self.left[4..];
            // The local name after `as`.
            self.word();
        }
        vec![segments]
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.left.trim_start().strip_prefix(token);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    fn word(&mut self) -> &'c str {
        let left = self.left.trim_start();
        let left = left.strip_prefix('*').unwrap_or(left);
        let end = left
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(left.len());
        self.left = &left[end..];
        &left[..end]
    }
}

/// Returns the strongly connected components with more than one module.
fn cycles(graph: &Graph) -> BTreeSet<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = graph.keys().map(|from| (from, reached(graph, from))).collect();
    let circle_of = |one: &Module| {
        let both = reach[one].iter().filter(|other| reach[**other].contains(one));
        both.map(|module| (*module).clone()).collect::<BTreeSet<Module>>()
    };
    graph.keys().map(circle_of).filter(|cycle| !cycle.is_empty()).collect()
}

/// Returns the modules that are reachable in one or more steps.
fn reached<'g>(graph: &'g Graph, from: &Module) -> BTreeSet<&'g Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Module> = graph[from].iter().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(&graph[module]);
        }
    }
    found
}
