//! What can be configured. The doc comments are the reference and the schema.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use schemars::JsonSchema;
use selvedge_agent::RunSpec;
use selvedge_mcp::Entry;
use selvedge_model::Profile;
use selvedge_tool::Rules;
use serde::{Deserialize, Serialize};

use super::hooks::Hook;
use super::knowledge::KnowledgeSettings;
use super::sandbox::SandboxSettings;
use super::spending::{Budget, SoftLimit};

/// The configuration of Selvedge.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The model that every agent uses: `provider/model`, an alias, or a tier.
    ///
    /// Default: each agent's own tier, at the provider whose key is set.
    pub model: Option<String>,
    /// The crew that takes a request. Default: `solo`.
    pub crew: Option<String>,
    /// What happens when something must be approved. Default: `ask`.
    pub approve: Option<Approve>,
    /// What one session may cost, in US dollars. Default: no limit.
    pub budget_usd: Option<Dollars>,
    /// How many tokens one session may use, of requests and answers together.
    /// Default: no limit.
    pub budget_tokens: Option<u64>,
    /// The profile whose stored keys are used. Default: `default`.
    ///
    /// Not read from a project's `.selvedge/config.toml`.
    #[schemars(with = "Option<String>")]
    pub profile: Option<Profile>,
    /// Bounds on what an agent's own file allows.
    #[serde(default)]
    pub limits: Limits,
    /// What agents may do without a question, what they are asked about, and what
    /// they may not do. Deny beats ask, ask beats allow, and no file loosens what
    /// another forbids. `allow` in a project's files holds if you trust the project.
    #[serde(default)]
    #[expect(dead_code, reason = "kept layer by layer, with its source")]
    pub policy: Rules,
    /// Commands that are called before or after every call of a model or a tool.
    /// Those of a project's files are called if you trust the project.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// How many model calls may be under way.
    #[serde(default)]
    pub slots: Slots,
    /// Whether an answer is kept and given again to the very same request, at no
    /// cost. Default: no.
    ///
    /// Requests that ask for variety, with a temperature above 0, are never
    /// answered so. Not read from a project's `.selvedge/config.toml`.
    pub cache: Option<bool>,
    /// Models to ask instead when one cannot answer, in their order: under the name
    /// of a model, of a tier (`low`, `medium`, `high`) or of a provider. An agent's
    /// own `fallback` goes first. Not read from a project's `.selvedge/config.toml`.
    #[serde(default)]
    pub fallback: BTreeMap<String, Vec<String>>,
    /// What all sessions of this machine may spend together. Not read from a
    /// project's `.selvedge/config.toml`.
    #[serde(default)]
    pub budget: Budget,
    /// When to say that much was spent, by provider. Not read from a project's
    /// `.selvedge/config.toml`.
    #[serde(default)]
    pub soft_limits: BTreeMap<String, SoftLimit>,
    /// How tools are made known to agents.
    #[serde(default)]
    pub tools: ToolSettings,
    /// What commands may reach of this machine.
    #[serde(default)]
    pub sandbox: SandboxSettings,
    /// What must not be shown, sent or stored.
    #[serde(default)]
    pub secrets: SecretRules,
    /// Who makes the vectors that a project is searched by. Not read from a project's
    /// `.selvedge/config.toml`.
    #[serde(default)]
    pub knowledge: KnowledgeSettings,
    /// Servers of the Model Context Protocol. Not read from a project's
    /// `.selvedge/config.toml`; a project's servers stand in its `.mcp.json`.
    #[serde(default)]
    pub mcp: McpServers,
    /// The journal: where its notes are, and how they are read.
    #[serde(default)]
    pub journal: JournalSettings,
    /// Models, prices and providers of your own, laid over the built-in
    /// catalogue. Not read from a project's `.selvedge/config.toml`.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[expect(dead_code, reason = "kept as a table, for the model room to read")]
    pub catalogue: toml::Table,
}

/// The journal. Not read from a project's `.selvedge/config.toml`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JournalSettings {
    /// The folder of the notes. Default: `journal/` in the data folder.
    pub dir: Option<String>,
    /// The time zone that days are counted in, such as `Europe/Berlin`. Default: that of
    /// the system.
    pub timezone: Option<String>,
    /// What a quantity without a unit is counted in, and how numbers are shown. Default:
    /// `metric`.
    pub units: Option<JournalUnits>,
    /// How many tokens the file of what is known of you may have. Default: 2000.
    #[schemars(range(min = 100))]
    pub max_global_context_tokens: Option<u32>,
}

/// Which units somebody counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JournalUnits {
    /// Metres and kilograms.
    Metric,
    /// Miles and pounds.
    Imperial,
}

impl From<JournalUnits> for selvedge_crews::journal::Units {
    fn from(units: JournalUnits) -> Self {
        match units {
            JournalUnits::Metric => Self::Metric,
            JournalUnits::Imperial => Self::Imperial,
        }
    }
}

/// Servers of the Model Context Protocol.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServers {
    /// By name. One that says neither `command` nor `url` speaks of the project's
    /// server of that name: `read_only`, `disabled` and the times are yours to say.
    #[serde(default)]
    pub servers: BTreeMap<String, Entry>,
}

/// What happens when something must be approved. What is forbidden stays so.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// A human is asked.
    Ask,
    /// It is done.
    Auto,
    /// It is refused.
    Never,
}

impl From<Approve> for selvedge_agent::Approve {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::Auto => Self::Auto,
            Approve::Never => Self::Never,
        }
    }
}

/// How tools are made known to agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSettings {
    /// When an agent is told of tools in a line each, and asks for those it needs,
    /// instead of having the schemas of all before it with every request. It is about
    /// what its file lists under `more_tools` or names by a pattern. Default: `auto`.
    pub lazy: Option<Lazy>,
}

/// When an agent asks for tools instead of having them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lazy {
    /// When their schemas are long enough for that to save something.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Lazy> for selvedge_agent::Lazy {
    fn from(lazy: Lazy) -> Self {
        match lazy {
            Lazy::Auto => Self::Auto,
            Lazy::Always => Self::Always,
            Lazy::Never => Self::Never,
        }
    }
}

/// What must not be shown, sent or stored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRules {
    /// What happens to a request that holds what looks like a secret. Default:
    /// `refuse`.
    ///
    /// A project's `.selvedge/config.toml` may only refuse.
    pub prompt: Option<OnSecret>,
    /// What your own secrets look like. Those of all files hold together.
    #[serde(default)]
    pub patterns: Vec<SecretPattern>,
    /// Files whose text is not shown, as lines of a `.gitignore`. Those of all files
    /// hold together, and the last one that matches decides.
    ///
    /// `!NAME` allows a file to be read; not in a project's `.selvedge/config.toml`.
    #[serde(default)]
    pub files: Vec<String>,
}

/// What happens to a request that holds what looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnSecret {
    /// It is not sent.
    Refuse,
    /// It is sent, with a warning.
    Warn,
    /// It is sent.
    Off,
}

/// What a secret looks like.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretPattern {
    /// What it is called.
    pub name: String,
    /// A regular expression for one line. Its first group is the secret; without a
    /// group, all of it.
    pub regex: String,
}

/// Bounds on what an agent's own file allows: the smaller number holds.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model calls in one run.
    pub model_calls_max: Option<u32>,
    /// Tokens of one answer.
    pub output_tokens_max: Option<u32>,
    /// Tokens of conversation before older parts are summarised.
    pub context_tokens_max: Option<u64>,
    /// Seconds a tool may run. A command that keeps printing may run longer, unless
    /// this is below 120.
    pub tool_seconds_max: Option<u64>,
    /// Failures in a row after which files are put back and the task is over; 0 for
    /// never.
    pub strikes_max: Option<u32>,
}

impl Limits {
    /// Puts the bounds on a run, and on every agent it may hand work to.
    pub fn bound(&self, spec: &mut RunSpec) {
        fn lower<T: Ord + Copy>(present: &mut T, bound: Option<T>) {
            *present = bound.map_or(*present, |bound| bound.min(*present));
        }
        lower(&mut spec.limits.model_calls_max, self.model_calls_max);
        lower(&mut spec.limits.output_tokens_max, self.output_tokens_max);
        lower(&mut spec.limits.context_tokens_max, self.context_tokens_max);
        lower(&mut spec.limits.tool_seconds_max, self.tool_seconds_max);
        lower(&mut spec.limits.strikes_max, self.strikes_max);
        spec.team.values_mut().for_each(|agent| self.bound(agent));
    }
}

/// How many model calls may be under way.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    /// To one provider. Default: 10.
    #[schemars(range(min = 1))]
    pub per_provider: Option<NonZeroUsize>,
    /// To all of them together. Default: 50.
    #[schemars(range(min = 1))]
    pub in_all: Option<NonZeroUsize>,
}

impl From<Slots> for selvedge_model::Slots {
    fn from(slots: Slots) -> Self {
        let usual = Self::default();
        Self {
            per_provider: slots.per_provider.map_or(usual.per_provider, Into::into),
            in_all: slots.in_all.map_or(usual.in_all, Into::into),
        }
    }
}

/// An amount of US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
pub struct Dollars(#[schemars(range(min = 0.0))] pub f64);

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if dollars.is_finite() && dollars >= 0.0 {
            Ok(Self(dollars))
        } else {
            Err(format!("`{dollars}` is not an amount of dollars"))
        }
    }
}

impl std::str::FromStr for Dollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_start_matches('$');
        let wrong = || format!("`{text}` is not an amount of dollars, such as `0.50`");
        let dollars: f64 = number.parse().map_err(|_| wrong())?;
        Self::try_from(dollars).map_err(|_| wrong())
    }
}
