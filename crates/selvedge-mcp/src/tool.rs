//! A server's tools, resources and prompts as tools of Selvedge.
//!
//! Each call takes the path that every call takes. What it does to the world is not for
//! the server to say: it changes something, unless the user's own configuration says
//! that it only looks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ListPromptsRequest, ListResourcesRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, Role, ServerResult,
};
use selvedge_tool::{Deed, Tool, ToolContext, ToolOutput, ToolSpec, World};
use serde_json::{Value, json};

use crate::answer;
use crate::connection::{CallError, ConnectError, Connection, Surroundings};
use crate::definition::Definition;
use crate::entry::hash;
use crate::server::{Server, Unavailable};

/// A list that is longer than this is not read to its end.
const PAGES_MAX: usize = 20;
const ITEMS_MAX: usize = 1_000;

/// A tool of a server.
pub(crate) struct RemoteTool {
    server: Arc<Server>,
    /// What it is called here.
    name: String,
    what: What,
}

/// What is asked of a server.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A tool of its own.
    Call(Definition),
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl What {
    /// What the server calls it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Call(definition) => &definition.name,
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    /// What a rule calls it: methods of the protocol cannot be taken for tools.
    fn rule_name(&self) -> &str {
        match self {
            Self::Call(definition) => &definition.name,
            Self::ListResources => "resources/list",
            Self::ReadResource => "resources/read",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
        }
    }

    fn description(&self, server: &str) -> String {
        let what = match self {
            Self::Call(definition) => return definition.told(server),
            Self::ListResources => "Lists the resources (documents, records)",
            Self::ReadResource => "Reads a resource, by its URI,",
            Self::ListPrompts => "Lists the prompts, which are prepared instructions,",
            Self::GetPrompt => "Fills in a prompt, by its name, and returns its text,",
        };
        format!("{what} of the MCP server `{server}`.")
    }

    fn schema(&self) -> Value {
        let object = |properties: Value, required: Value| {
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        };
        match self {
            Self::Call(definition) => definition.schema.clone(),
            Self::ListResources | Self::ListPrompts => object(json!({}), json!([])),
            Self::ReadResource => object(json!({"uri": {"type": "string"}}), json!(["uri"])),
            Self::GetPrompt => object(
                json!({
                    "name": {"type": "string"},
                    "arguments": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                    },
                }),
                json!(["name"]),
            ),
        }
    }
}

impl RemoteTool {
    pub(crate) fn new(server: Arc<Server>, name: String, what: What) -> Self {
        Self { server, name, what }
    }

    /// What an approval of a call is bound to, besides its arguments.
    fn digest(&self) -> String {
        let definition = match &self.what {
            What::Call(definition) => definition.digest(),
            other => other.rule_name().to_owned(),
        };
        hash(&(&self.server.approved().entry, definition))
    }

    async fn act(&self, context: &ToolContext, input: &Value) -> ToolOutput {
        let around = Surroundings {
            workspace: context.workspace.clone(),
            sandbox: context.sandbox.clone(),
        };
        // A server that wants to know who calls has not done anything yet, so it can be
        // asked again by somebody who has signed in.
        let (connection, answered) = loop {
            let connection = match self.server.connect(&around, &context.cancel).await {
                Ok(connection) => connection,
                Err(unavailable) => return self.unavailable(unavailable),
            };
            let answered = match self.still_approved(&connection).await {
                Ok(()) => self.ask(&connection, context, input).await,
                Err(Objection::Changed(output)) => return output,
                Err(Objection::Unknown(error)) => Err(error),
            };
            match &answered {
                Err(CallError::SignIn(challenge))
                    if self.server.sign_in(&connection, challenge).await => {}
                _ => break (connection, answered),
            }
        };
        let forms = connection.take_forms();
        let mut output = match answered {
            Ok(output) => {
                self.server.answered().await;
                output
            }
            Err(error) => self.failed(&connection, error).await,
        };
        if !forms.is_empty() {
            output.text.push_str(&told(self.server.name(), &forms));
            match &mut output.facts {
                Value::Object(facts) => drop(facts.insert("forms".into(), forms.into())),
                facts => *facts = json!({ "forms": forms }),
            }
        }
        output
    }

    /// Whether the server says of the tool what was approved.
    async fn still_approved(&self, connection: &Connection) -> Result<(), Objection> {
        connection.refresh().await.map_err(Objection::Unknown)?;
        let What::Call(approved) = &self.what else {
            return Ok(());
        };
        let server = self.server.name();
        let now = connection.definitions();
        let how = match now.iter().find(|d| d.name == approved.name) {
            Some(now) if now.digest() == approved.digest() => return Ok(()),
            Some(_) => "says something else of this tool than what the user has approved",
            None => "does not offer this tool any more",
        };
        let output = ToolOutput::error(format!(
            "Not called: the server `{server}` {how}. The tool is disabled until the user has \
             looked at it: `selvedge mcp approve {server}`. Find another way, or say so."
        ));
        let facts = json!({"server": server, "tool": approved.name, "disabled": true});
        Err(Objection::Changed(output.with_facts(facts)))
    }

    async fn ask(
        &self,
        connection: &Connection,
        context: &ToolContext,
        input: &Value,
    ) -> Result<ToolOutput, CallError> {
        let (cancel, sink) = (&context.cancel, context.output.clone());
        let server = self.server.name();
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        match &self.what {
            What::Call(definition) => {
                let mut params = CallToolRequestParams::new(definition.name.clone());
                params.arguments = input.as_object().cloned();
                let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
                match connection.ask(request, cancel, sink).await? {
                    ServerResult::CallToolResult(result) => {
                        Ok(answer::of_call(server, &definition.name, result))
                    }
                    _ => Err(CallError::Strange),
                }
            }
            What::ReadResource => {
                let params = ReadResourceRequestParams::new(text("uri"));
                let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
                match connection.ask(request, cancel, sink).await? {
                    ServerResult::ReadResourceResult(result) => {
                        let parts = result.contents.iter().take(ITEMS_MAX);
                        let parts: Vec<String> = parts.map(answer::resource).collect();
                        Ok(ToolOutput::ok(parts.join("\n")))
                    }
                    _ => Err(CallError::Strange),
                }
            }
            What::GetPrompt => {
                let mut params = GetPromptRequestParams::new(text("name"));
                params.arguments = input["arguments"].as_object().cloned();
                let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
                match connection.ask(request, cancel, sink).await? {
                    ServerResult::GetPromptResult(result) => {
                        let message = |message: &rmcp::model::PromptMessage| {
                            let who = match message.role {
                                Role::User => "user",
                                _ => "assistant",
                            };
                            format!(
                                "{who}: {}",
                                answer::parts(std::slice::from_ref(&message.content))
                            )
                        };
                        let messages = result.messages.iter().take(ITEMS_MAX).map(message);
                        let messages: Vec<String> = messages.collect();
                        Ok(ToolOutput::ok(messages.join("\n\n")))
                    }
                    _ => Err(CallError::Strange),
                }
            }
            What::ListResources => self.resources(connection, context).await,
            What::ListPrompts => self.prompts(connection, context).await,
        }
    }

    async fn resources(
        &self,
        connection: &Connection,
        context: &ToolContext,
    ) -> Result<ToolOutput, CallError> {
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListResourcesRequest::with_param(page);
            let request = ClientRequest::ListResourcesRequest(request);
            let answer = connection
                .ask(request, &context.cancel, context.output.clone())
                .await?;
            let ServerResult::ListResourcesResult(page) = answer else {
                return Err(CallError::Strange);
            };
            items.extend(page.resources.into_iter().map(|resource| {
                let about = resource.description.unwrap_or_default();
                (resource.uri, join(&resource.name, &about))
            }));
            cursor = page.next_cursor;
            if cursor.is_none() || items.len() >= ITEMS_MAX {
                break;
            }
        }
        items.truncate(ITEMS_MAX);
        Ok(answer::list(items, "resources"))
    }

    async fn prompts(
        &self,
        connection: &Connection,
        context: &ToolContext,
    ) -> Result<ToolOutput, CallError> {
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListPromptsRequest::with_param(page);
            let request = ClientRequest::ListPromptsRequest(request);
            let answer = connection
                .ask(request, &context.cancel, context.output.clone())
                .await?;
            let ServerResult::ListPromptsResult(page) = answer else {
                return Err(CallError::Strange);
            };
            items.extend(page.prompts.into_iter().map(|prompt| {
                let arguments = prompt.arguments.unwrap_or_default();
                let names: Vec<&str> = arguments.iter().map(|a| a.name.as_str()).collect();
                let takes = match names.is_empty() {
                    true => String::new(),
                    false => format!("takes {}", names.join(", ")),
                };
                let about = prompt.description.unwrap_or_default();
                (prompt.name, join(&about, &takes))
            }));
            cursor = page.next_cursor;
            if cursor.is_none() || items.len() >= ITEMS_MAX {
                break;
            }
        }
        items.truncate(ITEMS_MAX);
        Ok(answer::list(items, "prompts"))
    }

    fn unavailable(&self, unavailable: Unavailable) -> ToolOutput {
        let server = self.server.name();
        let words = match unavailable {
            Unavailable::Quarantined(why) => return self.quarantined(&why),
            Unavailable::Failed(ConnectError::Cancelled) => {
                return ToolOutput {
                    interrupted: true,
                    ..ToolOutput::error("Stopped before the server was ready; nothing was done.")
                };
            }
            Unavailable::Failed(ConnectError::SignIn(challenge)) => format!(
                "Not called: the server `{server}` wants to know who the user is. Ask them to run \
                 `selvedge mcp login {server}{}`, or find another way.",
                scope(&challenge)
            ),
            Unavailable::Failed(error) => format!(
                "Not called: the server `{server}` is not there: {error}\nIt may be tried again; \
                 if that fails too, find another way."
            ),
        };
        ToolOutput::error(words).with_facts(json!({"server": server, "started": false}))
    }

    fn quarantined(&self, why: &str) -> ToolOutput {
        let server = self.server.name();
        let why = self.server.secrets().redact(why);
        ToolOutput::error(format!(
            "The server `{server}` is in quarantine until Selvedge is started again: {why}. Do \
             not call its tools any more; find another way."
        ))
        .with_facts(json!({"server": server, "quarantine": why}))
    }

    /// What the model is told of a call that was begun and has no good answer.
    async fn failed(&self, connection: &Arc<Connection>, error: CallError) -> ToolOutput {
        let (server, tool) = (self.server.name(), self.what.name());
        match error {
            CallError::Refused(_) => {
                self.server.answered().await;
                let words = error.words();
                ToolOutput::error(format!("The server `{server}` refused `{tool}`: {words}"))
                    .with_facts(json!({"server": server, "tool": tool}))
            }
            CallError::SignIn(challenge) => {
                self.unavailable(Unavailable::Failed(ConnectError::SignIn(challenge)))
            }
            CallError::Strange => ToolOutput::error(format!(
                "The server `{server}` gave an answer to `{tool}` that is none. What it did is \
                 not known; look before you repeat it."
            )),
            CallError::Cancelled => {
                self.server.silent(connection).await;
                ToolOutput {
                    interrupted: true,
                    ..ToolOutput::error(format!(
                        "The server `{server}` had not answered `{tool}`. It may or may not have \
                         happened; look before you repeat it."
                    ))
                }
            }
            CallError::Gone => match self.server.ended(connection).await {
                Some(why) => self.quarantined(&why),
                None => {
                    let log = connection.log();
                    let said = self.server.secrets().redact(&log);
                    ToolOutput::error(format!(
                        "The server `{server}` ended during `{tool}`. It may or may not have \
                         happened; look before you repeat it.\n{said}"
                    ))
                }
            },
        }
    }
}

/// Why a call is not made after all.
enum Objection {
    /// The tool is not the one that was approved.
    Changed(ToolOutput),
    /// The server does not say.
    Unknown(CallError),
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        let is_look = self.server.listed().entry.only_looks(self.what.rule_name());
        ToolSpec {
            name: self.name.clone(),
            description: self.what.description(self.server.name()),
            schema: self.what.schema(),
            world: if is_look { World::Reads } else { World::Runs },
        }
    }

    fn deed(&self, _: &Value) -> Deed {
        Deed::Remote {
            server: self.server.name().to_owned(),
            tool: self.what.rule_name().to_owned(),
            definition: self.digest(),
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        self.act(context, input).await
    }

    fn deadline(&self, context: &ToolContext, _: &Value) -> Duration {
        let own = self.server.listed().entry.timeout_seconds;
        own.map_or(context.timeout, Duration::from_secs)
    }

    fn bundle(&self) -> Option<&str> {
        Some(self.server.name())
    }
}

/// What the model is told of what the user was asked.
fn told(server: &str, forms: &[Value]) -> String {
    let line = |form: &Value| {
        let word = |name: &str| form[name].as_str().unwrap_or_default().to_owned();
        let because = match word("because") {
            because if because.is_empty() => String::new(),
            because => format!(" ({because})"),
        };
        let (action, asked) = (word("action"), word("asked"));
        format!("\n[the server `{server}` asked the user: \"{asked}\"; {action}{because}]")
    };
    forms.iter().map(line).collect()
}

/// The option that asks for what a server says is missing.
fn scope(challenge: &str) -> String {
    let named = challenge.split("scope=\"").nth(1);
    let named = named.and_then(|rest| rest.split('"').next());
    let is_plain = |scope: &&str| !scope.is_empty() && !scope.contains(|c: char| c.is_control());
    match named.filter(is_plain) {
        Some(scope) => format!(" --scope '{}'", scope.replace('\'', "")),
        None => String::new(),
    }
}

fn join(one: &str, other: &str) -> String {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other.to_owned(),
        (_, true) => one.to_owned(),
        _ => format!("{one}; {other}"),
    }
}
