//! Where OpenAI's protocols are answered, and how the key is shown there.
//!
//! Azure has two doors to the same models. The newer one looks like OpenAI's
//! own; the older one has the deployment in its path and asks for a dated
//! version of the interface. Both want the key in a header of their own.

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::http::Line;
use crate::error::ModelError;

/// How the addresses of a provider are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// The base URL, and the path of the protocol after it.
    #[default]
    Plain,
    /// Azure's way.
    Azure {
        /// The dated version of the older door; the newer one has none.
        api_version: Option<String>,
    },
}

impl Door {
    /// The address of `path`, such as `/responses`, for `model`.
    pub(super) fn url(&self, base: &str, path: &str, model: &str) -> String {
        let Self::Azure { api_version } = self else {
            return format!("{base}{path}");
        };
        // The portal shows the address with and without what comes after it.
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let base = base.strip_suffix("/openai").unwrap_or(base);
        match api_version {
            None => format!("{base}/openai/v1{path}"),
            Some(version) => {
                format!("{base}/openai/deployments/{model}{path}?api-version={version}")
            }
        }
    }

    /// The headers that carry the key, if there is one.
    pub(super) fn headers(
        &self,
        line: &Line,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, ModelError> {
        let (name, prefix) = match self {
            Self::Plain => (AUTHORIZATION, "Bearer "),
            Self::Azure { .. } => (HeaderName::from_static("api-key"), ""),
        };
        let key = line.key_header(prefix)?;
        Ok(key.map(|key| (name, key)).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_has_a_newer_and_an_older_door() {
        let newer = Door::Azure { api_version: None };
        let older = Door::Azure {
            api_version: Some("2024-10-21".into()),
        };
        let root = "https://me.openai.azure.com";
        for base in ["", "/openai", "/openai/v1"] {
            let base = format!("{root}{base}");
            assert_eq!(
                newer.url(&base, "/responses", "mine"),
                format!("{root}/openai/v1/responses")
            );
            assert_eq!(
                older.url(&base, "/chat/completions", "mine"),
                format!("{root}/openai/deployments/mine/chat/completions?api-version=2024-10-21")
            );
        }
        let plain = Door::Plain.url("http://gpu:8000/v1", "/responses", "m");
        assert_eq!(plain, "http://gpu:8000/v1/responses");
    }
}
