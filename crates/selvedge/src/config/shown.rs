//! What is set beside single values, row by row: tables of the user's own names, rules,
//! hooks and lists.

use selvedge_tool::Rules;
use serde::Serialize;

use super::hooks::Hook;
use super::layer::{Layer, Origin};

/// One thing that is set, and by whom.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, dotted.
    pub key: String,
    /// What it is set to.
    pub value: toml::Value,
    /// By whom.
    pub origin: Origin,
}

/// What a layer sets beside single values.
pub(super) fn rows(layer: &Layer) -> Vec<Row> {
    let row = |key: String, value| Row {
        key,
        value,
        origin: layer.origin.clone(),
    };
    let mut rows = Vec::new();
    let mut tables = layer.tables.clone();
    // Where a server is started or spoken to may be nobody's business.
    let servers = tables
        .remove("mcp")
        .and_then(|mcp| mcp.get("servers").cloned());
    // It has a command of its own, `models`.
    let added = tables
        .remove("catalogue")
        .and_then(|c| c.get("providers").cloned());
    flatten("", &tables, &mut |key, value| rows.push(row(key, value)));
    for (name, _) in servers.iter().filter_map(toml::Value::as_table).flatten() {
        let key = format!("mcp.servers.{}", word(name));
        rows.push(row(key, "`selvedge mcp show` tells more".into()));
    }
    for (name, _) in added.iter().filter_map(toml::Value::as_table).flatten() {
        let key = format!("catalogue.providers.{}", word(name));
        rows.push(row(key, "`selvedge models` tells more".into()));
    }
    let Rules { allow, ask, deny } = &layer.policy;
    for (name, patterns) in [("allow", allow), ("ask", ask), ("deny", deny)] {
        if !patterns.is_empty() {
            rows.push(row(format!("policy.{name}"), plain(patterns)));
        }
    }
    rows.extend(layer.hooks.iter().map(|hook| {
        let name = format!("hooks.{}", plain(&hook.event).as_str().unwrap_or_default());
        row(name, called(hook))
    }));
    let lists = layer.lists.iter();
    rows.extend(lists.map(|(key, items)| row((*key).to_owned(), items.clone().into())));
    rows
}

fn called(hook: &Hook) -> toml::Value {
    hook.name
        .clone()
        .unwrap_or_else(|| hook.command.join(" "))
        .into()
}

/// Names every value of a table by the way that leads to it.
fn flatten(above: &str, table: &toml::Table, tell: &mut impl FnMut(String, toml::Value)) {
    for (name, value) in table {
        let key = match above {
            "" => word(name),
            above => format!("{above}.{}", word(name)),
        };
        match value {
            toml::Value::Table(below) => flatten(&key, below, tell),
            value => tell(key, value.clone()),
        }
    }
}

/// A name as it stands in a dotted key.
fn word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}

fn plain<T: Serialize>(value: &T) -> toml::Value {
    toml::Value::try_from(value).expect("plain data")
}
