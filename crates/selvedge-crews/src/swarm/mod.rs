//! The swarm: one mission, carried out with no further questions.
//!
//! An Orchestrator hands a mission to a Planner, who has a Designer, a Builder and a
//! Reviewer. Their files are in `crews/swarm`; they talk in the types of `protocol`.

mod protocol;

pub use protocol::{
    BuildRequest, BuildResponse, DesignRequest, DesignResponse, FileSpec, Issue, MissionComplete,
    MissionOutcome, MissionRequest, ReviewRequest, ReviewResponse, Severity,
};

use selvedge_agent::BuiltIn;

/// The crew, as it comes with the program.
pub(crate) const SWARM: BuiltIn = BuiltIn {
    name: "swarm",
    crew: include_str!("../../crews/swarm/crew.toml"),
    agents: &[
        (
            "swarm/agents/orchestrator.md",
            include_str!("../../crews/swarm/agents/orchestrator.md"),
        ),
        (
            "swarm/agents/planner.md",
            include_str!("../../crews/swarm/agents/planner.md"),
        ),
        (
            "swarm/agents/designer.md",
            include_str!("../../crews/swarm/agents/designer.md"),
        ),
        (
            "swarm/agents/builder.md",
            include_str!("../../crews/swarm/agents/builder.md"),
        ),
        (
            "swarm/agents/reviewer.md",
            include_str!("../../crews/swarm/agents/reviewer.md"),
        ),
    ],
    schemas: protocol::schemas,
};

#[cfg(test)]
mod tests {
    use selvedge_agent::{Approve, Lazy, RunSpec, Setup, assemble};
    use selvedge_tool::{Policy, Sandbox, Toolbox, World};

    fn spec() -> RunSpec {
        let crew = crate::all().find("swarm", &[]).unwrap();
        let setup = Setup {
            request: "build it".into(),
            workspace: std::env::temp_dir(),
            approve: Approve::Never,
            sandbox: Sandbox::off(),
            policy: Policy::default(),
            is_trusted: true,
            budget_usd: None,
            output_schema: None,
            budget_tokens: None,
            instructions: None,
            skills: Vec::new(),
            lazy: Lazy::Auto,
            resolve: &|_| Ok("scripted/test".into()),
        };
        assemble(&crew, &Toolbox::core(), &setup).unwrap()
    }

    fn tools(spec: &RunSpec) -> Vec<(&str, World)> {
        spec.tools
            .iter()
            .map(|(name, world)| (name.as_str(), *world))
            .collect()
    }

    #[test]
    fn each_level_has_its_own_tools_and_no_others() {
        let orchestrator = spec();
        assert_eq!(
            tools(&orchestrator),
            [("delegate_to_planner", World::Delegates)]
        );
        let planner = &orchestrator.team["planner"];
        let of = |world: World| {
            let tools = tools(planner).into_iter();
            let names = tools.filter(|(_, its)| *its == world).map(|(name, _)| name);
            names.collect::<Vec<&str>>()
        };
        assert_eq!(of(World::Delegates), ["builder", "designer", "reviewer"]);
        assert_eq!(of(World::Ends), ["mission_complete"]);
        assert!(of(World::Writes).is_empty() && of(World::Runs).is_empty());
        for (name, may_write) in [("designer", false), ("builder", true), ("reviewer", false)] {
            let helper = &planner.team[name];
            let worlds: Vec<World> = helper.tools.values().copied().collect();
            assert_eq!(worlds.contains(&World::Writes), may_write, "{name}");
            let ends = [World::Ends, World::Delegates, World::Asks];
            let can_end = worlds.iter().any(|world| ends.contains(world));
            assert!(
                !can_end,
                "{name} ends nothing, hands nothing on, asks nobody"
            );
        }
    }
}
