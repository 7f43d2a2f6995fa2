//! All servers of a run, and the tools they bring.

use std::sync::Arc;

use selvedge_tool::Tool;

use crate::form::Clerk;
use crate::names::names;
use crate::server::Server;
use crate::tool::{RemoteTool, What};

/// All servers of a run. None of them is started before a tool of it is called.
#[derive(Clone, Default)]
pub struct Fleet {
    servers: Vec<Arc<Server>>,
}

impl Fleet {
    /// These servers.
    pub fn new(servers: impl IntoIterator<Item = Server>) -> Self {
        Self {
            servers: servers.into_iter().map(Arc::new).collect(),
        }
    }

    /// The same, with somebody to put forms before the user. Nothing is started yet.
    pub fn with_clerk(&self, clerk: Arc<dyn Clerk>) -> Self {
        let with = |server: &Arc<Server>| server.with_clerk(clerk.clone());
        Self::new(self.servers.iter().map(with))
    }

    /// Their tools: those that were approved.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut all: Vec<(&Arc<Server>, What)> = Vec::new();
        for server in &self.servers {
            let approved = server.approved();
            all.extend(
                approved
                    .definitions
                    .iter()
                    .map(|d| (server, What::Call(d.clone()))),
            );
            if approved.offer.resources {
                all.extend([What::ListResources, What::ReadResource].map(|what| (server, what)));
            }
            if approved.offer.prompts {
                all.extend([What::ListPrompts, What::GetPrompt].map(|what| (server, what)));
            }
        }
        let pairs: Vec<(&str, &str)> = all
            .iter()
            .map(|(s, what)| (s.name(), what.name()))
            .collect();
        let names = names(&pairs);
        let tool = |((server, what), name): ((&Arc<Server>, What), String)| {
            let tool: Arc<dyn Tool> = Arc::new(RemoteTool::new(server.clone(), name, what));
            tool
        };
        all.into_iter().zip(names).map(tool).collect()
    }
}
