//! The tools at hand, and the one path that every call takes.
//!
//! Find the tool, parse its arguments, check them against its schema, judge what the
//! call would do; then prepare, lend credentials, run with a deadline, take secrets out
//! of the answer and cut it to size. Nothing runs around it, so what is decided here is
//! decided for every tool.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::again::Again;
use crate::builtin;
use crate::cut::cut;
use crate::deadline;
use crate::judging::Case;
use crate::policy::{Policy, Verdict, glob};
use crate::secrets::{self, Granted, Lender, Lent, Secrets, Wanted};
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use crate::touch::Touch;
use crate::workspace::Workspace;

// More complaints than this do not help to correct a call.
const SCHEMA_ERRORS_MAX: usize = 5;

/// A list of tools, called by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<Entry>>,
    secrets: Secrets,
    lender: Option<Arc<Lender>>,
    again: Again,
}

/// A call whose tool exists and whose arguments fit: what a policy judges.
#[derive(Clone)]
pub struct Checked {
    entry: Arc<Entry>,
    input: Value,
}

struct Entry {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    validator: Result<Validator, String>,
}

impl Toolbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// All built-in tools.
    pub fn core() -> Self {
        builtin::all().into_iter().fold(Self::new(), Self::with)
    }

    /// Adds a tool. One of the same name is replaced.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let spec = tool.spec();
        let validator = jsonschema::validator_for(&spec.schema).map_err(|error| error.to_string());
        let name = spec.name.clone();
        let entry = Entry {
            tool,
            spec,
            validator,
        };
        self.tools.insert(name, Arc::new(entry));
        self
    }

    /// Keeps these secrets out of everything that the tools say.
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Lends credentials to the tools that need them.
    pub fn with_lender(mut self, lender: Arc<Lender>) -> Self {
        self.lender = Some(lender);
        self
    }

    /// What is kept out of everything that the tools say.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Keeps only the tools that `keep` answers true for: how a role gets fewer.
    pub fn only(mut self, keep: impl Fn(&ToolSpec) -> bool) -> Self {
        self.tools.retain(|_, entry| keep(&entry.spec));
        self
    }

    /// What the tools declare, by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools
            .values()
            .map(|entry| entry.spec.clone())
            .collect()
    }

    /// What one tool declares.
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(name).map(|entry| &entry.spec)
    }

    /// The names of the tools that `pattern` means: one, or with `*` in it any number.
    pub fn named(&self, pattern: &str) -> Vec<&str> {
        let names = self.tools.keys().map(String::as_str);
        names.filter(|name| glob(pattern, name)).collect()
    }

    /// The group that a tool came with.
    pub fn bundle(&self, name: &str) -> Option<&str> {
        self.tools.get(name)?.tool.bundle()
    }

    /// The arguments of a call as they may be stored: without known values, and
    /// without keys in the place of words. What is the text of a file is kept, for it
    /// must be written as it is. `None` if they are fine.
    pub fn scrub(&self, name: &str, arguments: &str) -> Option<String> {
        let entry = self.tools.get(name);
        let contents = entry.map_or(&[][..], |entry| entry.tool.contents());
        self.secrets.scrub(arguments, contents)
    }

    /// Finds the tool and checks the arguments, given as the model wrote them. Pure:
    /// the same call always gets the same answer.
    pub fn check(&self, name: &str, arguments: &str) -> Result<Checked, ToolOutput> {
        self.checked(name, arguments)
            .map_err(|output| discreet(&self.secrets, output))
    }

    fn checked(&self, name: &str, arguments: &str) -> Result<Checked, ToolOutput> {
        let entry = self.tools.get(name).ok_or_else(|| self.unknown(name))?;
        let input = parse(name, arguments)?;
        let validator = entry.validator.as_ref().map_err(|error| {
            ToolOutput::error(format!(
                "tool `{name}` cannot be called: its own schema is invalid ({error}); use another tool"
            ))
        })?;
        let complaints: Vec<String> = validator
            .iter_errors(&input)
            .take(SCHEMA_ERRORS_MAX)
            .map(|error| match error.instance_path().as_str() {
                "" => format!("- {error}"),
                field => format!("- at `{field}`: {error}"),
            })
            .collect();
        if !complaints.is_empty() {
            return Err(ToolOutput::error(format!(
                "the arguments of `{name}` do not fit its schema; correct them and call again:\n{}",
                complaints.join("\n")
            )));
        }
        let (contents, is_run) = (entry.tool.contents(), entry.spec.world == World::Runs);
        secrets::refuse_marker(&self.secrets, name, &input, contents, is_run)?;
        Ok(Checked {
            entry: Arc::clone(entry),
            input,
        })
    }

    /// What the policy says of the call. What it allows, or a person does, may be
    /// prepared and run.
    pub async fn judge(
        &self,
        workspace: &Arc<Workspace>,
        policy: &Arc<Policy>,
        call: &Checked,
    ) -> Verdict {
        self.judge_with(workspace, policy, call, Vec::new()).await
    }

    /// The same, where a person can be asked also for the credentials that the call
    /// would use for the first time.
    pub async fn judge_with_consent(&self, ctx: &ToolContext, call: &Checked) -> Verdict {
        let wanted = self.consent_needed(ctx, call);
        self.judge_with(&ctx.workspace, &ctx.policy, call, wanted)
            .await
    }

    /// Takes down that a person agreed to the credentials that the call uses.
    pub fn consent(&self, ctx: &ToolContext, call: &Checked, granted: Granted) {
        for wanted in self.consent_needed(ctx, call) {
            if let Some(lender) = &self.lender {
                lender.take_down(&wanted, granted);
            }
        }
    }

    fn consent_needed(&self, ctx: &ToolContext, call: &Checked) -> Vec<Wanted> {
        let Some(lender) = &self.lender else {
            return Vec::new();
        };
        let providers = call.entry.tool.credentials().into_iter();
        let wanted = providers.map(|provider| wanted(ctx, call, provider));
        wanted
            .filter(|wanted| lender.needs_consent(wanted))
            .collect()
    }

    async fn judge_with(
        &self,
        workspace: &Arc<Workspace>,
        policy: &Arc<Policy>,
        call: &Checked,
        wanted: Vec<Wanted>,
    ) -> Verdict {
        let case = Case {
            wanted,
            workspace: Arc::clone(workspace),
            policy: Arc::clone(policy),
            spec: call.entry.spec.clone(),
            deed: call.entry.tool.deed(&call.input),
            input: call.input.clone(),
        };
        match case.looks_at_files() {
            true => builtin::blocking(move || case.judge()).await,
            false => case.judge(),
        }
    }

    /// What the call may change.
    pub fn touch(&self, workspace: &Workspace, call: &Checked) -> Touch {
        let (spec, deed) = (&call.entry.spec, call.entry.tool.deed(&call.input));
        Touch::of(workspace.root(), &spec.name, spec.world, deed)
    }

    /// What must be on record before the act; an error means that it is not begun.
    pub async fn prepare(&self, ctx: &ToolContext, call: &Checked) -> Result<Value, ToolOutput> {
        let ctx = self.inner(ctx, Lent::default());
        self.secrets.know_workspace(&ctx.workspace);
        call.entry
            .tool
            .prepare(&ctx, &call.input)
            .await
            .map_err(|output| self.answer(call, output))
    }

    /// The act, within its deadline, its answer without secrets and cut to size.
    pub async fn run(&self, ctx: &ToolContext, call: &Checked, evidence: &Value) -> ToolOutput {
        let tool = &call.entry.tool;
        let lent = match self.lend(ctx, call).await {
            Ok(lent) => lent,
            Err(refusal) => return self.answer(call, refusal),
        };
        let mut inner = self.inner(ctx, lent);
        self.secrets.know_workspace(&inner.workspace);
        let redactor = Arc::new(Mutex::new(self.secrets.redactor()));
        let (sink, pieces) = (Arc::clone(&ctx.output), Arc::clone(&redactor));
        inner.output = Arc::new(move |piece| {
            let piece = pieces.lock().expect("no panic under this lock").push(piece);
            if !piece.is_empty() {
                sink(&piece);
            }
        });
        let deed = tool.deed(&call.input);
        let run = deadline::run(call.name(), tool.as_ref(), &inner, &call.input, evidence);
        let mut output = self.again.run(&inner, deed, &call.input, run).await;
        let rest = redactor.lock().expect("no panic under this lock").finish();
        if !rest.is_empty() {
            (ctx.output)(&rest);
        }
        // It may have written a file with secrets, and spoken of it.
        self.secrets.know_workspace(&inner.workspace);
        let found = self.secrets.in_contents(&call.input, tool.contents());
        if !found.is_empty() {
            output.text.push_str(&format!(
                "\n[what was written looks like it holds a secret ({}): keep real ones out of files]",
                found.join(", ")
            ));
        }
        let used = inner.credentials.end();
        if !used.is_empty() {
            output.note("credentials", json!(used));
        }
        self.answer(call, output)
    }

    /// Whether an act happened whose end is not on record.
    pub async fn probe(&self, ctx: &ToolContext, call: &Checked, evidence: &Value) -> ToolProbe {
        let ctx = self.inner(ctx, Lent::default());
        match call.entry.tool.probe(&ctx, &call.input, evidence).await {
            ToolProbe::Happened(output) => ToolProbe::Happened(self.answer(call, output)),
            other => other,
        }
    }

    /// The answer as it leaves: what is cut is what was already without secrets.
    fn answer(&self, call: &Checked, output: ToolOutput) -> ToolOutput {
        let output = discreet(&self.secrets, output);
        cut(output, call.entry.tool.text_chars_max())
    }

    fn inner(&self, ctx: &ToolContext, credentials: Lent) -> ToolContext {
        ToolContext {
            secrets: self.secrets.clone(),
            credentials,
            ..ctx.clone()
        }
    }

    /// The credentials that the tool has declared, or what the model is told instead.
    async fn lend(&self, ctx: &ToolContext, call: &Checked) -> Result<Lent, ToolOutput> {
        let mut lent = Vec::new();
        for provider in call.entry.tool.credentials() {
            let lender = self.lender.as_ref().ok_or_else(|| {
                ToolOutput::error(format!(
                    "`{}` needs credentials of `{provider}`, and there are none here",
                    call.name()
                ))
            })?;
            lent.push(lender.lend(&wanted(ctx, call, provider)).await?);
        }
        Ok(Lent::new(lent))
    }

    fn unknown(&self, name: &str) -> ToolOutput {
        let wanted = name.to_lowercase();
        let mut near: Vec<(f64, &str)> = self
            .tools
            .keys()
            .map(|known| (strsim::jaro_winkler(&wanted, known), known.as_str()))
            .filter(|(nearness, _)| *nearness > 0.7)
            .collect();
        near.sort_by(|left, right| right.0.total_cmp(&left.0));
        let names: Vec<String> = match near.is_empty() {
            true => self.tools.keys().map(|name| format!("`{name}`")).collect(),
            false => near
                .iter()
                .take(3)
                .map(|(_, name)| format!("`{name}`"))
                .collect(),
        };
        let words = if near.is_empty() {
            "the tools are"
        } else {
            "did you mean"
        };
        ToolOutput::error(format!(
            "there is no tool `{}`; {words} {}",
            name.escape_debug(),
            names.join(", ")
        ))
    }
}

impl Checked {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.entry.spec.name
    }

    /// What the tool declares.
    pub fn spec(&self) -> &ToolSpec {
        &self.entry.spec
    }

    /// The arguments. They fit the schema.
    pub fn input(&self) -> &Value {
        &self.input
    }
}

impl std::fmt::Debug for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checked")
            .field("name", &self.name())
            .field("input", &self.input)
            .finish()
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

/// An answer without secrets, in all its forms.
fn discreet(secrets: &Secrets, mut output: ToolOutput) -> ToolOutput {
    for text in [Some(&mut output.text), output.whole.as_mut()]
        .into_iter()
        .flatten()
    {
        if let Cow::Owned(clean) = secrets.redact(text) {
            *text = clean;
        }
    }
    secrets.redact_json(&mut output.facts);
    output
}

fn parse(name: &str, arguments: &str) -> Result<Value, ToolOutput> {
    // Some models send nothing at all for a call without arguments.
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(arguments).map_err(|error| {
        let line = arguments
            .lines()
            .nth(error.line().saturating_sub(1))
            .unwrap_or("");
        let before: String = line.chars().take(error.column()).collect();
        let skip = before.chars().count().saturating_sub(40);
        let near: String = before.chars().skip(skip).collect();
        ToolOutput::error(format!(
            "the arguments of `{name}` are not valid JSON: {error}, just after `{near}`; \
             send one complete JSON object"
        ))
    })
}

fn wanted(ctx: &ToolContext, call: &Checked, provider: String) -> Wanted {
    Wanted {
        agent: ctx.caller.agent.clone(),
        session: ctx.caller.session.clone(),
        tool: call.name().to_owned(),
        provider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use serde_json::json;

    fn check(name: &str, arguments: &str, expected: &[&str]) {
        let refused = Toolbox::core().check(name, arguments).unwrap_err();
        assert!(refused.is_error);
        for expected in expected {
            assert!(
                refused.text.contains(expected),
                "{expected}: {}",
                refused.text
            );
        }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_nearest_names() {
        check(
            "readfile",
            "{}",
            &["no tool `readfile`", "did you mean `read_file`"],
        );
        check("Bash", "{}", &["the tools are `add_todo`"]);
    }

    #[test]
    fn malformed_arguments_are_answered_with_the_place() {
        check(
            "read_file",
            r#"{"path": "a" "offset": 1}"#,
            &[
                "not valid JSON",
                "line 1 column 14",
                r#"just after `{"path": "a" "`"#,
            ],
        );
        check("read_file", r#"{"path": "a"#, &["not valid JSON", "EOF"]);
    }

    #[test]
    fn arguments_that_do_not_fit_are_answered_with_the_field() {
        check("read_file", "", &["\"path\" is a required property"]);
        check("read_file", "[]", &["is not of type \"object\""]);
        check(
            "read_file",
            r#"{"path": "a", "offset": "1"}"#,
            &["at `/offset`"],
        );
        check(
            "read_file",
            r#"{"path": "a", "lines": 3}"#,
            &["'lines' was unexpected"],
        );
        check(
            "multi_edit",
            r#"{"edits": [{"path": "a", "old": "b"}]}"#,
            &["at `/edits/0`", "\"new\""],
        );
    }

    #[test]
    fn a_schema_is_small_and_self_contained() {
        for spec in Toolbox::core().specs() {
            let schema = spec.schema.to_string();
            assert_eq!(spec.schema["type"], "object", "{schema}");
            for word in ["$ref", "$schema", "$defs", "title", "uint"] {
                assert!(
                    !schema.contains(word),
                    "{word} in the schema of {}: {schema}",
                    spec.name
                );
            }
            assert!(schema.len() < 1_200, "{}: {}", spec.name, schema.len());
        }
    }

    #[tokio::test]
    async fn an_integer_that_is_only_a_schema_integer_is_refused_politely() {
        let world = World::new(&[("a", "x")]);
        for offset in [json!(1.0), json!(1e30)] {
            let output = world
                .call("read_file", json!({"path": "a", "offset": offset}))
                .await;
            assert!(output.is_error, "{}", output.text);
        }
    }

    #[tokio::test]
    async fn a_long_answer_is_cut_and_kept_whole() {
        let world = World::new(&[("a", &"x hit y\n".repeat(90))]);
        for n in 0..5 {
            world.write(
                &format!("{n}"),
                &format!("{}\n", "hit ".repeat(200)).repeat(100),
            );
        }
        let output = world.call("search_files", json!({"pattern": "hit"})).await;
        assert!(
            output.text.chars().count() < 31_000,
            "{}",
            output.text.len()
        );
        assert!(output.whole.unwrap().len() > 100_000);
    }

    #[tokio::test]
    async fn an_answer_has_no_secret_in_any_of_its_forms() {
        let mut world = World::new(&[(".env", "TOKEN=s3cret-of-the-user\n")]);
        world.write(
            "key.sh",
            "echo api_key = q8Zt1VbX0pLr7KdM2nWc; cat .env; seq 20000; cat .env\n",
        );
        let streamed = Arc::new(Mutex::new(String::new()));
        let sink = streamed.clone();
        world.context.output = Arc::new(move |text| sink.lock().unwrap().push_str(text));
        let output = world
            .call("run_command", json!({"command": "sh key.sh"}))
            .await;
        let whole = output.whole.as_deref().unwrap();
        for text in [
            &output.text,
            whole,
            &streamed.lock().unwrap(),
            &output.facts.to_string(),
        ] {
            for secret in ["s3cret-of-the-user", "q8Zt1VbX0pLr7KdM2nWc"] {
                assert!(!text.contains(secret), "{}", &text[..200]);
            }
        }
        for text in [&*output.text, whole, &streamed.lock().unwrap()] {
            assert!(
                text.starts_with("api_key = [REDACTED]\nTOKEN=[REDACTED]\n1\n"),
                "{text}"
            );
            assert!(text.trim_end().ends_with("20000\nTOKEN=[REDACTED]"));
        }
        let broken = r#"{"path": "s3cret-of-the-user" x}"#;
        let refused = world.check("read_file", broken).unwrap_err();
        assert!(refused.text.contains("[REDACTED]"), "{}", refused.text);
    }

    #[tokio::test]
    async fn what_the_agent_handles_is_not_run_here() {
        let world = World::new(&[]);
        for (name, input) in [
            (
                "ask_user",
                json!({"question": "which?", "options": ["a", "b"]}),
            ),
            ("finish", json!({"summary": "done", "outcome": "failed"})),
        ] {
            let output = world.call(name, input).await;
            assert!(output.is_error && output.text.contains("handled by the agent"));
        }
    }
}
