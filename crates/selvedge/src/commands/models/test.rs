//! `models test`: asks each available provider for a word.

use std::time::Duration;

use clap::Args;
use selvedge_model::{ModelError, Profile, Protocol, Tier, probe};
use serde_json::json;

use super::run;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::{duration, escape, table};
use crate::wiring;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct Test {
    /// The profile whose stored keys are used.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Print one provider per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Test {
    pub async fn perform(self) -> Result {
        let mut config = Config::load(&Paths::find()?, &run::workspace(None)?)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        let profile = self.profile.map(|p| toml::Value::String(p.into()));
        config.flag("profile", "--profile", profile);
        let models = wiring::Models::find(&config, None)?;
        let heading = ["MODEL", "ANSWER", "TIME", "COST"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        let mut failures = Vec::new();
        let mut works = false;
        for (name, facts) in models.catalogue.providers() {
            if facts.protocol == Protocol::Scripted {
                continue;
            }
            let listed = facts.models.keys().next();
            let Some(model) = facts.tiers.get(&Tier::Low).or(listed) else {
                continue;
            };
            let model = format!("{name}/{model}");
            let Some(provider) = models.providers.find(&model) else {
                continue;
            };
            let price = models.catalogue.price(&model);
            match probe(&**provider, &model, price, PATIENCE).await {
                Ok(probe) => {
                    works = true;
                    let millis = probe.latency.as_millis() as u64;
                    if self.json {
                        out::json(&json!({
                            "provider": name, "model": model, "ok": true, "latency_ms": millis,
                            "usage": probe.usage, "cost_usd": probe.cost,
                        }));
                    }
                    let cost = probe.cost.map_or("unknown".into(), |cost| cost.to_string());
                    rows.push(vec![model, "ok".into(), duration(millis), cost]);
                }
                Err(error) => {
                    let hint = hint(&error);
                    if self.json {
                        out::json(&json!({
                            "provider": name, "model": model, "ok": false,
                            "error": error.to_string(), "hint": hint,
                        }));
                    }
                    failures.push(format!(
                        "`{model}` does not answer\n  cause: {}\n  hint: {}",
                        escape(&error.to_string()),
                        escape(&hint)
                    ));
                    rows.push(vec![model, "failed".into(), String::new(), String::new()]);
                }
            }
        }
        if rows.len() == 1 {
            return Err(
                Error::new(Exit::NoProvider, "no model provider is available")
                    .cause("no key is set or stored")
                    .hint("type `selvedge auth login anthropic`, or set `ANTHROPIC_API_KEY`"),
            );
        }
        if !self.json {
            out::line(&table(&rows));
            if works {
                out::say(
                    "these calls belong to no session: `selvedge usage` does not list them, and no \
                     budget counts them",
                );
            }
        }
        failures.iter().for_each(|failure| out::say(failure));
        Ok(if works { Exit::Done } else { Exit::NoProvider })
    }
}

fn hint(error: &ModelError) -> String {
    match error {
        ModelError::UserFixable { hint, .. } => hint.clone(),
        ModelError::RateLimited { .. } => "wait, then try again".to_owned(),
        ModelError::Permanent { .. } => "look at the provider's explanation".to_owned(),
        _ => "look at the network and the base URL, then try again".to_owned(),
    }
}
