//! Skills, slash commands and instructions, from everybody's folders.

use expect_test::expect;
use serde_json::Value;

use crate::world::World;

/// A skill that the project brings along, and one of the user's own.
fn skilled() -> World {
    let world = World::new();
    let skill = |path: &str, name: &str, description: &str| {
        world.write(
            &format!("{path}/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: {description}\n---\nDo {name} so.\n"),
        );
    };
    skill("work/.agents/skills", "pdf", "Reads PDF files.");
    skill("work/.claude/skills", "notes", "Theirs.");
    skill("home/config/skills", "notes", "Mine.");
    world
}

/// The events of one kind, in the only session.
fn events(world: &World, kind: &str) -> Vec<Value> {
    let session = world.session();
    let events = world.selvedge(&["sessions", "events", &session, "--json"]);
    let lines = events.stdout.lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["kind"] == kind).collect()
}

/// What the only session's model was told, and what the user asked.
fn told(world: &World) -> (String, String) {
    let started = events(world, "RunStarted").remove(0);
    let text = |name: &str| {
        let payload = &started["data"]["spec"][name];
        match payload.as_str() {
            Some(text) => text.to_owned(),
            None => panic!("`{name}` is long: {payload}"),
        }
    };
    (text("system"), text("request"))
}

/// A crew whose only agent has a short prompt, so that it stays inside its event.
fn terse(world: &World) {
    world.write(
        "home/config/crews/terse/crew.toml",
        "name = 'terse'\nentry = 'engineer'\n",
    );
    world.write(
        "home/config/crews/terse/agents/engineer.md",
        "---\nname: engineer\ndescription: Works.\ntools: [read_file, run_command, use_skill]\n---\n\
         You work.\n{{ instructions }}\n",
    );
}

#[test]
fn skills_are_listed_shown_and_checked() {
    let world = skilled();
    world.write(
        "work/.selvedge/skills/bad/SKILL.md",
        "---\nname: Bad\n---\nx\n",
    );
    world.selvedge(&["skills", "list"]).check(expect![[r#"
        exit 0
        -- stdout --
        NAME  WHOSE  FOLDER  DESCRIPTION
        notes  yours  ROOT/home/config/skills/notes  Mine.
        pdf  the project's  .agents/skills/pdf  Reads PDF files.
        -- stderr --
        warning: `.selvedge/skills/bad` is left out: `name: Bad` must be lowercase letters, digits and single hyphens between them
        warning: `.claude/skills/notes` is left out: `ROOT/home/config/skills/notes` has the same name and comes first
    "#]]);
    world
        .selvedge(&["skills", "show", "pdf"])
        .check(expect![[r#"
            exit 0
            -- stdout --
            pdf: Reads PDF files.
              whose  the project's
              folder  .agents/skills/pdf

            Do pdf so.
        "#]]);
    world
        .selvedge(&["skills", "show", "pfd"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: there is no skill `pfd`
              hint: `selvedge skills list` shows them
        "#]]);
    world.selvedge(&["skills", "check"]).check(expect![[r#"
        exit 1
        -- stdout --
        ROOT/home/config/skills/notes: fine
        .agents/skills/pdf: fine
        .claude/skills/notes: fine
        .selvedge/skills/bad: broken: `name: Bad` must be lowercase letters, digits and single hyphens between them
        -- stderr --
        4 skills, 1 broken
    "#]]);
    world
        .selvedge(&["skills", "check", ".agents/skills"])
        .check(expect![[r#"
            exit 0
            -- stdout --
            .agents/skills/pdf: fine
            -- stderr --
            1 skill, 0 broken
        "#]]);
    world
        .selvedge(&["skills", "check", ".agents"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: `.agents` cannot be checked
              cause: there is no `SKILL.md` in it, nor in its folders
              hint: name the folder of a skill, or a folder of such folders
        "#]]);
    let list = world.selvedge(&["skills", "list", "--json"]);
    let rows: Vec<Value> = list
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let states: Vec<&str> = rows.iter().filter_map(|r| r["state"].as_str()).collect();
    assert_eq!(states, ["ready", "ready", "broken", "shadowed"]);
    assert_eq!(rows[0]["owner"], "user");
}

#[test]
fn an_agent_is_told_of_skills_and_reads_them_when_it_needs_to() {
    let world = skilled();
    terse(&world);
    world.write("work/.agents/skills/pdf/forms.md", "Fill in.\n");
    let turns = "\
- calls: [{use_skill: {name: pdf}}]
- calls: [{use_skill: {name: pdf, file: forms.md}}, {use_skill: {name: pdf, file: ../../../x}}]
- text: read";
    let output = world.run(turns, &["--crew", "terse", "read it"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let (system, _) = told(&world);
    assert!(
        system.ends_with("\n- notes: Mine.\n- pdf: Reads PDF files.\n"),
        "{system}"
    );
    let finished = events(&world, "ToolCallFinished");
    let texts: Vec<&str> = finished
        .iter()
        .map(|event| event["data"]["outcome"]["text"].as_str().unwrap())
        .collect();
    assert!(texts[0].contains("Do pdf so."), "{texts:?}");
    assert!(
        texts.iter().any(|text| text.contains("Fill in.")),
        "{texts:?}"
    );
    assert!(
        texts.iter().any(|text| text.contains("outside")),
        "{texts:?}"
    );
}

#[test]
fn a_projects_scripts_wait_for_trust_and_a_change_is_noticed() {
    let world = skilled();
    terse(&world);
    world.write("work/.agents/skills/pdf/scripts/run.sh", "echo hello\n");
    let ask = "- calls: [{run_command: {command: sh -c 'cat .agents/skills/pdf/scripts/run.sh'}}]\n\
               - text: done";
    let output = world.run(ask, &["--crew", "terse", "go"]);
    assert!(
        output.stderr.contains(
            "the skill `.agents/skills/pdf` is left out: it brings scripts along, and nobody \
             vouches for this folder; look at it, then `selvedge trust`"
        ),
        "{}",
        output.stderr
    );
    assert_eq!(output.code, 3, "a script is a command like any other");
    assert!(!told(&world).0.contains("- pdf:"));
    world.selvedge(&["sessions", "cancel", &world.session()]);

    assert_eq!(world.selvedge(&["trust"]).code, 0);
    let list = world.selvedge(&["skills", "list"]);
    assert!(list.stdout.contains("pdf"), "{}", list.stdout);
    world.write("work/.agents/skills/pdf/scripts/run.sh", "echo other\n");
    let list = world.selvedge(&["skills", "list"]);
    assert!(!list.stdout.contains("pdf"), "{}", list.stdout);
    assert_eq!(world.selvedge(&["trust"]).code, 0);

    let output = world.run(ask, &["--crew", "terse", "go"]);
    assert_eq!(output.code, 3, "trust of a skill lets nothing run unasked");
    world.write(
        "work/.agents/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: y\n---\nz\n",
    );
    let output = world.selvedge(&["resume", "--last"]);
    assert!(
        output
            .stderr
            .contains("the skill `pdf` has changed since the run began"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_script_of_the_users_own_skill_runs_as_any_command_does() {
    let world = skilled();
    terse(&world);
    let script = "home/config/skills/notes/scripts/run.sh";
    let script = world.write(script, "echo from the skill; touch \"$0.x\" 2>&1\n");
    world.write("home/config/secret.txt", "not for commands\n");
    let (script, folder) = (script.display(), world.home().join("config"));
    let turns = format!(
        "- calls: [{{run_command: {{command: sh {script}}}}}, \
         {{run_command: {{command: cat {}/secret.txt}}}}]\n- text: done",
        folder.display()
    );
    let output = world.run(&turns, &["--crew", "terse", "--approve", "auto", "go"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let finished = events(&world, "ToolCallFinished");
    let text = |n: usize| finished[n]["data"]["outcome"]["text"].to_string();
    assert!(text(0).contains("from the skill"), "{}", text(0));
    assert!(
        text(0).contains("touch:"),
        "it cannot be written: {}",
        text(0)
    );
    assert!(!text(1).contains("not for commands"), "{}", text(1));
}

#[test]
fn a_slash_command_is_the_request_that_its_file_has() {
    let world = skilled();
    terse(&world);
    world.write(
        "work/.claude/commands/review.md",
        "---\ndescription: Reviews.\nallowed-tools: Bash(rm:*)\n---\nReview $1 with care.\n",
    );
    let output = world.run("- text: fine", &["--crew", "terse", "/review src/main.rs"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        told(&world).1,
        "/review src/main.rs\n\n[`/review` stands for this, from `.claude/commands/review.md`, \
         content of the repository:]\n\nReview src/main.rs with care."
    );
    world
        .run("- text: fine", &["/reveiw src"])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: there is no command `/reveiw`
              cause: the commands are: /notes, /pdf, /review
              hint: did you mean `/review`?
        "#]]);
    world.run("- text: fine", &["/zzz"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no command `/zzz`
          cause: the commands are: /notes, /pdf, /review
          hint: make `.selvedge/commands/zzz.md`, or begin the request with another word if it is none
    "#]]);
}

#[test]
fn a_skill_is_asked_for_by_its_name_as_a_command_is() {
    let world = skilled();
    terse(&world);
    let output = world.run("- text: fine", &["--crew", "terse", "/pdf a.pdf"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        told(&world).1,
        "/pdf a.pdf\n\n[Use the skill `pdf` for this.]"
    );
}

#[test]
fn a_path_at_the_beginning_of_a_request_is_no_command() {
    let world = World::new();
    let output = world.run("- text: fine", &["/usr/bin is full"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
}

#[test]
fn instructions_come_from_the_user_the_repository_and_the_nearest_folder() {
    let world = World::new();
    terse(&world);
    world.write("home/config/AGENTS.md", "Be brief.\n");
    world.write("work/AGENTS.md", "In general.\n");
    world.write("work/part/AGENTS.md", "Here\u{200b} too.\n");
    std::fs::create_dir(world.work().join(".git")).unwrap();
    let output = world.run("- text: fine", &["--crew", "terse", "-C", "part", "go"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    expect![[r#"
        You work.
        [`AGENTS.md`:]
        In general.

        [`part/AGENTS.md`, which counts where they differ:]
        Here\u{200b} too.

        The user asks this of every agent, in every project:

        <instructions>
        Be brief.
        </instructions>
    "#]]
    .assert_eq(&told(&world).0);
}
