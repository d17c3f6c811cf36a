//! Conditions of packages that can be checked before a build: crates have all their files, versions agree, and there is one
//! list of features.
//! `.ci/release` builds the packages, which takes too long for every change.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The crates that are published, in the order of their dependencies.
const PUBLISHED: [&str; 11] = [
    "lookalike-system",
    "lookalike",
    "lookalike-options",
    "lookalike-documents",
    "lookalike-comparison",
    "lookalike-io",
    "lookalike-batch",
    "lookalike-store",
    "lookalike-log",
    "lookalike-server",
    "lookalike-cli",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_file(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Calls a function with every Rust file below a directory.
fn visit_sources(directory: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit_sources(&path, visit);
        } else if path.extension().is_some_and(|it| it == "rs") {
            visit(&path, &read_file(&path));
        }
    }
}

/// Returns the paths in the `include_str!` and `include_bytes!` of a source file, without those of its tests.
fn find_included(source: &str) -> Vec<&str> {
    let program = source.split("#[cfg(test)]").next().unwrap_or_default();
    let macros = ["include_str!(\"", "include_bytes!(\""];
    let included = macros.iter().flat_map(|name| program.split(name).skip(1));
    included.filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns a path without `..`, as text alone.
fn resolve(path: &Path) -> PathBuf {
    path.components()
        .fold(PathBuf::new(), |mut resolved, part| {
            match part {
                Component::ParentDir => drop(resolved.pop()),
                part => resolved.push(part),
            }
            resolved
        })
}

#[test]
fn crates_contain_only_their_own_files() {
    let mut included = 0;
    for name in PUBLISHED {
        let package = resolve(&root().join("crates").join(name));
        visit_sources(&package.join("src"), &mut |path, source| {
            if path.ends_with("tests.rs") {
                return;
            }
            for file in find_included(source) {
                included += 1;
                let file = resolve(&path.parent().unwrap().join(file));
                assert!(
                    file.starts_with(&package),
                    "{} contains {}: a package of {name} has not this file, so it belongs into the crate",
                    path.display(),
                    file.display()
                );
            }
        });
    }
    assert!(included >= 4, "{included}");
    assert_eq!(
        find_included("include_str!(\"a\")\n#[cfg(test)]\ninclude_str!(\"b\")"),
        ["a"]
    );
    assert_eq!(
        resolve(Path::new("/crates/one/src/../../x")),
        Path::new("/crates/x")
    );
}

#[test]
fn crates_can_be_published() {
    let workspace: toml::Table = read_file(&root().join("Cargo.toml")).parse().unwrap();
    let workspace = &workspace["workspace"];
    let version = workspace["package"]["version"].as_str().unwrap();
    for name in PUBLISHED {
        let folder = root().join("crates").join(name);
        let manifest: toml::Table = read_file(&folder.join("Cargo.toml")).parse().unwrap();
        assert!(
            !manifest["package"]
                .as_table()
                .unwrap()
                .contains_key("publish"),
            "{name} is published, and its Cargo.toml forbids it"
        );
        let named = workspace["dependencies"][name].get("version");
        assert_eq!(
            named.and_then(|named| named.as_str()),
            Some(version),
            "Cargo.toml names {name} by another version than that of the workspace"
        );
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(!read_file(&folder.join(file)).is_empty(), "{name}: {file}");
        }
    }
}

#[test]
fn packages_have_the_same_features() {
    let release = read_file(&root().join(".ci/release"));
    let features = release
        .lines()
        .find_map(|line| line.strip_prefix("features="))
        .expect(".ci/release names the features");
    let manifest: toml::Table = read_file(&root().join("crates/lookalike-cli/Cargo.toml"))
        .parse()
        .unwrap();
    let declared = manifest["features"].as_table().unwrap();
    let is_default = |name: &str| {
        let default = declared["default"].as_array().unwrap();
        name == "default" || default.iter().any(|feature| feature.as_str() == Some(name))
    };
    let mut all: Vec<_> = declared.keys().filter(|name| !is_default(name)).collect();
    all.sort();
    assert_eq!(features.split(',').collect::<Vec<_>>(), all);
    for page in [
        "deploy/Containerfile",
        "docs/install.md",
        "docs/zh/install.md",
    ] {
        let text = read_file(&root().join(page));
        assert!(text.contains(&format!("--features {features}")), "{page}");
    }
}
