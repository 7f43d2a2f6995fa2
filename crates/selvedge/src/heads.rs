//! Signed heads: a witness of how far each session had come.
//!
//! The chain of hashes finds every change within a stream. It cannot find that the
//! end of one was cut off, or that the whole file was put back to an earlier state:
//! what is left is consistent. A head that was signed before, and is kept outside of
//! the ledger, can.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use selvedge_ledger::{Damage, Ledger, LedgerError, Seq, StreamFilter, StreamId, Time};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::wiring::Store;

/// How far the streams of a session had come, signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedHeads {
    #[serde(flatten)]
    heads: Heads,
    /// Whose signature it is: a public key.
    key: String,
    signature: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Heads {
    session: StreamId,
    time: Time,
    streams: Vec<Head>,
}

/// The last event of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    stream: StreamId,
    seq: Seq,
    hash: String,
}

impl Heads {
    /// What is signed: what it is for, and every field.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"selvedge heads 1\n".to_vec();
        bytes.extend(serde_json::to_vec(self).expect("strings and numbers serialize"));
        bytes
    }
}

/// Signs how far a session has come, and keeps that beside the ledger.
pub async fn sign(store: &Store, session: &StreamId) -> Result<SignedHeads> {
    let filter = StreamFilter::Session(session.clone());
    let streams = store.ledger.streams(filter).await?;
    let heads = Heads {
        session: session.clone(),
        time: store.clock.now(),
        streams: streams
            .into_iter()
            .map(|info| Head {
                stream: info.id,
                seq: info.head,
                hash: info.head_hash.to_string(),
            })
            .collect(),
    };
    let key = key(&store.paths)?;
    let signed = SignedHeads {
        signature: hex(&key.sign(&heads.bytes()).to_bytes()),
        key: hex(key.verifying_key().as_bytes()),
        heads,
    };
    append(&store.paths.heads(), &signed)?;
    Ok(signed)
}

/// What signed heads say that the ledger does not.
pub async fn verify(
    store: &Store,
    session: Option<&StreamId>,
    other: Option<&Path>,
) -> Result<(u64, Vec<Damage>)> {
    let known = public_key(&store.paths)?;
    let (mut checked, mut damage) = (0, Vec::new());
    let own = store.paths.heads();
    for file in [Some(own.as_path()), other].into_iter().flatten() {
        let text = read(file, other == Some(file))?;
        // A file of something else was named by mistake: nothing of the ledger is damaged.
        let is_head = |line: &str| serde_json::from_str::<SignedHeads>(line).is_ok();
        if other == Some(file) && !text.lines().any(is_head) {
            let what = format!("`{}` holds no signed heads", file.display());
            return Err(Error::usage(what)
                .cause("none of its lines is one; the ledger was not compared with it")
                .hint("name a file that `selvedge audit sign` wrote"));
        }
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", file.display(), number + 1);
            let Ok(signed) = serde_json::from_str::<SignedHeads>(line) else {
                damage.push(wrong(
                    &StreamId::new(place),
                    None,
                    "this line is no signed head",
                ));
                continue;
            };
            if session.is_some_and(|session| *session != signed.heads.session) {
                continue;
            }
            checked += 1;
            if let Err(what) = is_signed(&signed, known.as_ref()) {
                damage.push(wrong(
                    &signed.heads.session,
                    None,
                    &format!("{what} ({place})"),
                ));
                continue;
            }
            for head in &signed.heads.streams {
                damage.extend(missing(&*store.ledger, head).await?);
            }
        }
    }
    damage.dedup_by(|a, b| a.stream == b.stream && a.seq == b.seq && a.what == b.what);
    Ok((checked, damage))
}

/// What is wrong with a stream whose head was signed, if anything is.
async fn missing(
    ledger: &dyn Ledger,
    head: &Head,
) -> std::result::Result<Option<Damage>, LedgerError> {
    let Head { stream, seq, hash } = head;
    let Some(info) = ledger.stream(stream).await? else {
        return Ok(Some(wrong(
            stream,
            None,
            "it is gone, although its head was signed",
        )));
    };
    if info.head < *seq {
        let what = format!(
            "it ends at event {}, although event {seq} was signed",
            info.head
        );
        return Ok(Some(wrong(stream, Some(*seq), &what)));
    }
    // A stream that cannot be read is reported by the ledger's own check.
    let events = ledger
        .read(stream, seq.saturating_sub(1))
        .await
        .unwrap_or_default();
    let found = events.first().map(|event| event.hash.to_string());
    let differs = found.is_some_and(|found| found != *hash);
    Ok(differs.then(|| wrong(stream, Some(*seq), "it is not the event that was signed")))
}

fn is_signed(
    signed: &SignedHeads,
    known: Option<&VerifyingKey>,
) -> std::result::Result<(), String> {
    let known = known.ok_or("the key that signed it is gone")?;
    if hex(known.as_bytes()) != signed.key {
        return Err("it was signed by another key".into());
    }
    let bytes = unhex::<64>(&signed.signature).ok_or("its signature cannot be read")?;
    known
        .verify(&signed.heads.bytes(), &Signature::from_bytes(&bytes))
        .map_err(|_| "its signature does not fit".into())
}

fn wrong(stream: &StreamId, seq: Option<Seq>, what: &str) -> Damage {
    Damage {
        stream: stream.clone(),
        seq,
        what: what.to_owned(),
    }
}

/// The key, made when it is first needed.
fn key(paths: &Paths) -> Result<SigningKey> {
    let file = paths.signing_key();
    if let Some(key) = stored(&file)? {
        return Ok(key);
    }
    let mut seed = Zeroizing::new([0; 32]);
    let failed = |error: &dyn std::fmt::Display| {
        Error::failed(format!(
            "the signing key `{}` cannot be made",
            file.display()
        ))
        .cause(error)
        .hint("make the data folder writable")
    };
    getrandom::fill(&mut *seed).map_err(|error| failed(&error))?;
    let mut options = std::fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(&file);
    let written = made.and_then(|mut made| {
        made.write_all(Zeroizing::new(hex(&*seed)).as_bytes())?;
        made.sync_all()
    });
    match written {
        Ok(()) => Ok(SigningKey::from_bytes(&seed)),
        // Another process was first.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            stored(&file)?.ok_or_else(|| failed(&error))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn public_key(paths: &Paths) -> Result<Option<VerifyingKey>> {
    Ok(stored(&paths.signing_key())?.map(|key| key.verifying_key()))
}

fn stored(file: &Path) -> Result<Option<SigningKey>> {
    let mut text = Zeroizing::new(String::new());
    let failed = |cause: String| {
        Error::failed(format!(
            "the signing key `{}` cannot be used",
            file.display()
        ))
        .cause(cause)
        .hint("restore it from a backup, or remove it: heads signed before cannot be checked then")
    };
    match std::fs::File::open(file) {
        Ok(mut opened) => opened
            .read_to_string(&mut text)
            .map_err(|e| failed(e.to_string()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let seed = unhex::<32>(text.trim()).map(Zeroizing::new);
    let seed = seed.ok_or_else(|| failed("it is not 64 hexadecimal digits".into()))?;
    Ok(Some(SigningKey::from_bytes(&seed)))
}

fn append(file: &Path, signed: &SignedHeads) -> Result<()> {
    let mut line = serde_json::to_vec(signed).expect("strings and numbers serialize");
    line.push(b'\n');
    let mut options = std::fs::OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(&line));
    written.map_err(|error| {
        Error::failed(format!("`{}` cannot be written", file.display()))
            .cause(error)
            .hint("make the data folder writable")
    })
}

fn read(file: &Path, must_exist: bool) -> Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
            Ok(String::new())
        }
        Err(error) => Err(Error::usage(format!(
            "the heads in `{}` cannot be read",
            file.display()
        ))
        .cause(error)
        .hint("name a file that `selvedge audit sign` wrote")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
