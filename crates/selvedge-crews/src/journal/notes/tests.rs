use jiff::civil::{Time, date, time};
use proptest::prelude::*;

use super::*;

fn new_entry(text: &str, seed: &str) -> NewEntry {
    let (date, time) = (date(2026, 1, 4), time(10, 30, 0, 0));
    NewEntry {
        id: EntryId::new(date, time, seed),
        date,
        time,
        text: text.into(),
        parsed: None,
    }
}

fn scratch() -> (tempfile::TempDir, Notes) {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let notes = Notes::at(folder.path().join("journal"));
    (folder, notes)
}

fn texts(notes: &Notes) -> Vec<String> {
    let found = notes.get_entries_by_pattern("**/*.md").unwrap();
    found.entries.into_iter().map(|entry| entry.text).collect()
}

fn file(notes: &Notes) -> PathBuf {
    notes.root().join("2026/01/2026-01-04.md")
}

#[test]
fn an_entry_is_a_section_that_people_can_read() {
    let (_folder, notes) = scratch();
    let entry = new_entry("Bench 185x5, felt heavy", "a");
    assert_eq!(notes.save_entry(&entry, None).unwrap(), Saved::Stored);
    let text = std::fs::read_to_string(file(&notes)).unwrap();
    let expected = format!(
        "## 10:30\n<!-- id: {} -->\nBench 185x5, felt heavy\n",
        entry.id
    );
    assert_eq!(text, expected);
    assert_eq!(notes.save_entry(&entry, None).unwrap(), Saved::Updated);
    assert_eq!(std::fs::read_to_string(file(&notes)).unwrap(), expected);
}

#[test]
fn what_only_looks_like_the_beginning_of_a_section_is_text() {
    let (_folder, notes) = scratch();
    let texts_in = ["## 🧵\\", "## 1:2🧵", "## ab:cd", "## 10:3"].map(str::to_owned);
    for (n, text) in texts_in.iter().enumerate() {
        let entry = new_entry(text, &n.to_string());
        notes.save_entry(&entry, None).unwrap();
    }
    assert_eq!(texts(&notes), texts_in);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn storing_never_loses_a_byte(
        texts in prop::collection::vec("(\\\\{0,2}## 1[0-9]:[0-9]{2}( x)?\n?|<!-- id: x -->|[a-z#\\\\ \n\r🧵ß]{1,12}){1,6}", 1..6),
    ) {
        let texts: Vec<String> = texts.into_iter().filter(|t| !t.trim().is_empty()).collect();
        let (_folder, notes) = scratch();
        for (n, text) in texts.iter().enumerate() {
            notes.save_entry(&new_entry(text, &n.to_string()), None).unwrap();
        }
        prop_assert_eq!(super::tests::texts(&notes), texts);
    }

    #[test]
    fn correcting_never_loses_a_byte(
        original in "[a-z#0-9 \n]{0,30}x",
        correction in "[a-z#0-9 \n]{0,30}x",
        by_hand in "[a-z \n]{0,20}",
    ) {
        let (_folder, notes) = scratch();
        let target = new_entry(&original, "target");
        notes.save_entry(&target, None).unwrap();
        let mut edited = std::fs::read(file(&notes)).unwrap();
        edited.extend_from_slice(format!("\n## 11:00\n{by_hand}\n").as_bytes());
        std::fs::write(file(&notes), &edited).unwrap();
        let change = Correction {
            target: target.id.clone(),
            changes: Vec::new(),
            domain_data: Default::default(),
            rows: Vec::new(),
        };
        let mut entry = new_entry(&correction, "correction");
        entry.time = time(12, 0, 0, 0);
        notes.save_entry(&entry, Some(&change)).unwrap();
        let after = std::fs::read(file(&notes)).unwrap();
        // All that was there is there, in the same place.
        prop_assert!(after.starts_with(&edited));
        let found = texts(&notes);
        prop_assert!(found.contains(&original));
        prop_assert!(found.contains(&correction));
    }
}

#[test]
fn files_edited_by_hand_are_read_as_they_are_now() {
    let (_folder, notes) = scratch();
    let mut entry = new_entry("Slept 4 hours", "a");
    entry.parsed = Some(Parsed {
        state: ParseState::Done,
        ..Parsed::default()
    });
    notes.save_entry(&entry, None).unwrap();
    let find = || notes.entry(entry.id.as_str()).unwrap().unwrap();
    assert_eq!(find().state(), ParseState::Done);
    let text = std::fs::read_to_string(file(&notes)).unwrap();
    let text = text.replace("4 hours", "6 hours") + "\n## 21:15 Evening\nwalked the dog\n";
    std::fs::write(file(&notes), format!("# Sunday\n\nNo plans.\n\n{text}")).unwrap();
    assert_eq!(find().state(), ParseState::Stale);
    assert_eq!(find().text, "Slept 6 hours");
    assert_eq!(
        texts(&notes),
        ["No plans.", "Slept 6 hours", "Evening\nwalked the dog"]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_passed_over_and_kept() {
    let (_folder, notes) = scratch();
    notes.save_entry(&new_entry("one", "a"), None).unwrap();
    let bad = notes.root().join("2026/01/2026-01-05.md");
    std::fs::write(&bad, [0xff, 0xfe, b'x']).unwrap();
    let found = notes.get_entries_by_pattern("2026/**/*.md").unwrap();
    assert_eq!(found.entries.len(), 1);
    assert!(
        found.warnings[0].contains("2026-01-05.md"),
        "{:?}",
        found.warnings
    );
    assert!(bad.exists());
    // A sidecar that is no JSON is kept, too, and the entry is simply not parsed.
    let sidecar = notes.root().join("2026/01/2026-01-04.json");
    std::fs::write(&sidecar, "{ broken").unwrap();
    let mut entry = new_entry("one", "a");
    entry.parsed = Some(Parsed::default());
    notes.save_entry(&entry, None).unwrap();
    let kept = std::fs::read_to_string(sidecar.with_extension("json.unreadable")).unwrap();
    assert_eq!(kept, "{ broken");
}

#[test]
fn a_folder_that_cannot_be_written_is_named_at_once() {
    let (folder, _) = scratch();
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let error = Notes::at(blocked.join("journal")).save_entry(&new_entry("x", "a"), None);
    assert!(error.unwrap_err().to_string().contains("file/journal"));
}

#[test]
fn entries_are_found_by_day_pattern_and_word() {
    let (_folder, notes) = scratch();
    for (day, text) in [
        (4, "New PR on bench"),
        (5, "ran 5k"),
        (9, "personal record, again"),
    ] {
        let date = date(2026, 1, day);
        let time = Time::midnight();
        let id = EntryId::new(date, time, text);
        let entry = NewEntry {
            id,
            date,
            time,
            text: text.into(),
            parsed: None,
        };
        notes.save_entry(&entry, None).unwrap();
    }
    let texts =
        |found: Found| -> Vec<String> { found.entries.into_iter().map(|e| e.text).collect() };
    let range = notes
        .get_entries_by_date_range(date(2026, 1, 5), date(2026, 1, 9))
        .unwrap();
    assert_eq!(texts(range), ["ran 5k", "personal record, again"]);
    let vocabulary = Vocabulary::from([("pr".to_owned(), "personal record".to_owned())]);
    let words = |list: &[&str]| -> Vec<Vec<String>> {
        list.iter()
            .map(|word| words::expanded(word, &vocabulary))
            .collect()
    };
    let found = notes.search_entries(&words(&["pr"]), None, false).unwrap();
    assert_eq!(texts(found), ["New PR on bench", "personal record, again"]);
    let both = notes
        .search_entries(&words(&["personal record", "bench"]), None, true)
        .unwrap();
    assert_eq!(texts(both), ["New PR on bench"]);
    assert_eq!(
        notes
            .get_entries_by_pattern("2026/02/**/*.md")
            .unwrap()
            .entries
            .len(),
        0
    );
    assert_eq!(
        notes.recent(2).unwrap().entries[0].text,
        "personal record, again"
    );
}

#[test]
fn a_section_written_by_hand_gets_an_id_and_keeps_every_other_byte() {
    let (_folder, notes) = scratch();
    notes.save_entry(&new_entry("ours", "a"), None).unwrap();
    let ours = std::fs::read_to_string(file(&notes)).unwrap();
    let by_hand = format!("No plans.\n\n## 08:00 Morning\nslept 7 h\n\n{ours}\n## 21:15\nwalked");
    std::fs::write(file(&notes), &by_hand).unwrap();
    let before = texts(&notes);
    assert_eq!(
        before,
        ["No plans.", "Morning\nslept 7 h", "ours", "walked"]
    );
    assert_eq!(notes.adopt().unwrap(), 1);
    let adopted = std::fs::read_to_string(file(&notes)).unwrap();
    let is_new = |line: &&str| line.starts_with("<!-- id: ") && !ours.contains(*line);
    let without: Vec<&str> = adopted.split('\n').filter(|line| !is_new(line)).collect();
    assert_eq!(without.join("\n"), by_hand);
    assert_eq!(texts(&notes), before);
    // Done again, nothing changes; and the ids stay where the sections go.
    assert_eq!(notes.adopt().unwrap(), 0);
    let ids = |notes: &Notes| -> Vec<(String, String)> {
        let found = notes
            .get_entries_by_pattern("**/*.md")
            .unwrap()
            .entries
            .into_iter();
        found
            .filter(|e| !e.is_loose())
            .map(|e| (e.id.to_string(), e.text))
            .collect()
    };
    let known = ids(&notes);
    std::fs::write(file(&notes), format!("## 06:00\nearlier\n\n{adopted}")).unwrap();
    notes.adopt().unwrap();
    let now = ids(&notes);
    assert!(
        known.iter().all(|pair| now.contains(pair)),
        "{known:?} {now:?}"
    );
    assert_eq!(now.len(), known.len() + 1);
}

#[test]
fn what_was_noted_a_day_late_belongs_to_both_days() {
    let (_folder, notes) = scratch();
    let mut entry = new_entry("ran 5k yesterday", "a");
    entry.parsed = Some(Parsed {
        state: ParseState::Done,
        about: Some(date(2026, 1, 3)),
        ..Parsed::default()
    });
    notes.save_entry(&entry, None).unwrap();
    let of = |day: i8| {
        let day = date(2026, 1, day);
        notes
            .get_entries_by_date_range(day, day)
            .unwrap()
            .entries
            .len()
    };
    assert_eq!([of(2), of(3), of(4), of(5)], [0, 1, 1, 0]);
    let ran = [vec!["ran".to_owned()]];
    let range = Some((date(2026, 1, 1), date(2026, 1, 3)));
    assert_eq!(
        notes
            .search_entries(&ran, range, false)
            .unwrap()
            .entries
            .len(),
        1
    );
}
