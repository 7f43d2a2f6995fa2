//! The repository's files and crates.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::Table;

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the repository")
}

/// A file of the repository, as text.
pub fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(root().join(name)).with_context(|| format!("`{name}` cannot be read"))
}

/// A path as a person would write it.
pub fn shown(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.display().to_string()
}

/// A crate of the workspace.
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its manifest.
    pub manifest: Table,
}

/// All crates, by name.
pub fn packages() -> Result<Vec<Package>> {
    let mut folders = vec![root().join("xtask")];
    folders.extend(entries(&root().join("crates"))?);
    let mut packages = Vec::new();
    for folder in folders {
        let path = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("`{}` cannot be read", shown(&path)))?;
        let manifest: Table = text
            .parse()
            .with_context(|| format!("`{}` is not TOML", shown(&path)))?;
        let name = manifest["package"]["name"]
            .as_str()
            .with_context(|| format!("`{}` names no package", shown(&path)))?;
        packages.push(Package {
            name: name.to_owned(),
            manifest,
        });
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// All Rust files of all crates.
pub fn rust_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("xtask")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What is in a folder, in order.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let listed = std::fs::read_dir(folder);
    for entry in listed.with_context(|| format!("`{}` cannot be listed", shown(folder)))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
