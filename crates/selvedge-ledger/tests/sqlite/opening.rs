//! What cannot be a ledger is refused with a reason, and left as it was.

use std::path::Path;

use selvedge_ledger::{LedgerError, SqliteLedger, SqliteOptions};

use crate::place::File;
use crate::suite::{Place, opened};

/// Why the file at `path` cannot be opened.
fn refusal(path: &Path) -> String {
    match SqliteLedger::open(&SqliteOptions::new(path)).map(drop) {
        Err(LedgerError::Unusable { path: named, why }) => {
            assert_eq!(named, path.display().to_string());
            why
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = File::new();
    let ledger = place.open().await;
    opened(&*ledger, "s").await;
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let mode = std::fs::metadata(place.beside(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let place = File::new();
    let garbage = "this is not a database, it is a letter to a friend\n".repeat(100);
    std::fs::write(place.path(), &garbage).unwrap();
    assert_eq!(refusal(&place.path()), "file is not a database");
    assert_eq!(std::fs::read_to_string(place.path()).unwrap(), garbage);
}

#[test]
fn another_programs_database_is_refused() {
    for version in [0, 1] {
        let place = File::new();
        place
            .database()
            .execute_batch(&format!(
                "create table recipes (name text); pragma user_version = {version}"
            ))
            .unwrap();
        let before = std::fs::read(place.path()).unwrap();
        assert_eq!(
            refusal(&place.path()),
            "it is the database of another program"
        );
        assert!(
            std::fs::read(place.path()).unwrap() == before,
            "the file was changed"
        );
    }
}

#[tokio::test]
async fn a_ledger_can_be_begun_by_many_at_once() {
    for _ in 0..10 {
        let place = File::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| SqliteLedger::open(&SqliteOptions::new(place.path())).unwrap());
            }
        });
        opened(&*place.open().await, "s").await;
    }
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let place = File::new();
    drop(place.open().await);
    place
        .database()
        .execute_batch("pragma user_version = 999")
        .unwrap();
    assert_eq!(
        refusal(&place.path()),
        "it was written by a newer Selvedge (format 999, this one reads 1)"
    );
}

#[test]
fn a_missing_folder_is_refused() {
    let place = File::new();
    let why = refusal(&place.beside("missing/ledger.db"));
    assert!(why.contains("No such file or directory"), "{why}");
}

#[test]
fn a_folder_is_refused() {
    let place = File::new();
    std::fs::create_dir(place.path()).unwrap();
    let why = refusal(&place.path());
    assert!(why.contains("unable to open"), "{why}");
}

#[test]
fn a_folder_that_takes_no_files_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = File::new();
    let folder = place.beside("sealed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o500)).unwrap();
    // The administrator may write anywhere, except where the kernel has no files.
    let sealed = std::fs::write(folder.join("probe"), "").is_err();
    let folder = if sealed { folder } else { "/proc".into() };
    refusal(&folder.join("ledger.db"));
}
