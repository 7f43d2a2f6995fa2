//! Teams of agents that come with the program, and what is told of their work.
//!
//! A crew is files: its agents, and the schemas of what they say to one another. What
//! is code here is types that the schemas come from, and projections of the ledger.
//!
//! # Map
//!
//! - `job`: hours of work on disk: phases over the one loop, configs as files
//! - `swarm`: one mission, no questions: its files and its protocol
//! - `journal`: messy notes in, cited answers out: its graph, its notes, its domains
//! - `tree`: who worked under whom, on what, and what it cost
//! - `record`: what every agent was sent and said, as a folder
//!
//! # Invariants
//!
//! - No crew has a loop or a driver of its own, and none goes around the toolbox.
//! - Everything told here is folded from the ledger, and can be told again.
//! - This crate knows nothing of terminals.

mod job;
pub mod journal;
mod record;
mod schema;
mod swarm;
mod tree;

pub use job::{
    ConfigError, Configs, Connections, FolderError, JOB, JobConfig, JobFolder, JobMachine,
    JobSetup, JobSpec, JobTerms, JobView, LoadedConfig, LoopMode, PhaseKind, Stand, config_schema,
    desk_tools, error_report, job_base, opens_phase, set_up, write_error,
};
pub use record::{Record, RecordError};
pub use swarm::{
    BuildRequest, BuildResponse, DesignRequest, DesignResponse, FileSpec, Issue, MissionComplete,
    MissionOutcome, MissionRequest, ReviewRequest, ReviewResponse, Severity,
};
pub use tree::{Moment, Node, State, Tree, gist};

use selvedge_agent::Crews;

/// Every crew that comes with the program.
pub fn all() -> Crews {
    Crews::default().with(swarm::SWARM).with(journal::CREW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crew_loads() {
        for name in all().names(&[]) {
            let crew = all().find(&name, &[]).unwrap();
            assert_eq!(crew.name, name);
        }
    }
}
