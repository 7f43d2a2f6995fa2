//! What a role may do, as a table.
//!
//! A higher role can do all that a lower one can, so what a helper may do is the
//! lower of two roles: its own and that of whoever sent it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::{Decision, Finding, Source};
use crate::tool::World;

/// What an agent is trusted with, from least to most. Nobody is an administrator:
/// keys, configuration and policy belong to people.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Observer,
    /// Looks, and writes down what it learned.
    ObserverKnowledge,
    /// Changes files and runs commands.
    #[default]
    Worker,
    /// Hands work to others.
    Supervisor,
    /// Directs how a whole crew works.
    Orchestrator,
}

/// Something that a role may or may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Read files and results.
    Read,
    /// Search and query what is known.
    Query,
    /// Write to the knowledge base.
    WriteKnowledge,
    /// Pass knowledge to other sessions.
    Share,
    /// Change files of the workspace.
    Write,
    /// Run commands.
    Run,
    /// Reach the network.
    Network,
    /// Hand work to other agents.
    Delegate,
    /// Stop other agents.
    Terminate,
    /// Run pipelines and plans.
    Pipeline,
    /// Decide what other agents may spend.
    Resources,
    /// See keys.
    Credentials,
    /// Change the configuration.
    Configure,
    /// Change the policy.
    Policy,
}

/// Every role.
pub const ROLES: [Role; 5] = [
    Role::Observer,
    Role::ObserverKnowledge,
    Role::Worker,
    Role::Supervisor,
    Role::Orchestrator,
];

/// Which role it takes; `None` is nobody's.
pub const CAPABILITIES: [(Capability, Option<Role>); 14] = [
    (Capability::Read, Some(Role::Observer)),
    (Capability::Query, Some(Role::Observer)),
    (Capability::WriteKnowledge, Some(Role::ObserverKnowledge)),
    (Capability::Share, Some(Role::ObserverKnowledge)),
    (Capability::Write, Some(Role::Worker)),
    (Capability::Run, Some(Role::Worker)),
    (Capability::Network, Some(Role::Worker)),
    (Capability::Delegate, Some(Role::Supervisor)),
    (Capability::Terminate, Some(Role::Supervisor)),
    (Capability::Pipeline, Some(Role::Orchestrator)),
    (Capability::Resources, Some(Role::Orchestrator)),
    (Capability::Credentials, None),
    (Capability::Configure, None),
    (Capability::Policy, None),
];

impl Role {
    /// Whether the role may do it.
    pub fn may(self, capability: Capability) -> bool {
        CAPABILITIES
            .iter()
            .any(|(c, from)| *c == capability && from.is_some_and(|from| self >= from))
    }

    /// What the role says of a tool that does this to the world; `None` if it does
    /// not forbid it.
    pub(super) fn objection(self, world: World) -> Option<Finding> {
        let capability = match world {
            World::Reads => Capability::Read,
            World::Writes => Capability::Write,
            World::Runs => Capability::Run,
            World::Delegates => Capability::Delegate,
            // Everybody may ask a person, and stop.
            World::Asks | World::Ends => return None,
        };
        (!self.may(capability)).then(|| {
            let says = format!("{self:?} × {capability:?}").to_lowercase();
            let reason = format!("{self} may not {capability}");
            Finding::new(Decision::Deny, Source::Role, says, reason)
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Observer => "an observer",
            Self::ObserverKnowledge => "an observer of knowledge",
            Self::Worker => "a worker",
            Self::Supervisor => "a supervisor",
            Self::Orchestrator => "an orchestrator",
        })
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read files",
            Self::Query => "query what is known",
            Self::WriteKnowledge => "write down knowledge",
            Self::Share => "share knowledge",
            Self::Write => "change files",
            Self::Run => "run commands",
            Self::Network => "reach the network",
            Self::Delegate => "hand on work",
            Self::Terminate => "stop other agents",
            Self::Pipeline => "run pipelines",
            Self::Resources => "decide about resources",
            Self::Credentials => "see keys",
            Self::Configure => "change the configuration",
            Self::Policy => "change the policy",
        })
    }
}
