//! What seals a key: XChaCha20-Poly1305 under a passphrase (Argon2id) or under a
//! random key in a file of its own.
//!
//! Each key is sealed alone and bound to its name, so entries cannot be swapped.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::CredentialError;
use super::register::Register;

// The second of RFC 9106's recommendations; about a quarter of a second.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 4;

// A file that asks for more than this was not written by us.
const MEMORY_KIB_MAX: u32 = 1024 * 1024;
const PASSES_MAX: u32 = 16;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What the check is sealed under: no entry has this name.
const CHECK: &str = "check";

/// How the keys of a file are locked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lock {
    how: How,
    /// Nothing, sealed: tells a wrong passphrase from a damaged entry.
    check: Sealed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum How {
    KeyFile,
    Passphrase {
        salt: String,
        memory_kib: u32,
        passes: u32,
        lanes: u32,
    },
}

/// A sealed key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sealed {
    nonce: String,
    text: String,
}

/// An open lock.
pub(super) struct Opener {
    cipher: XChaCha20Poly1305,
    what: &'static str,
}

type Secret = Zeroizing<[u8; KEY_BYTES]>;

impl Lock {
    /// A new lock with a passphrase.
    pub(super) fn with_passphrase(passphrase: &SecretString) -> Result<Self, CredentialError> {
        let how = How::Passphrase {
            salt: BASE64.encode(random::<16>()),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
        };
        let secret = how.stretch(passphrase)?;
        Ok(Self::new(how, &secret))
    }

    /// A new lock with a key file, which is made if there is none.
    pub(super) fn with_key_file(register: &Register) -> Result<Self, CredentialError> {
        let secret = match register.read_key()? {
            Some(text) => key_of(&text, register)?,
            None => {
                let secret = Zeroizing::new(random());
                let text = Zeroizing::new(BASE64.encode(*secret));
                register.write_key(text.as_bytes())?;
                secret
            }
        };
        Ok(Self::new(How::KeyFile, &secret))
    }

    fn new(how: How, secret: &Secret) -> Self {
        let check = Opener::new(secret, "key").seal(CHECK, b"");
        Self { how, check }
    }

    /// Whether it takes a passphrase to open.
    pub(super) fn wants_passphrase(&self) -> bool {
        matches!(self.how, How::Passphrase { .. })
    }

    /// Opens it.
    pub(super) fn open(
        &self,
        passphrase: Option<&SecretString>,
        register: &Register,
    ) -> Result<Opener, CredentialError> {
        let opener = match &self.how {
            How::KeyFile => {
                let text = register.read_key()?.ok_or_else(|| CredentialError::File {
                    path: register.key_path(),
                    why: "it is not there, and the stored keys cannot be read without it".into(),
                })?;
                Opener::new(&key_of(&text, register)?, "key file")
            }
            how => {
                let passphrase = passphrase.ok_or(CredentialError::Locked)?;
                Opener::new(&how.stretch(passphrase)?, "passphrase")
            }
        };
        opener.unseal(CHECK, &self.check)?;
        Ok(opener)
    }
}

impl How {
    fn stretch(&self, passphrase: &SecretString) -> Result<Secret, CredentialError> {
        let wrong = CredentialError::WrongLock {
            opener: "passphrase",
        };
        let Self::Passphrase {
            salt,
            memory_kib,
            passes,
            lanes,
        } = self
        else {
            return Err(wrong);
        };
        let is_ours = *memory_kib <= MEMORY_KIB_MAX && *passes <= PASSES_MAX;
        let params = Params::new(*memory_kib, *passes, *lanes, Some(KEY_BYTES));
        let (Ok(params), Ok(salt), true) = (params, BASE64.decode(salt), is_ours) else {
            return Err(wrong);
        };
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        let words = passphrase.expose_secret().as_bytes();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(words, &salt, &mut *secret)
            .map_err(|_| wrong)?;
        Ok(secret)
    }
}

impl Opener {
    fn new(secret: &Secret, what: &'static str) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(**secret)),
            what,
        }
    }

    /// Seals a key under its name.
    pub(super) fn seal(&self, name: &str, key: &[u8]) -> Sealed {
        let nonce = random::<NONCE_BYTES>();
        let aad = name.as_bytes();
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: key, aad })
            .expect("a key is shorter than the cipher's limit");
        Sealed {
            nonce: BASE64.encode(nonce),
            text: BASE64.encode(sealed),
        }
    }

    /// The key sealed under `name`.
    pub(super) fn unseal(
        &self,
        name: &str,
        sealed: &Sealed,
    ) -> Result<SecretString, CredentialError> {
        let open = || {
            let nonce: [u8; NONCE_BYTES] = BASE64.decode(&sealed.nonce).ok()?.try_into().ok()?;
            let msg = BASE64.decode(&sealed.text).ok()?;
            let aad = name.as_bytes();
            let message = Payload { msg: &msg, aad };
            let plain = self.cipher.decrypt(&XNonce::from(nonce), message).ok()?;
            let plain = Zeroizing::new(plain);
            Some(SecretString::from(std::str::from_utf8(&plain).ok()?))
        };
        open().ok_or(CredentialError::WrongLock { opener: self.what })
    }
}

impl Sealed {
    /// How long the key in it is.
    pub(super) fn plain_bytes(&self) -> usize {
        let bytes = BASE64.decode(&self.text).map_or(0, |text| text.len());
        bytes.saturating_sub(TAG_BYTES)
    }
}

fn key_of(text: &str, register: &Register) -> Result<Secret, CredentialError> {
    let bytes = BASE64.decode(text.trim()).map(Zeroizing::new);
    let key = bytes
        .ok()
        .and_then(|bytes| bytes.as_slice().try_into().ok());
    key.map(Zeroizing::new)
        .ok_or_else(|| CredentialError::File {
            path: register.key_path(),
            why: "it does not hold a key".to_owned(),
        })
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}
