//! `doctor`: checks that everything Selvedge needs is there.

use clap::Args;
use selvedge_ledger::SqliteLedger;
use selvedge_mcp::Listed;
use selvedge_tool::{
    Attempt, Counted, Helper, Maker, Network, Sandbox, attempt_to_break_out, counted,
};

use super::break_out::BREAK_OUT;
use super::run;
use crate::config::Config;
use crate::env;
use crate::error::{Exit, Result};
use crate::mcp::{Servers, Standing};
use crate::out;
use crate::paths::Paths;
use crate::sessions;
use crate::text::{escape, plural};
use crate::wiring::{Models, Store};

#[derive(Args)]
pub struct Doctor {}

// A second of reading, about.
const WHOLE_BYTES_MAX: u64 = 64 << 20;

/// How a check went.
enum Finding {
    Ok(String),
    Warn(String, String),
    Fail(String, String),
}

impl Doctor {
    pub async fn perform(self) -> Result {
        let paths = Paths::find()?;
        let mut failed = false;
        let mut checks = vec![
            ("data", data(&paths)),
            ("ledger", ledger(&paths).await),
            (
                "git",
                program("git", "commits and diffs need it; install git"),
            ),
            ("shell", program("sh", "commands need it")),
        ];
        checks.extend(configuration(&paths));
        checks.extend(servers(&paths));
        checks.extend(sandbox(&paths).await);
        for (name, finding) in checks {
            let (word, text, hint) = match finding {
                Finding::Ok(text) => ("ok  ", text, None),
                Finding::Warn(text, hint) => ("warn", text, Some(hint)),
                Finding::Fail(text, hint) => {
                    failed = true;
                    ("FAIL", text, Some(hint))
                }
            };
            out::line(&format!("{word}  {name:8}  {text}"));
            if let Some(hint) = hint {
                out::line(&format!("                hint: {hint}"));
            }
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

fn data(paths: &Paths) -> Finding {
    let folder = paths.data().display();
    let hint = format!("make it writable, or set `{}`", env::HOME);
    if let Err(error) = paths.make_data() {
        return Finding::Fail(error.in_a_line(), hint);
    }
    match tempfile::NamedTempFile::new_in(paths.data()) {
        Ok(_) => Finding::Ok(format!("{folder} can be written")),
        Err(error) => Finding::Fail(format!("{folder} cannot be written: {error}"), hint),
    }
}

async fn ledger(paths: &Paths) -> Finding {
    let path = paths.ledger().display().to_string();
    let hint = "make the file readable and writable, restore a backup of it, or move it away to \
                begin anew; `selvedge audit verify` looks at every event";
    let fail = |text: String| Finding::Fail(text, hint.into());
    let store = match Store::open_at(paths.clone()) {
        Ok(store) => store,
        Err(error) => return fail(error.in_a_line()),
    };
    let all = match sessions::all(&store).await {
        Ok(all) => all,
        Err(error) => return fail(error.in_a_line()),
    };
    // A large ledger is not read from end to end for a check-up.
    let is_small = std::fs::metadata(paths.ledger()).is_ok_and(|m| m.len() <= WHOLE_BYTES_MAX);
    let newest = all
        .first()
        .map(|info| info.id.clone())
        .filter(|_| !is_small);
    let report = match store.ledger.verify(newest.as_ref()).await {
        Ok(report) => report,
        Err(error) => return fail(error.to_string()),
    };
    if let Some(damage) = report.damage.first() {
        let more = plural(report.damage.len() as u64, "place");
        return fail(format!(
            "{path} is damaged in {more}; `{}`: {}",
            damage.stream, damage.what
        ));
    }
    let checked = plural(report.events, "event");
    let (sessions, engine) = (plural(all.len() as u64, "session"), SqliteLedger::engine());
    Finding::Ok(format!(
        "{path} opens ({engine}); {sessions}, {checked} checked"
    ))
}

fn program(name: &'static str, hint: &str) -> Finding {
    let folders = env::text("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .map(|f| f.join(name))
        .find(|p| p.is_file());
    match found {
        Some(path) => Finding::Ok(path.display().to_string()),
        None => Finding::Warn(format!("`{name}` is not on the search path"), hint.into()),
    }
}

/// How the MCP servers stand. None is started.
fn servers(paths: &Paths) -> Vec<(&'static str, Finding)> {
    let Ok(workspace) = run::workspace(None) else {
        return Vec::new();
    };
    // What is wrong with the configuration is said elsewhere.
    let Ok(config) = Config::load(paths, &workspace) else {
        return Vec::new();
    };
    let servers = Servers::find(paths, &config, &workspace);
    let standings = servers.standings(paths, &workspace);
    let approve = |name: &str| format!("`selvedge mcp approve {name}`");
    let finding = |(listed, standing): (&Listed, Standing)| {
        let name = escape(&listed.name);
        let text = |words: &str| format!("`{name}` {words}");
        match standing {
            Standing::Approved(tools) => {
                let tools = plural(tools as u64, "tool");
                Finding::Ok(text(&format!("is approved, with {tools}")))
            }
            Standing::Disabled => Finding::Ok(text("is disabled")),
            Standing::New => Finding::Warn(text("is not approved"), approve(&name)),
            Standing::Changed => {
                Finding::Warn(text("has changed since it was approved"), approve(&name))
            }
            Standing::Wrong(why) => {
                let hint = "correct its entry; `selvedge mcp list` names it".into();
                Finding::Warn(text(&format!("cannot be used: {why}")), hint)
            }
        }
    };
    let listed = servers.listed.iter().zip(standings).map(finding);
    let warned = servers.warnings.iter().map(|warning| {
        Finding::Warn(
            warning.clone(),
            "until then its servers are not there".into(),
        )
    });
    listed.chain(warned).map(|found| ("mcp", found)).collect()
}

/// Tries to break out of the sandbox, and says what came of each attempt.
async fn sandbox(paths: &Paths) -> Vec<(&'static str, Finding)> {
    let loaded = run::workspace(None).and_then(|workspace| Config::load(paths, &workspace));
    // What is wrong with the configuration is said elsewhere.
    let config = loaded.unwrap_or_else(|_| Config::defaults());
    let mut sandbox = config.settings().sandbox.sandbox(paths);
    if !sandbox.is_on() {
        let hint = "`sandbox.mode = \"on\"` fences commands in";
        let text = "it is off: commands can do whatever you can".into();
        return vec![("sandbox", Finding::Warn(text, hint.into()))];
    }
    // Hosts that were opened are open; what is tried is everything else.
    sandbox.network = Network::Off;
    let attempted = match std::env::current_exe() {
        Ok(program) => {
            let arguments = vec![BREAK_OUT.to_owned()];
            attempt_to_break_out(&sandbox, &Helper { program, arguments }).await
        }
        Err(error) => Err(error.to_string()),
    };
    match attempted {
        Err(why) => {
            let hint =
                "commands are refused until it can; `selvedge run --sandbox off` goes without";
            vec![("sandbox", Finding::Fail(why, hint.into()))]
        }
        Ok(attempts) => {
            let fence = ("fence", fence(&sandbox));
            let findings = attempts.into_iter().map(finding);
            let limits = ("limits", limits(counted()));
            [fence]
                .into_iter()
                .chain(findings)
                .chain([limits])
                .collect()
        }
    }
}

/// Who puts the fence up, now that it has been tried.
fn fence(sandbox: &Sandbox) -> Finding {
    Finding::Ok(match Maker::of(sandbox) {
        Ok(Maker::Own) => "put up by Selvedge itself (namespaces, Landlock, seccomp)".into(),
        Ok(Maker::Bubblewrap { program, instead }) => {
            let why = match instead {
                Some(why) => format!(", since Selvedge itself may not: {why}"),
                None => ", as configured".into(),
            };
            let program = program.display();
            format!("put up by bubblewrap (`{program}`){why}; Landlock and seccomp inside")
        }
        Err(why) => return Finding::Fail(why, "`sandbox.fence` says who is to do it".into()),
    })
}

/// What holds a command that takes too much.
fn limits(counted: Counted) -> Finding {
    let what = match (counted.processes, counted.memory) {
        (true, true) => "processes and memory",
        (true, false) => "processes",
        (false, true) => "memory",
        (false, false) => {
            let text = "no control group can be made here: processes have limits of their own, and \
                        are counted ten times a second";
            let hint = "run Selvedge where control groups are delegated to you, such as \
                        `systemd-run --user --scope -p Delegate=yes`";
            let is_root = rustix::process::geteuid().is_root();
            return match is_root {
                // Limits of processes do not hold root.
                true => Finding::Warn(text.into(), hint.into()),
                false => Finding::Ok(text.into()),
            };
        }
    };
    Finding::Ok(format!(
        "the kernel counts the {what} of a command as a whole (control groups)"
    ))
}

fn finding(attempt: Attempt) -> (&'static str, Finding) {
    let Attempt { name, detail, .. } = attempt;
    let is_allowed = name.starts_with('(');
    let finding = match (attempt.is_as_it_should, is_allowed) {
        (true, true) => Finding::Ok(format!("{name}: {detail}")),
        (true, false) => Finding::Ok(format!("held: {name} ({detail})")),
        (false, true) => Finding::Fail(
            format!("{name}: {detail}"),
            "commands need it; `selvedge run --sandbox off` goes without".into(),
        ),
        (false, false) => Finding::Fail(
            format!("a command could {name} ({detail})"),
            "do not let agents run commands that nobody has read".into(),
        ),
    };
    ("sandbox", finding)
}

fn configuration(paths: &Paths) -> Vec<(&'static str, Finding)> {
    let loaded = run::workspace(None).and_then(|workspace| Config::load(paths, &workspace));
    let config = match loaded {
        Ok(config) => config,
        Err(error) => {
            let hint = "`selvedge config check` says more".into();
            return vec![("config", Finding::Fail(error.in_a_line(), hint))];
        }
    };
    let mut findings = vec![("config", Finding::Ok("it is valid".into()))];
    findings.extend(config.warnings().iter().map(|warning| {
        let hint = "`selvedge config show` says what holds instead".into();
        ("config", Finding::Warn(warning.clone(), hint))
    }));
    let models = match Models::known(&config, None) {
        Ok(models) => models,
        Err(error) => {
            findings.push((
                "models",
                Finding::Fail(error.in_a_line(), "correct `[catalogue]`".into()),
            ));
            return findings;
        }
    };
    let available: Vec<String> = models.providers.available().into_iter().collect();
    findings.push(match available.as_slice() {
        [] => {
            let hint = "set a key, such as `ANTHROPIC_API_KEY`; `selvedge demo` needs none";
            let text = "no provider is available".into();
            ("models", Finding::Warn(text, hint.into()))
        }
        names => {
            let facts = models.catalogue.providers();
            let keys = facts.flat_map(|(_, facts)| facts.key_variables());
            let set: Vec<&str> = keys.filter(|key| env::text(key).is_some()).collect();
            let keys = match set.is_empty() {
                true => String::new(),
                false => format!("; set: {}", set.join(", ")),
            };
            (
                "models",
                Finding::Ok(format!("available: {}{keys}", names.join(", "))),
            )
        }
    });
    findings
}
