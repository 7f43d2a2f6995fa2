use super::*;

const KEY: &str = "sk-test-0123456789abcdef";

fn credentials(folder: &std::path::Path, profile: &str, passphrase: Option<&str>) -> Credentials {
    let folder_name = folder.display().to_string();
    Credentials::new(folder.to_owned(), &folder_name, profile.parse().unwrap())
        .with_passphrase(passphrase.map(SecretString::from))
}

fn found(credentials: &Credentials, provider: &str) -> Result<Option<String>, CredentialError> {
    let found = credentials.find(provider, &ProviderFacts::default(), |_| None)?;
    Ok(found.map(|found| found.key.expose_secret().to_owned()))
}

#[test]
fn a_stored_key_is_found_again_by_its_profile_only_and_is_not_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let work = credentials(folder.path(), "work", None);
    work.store("openai", &KEY.into(), Place::File).unwrap();
    assert_eq!(found(&work, "openai").unwrap().as_deref(), Some(KEY));
    assert_eq!(found(&work, "anthropic").unwrap(), None);
    let other = credentials(folder.path(), "default", None);
    assert_eq!(found(&other, "openai").unwrap(), None);
    let stored = &work.stored().unwrap()[0];
    assert_eq!(stored.length, Some(KeyLength::Usual));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(KEY));
    }
    assert!(work.remove("openai").unwrap());
    assert!(!work.remove("openai").unwrap());
    assert_eq!(found(&work, "openai").unwrap(), None);
}

#[test]
fn the_environment_comes_before_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path(), "default", None);
    credentials.store("p", &KEY.into(), Place::File).unwrap();
    let facts = ProviderFacts {
        key_variable: Some("P_KEY".into()),
        ..ProviderFacts::default()
    };
    let source = |value: &str| {
        let found = credentials.find("p", &facts, |_| Some(value.to_owned()));
        found.unwrap().unwrap().source
    };
    assert_eq!(source("mine"), KeySource::Environment("P_KEY".into()));
    assert_eq!(source("  "), KeySource::Stored(Place::File));
}

#[test]
fn a_passphrase_locks_what_was_stored_without_one_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let at = |passphrase| credentials(folder.path(), "default", passphrase);
    at(None).store("a", &"first".into(), Place::File).unwrap();
    at(Some("horse"))
        .store("b", &"second".into(), Place::File)
        .unwrap();
    assert!(at(None).is_locked().unwrap());
    for provider in ["a", "b"] {
        assert!(matches!(
            found(&at(None), provider),
            Err(CredentialError::Locked)
        ));
        let wrong = found(&at(Some("mule")), provider);
        assert!(matches!(wrong, Err(CredentialError::WrongLock { .. })));
    }
    assert_eq!(
        found(&at(Some("horse")), "a").unwrap().as_deref(),
        Some("first")
    );
    assert_eq!(
        found(&at(Some("horse")), "b").unwrap().as_deref(),
        Some("second")
    );
    let wrong = at(Some("mule")).store("c", &"third".into(), Place::File);
    assert!(matches!(wrong, Err(CredentialError::WrongLock { .. })));
}

#[test]
fn a_sealed_key_cannot_take_anothers_place() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path(), "default", None);
    credentials
        .store("a", &"first".into(), Place::File)
        .unwrap();
    let path = credentials.path();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"a\"", "\"b\"")).unwrap();
    let swapped = found(&credentials, "b");
    assert!(matches!(swapped, Err(CredentialError::WrongLock { .. })));
}

#[cfg(unix)]
#[test]
fn files_are_their_owners_and_an_open_one_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path(), "default", None);
    credentials.store("a", &KEY.into(), Place::File).unwrap();
    for name in ["credentials.enc", "credentials.key"] {
        let path = folder.path().join(name);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.path().join("credentials.key"), open).unwrap();
    assert!(matches!(
        found(&credentials, "a"),
        Err(CredentialError::TooOpen { .. })
    ));
}

#[test]
fn nothing_shows_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path(), "default", Some(KEY));
    credentials.store("a", &KEY.into(), Place::File).unwrap();
    let found = credentials.find("a", &ProviderFacts::default(), |_| None);
    let shown = format!("{credentials:?} {found:?} {:?}", credentials.stored());
    assert!(!shown.contains(KEY), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_keychain_keeps_a_key_or_says_that_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = credentials(folder.path(), "default", None);
    match credentials.store("a", &KEY.into(), Place::Keychain) {
        // Containers often forbid it.
        Err(CredentialError::NoKeychain { .. }) => {
            assert_eq!(found(&credentials, "a").unwrap(), None);
        }
        stored => {
            stored.unwrap();
            assert_eq!(found(&credentials, "a").unwrap().as_deref(), Some(KEY));
            assert_eq!(credentials.stored().unwrap()[0].place, Place::Keychain);
            assert!(credentials.remove("a").unwrap());
        }
    }
}

#[test]
fn two_logins_at_once_both_stay() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let credentials = credentials(folder.path(), "default", None);
            scope.spawn(move || {
                let provider = format!("p{n}");
                credentials
                    .store(&provider, &KEY.into(), Place::File)
                    .unwrap();
            });
        }
    });
    let credentials = credentials(folder.path(), "default", None);
    assert_eq!(credentials.stored().unwrap().len(), 8);
    assert_eq!(found(&credentials, "p3").unwrap().as_deref(), Some(KEY));
}
