//! Whole worlds from seeds: whatever is killed, whenever, the run goes on.

use std::collections::BTreeMap;

use selvedge_testkit::{
    Broken, Counts, CrashKind, CrashPlan, Faults, Moment, Report, Scenario, simulate,
};

/// Seeds in one run of the tests; a soak sets more.
fn seeds() -> u64 {
    std::env::var("SELVEDGE_SEEDS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(2000)
}

fn run(scenario: &Scenario) -> Report {
    simulate(scenario).unwrap_or_else(|Broken(why)| panic!("{why}"))
}

#[test]
fn a_world_without_faults_ends_in_one_life() {
    let report = run(&Scenario {
        seed: 7,
        turns: 20,
        faults: Faults::None,
    });
    assert!(report.done);
    assert_eq!(report.lives, 1);
    assert!(report.story.len() > 20);
}

/// The story of a run that was killed, against that of one that was not: every
/// call of the one is in the other, with the same result unless in doubt.
fn same_story(expected: &BTreeMap<String, String>, got: &BTreeMap<String, String>) {
    assert_eq!(
        expected.keys().collect::<Vec<_>>(),
        got.keys().collect::<Vec<_>>(),
        "another sequence of calls"
    );
    for (call, result) in expected {
        let found = &got[call];
        assert!(
            found == result || found == "in doubt",
            "{call}: {result} became {found}"
        );
    }
}

const SWEEP_TURNS: u32 = 200;
const SWEEP_SHARDS: usize = 4;

/// Kills a run of two hundred turns at every ledger write, in every position.
fn sweep(shard: usize) {
    let quiet = Scenario {
        seed: 1,
        turns: SWEEP_TURNS,
        faults: Faults::None,
    };
    let whole = run(&quiet);
    assert!(whole.done && whole.appends.len() >= SWEEP_TURNS as usize);
    let mut kills = 0;
    for (nth, (before, after)) in whole.appends.iter().enumerate() {
        if nth % SWEEP_SHARDS != shard {
            continue;
        }
        let positions = [
            ("before the write", before + 1, Moment::Before),
            ("before the sync", *after, Moment::Before),
            ("before the acknowledgement", *after, Moment::After),
            ("after", after + 1, Moment::Before),
        ];
        for (n, (position, at, moment)) in positions.into_iter().enumerate() {
            // The last append of the run is followed by nothing.
            if n == 3 && nth + 1 == whole.appends.len() {
                continue;
            }
            let kind = if (nth / SWEEP_SHARDS + n).is_multiple_of(2) {
                CrashKind::ProcessKill
            } else {
                CrashKind::PowerLoss
            };
            let faults = Faults::CrashAt(CrashPlan { at, moment, kind });
            let report = run(&Scenario {
                faults,
                ..quiet.clone()
            });
            assert!(
                report.done,
                "append {nth}, {position}, {kind:?}: the run did not succeed"
            );
            assert_eq!(report.lives, 2, "append {nth}, {position}, {kind:?}");
            same_story(&whole.story, &report.story);
            kills += 1;
        }
    }
    eprintln!("{kills} kills");
    assert!(kills >= SWEEP_TURNS as usize);
}

#[test]
fn a_kill_at_any_write_of_a_long_run_loses_nothing_0() {
    sweep(0);
}

#[test]
fn a_kill_at_any_write_of_a_long_run_loses_nothing_1() {
    sweep(1);
}

#[test]
fn a_kill_at_any_write_of_a_long_run_loses_nothing_2() {
    sweep(2);
}

#[test]
fn a_kill_at_any_write_of_a_long_run_loses_nothing_3() {
    sweep(3);
}

/// Every one of these must have been seen, or the simulation proves nothing.
const SOMETIMES: [&str; 19] = [
    "budget exhausted",
    "cancelled",
    "child finished",
    "clock jump",
    "disk crash",
    "in doubt",
    "killed",
    "ledger refused",
    "letter ignored",
    "model broke off",
    "model rate limited",
    "model transient",
    "paused",
    "probe did not happen",
    "probe happened",
    "probe unknown",
    "question answered",
    "steered",
    "summary",
];

#[test]
fn any_mixture_of_faults_keeps_the_invariants() {
    let (first, count) = match std::env::var("SELVEDGE_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
    {
        Some(seed) => (seed, 1),
        None => (0, seeds()),
    };
    let mut counts = Counts::default();
    let mut done = 0;
    for seed in first..first + count {
        let scenario = Scenario {
            seed,
            turns: 3 + (seed % 10) as u32,
            faults: Faults::Swarm,
        };
        let replay = format!(
            "replay with SELVEDGE_SEED={seed} cargo nextest run -p selvedge-testkit any_mixture"
        );
        let once = simulate(&scenario).unwrap_or_else(|Broken(why)| panic!("{why}\n{replay}"));
        let twice = simulate(&scenario).unwrap_or_else(|Broken(why)| panic!("{why}\n{replay}"));
        assert_eq!(
            once.heads, twice.heads,
            "two runs of seed {seed} differ\n{replay}"
        );
        counts.add(&once.counts);
        done += u64::from(once.done);
    }
    eprintln!("{done} of {count} done; {counts:#?}");
    if count >= 2000 {
        for what in SOMETIMES {
            let hits = counts.0.get(what).copied().unwrap_or(0);
            assert!(hits >= count / 100, "`{what}` was seen {hits} times only");
        }
        assert!(
            done * 100 >= count * 60,
            "only {done} of {count} runs succeeded"
        );
    }
}
