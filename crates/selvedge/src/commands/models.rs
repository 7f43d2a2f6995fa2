//! `models`: models, prices, and which providers are available.

mod test;

use clap::{Args, Subcommand};
use selvedge_model::{ModelFacts, Price, Tier};
use serde_json::json;

use super::run;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::{count, table};
use crate::wiring;

#[derive(Args)]
pub struct Models {
    /// Print one model per line, as JSON.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Ask each available provider for a word, and show how soon it answers. What that
    /// costs is shown; no budget counts it.
    Test(test::Test),
}

impl Models {
    pub async fn perform(self) -> Result {
        match self.command {
            Some(Command::Test(test)) => test.perform().await,
            None => self.list(),
        }
    }

    fn list(self) -> Result {
        let workspace = run::workspace(None)?;
        let config = Config::load(&Paths::find()?, &workspace)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        let models = wiring::Models::known(&config, run::script(None)?)?;
        let available = models.providers.available();
        let heading = [
            "MODEL",
            "TIER",
            "ALIASES",
            "CONTEXT",
            "IN",
            "OUT",
            "AVAILABLE",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for (provider, facts) in models.catalogue.providers() {
            let is_available = available.contains(provider);
            let unlisted = ModelFacts::default();
            // A tier may name a model of which nothing else is known.
            let tiers = facts.tiers.values().map(|name| (name, &unlisted));
            let tiers = tiers.filter(|(name, _)| !facts.models.contains_key(*name));
            let mut seen = Vec::new();
            for (name, model) in facts.models.iter().chain(tiers) {
                if seen.contains(&name) {
                    continue;
                }
                seen.push(name);
                let full = format!("{provider}/{name}");
                let price = models.catalogue.price(&full);
                let tiers: Vec<&str> = facts
                    .tiers
                    .iter()
                    .filter(|(_, model)| *model == name)
                    .map(|(tier, _)| tier_name(*tier))
                    .collect();
                if self.json {
                    out::json(&json!({
                        "model": full, "tiers": tiers, "aliases": model.aliases,
                        "context_tokens": model.context_tokens,
                        "output_tokens_max": model.output_tokens_max,
                        "price": price, "available": is_available,
                    }));
                    continue;
                }
                rows.push(vec![
                    full,
                    tiers.join(","),
                    model.aliases.join(","),
                    model.context_tokens.map_or("unknown".into(), count),
                    price.map_or("unknown".into(), |p: Price| p.input.to_string()),
                    price.map_or("unknown".into(), |p: Price| p.output.to_string()),
                    if is_available { "yes" } else { "no" }.into(),
                ]);
            }
        }
        if !self.json {
            out::line(&table(&rows));
            out::say(&format!(
                "dollars per million tokens, looked up on {}; a price of your own goes into \
                 `[catalogue]`",
                models.catalogue.dated()
            ));
            if available.is_empty() {
                out::say("no provider is available: set a key, such as `ANTHROPIC_API_KEY`");
            }
        }
        Ok(Exit::Done)
    }
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Low => "low",
        Tier::Medium => "medium",
        Tier::High => "high",
    }
}
