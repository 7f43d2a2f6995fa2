//! The operating system's keychain: on Linux the kernel's keyring.
//!
//! The desktop's Secret Service would outlast a restart, but needs a session bus
//! that servers, containers and most terminals over SSH do not have.

use secrecy::SecretString;

use super::{CredentialError, Profile};

/// The keychain's entries of one scope.
#[derive(Clone, Debug)]
pub(super) struct Keychain {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    scope: String,
}

impl Keychain {
    pub(super) fn new(scope: &str) -> Self {
        Self {
            scope: scope.to_owned(),
        }
    }
}

#[cfg(target_os = "linux")]
impl Keychain {
    pub(super) fn get(
        &self,
        profile: &Profile,
        provider: &str,
    ) -> Result<SecretString, CredentialError> {
        match self.entry(profile, provider)?.get_password() {
            Ok(key) => Ok(key.into()),
            Err(keyring_core::Error::NoEntry) => Err(CredentialError::Forgotten {
                provider: provider.to_owned(),
            }),
            Err(error) => Err(unavailable(&error)),
        }
    }

    pub(super) fn set(
        &self,
        profile: &Profile,
        provider: &str,
        key: &SecretString,
    ) -> Result<(), CredentialError> {
        use secrecy::ExposeSecret;
        let entry = self.entry(profile, provider)?;
        let set = entry.set_password(key.expose_secret());
        set.map_err(|error| unavailable(&error))
    }

    pub(super) fn remove(&self, profile: &Profile, provider: &str) -> Result<(), CredentialError> {
        match self.entry(profile, provider)?.delete_credential() {
            Ok(()) | Err(keyring_core::Error::NoEntry) => Ok(()),
            Err(error) => Err(unavailable(&error)),
        }
    }

    fn entry(
        &self,
        profile: &Profile,
        provider: &str,
    ) -> Result<keyring_core::Entry, CredentialError> {
        use keyring_core::api::CredentialStoreApi;
        let build = || {
            let store = linux_keyutils_keyring_store::Store::new()?;
            store.build(&self.scope, &format!("{profile}/{provider}"), None)
        };
        build().map_err(|error| unavailable(&error))
    }
}

/// The library's error without what it may carry: some hold the secret itself.
#[cfg(target_os = "linux")]
fn unavailable(error: &keyring_core::Error) -> CredentialError {
    use keyring_core::Error;
    let why = match error {
        Error::PlatformFailure(why) | Error::NoStorageAccess(why) => why.to_string(),
        Error::TooLong(what, max) => format!("its {what} is longer than {max}"),
        _ => "the kernel's keyring refused".to_owned(),
    };
    CredentialError::NoKeychain { why }
}

#[cfg(not(target_os = "linux"))]
impl Keychain {
    pub(super) fn get(&self, _: &Profile, _: &str) -> Result<SecretString, CredentialError> {
        Err(unavailable())
    }

    pub(super) fn set(
        &self,
        _: &Profile,
        _: &str,
        _: &SecretString,
    ) -> Result<(), CredentialError> {
        Err(unavailable())
    }

    pub(super) fn remove(&self, _: &Profile, _: &str) -> Result<(), CredentialError> {
        Err(unavailable())
    }
}

#[cfg(not(target_os = "linux"))]
fn unavailable() -> CredentialError {
    CredentialError::NoKeychain {
        why: "this system's is not supported yet".to_owned(),
    }
}
