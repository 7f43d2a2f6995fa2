//! Long text, kept once in the blob table and by reference in events.
//!
//! A fold keeps the reference, not the content: a session with four hundred
//! long tool results loads in milliseconds, and the same file read twice is
//! stored once.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text up to this many bytes stays inside its event.
// Above it, one row more and zstd cost less than the bytes they save.
pub const PAYLOAD_INLINE_BYTES_MAX: usize = 2048;

/// Names a blob by the BLAKE3 hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId(pub [u8; 32]);

impl BlobId {
    /// The id that `content` has.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// Reads the hexadecimal form.
    pub fn parse(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text)
            .ok()
            .map(|h| Self(*h.as_bytes()))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Content on its way to the blob table.
#[derive(Debug)]
pub struct Blob {
    pub(crate) id: BlobId,
    pub(crate) content: Arc<str>,
    // Content that recurs is stored already and never needs it.
    compressed: OnceLock<Vec<u8>>,
}

// Level 1: four times as fast as 3 on source text for a tenth more bytes, and
// it runs on the path of every long tool result.
const ZSTD_LEVEL: i32 = 1;

thread_local! {
    // Making one costs more than what it does for a text of usual length.
    static PACKER: RefCell<zstd::bulk::Compressor<'static>> = RefCell::new(
        zstd::bulk::Compressor::new(ZSTD_LEVEL).expect("there is memory for a compressor"),
    );
}

impl Blob {
    fn new(id: BlobId, content: &Arc<str>) -> Self {
        Self {
            id,
            content: content.clone(),
            compressed: OnceLock::new(),
        }
    }

    /// The content as it is stored, compressed by whoever asks first.
    pub(crate) fn compressed(&self) -> &[u8] {
        self.compressed.get_or_init(|| {
            PACKER.with_borrow_mut(|packer| {
                packer
                    .compress(self.content.as_bytes())
                    .expect("compressing from memory to memory has nothing to fail on")
            })
        })
    }

    /// The content of a stored blob, if it is what its id says.
    pub(crate) fn open(id: BlobId, bytes: u64, compressed: &[u8]) -> Option<Arc<str>> {
        let content = zstd::bulk::decompress(compressed, usize::try_from(bytes).ok()?).ok()?;
        (BlobId::of(&content) == id && content.len() as u64 == bytes).then_some(())?;
        String::from_utf8(content).ok().map(Into::into)
    }
}

/// Text that may be long.
///
/// In JSON it is a string, or `{"blob": ID, "bytes": N}` when long.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Form);

#[derive(Clone)]
enum Form {
    Inline(Arc<str>),
    Blob {
        id: BlobId,
        bytes: u64,
        // Present from creation until the value is read back from a ledger.
        content: Option<Arc<str>>,
    },
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inline(a), Self::Inline(b)) => a == b,
            (Self::Blob { id: a, .. }, Self::Blob { id: b, .. }) => a == b,
            _ => false,
        }
    }
}

impl Eq for Form {}

impl std::hash::Hash for Form {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Inline(text) => text.hash(state),
            Self::Blob { id, .. } => id.hash(state),
        }
    }
}

impl Payload {
    /// Wraps `text`; long text gets its blob id here.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        if text.len() <= PAYLOAD_INLINE_BYTES_MAX {
            return Self(Form::Inline(text));
        }
        Self(Form::Blob {
            id: BlobId::of(text.as_bytes()),
            bytes: text.len() as u64,
            content: Some(text),
        })
    }

    /// Wraps `text` and keeps it inside its event, however long: for text that a
    /// fold must read.
    pub fn inline(text: impl Into<Arc<str>>) -> Self {
        Self(Form::Inline(text.into()))
    }

    /// The text, if it is at hand without asking a ledger.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Form::Inline(text) => Some(text),
            Form::Blob { content, .. } => content.as_ref(),
        }
    }

    /// The blob that holds the text, when it is long.
    pub fn blob(&self) -> Option<BlobId> {
        match &self.0 {
            Form::Inline(_) => None,
            Form::Blob { id, .. } => Some(*id),
        }
    }

    /// Length of the text.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Inline(text) => text.len() as u64,
            Form::Blob { bytes, .. } => *bytes,
        }
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same payload without the long text in memory; a ledger has it.
    pub fn forget(&mut self) {
        if let Form::Blob { content, .. } = &mut self.0 {
            *content = None;
        }
    }
}

impl<T: Into<Arc<str>>> From<T> for Payload {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Inline(text) => write!(f, "{text:?}"),
            Form::Blob { id, bytes, .. } => write!(f, "<{bytes} bytes in {:.8}>", id.to_string()),
        }
    }
}

thread_local! {
    /// Where serialized payloads leave their content, while an event is encoded.
    static COLLECTED: RefCell<Option<Vec<Blob>>> = const { RefCell::new(None) };
}

/// Runs `encode` and returns the long payloads it serialized.
///
/// Serde has no way to hand a second output through a serializer. Collecting on
/// the side makes it impossible to append a reference without its content.
pub(crate) fn collect<T>(encode: impl FnOnce() -> T) -> (T, Vec<Blob>) {
    COLLECTED.with_borrow_mut(|c| *c = Some(Vec::new()));
    let out = encode();
    let blobs = COLLECTED.with_borrow_mut(Option::take).unwrap_or_default();
    (out, blobs)
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Inline(text) => s.serialize_str(text),
            Form::Blob { id, bytes, content } => {
                if let Some(content) = content {
                    COLLECTED.with_borrow_mut(|c| {
                        if let Some(blobs) = c {
                            blobs.push(Blob::new(*id, content));
                        }
                    });
                }
                let mut out = s.serialize_struct("Payload", 2)?;
                out.serialize_field("blob", &id.to_string())?;
                out.serialize_field("bytes", bytes)?;
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Text(String),
            Reference { blob: String, bytes: u64 },
        }
        Ok(Self(match Stored::deserialize(d)? {
            Stored::Text(text) => Form::Inline(text.into()),
            Stored::Reference { blob, bytes } => Form::Blob {
                id: BlobId::parse(&blob).ok_or_else(|| D::Error::custom("not a blob id"))?,
                bytes,
                content: None,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_payload_is_stored_by_reference_and_its_content_collected() {
        let long = "x".repeat(PAYLOAD_INLINE_BYTES_MAX + 1);
        let payload = Payload::new(long.clone());
        let (json, blobs) = collect(|| serde_json::to_string(&payload).unwrap());
        assert!(json.len() < 120, "{json}");
        assert_eq!(blobs.len(), 1);
        let stored = Blob::open(blobs[0].id, long.len() as u64, blobs[0].compressed());
        assert_eq!(stored.as_deref(), Some(&*long));
        let back: Payload = serde_json::from_str(&json).unwrap();
        assert_eq!(back, payload);
        assert_eq!(back.text(), None);
        assert_eq!(back.len(), long.len() as u64);
    }

    #[test]
    fn a_short_payload_is_a_plain_string() {
        let (json, blobs) = collect(|| serde_json::to_string(&Payload::new("hello")).unwrap());
        assert_eq!(json, "\"hello\"");
        assert!(blobs.is_empty());
        let back: Payload = serde_json::from_str(&json).unwrap();
        assert_eq!(back.text().map(|t| &**t), Some("hello"));
    }
}
