//! Corrections: both texts stay, one value counts, and nothing is changed on a guess.

use super::{correction, log_bench, notes, path, talk};
use crate::world::World;

#[test]
fn scenario_correction_keeps_both_texts_and_counts_the_right_value_once() {
    let world = World::new();
    log_bench(&world, 85);
    let words = "actually that was 185 not 85";
    let corrected = talk(&world, "journal", words, correction());
    assert_eq!(corrected.code, 0, "{}", corrected.stderr);
    assert!(
        corrected
            .stdout
            .contains("recorded as 85 → corrected to 185"),
        "{}",
        corrected.stdout
    );
    assert_eq!(
        path(&world),
        ["build_context", "parse", "store", "observe", "complete"]
    );
    let file = world.home().join("data/journal/2026/11/2026-11-18.md");
    let raw = std::fs::read_to_string(&file).unwrap();
    assert!(raw.contains("Bench 85x5") && raw.contains(words), "{raw}");
    assert!(raw.contains("## 09:30 [correction]"), "{raw}");
    let weight = |world: &World| {
        notes(world)[0]["domain_data"]["strength"]["exercises"][0]["weight"].clone()
    };
    assert_eq!(weight(&world), 185);
    assert_eq!(notes(&world)[0]["rows"][0]["written"], 185.0);
    // Once more, and nothing changes.
    let again = talk(&world, "journal", words, correction());
    assert!(again.stdout.contains("Unchanged"), "{}", again.stdout);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), raw);
    assert_eq!(weight(&world), 185);
}

#[test]
fn if_two_entries_may_be_meant_the_user_is_asked_and_declining_changes_nothing() {
    let world = World::new();
    log_bench(&world, 85);
    log_bench(&world, 85);
    let asked = talk(
        &world,
        "journal",
        "actually that was 185 not 85",
        correction(),
    );
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    let session = world.session();
    let declined = world.selvedge(&["answer", &session, "skip", "--resume"]);
    assert_eq!(declined.code, 0, "{}", declined.stderr);
    assert!(
        declined.stdout.contains("Nothing was changed"),
        "{}",
        declined.stdout
    );
    for note in notes(&world) {
        assert_eq!(
            note["domain_data"]["strength"]["exercises"][0]["weight"],
            85
        );
    }
}
