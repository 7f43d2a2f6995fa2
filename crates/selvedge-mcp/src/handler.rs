//! What a server asks of us, and what it is told: its roots, forms for the user,
//! progress, complaints.
//!
//! It learns of one folder, the workspace. No model is asked in its name. The user is
//! asked for it now and then, and never for a secret.

#![expect(deprecated, reason = "servers of today still ask for roots and models")]

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    Root,
};
use rmcp::service::{NotificationContext, RequestContext};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::form::{Clerk, Filled, Form};
use crate::wire::Log;

/// A user has more to do than to fill in forms.
const FORMS_PER_MINUTE_MAX: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// What is shown of one report of progress, and of how many for a call.
const PROGRESS_CHARS_MAX: usize = 200;
const PROGRESS_REPORTS_MAX: u32 = 1_000;
const COMPLAINT_BYTES_MAX: usize = 2_000;

/// Takes output as it appears.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Speaks for Selvedge with one server.
pub(crate) struct Handler {
    server: String,
    clerk: Option<Arc<dyn Clerk>>,
    /// The workspace, for a server of this machine.
    root: Option<String>,
    version: ProtocolVersion,
    log: Log,
    list_changed: AtomicBool,
    sinks: Mutex<HashMap<ProgressToken, (Sink, u32)>>,
    forms: Mutex<Forms>,
}

/// The forms that a server had filled in, or not.
#[derive(Default)]
struct Forms {
    times: VecDeque<Instant>,
    record: Vec<Value>,
}

impl Handler {
    pub(crate) fn new(
        server: &str,
        clerk: Option<Arc<dyn Clerk>>,
        root: Option<String>,
        version: ProtocolVersion,
        log: Log,
    ) -> Self {
        Self {
            server: server.to_owned(),
            clerk,
            root,
            version,
            log,
            list_changed: AtomicBool::new(false),
            sinks: Mutex::default(),
            forms: Mutex::default(),
        }
    }

    /// Whether the server has said since that its tools are others now.
    pub(crate) fn take_list_changed(&self) -> bool {
        self.list_changed.swap(false, Ordering::SeqCst)
    }

    /// Shows the progress of a call until `unwatch`.
    pub(crate) fn watch(&self, token: &ProgressToken, sink: Sink) {
        let mut sinks = self.sinks.lock().expect("no panic under this lock");
        sinks.insert(token.clone(), (sink, 0));
    }

    pub(crate) fn unwatch(&self, token: &ProgressToken) {
        let mut sinks = self.sinks.lock().expect("no panic under this lock");
        sinks.remove(token);
    }

    /// What the user was asked since, and what came of it.
    pub(crate) fn take_forms(&self) -> Vec<Value> {
        let mut forms = self.forms.lock().expect("no panic under this lock");
        std::mem::take(&mut forms.record)
    }

    /// Why a form is not put before the user, if it is not.
    fn objection(&self, form: &Form) -> Option<&'static str> {
        if form.asks_for_a_secret() {
            return Some("it asks for a secret");
        }
        if self.clerk.is_none() {
            return Some("nobody is there to be asked");
        }
        let mut forms = self.forms.lock().expect("no panic under this lock");
        let now = Instant::now();
        let is_old = |time: &Instant| now.duration_since(*time) >= MINUTE;
        while forms.times.front().is_some_and(is_old) {
            forms.times.pop_front();
        }
        if forms.times.len() >= FORMS_PER_MINUTE_MAX {
            return Some("it asks too often");
        }
        forms.times.push_back(now);
        None
    }

    async fn fill(&self, message: &str, schema: &Value) -> (Filled, String) {
        let form = match Form::read(&self.server, message, schema) {
            Ok(form) => form,
            Err(why) => return (Filled::Decline, why),
        };
        match (self.objection(&form), &self.clerk) {
            (Some(why), _) => (Filled::Decline, why.to_owned()),
            (None, None) => (Filled::Decline, String::new()),
            (None, Some(clerk)) => match clerk.fill(&form).await {
                Filled::Accept(mut content) => {
                    for (name, default) in form.defaults() {
                        content.entry(name).or_insert(default);
                    }
                    (Filled::Accept(content), String::new())
                }
                other => (other, "the user did not".into()),
            },
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.root.is_some() {
            capabilities.roots = Some(Default::default());
        }
        if self.clerk.is_some() {
            capabilities.elicitation = Some(Default::default());
        }
        let own = Implementation::new("selvedge", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, own).with_protocol_version(self.version.clone())
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let why =
            "no model is asked in the name of a server: the user has not agreed to pay for it";
        Err(ErrorData::invalid_request(why, None))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.root.iter().map(|uri| Root::new(uri.clone()));
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (message, (filled, why)) = match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let filled = self.fill(&message, &json!(requested_schema)).await;
                (message, filled)
            }
            other => {
                let message = json!(other)["message"].as_str().unwrap_or("").to_owned();
                let why = "no page is opened for a server".to_owned();
                (message, (Filled::Decline, why))
            }
        };
        let (action, result) = match filled {
            Filled::Accept(content) => (
                "accepted",
                ElicitResult::new(ElicitationAction::Accept).with_content(content.into()),
            ),
            Filled::Decline => ("declined", ElicitResult::new(ElicitationAction::Decline)),
            Filled::Cancel => ("cancelled", ElicitResult::new(ElicitationAction::Cancel)),
        };
        let message: String = message.chars().take(500).collect();
        let mut forms = self.forms.lock().expect("no panic under this lock");
        // What a server asks for without end is not kept without end.
        if forms.record.len() < 2 * FORMS_PER_MINUTE_MAX {
            forms
                .record
                .push(json!({"asked": message, "action": action, "because": why}));
        }
        Ok(result)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let sink = {
            let mut sinks = self.sinks.lock().expect("no panic under this lock");
            let Some((sink, count)) = sinks.get_mut(&params.progress_token) else {
                return;
            };
            *count += 1;
            if *count > PROGRESS_REPORTS_MAX {
                return;
            }
            sink.clone()
        };
        let total = params
            .total
            .map(|total| format!("/{total}"))
            .unwrap_or_default();
        let message: String = params
            .message
            .iter()
            .flat_map(|m| m.chars())
            .take(PROGRESS_CHARS_MAX)
            .collect();
        sink(&format!("{}{total} {message}\n", params.progress));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let mut line = match &params.data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        line.truncate(line.floor_char_boundary(COMPLAINT_BYTES_MAX));
        line.push('\n');
        self.log.push(line.as_bytes());
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::SeqCst);
    }
}
