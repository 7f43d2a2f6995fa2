//! The protocols, and which of them a request speaks.

use selvedge_model::{Anthropic, Endpoint, Gemini, OpenAiChat, OpenAiResponses, Provider};
use serde_json::Value;

use super::Recorded;
use super::frames::Frames;
use super::reply::Reply;
use super::{anthropic, gemini, openai, responses};

/// Which protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI's Chat Completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini];

    /// A client that speaks it.
    pub fn provider(self, endpoint: Endpoint) -> Box<dyn Provider> {
        match self {
            Self::OpenAi => Box::new(OpenAiChat::new(endpoint)),
            Self::Responses => Box::new(OpenAiResponses::new(endpoint)),
            Self::Anthropic => Box::new(Anthropic::new(endpoint)),
            Self::Gemini => Box::new(Gemini::new(endpoint)),
        }
    }

    pub(super) fn of_path(path: &str) -> Option<Self> {
        let ends = |end| path.ends_with(end);
        Some(match path {
            _ if ends("/chat/completions") => Self::OpenAi,
            _ if ends("/responses") => Self::Responses,
            _ if ends("/messages") => Self::Anthropic,
            _ if ends(":streamGenerateContent") || ends(":generateContent") => Self::Gemini,
            _ => return None,
        })
    }

    /// The reply as a stream.
    pub(super) fn frames(self, asked: &Asked, reply: &Reply) -> Frames {
        match self {
            Self::OpenAi => openai::frames(asked, reply),
            Self::Responses => responses::frames(asked, reply),
            Self::Anthropic => anthropic::frames(asked, reply),
            Self::Gemini => gemini::frames(asked, reply),
        }
    }

    /// The reply in one piece.
    pub(super) fn whole(self, asked: &Asked, reply: &Reply) -> Value {
        match self {
            Self::OpenAi => openai::whole(asked, reply),
            Self::Responses => responses::whole(asked, reply),
            Self::Anthropic => anthropic::whole(asked, reply),
            Self::Gemini => gemini::whole(asked, reply),
        }
    }
}

/// What a reply depends on, of the request.
pub(super) struct Asked {
    /// Which model is to answer.
    pub(super) model: String,
    /// Whether it is to answer piece by piece.
    pub(super) streams: bool,
    /// Whether it is to count, where that must be asked for.
    pub(super) counts: bool,
}

impl From<&Recorded> for Asked {
    fn from(request: &Recorded) -> Self {
        let named = request.body["model"].as_str();
        let in_path = || {
            let last = request.path.rsplit('/').next()?;
            last.split(':').next()
        };
        Self {
            model: named.or_else(in_path).unwrap_or_default().to_owned(),
            streams: request.body["stream"] == true || request.path.contains(":stream"),
            counts: request.body["stream_options"]["include_usage"] == true,
        }
    }
}
