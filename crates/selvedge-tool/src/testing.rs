//! A workspace with tools in it, for the tests beside the code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::policy::Policy;
use crate::{
    Caller, Checked, Lent, ResultStore, Sandbox, Secrets, ToolContext, ToolOutput, ToolProbe,
    Toolbox, Workspace,
};

/// A scratch directory `app`, and the built-in tools to use in it.
pub(crate) struct World {
    scratch: tempfile::TempDir,
    pub(crate) toolbox: Toolbox,
    pub(crate) context: ToolContext,
}

/// Results by name.
#[derive(Default)]
pub(crate) struct Results(pub(crate) BTreeMap<&'static str, Arc<str>>);

#[async_trait]
impl ResultStore for Results {
    async fn result(&self, name: &str) -> Option<Arc<str>> {
        self.0.get(name).cloned()
    }
}

/// A secret among the variables of every test (`.cargo/config.toml`). The room that looks
/// for it in every form is above this one.
const CANARY: &[u8] = b"c4nary/that+n0body-writes-down/83";

// Some tests lay out files that are larger than any memory.
const LARGE: u64 = 16 << 20;

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut open = vec![self.scratch.path().to_owned()];
        while let Some(path) = open.pop() {
            let is_link = path.is_symlink();
            if let Ok(entries) = std::fs::read_dir(&path)
                && !is_link
            {
                open.extend(entries.flatten().map(|entry| entry.path()));
            } else if path
                .metadata()
                .is_ok_and(|file| file.is_file() && file.len() < LARGE)
                && !is_link
            {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let is_there = bytes.windows(CANARY.len()).any(|part| part == CANARY);
                assert!(!is_there, "a secret was left in `{}`", path.display());
            }
        }
    }
}

impl World {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("app");
        std::fs::create_dir(&root).unwrap();
        let context = ToolContext {
            workspace: Arc::new(Workspace::open(&root).unwrap()),
            policy: Arc::new(Policy {
                crafts: vec![crate::policy::Craft::Architect],
                fence: Some("on".into()),
                ..Policy::default()
            }),
            cancel: CancellationToken::new(),
            output: Arc::new(|_| {}),
            timeout: Duration::from_secs(60),
            awaited: true,
            sandbox: Arc::new(Sandbox::off()),
            results: Arc::new(Results::default()),
            caller: Caller::default(),
            desk: crate::Desk::default(),
            secrets: Secrets::new(),
            credentials: Lent::default(),
        };
        let world = Self {
            scratch,
            toolbox: Toolbox::core(),
            context,
        };
        for (path, content) in files {
            world.write(path, content);
        }
        world
    }

    pub(crate) fn root(&self) -> &Path {
        self.context.workspace.root()
    }

    /// Beside the workspace: what no tool may reach.
    pub(crate) fn outside(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn check(&self, name: &str, arguments: &str) -> Result<Checked, ToolOutput> {
        self.toolbox.check(name, arguments)
    }

    /// Checks and prepares a call that is expected to be fine so far.
    pub(crate) async fn prepare(&self, name: &str, input: Value) -> (Checked, Value) {
        let checked = self.check(name, &input.to_string()).unwrap();
        let evidence = self.toolbox.prepare(&self.context, &checked).await.unwrap();
        (checked, evidence)
    }

    pub(crate) async fn run(&self, checked: &Checked, evidence: &Value) -> ToolOutput {
        self.toolbox.run(&self.context, checked, evidence).await
    }

    pub(crate) async fn probe(&self, checked: &Checked, evidence: &Value) -> ToolProbe {
        self.toolbox.probe(&self.context, checked, evidence).await
    }

    /// The whole path of a call.
    pub(crate) async fn call(&self, name: &str, input: Value) -> ToolOutput {
        let checked = match self.check(name, &input.to_string()) {
            Ok(checked) => checked,
            Err(output) => return output,
        };
        match self.toolbox.prepare(&self.context, &checked).await {
            Ok(evidence) => self.run(&checked, &evidence).await,
            Err(output) => output,
        }
    }
}
