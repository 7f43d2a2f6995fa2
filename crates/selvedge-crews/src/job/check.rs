//! What no schema can say of a config: bounds that fit each other, paths that stay inside,
//! addresses that can be meant, tools that exist.

use std::path::Path;

use selvedge_agent::Address;

use super::config::PhaseSettings;
use super::folder;
use super::line::line_of;
use super::load::{ConfigError, LoadedConfig, SHIPPED, nearest};

impl LoadedConfig {
    /// An error about `key`, in the file that says it.
    fn wrong(&self, pointer: &str, reason: String, hint: Option<String>) -> ConfigError {
        let file = self
            .files
            .iter()
            .find(|file| file.value.pointer(pointer).is_some());
        let file = file.unwrap_or(&self.files[0]);
        ConfigError {
            file: file.path.clone(),
            line: line_of(&file.text, pointer),
            key: pointer.trim_start_matches('/').replace('/', "."),
            reason,
            hint,
        }
    }

    /// What no schema can say.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let PhaseSettings {
            min_todos,
            max_todos,
            ..
        } = self.config.phase_settings;
        if min_todos > max_todos {
            let reason = format!("is {min_todos}, more than `max_todos` ({max_todos})");
            return Err(self.wrong("/phase_settings/min_todos", reason, None));
        }
        let name = self.config.name();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let is_taken = ["strategic", "tactical", "worker"].contains(&name);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) || is_taken {
            let key = match self.config.agent_id {
                Some(_) => "/agent_id",
                None => "/job_type",
            };
            let reason = "is 1 to 64 letters, digits, `-` or `_`, and not a kind of phase";
            return Err(self.wrong(key, reason.into(), None));
        }
        for (n, name) in self.config.workspace.structure.iter().enumerate() {
            if !folder::is_inside(name) {
                let pointer = format!("/workspace/structure/{n}");
                let reason = format!("`{name}` leads out of the job's folder");
                return Err(self.wrong(&pointer, reason, None));
            }
        }
        self.check_base_url()
    }

    fn check_base_url(&self) -> Result<(), ConfigError> {
        let Some(base_url) = &self.config.llm.base_url else {
            return Ok(());
        };
        let wrong = |reason: &str, hint: &str| {
            Err(self.wrong("/llm/base_url", reason.into(), Some(hint.into())))
        };
        let rest = base_url.split_once("://");
        let rest = rest.filter(|(scheme, rest)| {
            ["http", "https"].contains(scheme) && !rest.trim_matches('/').is_empty()
        });
        let Some((_, rest)) = rest else {
            let hint = "write it like `http://127.0.0.1:8000/v1`";
            return wrong("is not the address of a server", hint);
        };
        // What a config says is recorded, and shown.
        if rest
            .split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
        {
            let hint = "store the key with `selvedge auth login PROVIDER`";
            return wrong("has a name or a password in it", hint);
        }
        match &self.config.llm.model {
            Some(model) if model.split_once('/').is_some() => Ok(()),
            _ => wrong(
                "says where a provider is, and not which",
                "name it in `llm.model`, such as `openai/MODEL` for a server that speaks its \
                 protocol",
            ),
        }
    }

    /// Where the provider of its model is, if the config says so. The provider's key goes
    /// there if `is_own` says that the config of this folder is the user's own.
    pub fn address(&self, is_own: impl Fn(&Path) -> bool) -> Option<Address> {
        let llm = &self.config.llm;
        let base_url = llm.base_url.clone()?;
        let (provider, _) = llm.model.as_deref()?.split_once('/')?;
        let mut files = self.files.iter();
        let file = files.find(|file| file.value.pointer("/llm/base_url").is_some());
        let folder = file.and_then(|file| file.folder.as_deref());
        Some(Address {
            provider: provider.to_owned(),
            base_url,
            has_key: folder.is_none_or(is_own),
        })
    }

    /// Checks that every tool it names is among `known`.
    pub fn check_tools(&self, known: &[String]) -> Result<(), ConfigError> {
        let tools = &self.config.tools;
        for (group, names) in [
            ("workspace", &tools.workspace),
            ("strategic", &tools.strategic),
            ("tactical", &tools.tactical),
            ("todo", &tools.todo),
            ("domain", &tools.domain),
            ("deferred", &tools.deferred),
        ] {
            for (n, name) in names.iter().enumerate() {
                if known.contains(name) {
                    continue;
                }
                let hint = nearest(name, known.iter().map(String::as_str));
                let reason = format!("names the tool `{name}`, which does not exist");
                return Err(self.wrong(&format!("/tools/{group}/{n}"), reason, hint));
            }
        }
        Ok(())
    }

    pub(super) fn read_instructions(&self) -> Result<String, ConfigError> {
        let name = &self.config.workspace.instructions_template;
        let wrong = |reason: String| self.wrong("/workspace/instructions_template", reason, None);
        if !folder::is_inside(name) {
            return Err(wrong(format!("`{name}` leads out of the config's folder")));
        }
        for file in &self.files {
            let found = match &file.folder {
                Some(folder) => std::fs::read_to_string(folder.join(name)).ok(),
                None => {
                    let shipped = SHIPPED.iter().find(|shipped| shipped.name == file.name);
                    shipped
                        .filter(|_| name == "instructions.md")
                        .map(|shipped| shipped.instructions.to_owned())
                }
            };
            if let Some(text) = found {
                return Ok(text);
            }
        }
        Err(wrong(format!("`{name}` is not there")))
    }
}
