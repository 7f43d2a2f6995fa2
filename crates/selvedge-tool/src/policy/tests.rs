//! Attacks and their harmless twins.

use super::site::tests::site;
use super::*;

fn engineer(fenced: bool) -> Policy {
    Policy {
        crafts: vec![Craft::Engineer],
        fence: fenced.then(|| "on".into()),
        ..Policy::default()
    }
}

fn patterns(words: &[&str]) -> Vec<Pattern> {
    words.iter().map(|w| Pattern::new(*w)).collect()
}

/// An engineer in a sandbox, whose user forbids these.
fn denying(words: &[&str]) -> Policy {
    let deny = patterns(words);
    let rules = Rules {
        deny,
        ..Rules::default()
    };
    engineer(true).with(Source::User, rules)
}

fn command(policy: &Policy, command: &str) -> Verdict {
    let act = Act {
        tool: "run_command",
        world: World::Runs,
        deed: Deed::Command {
            command: command.into(),
            cwd: String::new(),
        },
    };
    judge(policy, &site(), &act)
}

fn check(policy: &Policy, expected: Decision, commands: &[&str]) {
    for text in commands {
        let verdict = command(policy, text);
        let finding = &verdict.finding;
        assert_eq!(verdict.decision(), expected, "{text:.80}: {finding:?}");
    }
}

#[test]
fn every_command_of_the_list_is_judged_as_it_says() {
    let (mut title, mut section) = ("", "");
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for line in include_str!("commands.txt").lines() {
        if let Some(text) = line.strip_prefix("## ") {
            title = text;
        } else if let Some(text) = line.strip_prefix(">> ") {
            section = text;
        } else if !line.is_empty() && !line.starts_with('#') {
            let (who, expected) = section.split_once(": ").unwrap();
            let policy = match who {
                "sandbox" => engineer(true),
                "bare" => engineer(false),
                _ => denying(&["curl"]),
            };
            let escapes = [("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t")];
            let text = escapes
                .iter()
                .fold(line.to_owned(), |text, (from, to)| text.replace(from, to));
            let verdict = command(&policy, &text);
            judged += 1;
            if verdict.decision().to_string() != expected {
                let finding = verdict.finding;
                wrong.push(format!("{title} ({section}): {line}: {finding:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged > 500, "{judged}");
}

#[test]
fn every_part_of_a_joined_command_is_judged() {
    let policy = denying(&["touch"]);
    for joint in [";", "&&", "||", "|", "&", "\n", "|&"] {
        check(
            &policy,
            Decision::Deny,
            &[&format!("git status {joint} touch a")],
        );
        check(
            &policy,
            Decision::Allow,
            &[&format!("git status {joint} ls a")],
        );
    }
    let verdict = command(&policy, "git status; touch a");
    assert_eq!(verdict.parts.len(), 2);
    assert_eq!(verdict.parts[0].finding.decision, Decision::Allow);
    assert_eq!(verdict.finding.rule.to_string(), "user: touch");
}

#[test]
fn a_denial_is_found_behind_any_number_of_parts() {
    let (sixty, thousand) = ("true; ".repeat(60), "true; ".repeat(1000));
    let last = [format!("{sixty}curl x"), format!("{thousand}curl x")];
    check(&denying(&["curl"]), Decision::Deny, &[&last[0], &last[1]]);
    // Too much to be judged is never allowed by itself.
    check(&engineer(true), Decision::Ask, &[&sixty, &thousand]);
    check(&engineer(true), Decision::Allow, &[&"true; ".repeat(40)]);
}

#[test]
fn git_in_a_shell_is_what_the_table_says() {
    for (operation, line) in [
        (Operation::Read, "git status"),
        (Operation::Add, "git add a"),
        (Operation::Commit, "git commit -m x"),
        (Operation::Stash, "git stash"),
        (Operation::BranchCreate, "git checkout -b x"),
        (Operation::Checkout, "git checkout x"),
        (Operation::History, "git revert x"),
        (Operation::Fetch, "git fetch"),
        (Operation::Pull, "git pull"),
        (Operation::Clone, "git clone x"),
        (Operation::Push, "git push"),
        (Operation::Merge, "git merge x"),
        (Operation::ResetHard, "git reset --hard"),
        (Operation::Unknown, "git update-ref refs/heads/main x"),
    ] {
        for (craft, cell) in CRAFTS
            .into_iter()
            .zip(MATRIX.iter().find(|(o, _)| *o == operation).unwrap().1)
        {
            let policy = Policy {
                crafts: vec![craft],
                fence: Some("on".into()),
                ..Policy::default()
            };
            // What changes the repository is for the git tools; a shell asks.
            let expected = match cell {
                Cell::No => Decision::Deny,
                Cell::Yes if operation.is_read() => Decision::Allow,
                _ => Decision::Ask,
            };
            for spelt in [
                line.to_owned(),
                format!("ls; {line}"),
                format!("env {line}"),
                format!("/usr/bin/{line}"),
            ] {
                check(&policy, expected, &[&spelt]);
            }
            let act = Act {
                tool: "git",
                world: World::Reads,
                deed: Deed::Git {
                    operation,
                    paths: Vec::new(),
                },
            };
            let by_tool = match cell {
                Cell::No => Decision::Deny,
                Cell::Yes => Decision::Allow,
                Cell::If(_) => Decision::Ask,
            };
            assert_eq!(judge(&policy, &site(), &act).decision(), by_tool);
        }
    }
    check(
        &Policy {
            fence: Some("on".into()),
            ..Policy::default()
        },
        Decision::Deny,
        &["git status", "git log"],
    );
}

#[test]
fn rules_tighten_and_loosen_but_never_what_is_forbidden() {
    let rules = Rules {
        allow: patterns(&[
            "npm install *",
            "make deploy",
            "git push *",
            "@write AGENTS.md",
            "eval *",
        ]),
        ask: patterns(&["make"]),
        deny: patterns(&["npm install evil", "@write *.lock", "@tool run_secretly"]),
    };
    let policy = engineer(true).with(Source::User, rules);
    check(
        &policy,
        Decision::Allow,
        &["npm install left-pad", "npm install"],
    );
    check(
        &policy,
        Decision::Deny,
        &[
            "npm install evil",
            "npm install evil x",
            "git push origin",
            "npm install x && git push",
        ],
    );
    check(
        &policy,
        Decision::Ask,
        &[
            "make deploy",
            "make",
            "./npm install x && make",
            "npm install $x",
            "npm install `x`",
        ],
    );
    let lax = Rules {
        allow: patterns(&["curl *"]),
        ..Rules::default()
    };
    let strict = Rules {
        ask: patterns(&["curl"]),
        ..Rules::default()
    };
    let policy = engineer(true)
        .with(Source::User, lax)
        .with(Source::Project, strict);
    check(&policy, Decision::Ask, &["curl x"]);
}

#[test]
fn files_are_judged_by_where_they_are() {
    let deny = patterns(&["@write *.lock", "@read secret/*"]);
    let policy = engineer(true).with(
        Source::Project,
        Rules {
            deny,
            ..Rules::default()
        },
    );
    for (world, path, expected) in [
        (World::Writes, "src/a.rs", Decision::Allow),
        (World::Writes, "a/../Cargo.lock", Decision::Deny),
        (World::Reads, "Cargo.lock", Decision::Allow),
        (World::Reads, "./secret/a", Decision::Deny),
        (World::Writes, ".git/config", Decision::Deny),
        (World::Writes, ".selvedge/config.toml", Decision::Deny),
        (
            World::Writes,
            "src/../.selvedge/config.toml",
            Decision::Deny,
        ),
        (World::Writes, "AGENTS.md", Decision::Ask),
        (World::Reads, "AGENTS.md", Decision::Allow),
        (World::Reads, ".git/config", Decision::Allow),
        (World::Writes, ".github/workflows/ci.yml", Decision::Allow),
    ] {
        let act = Act {
            tool: "any",
            world,
            deed: Deed::Files {
                paths: vec!["x".into(), path.into()],
            },
        };
        assert_eq!(
            judge(&policy, &site(), &act).decision(),
            expected,
            "{world:?} {path}"
        );
    }
}

#[test]
fn every_cell_of_the_table_of_roles_is_what_is_decided() {
    use Role::*;
    #[rustfmt::skip]
    let expected = [
        (Capability::Read,           vec![Observer, ObserverKnowledge, Worker, Supervisor, Orchestrator]),
        (Capability::Query,          vec![Observer, ObserverKnowledge, Worker, Supervisor, Orchestrator]),
        (Capability::WriteKnowledge, vec![ObserverKnowledge, Worker, Supervisor, Orchestrator]),
        (Capability::Share,          vec![ObserverKnowledge, Worker, Supervisor, Orchestrator]),
        (Capability::Write,          vec![Worker, Supervisor, Orchestrator]),
        (Capability::Run,            vec![Worker, Supervisor, Orchestrator]),
        (Capability::Network,        vec![Worker, Supervisor, Orchestrator]),
        (Capability::Delegate,       vec![Supervisor, Orchestrator]),
        (Capability::Terminate,      vec![Supervisor, Orchestrator]),
        (Capability::Pipeline,       vec![Orchestrator]),
        (Capability::Resources,      vec![Orchestrator]),
        (Capability::Credentials,    vec![]),
        (Capability::Configure,      vec![]),
        (Capability::Policy,         vec![]),
    ];
    assert_eq!(expected.len(), CAPABILITIES.len());
    for (capability, roles) in expected {
        for role in ROLES {
            assert_eq!(
                role.may(capability),
                roles.contains(&role),
                "{role} {capability}"
            );
            let world = match capability {
                Capability::Read => World::Reads,
                Capability::Write => World::Writes,
                Capability::Run => World::Runs,
                Capability::Delegate => World::Delegates,
                _ => continue,
            };
            // A declared or allowed command is still the role's to use.
            let allow = patterns(&["ls *", "@tool any"]);
            let policy = Policy {
                role,
                fence: Some("on".into()),
                ..Policy::default()
            };
            let policy = policy.with(
                Source::Crew,
                Rules {
                    allow,
                    ..Rules::default()
                },
            );
            let act = Act {
                tool: "any",
                world,
                deed: Deed::Other,
            };
            let verdict = judge(&policy, &site(), &act);
            let denied = verdict.decision() == Decision::Deny;
            assert_eq!(
                denied,
                !roles.contains(&role),
                "{role} {capability}: {verdict:?}"
            );
            assert!(!denied || verdict.finding.rule.source == Source::Role);
        }
    }
}

#[test]
fn a_helper_has_no_more_rights_than_its_chief() {
    let deny = patterns(&["make"]);
    let allow = patterns(&["curl *"]);
    let chief = Policy {
        role: Role::Observer,
        crafts: vec![Craft::Inspector],
        fence: Some("on".into()),
        layers: Vec::new(),
    }
    .with(
        Source::User,
        Rules {
            deny,
            ..Rules::default()
        },
    )
    .with(
        Source::Agent,
        Rules {
            allow,
            ..Rules::default()
        },
    );
    let helper = Policy {
        role: Role::Worker,
        crafts: vec![Craft::Engineer],
        fence: Some("on".into()),
        layers: Vec::new(),
    };
    let helper = helper.within(&chief);
    assert_eq!(helper.role, Role::Observer);
    let worker = Policy {
        role: Role::Worker,
        ..helper.clone()
    };
    check(&worker, Decision::Deny, &["make", "git commit -m x"]);
    check(&worker, Decision::Ask, &["curl x"]);
    check(&worker, Decision::Allow, &["git status", "ls"]);
    assert_eq!(
        helper.clone().within(&chief),
        helper,
        "the same twice is one"
    );
}

#[test]
fn an_unknown_tool_that_runs_something_is_asked_about_unless_a_rule_knows_it() {
    let act = Act {
        tool: "deploy",
        world: World::Runs,
        deed: Deed::Other,
    };
    assert_eq!(
        judge(&engineer(true), &site(), &act).decision(),
        Decision::Ask
    );
    let allow = patterns(&["@tool deploy"]);
    let policy = engineer(true).with(
        Source::User,
        Rules {
            allow,
            ..Rules::default()
        },
    );
    assert_eq!(judge(&policy, &site(), &act).decision(), Decision::Allow);
}
