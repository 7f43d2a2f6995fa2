//! Configuration: who says what, and who has the last word.

use expect_test::expect;

use crate::world::World;

#[test]
fn each_layer_lies_over_the_one_below() {
    let world = World::new();
    world.write(
        "work/.selvedge/config.toml",
        "crew = 'project'\nmodel = 'project'\n",
    );
    world.write(
        "home/config/config.toml",
        "model = 'user'\nbudget_usd = 5\n",
    );
    world.write(
        "work/.selvedge/local/config.toml",
        "budget_usd = 2.5\n[limits]\nmodel_calls_max = 9\n",
    );
    let mut command = world.command(&["config", "show"]);
    command.env("SELVEDGE_LIMITS_MODEL_CALLS_MAX", "7");
    world.output(&mut command).check(expect![[r#"
        exit 0
        -- stdout --
        model  "user"  ROOT/home/config/config.toml
        crew  "project"  ROOT/work/.selvedge/config.toml
        approve  "ask"  default
        budget_usd  2.5  ROOT/work/.selvedge/local/config.toml
        budget_tokens  (not set)  default
        profile  (not set)  default
        limits.model_calls_max  7  $SELVEDGE_LIMITS_MODEL_CALLS_MAX
        limits.output_tokens_max  (not set)  default
        limits.context_tokens_max  (not set)  default
        limits.tool_seconds_max  (not set)  default
        limits.strikes_max  (not set)  default
        slots.per_provider  (not set)  default
        slots.in_all  (not set)  default
        cache  (not set)  default
        tools.lazy  "auto"  default
        sandbox.mode  "on"  default
        sandbox.fence  "auto"  default
        sandbox.network  "off"  default
        sandbox.allow  (not set)  default
        sandbox.writable  (not set)  default
        sandbox.readable  (not set)  default
        sandbox.hidden  (not set)  default
        sandbox.memory_mb_max  (not set)  default
        sandbox.processes_max  (not set)  default
        sandbox.files_max  (not set)  default
        secrets.prompt  (not set)  default
        knowledge.embedder  (not set)  default
        knowledge.model  (not set)  default
        knowledge.url  (not set)  default
        knowledge.key_variable  (not set)  default
        knowledge.folder  (not set)  default
        journal.dir  (not set)  default
        journal.timezone  (not set)  default
        journal.units  (not set)  default
        journal.max_global_context_tokens  (not set)  default
    "#]]);
}

#[test]
fn what_is_set_in_tables_and_rules_is_shown_too() {
    let world = World::new();
    world.write(
        "home/config/config.toml",
        "[budget]\nusd_per_day = 20\n[budget.providers.openai]\ntokens_per_month = 9\n\
         [policy]\nallow = ['npm install *']\n\
         [fallback]\nanthropic = ['openai/gpt-6-sol']\n\"openai/gpt-6.1-sol\" = ['low']\n\
         [[hooks]]\nevent = 'pre_tool'\ncommand = ['lint.sh', '-q']\n\
         [mcp.servers.files]\ncommand = 'files'\nenv = { TOKEN = 'tell-nobody-of-this' }\n",
    );
    world.write(
        "work/.selvedge/config.toml",
        "[policy]\ndeny = ['make deploy']\n[secrets]\nfiles = ['*.pem']\n",
    );
    let shown = world.selvedge(&["config", "show"]);
    let more: Vec<&str> = shown
        .stdout
        .lines()
        .skip_while(|l| !l.starts_with("policy.deny"))
        .collect();
    let words = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let root = world.root().canonicalize().unwrap();
    let more: Vec<String> = more
        .iter()
        .map(|l| words(l).replace(root.to_str().unwrap(), "ROOT"))
        .collect();
    let (user, project) = (
        "ROOT/home/config/config.toml",
        "ROOT/work/.selvedge/config.toml",
    );
    let expected = [
        format!("policy.deny [\"make deploy\"] {project}"),
        format!("secrets.files [\"*.pem\"] {project}"),
        format!("budget.providers.openai.tokens_per_month 9 {user}"),
        format!("budget.usd_per_day 20 {user}"),
        format!("fallback.anthropic [\"openai/gpt-6-sol\"] {user}"),
        format!("fallback.\"openai/gpt-6.1-sol\" [\"low\"] {user}"),
        format!("mcp.servers.files \"`selvedge mcp show` tells more\" {user}"),
        format!("policy.allow [\"npm install *\"] {user}"),
        format!("hooks.pre_tool \"lint.sh -q\" {user}"),
    ];
    assert_eq!(more, expected, "{}", shown.stderr);
    assert!(!shown.stdout.contains("tell-nobody-of-this"));
    let json = world.selvedge(&["config", "show", "--json"]).stdout;
    assert!(
        json.lines()
            .any(|line| line.contains("\"key\":\"budget.usd_per_day\"")),
        "{json}"
    );
}

#[test]
fn a_project_may_tighten_security_and_never_loosen_it() {
    let world = World::new();
    world.write(
        "work/.selvedge/config.toml",
        "approve = 'auto'\n[catalogue.providers.anthropic]\nbase_url = 'http://elsewhere'\n\
         [sandbox]\nmode = 'off'\nnetwork = 'on'\nallow = ['evil.org']\nwritable = ['/']\n\
         hidden = ['/srv']\n",
    );
    world.selvedge(&["config", "show"]).check(expect![[r#"
        exit 0
        -- stdout --
        model  (not set)  default
        crew  "solo"  default
        approve  "ask"  default
        budget_usd  (not set)  default
        budget_tokens  (not set)  default
        profile  (not set)  default
        limits.model_calls_max  (not set)  default
        limits.output_tokens_max  (not set)  default
        limits.context_tokens_max  (not set)  default
        limits.tool_seconds_max  (not set)  default
        limits.strikes_max  (not set)  default
        slots.per_provider  (not set)  default
        slots.in_all  (not set)  default
        cache  (not set)  default
        tools.lazy  "auto"  default
        sandbox.mode  "on"  default
        sandbox.fence  "auto"  default
        sandbox.network  "off"  default
        sandbox.allow  (not set)  default
        sandbox.writable  (not set)  default
        sandbox.readable  (not set)  default
        sandbox.hidden  ["/srv"]  ROOT/work/.selvedge/config.toml
        sandbox.memory_mb_max  (not set)  default
        sandbox.processes_max  (not set)  default
        sandbox.files_max  (not set)  default
        secrets.prompt  (not set)  default
        knowledge.embedder  (not set)  default
        knowledge.model  (not set)  default
        knowledge.url  (not set)  default
        knowledge.key_variable  (not set)  default
        knowledge.folder  (not set)  default
        journal.dir  (not set)  default
        journal.timezone  (not set)  default
        journal.units  (not set)  default
        journal.max_global_context_tokens  (not set)  default
        -- stderr --
        warning: `approve = "auto"` in `ROOT/work/.selvedge/config.toml` is ignored: a project may tighten security, not loosen it; pass `--approve auto` if you mean it
        warning: `sandbox.allow` in `ROOT/work/.selvedge/config.toml` is ignored: a project may tighten security, not loosen it; put it into your own configuration if you mean it
        warning: `sandbox.mode` in `ROOT/work/.selvedge/config.toml` is ignored: a project may tighten security, not loosen it; put it into your own configuration if you mean it
        warning: `sandbox.network` in `ROOT/work/.selvedge/config.toml` is ignored: a project may tighten security, not loosen it; put it into your own configuration if you mean it
        warning: `sandbox.writable` in `ROOT/work/.selvedge/config.toml` is ignored: a project may tighten security, not loosen it; put it into your own configuration if you mean it
        warning: `[catalogue]` in `ROOT/work/.selvedge/config.toml` is ignored: it decides where keys are sent; put it into your own configuration
    "#]]);
    let turns = "- calls: [{run_command: {command: sh -c 'touch made'}}]\n- text: fine";
    assert_eq!(
        world.run(turns, &["do it"]).code,
        3,
        "the command is asked about"
    );
    world.write("work/.selvedge/config.toml", "approve = 'never'\n");
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    assert!(!world.work().join("made").exists());
    // A file of the user's own could be the repository's as well.
    world.write("work/.selvedge/local/config.toml", "approve = 'auto'\n");
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    assert!(!world.work().join("made").exists());
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    assert_eq!(world.run(turns, &["do it"]).code, 0);
    assert!(world.work().join("made").exists());
}

#[test]
fn a_file_that_is_wrong_is_shown_with_line_key_and_nearest_name() {
    let world = World::new();
    world.write("home/config/config.toml", "# mine\nmodle = 'x'\n");
    world.selvedge(&["run", "do it"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: the configuration `ROOT/home/config/config.toml` line 2 cannot be used
          cause: there is no `modle`; there is: model, crew, approve, budget_usd, budget_tokens, profile, limits, policy, hooks, slots, cache, fallback, budget, soft_limits, tools, sandbox, secrets, knowledge, mcp, journal, catalogue
          hint: did you mean `model`?
    "#]]);
    world.write("home/config/config.toml", "budget_usd = 'much'\n");
    world.selvedge(&["config", "check"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: the configuration `ROOT/home/config/config.toml` line 1 cannot be used
          cause: `budget_usd`: invalid type: string "much", expected f64
          hint: correct the line; `selvedge config schema` describes every key
    "#]]);
    let mut command = world.command(&["config", "check"]);
    world.write("home/config/config.toml", "");
    command.env("SELVEDGE_APPROVE", "perhaps");
    world.output(&mut command).check(expect![[r#"
        exit 2
        -- stderr --
        error: the variable `SELVEDGE_APPROVE` cannot be used
          cause: unknown variant `perhaps`, expected one of `ask`, `auto`, `never`
          hint: correct it or unset it: `unset SELVEDGE_APPROVE`
    "#]]);
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join("config/config.toml")).unwrap();
    world.selvedge(&["config", "check"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: the configuration `ROOT/home/config/config.toml` cannot be read
          cause: Is a directory (os error 21)
          hint: make it a readable file, or remove it
    "#]]);
}

#[test]
fn limits_bound_what_an_agents_file_allows() {
    let world = World::new();
    world.write("home/config/config.toml", "[limits]\nmodel_calls_max = 1\n");
    let turns = "- calls: [{list_files: {}}]\n- text: fine";
    let output = world.run(turns, &["do it"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("used all 1 of its model calls"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_schema_describes_every_key() {
    let world = World::new();
    let output = world.selvedge(&["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    for key in [
        "model",
        "crew",
        "approve",
        "budget_usd",
        "budget_tokens",
        "limits",
        "catalogue",
    ] {
        let property = &schema["properties"][key];
        assert!(property["description"].is_string(), "{key}: {property}");
    }
}

#[test]
fn completions_models_and_path_are_printed() {
    let world = World::new();
    let output = world.selvedge(&["completions", "bash"]);
    assert!(output.stdout.contains("_selvedge"));
    let output = world.selvedge(&["models", "--json"]);
    let line: serde_json::Value =
        serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(line["available"], false);
    world.selvedge(&["config", "path"]).check(expect![[r#"
        exit 0
        -- stdout --
        ROOT/work/.selvedge/config.toml
        ROOT/home/config/config.toml
        ROOT/work/.selvedge/local/config.toml
    "#]]);
}

#[test]
fn doctor_names_keys_and_never_their_values() {
    let world = World::new();
    let mut command = world.command(&["doctor"]);
    command.env("ANTHROPIC_API_KEY", "sk-very-secret");
    let output = world.output(&mut command);
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(output.stdout.contains("anthropic"), "{}", output.stdout);
    assert!(!output.stdout.contains("secret") && !output.stderr.contains("secret"));
}

#[test]
fn a_check_finds_names_that_lead_nowhere() {
    let world = World::new();
    world.write("home/config/config.toml", "crew = \"sola\"\n");
    world.selvedge(&["config", "check"]).check(expect![[r#"
        exit 2
        -- stderr --
        error: there is no crew `sola`
          cause: the crews are: journal, solo, swarm
          hint: did you mean `solo`?
    "#]]);
    world.write("home/config/config.toml", "model = \"antropic/x\"\n");
    let mut check = world.command(&["config", "check"]);
    let output = world.output(check.env("ANTHROPIC_API_KEY", "not-a-key"));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("there is no provider `antropic`"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_variable_that_sets_nothing_is_answered_with_the_nearest() {
    let world = World::new();
    let mut check = world.command(&["config", "check"]);
    world
        .output(check.env("SELVEDGE_MODLE", "high"))
        .check(expect![[r#"
            exit 0
            -- stderr --
            warning: the variable `SELVEDGE_MODLE` sets nothing; did you mean `SELVEDGE_MODEL`?
            the configuration is valid (0 files)
        "#]]);
}
