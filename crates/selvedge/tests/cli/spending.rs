//! Budgets of every level, and reports that add up.

use serde_json::Value;

use crate::world::{Output, World};

/// The rows of a report.
fn rows(world: &World, filters: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["usage", "--json"];
    arguments.extend(filters);
    let output = world.selvedge(&arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let lines = output.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Calls, tokens and billionths of a dollar in all.
fn sum(rows: &[Value]) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for row in rows {
        let dollars = row["cost_usd"].as_f64().unwrap();
        sum.0 += row["calls"].as_u64().unwrap();
        sum.1 += row["usage"]["input"].as_u64().unwrap() + row["usage"]["output"].as_u64().unwrap();
        sum.2 += (dollars * 1e9).round() as u64;
    }
    sum
}

/// A lead and its helper, who looks twice, and what the helper's file says besides.
fn pair(world: &World, limits: &str) -> String {
    let crew = "home/config/crews/pair";
    world.write(
        &format!("{crew}/crew.toml"),
        "name = 'pair'\ndescription = 'Two of them.'\nentry = 'lead'\n",
    );
    world.write(
        &format!("{crew}/agents/lead.md"),
        "---\nname: lead\ndescription: Leads.\nagents: [helper]\n---\nYou lead.\n",
    );
    world.write(
        &format!("{crew}/agents/helper.md"),
        &format!(
            "---\nname: helper\ndescription: Helps.\ntools: [list_files]\n{limits}---\nHelp.\n"
        ),
    );
    let script = world.write(
        "pair.yaml",
        "\
price: {input: 2.001, output: 10.003}
agents:
  lead:
    - calls:
        - delegate: {agent: helper, task: look here}
        - delegate: {agent: helper, task: look there}
      usage: {input: 1003, output: 107}
    - text: Both looked.
      usage: {input: 1511, output: 33}
  helper:
    - text: Looked.
      usage: {input: 2001, output: 51}
",
    );
    script.to_str().unwrap().to_owned()
}

fn run_pair(world: &World, script: &str, flags: &[&str]) -> Output {
    let mut arguments = vec!["run", "--crew", "pair", "--script", script];
    arguments.extend(flags);
    arguments.push("look");
    world.selvedge(&arguments)
}

#[test]
fn usage_adds_up_whatever_it_is_summed_by() {
    let world = World::new();
    let script = pair(&world, "");
    for _ in 0..2 {
        let output = run_pair(&world, &script, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    let session = world.session();
    let all = sum(&rows(&world, &[]));
    assert_eq!((all.0, all.1), (8, 2 * (1110 + 1544 + 2 * 2052)));
    for by in ["agent", "model", "provider", "session", "day"] {
        assert_eq!(sum(&rows(&world, &["--by", by])), all, "by {by}");
    }
    // Filters, alone and together, leave what they say.
    let helper = sum(&rows(&world, &["--agent", "helper"]));
    let lead = sum(&rows(&world, &["--agent", "lead"]));
    assert_eq!((helper.0 + lead.0, helper.2 + lead.2), (all.0, all.2));
    let one = ["--session", &session];
    assert_eq!(sum(&rows(&world, &one)).2 * 2, all.2);
    let narrow = [
        "--session",
        &session,
        "--agent",
        "helper",
        "--provider",
        "scripted",
        "--since",
        "1h",
    ];
    assert_eq!(sum(&rows(&world, &narrow)).2 * 2, helper.2);
    for none in [["--provider", "openai"], ["--agent", "nobody"]] {
        assert_eq!(rows(&world, &none), Vec::<Value>::new());
    }
    assert_eq!(world.selvedge(&["usage", "--session", "s_nobody"]).code, 2);
    // What is shown adds up, too: to the last decimal.
    let shown = world.selvedge(&["usage", "--by", "agent"]).stdout;
    let costs: Vec<f64> = shown
        .lines()
        .filter_map(|line| line.rsplit_once('$')?.1.trim().parse().ok())
        .collect();
    assert_eq!(costs.len(), 3, "{shown}");
    let amounts = shown.lines().filter_map(|line| line.rsplit_once('$'));
    let decimals = amounts.map(|(_, amount)| amount.trim().split_once('.').unwrap().1.len());
    let decimals: std::collections::BTreeSet<usize> = decimals.collect();
    assert_eq!(decimals.len(), 1, "all have the same number: {shown}");
    assert_eq!(
        ((costs[0] + costs[1]) * 1e9).round(),
        (costs[2] * 1e9).round()
    );
    let row = &rows(&world, &["--by", "provider"])[0];
    assert!(row["first_token_ms_mean"].is_u64() && row["total_ms_mean"].is_u64());
    assert_eq!(row["at_most_usd"], row["cost_usd"], "nothing is estimated");
}

#[test]
fn a_budget_of_tokens_parks_a_session_and_a_higher_one_goes_on() {
    let world = World::new();
    let turns = "\
- calls: [{list_files: {}}]
  usage: {input: 50000, output: 10}
- text: done";
    let output = world.run(turns, &["--budget-tokens", "60000", "do it"]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let why = "allows 60000 tokens: 50010 tokens spent, 0 tokens held";
    assert!(output.stderr.contains(why), "{}", output.stderr);
    let session = world.session();
    let hint = format!("selvedge resume {session} --budget-tokens TOKENS");
    assert!(output.stderr.contains(&hint), "{}", output.stderr);
    assert_eq!(world.selvedge(&["resume", &session]).code, 4);
    let resumed = world.selvedge(&["resume", &session, "--budget-tokens", "100000"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

#[test]
fn an_agent_has_a_budget_for_all_its_runs_which_a_person_can_raise() {
    let world = World::new();
    // Each of its two runs fits, both together do not.
    let script = pair(
        &world,
        "limits: {tokens: 10500, tokens_in_session: 10500}\n",
    );
    let output = run_pair(&world, &script, &[]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let session = world.session();
    let why = format!("budget `helper in {session}` allows 10500 tokens: 2052 tokens spent");
    assert!(output.stderr.contains(&why), "{}", output.stderr);
    assert_eq!(world.selvedge(&["resume", &session]).code, 4);
    let resumed = world.selvedge(&["resume", &session, "--budget-tokens", "100000"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(resumed.stdout, "Both looked.\n");
}

#[test]
fn a_run_whose_own_limit_is_reached_goes_on_when_a_person_raises_it() {
    let world = World::new();
    let script = pair(&world, "limits: {usd: 0.01}\n");
    let output = run_pair(&world, &script, &[]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    assert!(
        output.stderr.contains("budget `helper of "),
        "{}",
        output.stderr
    );
    let resumed = world.selvedge(&["resume", "--last", "--budget", "1"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

#[test]
fn what_broke_off_is_said_to_be_estimated_and_bounded() {
    let world = World::new();
    let turns = "\
- error: {kind: transient, what: the stream was cut, after: I was about to say}
- text: It is done.
  usage: {input: 1000, output: 100}";
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    let row = &rows(&world, &[])[0];
    let dollars = |name: &str| row[name].as_f64().unwrap();
    assert_eq!(row["estimated_attempts"], 1);
    let answered = dollars("cost_usd") - dollars("estimated_usd");
    assert!((answered - 0.003).abs() < 1e-9, "{row}");
    // All the output it might have thought of, unheard.
    assert!(dollars("at_most_usd") > dollars("cost_usd") + 0.05, "{row}");
    let shown = world.selvedge(&["usage"]);
    assert!(shown.stdout.contains("about $0.0"), "{}", shown.stdout);
    assert!(shown.stderr.contains(" at most"), "{}", shown.stderr);
}

#[test]
fn a_budget_of_all_sessions_is_raised_where_it_was_set() {
    let world = World::new();
    world.write("home/config/config.toml", "[budget]\nusd_per_day = 0.01\n");
    let output = world.run("- text: fine", &["do it"]);
    assert_eq!(output.code, 4, "{}", output.stderr);
    let hint = "go on: raise `[budget]` in your configuration, then selvedge resume";
    assert!(output.stderr.contains(hint), "{}", output.stderr);
}

#[test]
fn a_session_shows_how_long_an_answer_took() {
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(selvedge_testkit::ModelServer::start());
    let late = std::time::Duration::from_millis(600);
    server.push(selvedge_testkit::Reply::text("Here.").latency(late));
    let mut command = world.command(&["run", "hello?"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "sk-very-secret");
    let output = world.output(&mut command);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let show = world.selvedge(&["sessions", "show", &world.session()]);
    assert!(show.stdout.contains("\nengineer (0."), "{}", show.stdout);
    let row = &rows(&world, &[])[0];
    assert!(row["total_ms_mean"].as_u64() >= Some(600), "{row}");
    assert!(row["first_token_ms_mean"].as_u64() >= Some(600), "{row}");
}
