//! The client scenarios of the protocol's own conformance suite.
//!
//! Left out are:
//!
//! - `auth/client-credentials-jwt`, `auth/client-credentials-basic`,
//!   `auth/cross-app-access-complete-flow`: extensions for services that sign in without
//!   a person, or in the name of a company's directory. Selvedge acts for a person, who
//!   signs in.
//! - `auth/2025-03-26-oauth-metadata-backcompat`: a version of the protocol before those
//!   that are asked for here. Its metadata, found at the root, names `…/oauth` as the
//!   issuer; RFC 8414 (3.3) says that such metadata must not be used, and it is not. That
//!   this, and nothing else, is the reason is a test of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workshop;

const BOTH: &[&str] = &["2025-06-18", "2025-11-25"];
const NEWEST: &[&str] = &["2025-11-25"];

/// Scenarios, and the versions of the protocol that they are tried with.
const SCENARIOS: [(&str, &[&str]); 22] = [
    ("initialize", BOTH),
    ("tools_call", BOTH),
    ("elicitation-sep1034-client-defaults", BOTH),
    ("sse-retry", NEWEST),
    ("auth/metadata-default", BOTH),
    ("auth/metadata-var1", NEWEST),
    ("auth/metadata-var2", NEWEST),
    ("auth/metadata-var3", NEWEST),
    ("auth/basic-cimd", NEWEST),
    ("auth/scope-from-www-authenticate", NEWEST),
    ("auth/scope-from-scopes-supported", NEWEST),
    ("auth/scope-omitted-when-undefined", NEWEST),
    ("auth/scope-step-up", NEWEST),
    ("auth/scope-retry-limit", NEWEST),
    ("auth/token-endpoint-auth-basic", BOTH),
    ("auth/token-endpoint-auth-post", BOTH),
    ("auth/token-endpoint-auth-none", BOTH),
    ("auth/pre-registration", NEWEST),
    ("auth/2025-03-26-oauth-endpoint-fallback", NEWEST),
    ("auth/resource-mismatch", NEWEST),
    ("auth/offline-access-scope", NEWEST),
    ("auth/offline-access-not-supported", NEWEST),
];

/// This many at a time.
const LANES: usize = 2;
// One scenario measures half a second to a tenth, on whatever else the machine does.
const ATTEMPTS_MAX: u32 = 3;

#[test]
fn the_client_conforms_to_both_versions_of_the_protocol() {
    if workshop::unwanted() {
        return;
    }
    let suite = Suite::new();
    let tries = SCENARIOS
        .iter()
        .flat_map(|(scenario, versions)| versions.iter().map(|version| (*scenario, *version)));
    let tries: Vec<(&str, &str)> = tries.collect();
    let lane = |lane: usize| {
        let (suite, tries) = (&suite, &tries);
        move || -> Vec<String> {
            let own = tries.iter().skip(lane).step_by(LANES);
            own.filter_map(|(scenario, version)| suite.complaint(scenario, version))
                .collect()
        }
    };
    let complaints: Vec<String> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|n| scope.spawn(lane(n))).collect();
        lanes
            .into_iter()
            .flat_map(|lane| lane.join().unwrap())
            .collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn metadata_that_names_another_issuer_than_its_place_is_not_used() {
    if workshop::unwanted() {
        return;
    }
    let scenario = "auth/2025-03-26-oauth-metadata-backcompat";
    let complaint = Suite::new().complaint(scenario, "2025-06-18");
    let complaint = complaint.expect("it is refused");
    let is_it = complaint.contains("issuer mismatch") && complaint.contains("/oauth");
    assert!(is_it, "{complaint}");
}

struct Suite {
    node: PathBuf,
    program: PathBuf,
    client: PathBuf,
    results: tempfile::TempDir,
}

impl Suite {
    fn new() -> Self {
        let node = workshop::node();
        let program = "@modelcontextprotocol/conformance/dist/index.js";
        let client = client();
        assert!(
            client.is_file(),
            "`{}` is not there\nhint: `cargo build -p selvedge-mcp --example conformance`",
            client.display()
        );
        Self {
            node,
            program: workshop::modules().join(program),
            client,
            results: tempfile::tempdir().unwrap(),
        }
    }

    /// What the suite has to say against the client, if it has anything.
    fn complaint(&self, scenario: &str, version: &str) -> Option<String> {
        let mut said = String::new();
        let attempts = if scenario == "sse-retry" {
            ATTEMPTS_MAX
        } else {
            1
        };
        for _ in 0..attempts {
            let mut command = Command::new(&self.node);
            command
                .arg(&self.program)
                .args(["client", "--scenario", scenario, "--command"])
                .arg(&self.client)
                .arg("-o")
                .arg(self.results.path().join(version))
                .env("MCP_VERSION", version);
            for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
                command.env_remove(proxy).env_remove(proxy.to_uppercase());
            }
            let output = command.output().expect("there is a Node");
            if output.status.success() {
                return None;
            }
            let text = [output.stdout, output.stderr].concat();
            said = String::from_utf8_lossy(&text).into_owned();
        }
        let telling = said.lines().filter(|line| {
            let words = ["FAILURE", "WARNING", "rror"];
            words.iter().any(|word| line.contains(word))
        });
        let telling: Vec<&str> = telling.take(20).collect();
        Some(format!(
            "{scenario} with {version}:\n{}",
            telling.join("\n")
        ))
    }
}

/// The example beside this test.
fn client() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples/conformance")
}
