//! Crews of the user's own, and agents that hand work to others.

use expect_test::expect;

use crate::world::World;

/// A lead that hands work to a painter, who asks.
fn pair(world: &World) -> std::path::PathBuf {
    let crew = "work/.selvedge/crews/pair";
    world.write(
        &format!("{crew}/crew.toml"),
        "name = 'pair'\ndescription = 'Two of them.'\nentry = 'lead'\n",
    );
    world.write(
        &format!("{crew}/agents/lead.md"),
        "---\nname: lead\ndescription: Leads.\nagents: [painter]\n---\nYou lead.\n",
    );
    world.write(
        &format!("{crew}/agents/painter.md"),
        "---\nname: painter\ndescription: Paints.\ntools: [ask_user, run_command]\n---\nYou paint.\n",
    );
    world.write(
        "pair.yaml",
        "\
price: {input: 2.0, output: 10.0}
agents:
  lead:
    - calls: [{delegate: {agent: painter, task: paint the door}}]
      usage: {input: 100, output: 10}
    - text: The door is painted.
      usage: {input: 100, output: 10}
  painter:
    - calls: [{ask_user: {question: which colour?}}]
      usage: {input: 100, output: 10}
    - calls: [{run_command: {command: sh -c 'touch painted'}}]
      usage: {input: 100, output: 10}
    - text: Painted.
      usage: {input: 100, output: 10}
",
    )
}

#[test]
fn what_a_helper_asks_is_answered_through_the_session() {
    let world = World::new();
    let script = pair(&world);
    let script = script.to_str().unwrap();
    world
        .selvedge(&["run", "--crew", "pair", "--script", script, "paint"])
        .check(expect![[r#"
            exit 3
            -- stderr --
            lead on scripted/pair · session s_ID
              lead hands work to s_ID/t0.0
            painter task-001 on scripted/pair
              painter task-001 asks: which colour?
            waiting for an answer · 2 turns · 220 tokens · $0.0006 · N s · session s_ID
              question: which colour?
              answer: selvedge answer s_ID "…"
              then: selvedge resume s_ID
        "#]]);
    let output = world.selvedge(&["answer", "blue", "--resume"]);
    assert_eq!(
        output.code, 3,
        "the command is asked about: {}",
        output.stderr
    );
    world
        .selvedge(&["answer", "yes", "--resume"])
        .check(expect![[r#"
            exit 0
            -- stdout --
            The door is painted.
            -- stderr --
            going on with session s_ID: paint
              in ROOT/work
              answered: yes (allowed)
              painter task-001: run_command sh -c 'touch painted'
              Painted.
              lead gets it back: done
              The door is painted.
            done · 5 turns · 550 tokens · $0.0015 · N s · session s_ID
        "#]]);
    assert!(world.work().join("painted").exists());
    let session = world.session();
    world
        .selvedge(&["sessions", "show", &session])
        .check(expect![[r#"
            exit 0
            -- stdout --
            session s_ID: done
              crew  pair, lead on scripted/pair
              workspace  ROOT/work
              started  TIME (AGO)
              spent  5 turns · 550 tokens · $0.0015

              lead ✓ 2 turns · $0.0006
              └─ painter task-001 ✓ 3 turns · $0.0009 · paint the door

              +N s  lead started: paint
              +N s  painter task-001 started: paint the door
              +N s  painter task-001 finished: Painted.
              +N s  lead finished: The door is painted.

            request
              paint

            lead

                painter task-001 on scripted/pair: paint the door

                painter task-001
                  asked: which colour?
                  answered: blue

                painter task-001
                  asked: painter wants to run: sh -c 'touch painted'
                  answered: yes (allowed)
                  ✓ run_command sh -c 'touch painted'
                      [no output]

                painter task-001
                  Painted.

                done
                  Painted.
              the other agent ended: done

            lead
              The door is painted.

            done
              The door is painted.
        "#]]);
    let usage = world.selvedge(&["usage"]);
    assert!(usage.stdout.contains("painter"), "{}", usage.stdout);
}

#[test]
fn a_session_whose_helper_waits_is_cancelled_with_it() {
    let world = World::new();
    let script = pair(&world);
    let script = script.to_str().unwrap();
    let run = ["run", "--crew", "pair", "--script", script, "paint"];
    assert_eq!(world.selvedge(&run).code, 3);
    let session = world.session();
    assert_eq!(world.selvedge(&["sessions", "cancel", &session]).code, 0);
    let finished = world
        .kinds()
        .iter()
        .filter(|kind| *kind == "RunFinished")
        .count();
    assert_eq!(finished, 2, "the helper ended, too");
    assert_eq!(world.selvedge(&["answer", "blue"]).code, 2);
}

#[test]
fn a_fork_takes_its_helpers_along() {
    let world = World::new();
    let script = pair(&world);
    let script = script.to_str().unwrap();
    let run = [
        "run",
        "--crew",
        "pair",
        "--script",
        script,
        "--approve",
        "auto",
        "paint",
    ];
    assert_eq!(world.selvedge(&run).code, 3);
    let origin = world.session();
    let fork = world.selvedge(&["sessions", "fork", &origin]);
    assert_eq!(fork.code, 0, "{}", fork.stderr);
    let output = world.selvedge(&["answer", fork.stdout.trim(), "green", "--resume"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let output = world.selvedge(&["answer", &origin, "red", "--resume"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(world.selvedge(&["audit", "verify"]).code, 0);
}

#[test]
fn a_crew_that_is_wrong_is_named_with_its_file() {
    let world = World::new();
    let script = pair(&world);
    world.write(
        "work/.selvedge/crews/pair/crew.toml",
        "name = 'pair'\nentry = 'boss'\n",
    );
    world
        .selvedge(&[
            "run",
            "--crew",
            "pair",
            "--script",
            script.to_str().unwrap(),
            "paint",
        ])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: `ROOT/work/.selvedge/crews/pair/crew.toml` does not define a crew: its entry `boss` is none of its agents
              hint: correct `ROOT/work/.selvedge/crews/pair/crew.toml`
        "#]]);
    world.write(
        "work/.selvedge/crews/pair/agents/painter.md",
        "---\nname: painter\ndescription: Paints.\ntools: [run_comand]\n---\nYou paint.\n",
    );
    world.write(
        "work/.selvedge/crews/pair/crew.toml",
        "name = 'pair'\nentry = 'painter'\n",
    );
    world
        .selvedge(&[
            "run",
            "--crew",
            "pair",
            "--script",
            script.to_str().unwrap(),
            "paint",
        ])
        .check(expect![[r#"
            exit 2
            -- stderr --
            error: agent `painter` wants the tool `run_comand`, which does not exist
              hint: did you mean `run_command`?
        "#]]);
}
