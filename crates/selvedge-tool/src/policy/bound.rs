//! What an approval is bound to: all that decides what would happen.
//!
//! Between a question and its answer days may pass. Whatever is different then (the
//! script was edited, the folder is another) makes it another act, and it is asked
//! about again.

use serde::Serialize;

/// What an approval is bound to.
#[derive(Debug, Serialize)]
pub(crate) struct Bound<'a> {
    /// The tool.
    pub(crate) tool: &'a str,
    /// Its arguments: the command, the folder, the content to be written.
    pub(crate) arguments: &'a serde_json::Value,
    /// The workspace.
    pub(crate) workspace: String,
    /// The digest of the sandbox, if there is one.
    pub(crate) fence: Option<&'a str>,
    /// The files that it would run, and the hashes of their bytes.
    pub(crate) scripts: Vec<(String, String)>,
    /// The digest of what a server says of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) definition: Option<&'a str>,
}

impl Bound<'_> {
    /// What an answer for this one time is bound to: the names of the environment's
    /// variables as well.
    pub(crate) fn digest(&self, environment: &[String]) -> String {
        hash(&(self, environment))
    }

    /// What an answer that holds for longer is remembered by. The environment is
    /// another in each terminal.
    pub(crate) fn lasting(&self) -> String {
        hash(self)
    }
}

fn hash<T: Serialize>(bound: &T) -> String {
    let bytes = serde_json::to_vec(bound).expect("strings and plain data serialize");
    blake3::hash(&bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_decides_what_happens_changes_the_digest() {
        let arguments = json!({"command": "./a"});
        let bound = || Bound {
            tool: "run_command",
            arguments: &arguments,
            workspace: "/srv/app".into(),
            fence: Some("on"),
            scripts: vec![("a".into(), "1".into())],
            definition: Some("d1"),
        };
        let environment = ["PATH".to_owned()];
        let digest = bound().digest(&environment);
        assert_eq!(bound().digest(&environment), digest);
        let other = json!({"command": "./a", "cwd": "sub"});
        let scripts = vec![("a".into(), "2".into())];
        let changed = [
            Bound {
                tool: "other",
                ..bound()
            },
            Bound {
                arguments: &other,
                ..bound()
            },
            Bound {
                workspace: "/srv/app2".into(),
                ..bound()
            },
            Bound {
                fence: None,
                ..bound()
            },
            Bound { scripts, ..bound() },
            Bound {
                definition: Some("d2"),
                ..bound()
            },
        ];
        for changed in changed {
            assert_ne!(changed.digest(&environment), digest, "{changed:?}");
            assert_ne!(changed.lasting(), bound().lasting(), "{changed:?}");
        }
        assert_ne!(bound().digest(&[]), digest);
    }
}
