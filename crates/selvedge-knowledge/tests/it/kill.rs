//! An indexing process that is killed, at many moments of its life.
//!
//! The process is this test program itself, run again for the one test that indexes. It
//! stands still where it is told to, in the middle of a transaction, and is killed there:
//! so it is known how many kills leave an index halfway. Others are killed by the clock,
//! which reaches what comes after the files. What a kill leaves must be whole files, each
//! with its words and vectors; the next run makes of it what a run without a kill would
//! have made.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_knowledge::{Filter, Hashed, Index, Listing, Query};

use crate::world::World;

/// Tells the process that it is the one to be killed, and which project to index.
const VICTIM: &str = "SELVEDGE_TEST_VICTIM";
/// Tells it after how many files to stand still.
const STAND: &str = "SELVEDGE_TEST_VICTIM_STANDS";
/// What it says then.
const STANDING: &str = "standing";
/// Several transactions' worth.
const FILES: usize = 600;
const FUNCTIONS: usize = 15;
/// Places at which a process that indexes from nothing is killed.
const PLACES: usize = 6;
/// Moments at which one is killed by the clock, spread over its life.
const MOMENTS: u32 = 3;
/// Files that are edited, and places at which a process is killed that reads them again.
const EDITED: usize = 450;
const PLACES_AGAIN: usize = 3;

fn text(n: usize, functions: usize) -> String {
    let function = |m: usize| {
        // An edit changes all of them.
        format!(
            "/// Counts weasels of kind {m}.\nfn count{n}_{m}() {{\n    other{m}({functions})\n}}\n"
        )
    };
    (0..functions).map(function).collect()
}

fn project() -> World {
    let world = World::new();
    for n in 0..FILES {
        world.write(&format!("f{n}.rs"), &text(n, FUNCTIONS));
    }
    world
}

/// What the process does that is killed; nothing in an ordinary run.
#[test]
fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(VICTIM) else {
        return;
    };
    let stand = std::env::var(STAND).ok().map(|at| at.parse().unwrap());
    let world = World::at(Path::new(&root));
    let index = world.open();
    world.refresh_with(&index, &|progress| {
        if Some(progress.done) == stand {
            writeln!(std::io::stdout(), "{STANDING}").unwrap();
            loop {
                std::thread::park();
            }
        }
    });
}

fn victim(world: &World, stand: Option<usize>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "kill::the_process_that_is_killed", "--nocapture"])
        .env(VICTIM, world.root())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(stand) = stand {
        command.env(STAND, stand.to_string());
    }
    command.spawn().unwrap()
}

/// Kills a process as soon as it has done so many files, none of it tidied up.
fn kill_at(world: &World, stand: usize) {
    let mut child = victim(world, Some(stand));
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let stands = said.any(|line| line.unwrap().contains(STANDING));
    assert!(stands, "it ended before it came to file {stand}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Everything that can be found, apart from where it happens to be stored.
fn content(index: &Index) -> Vec<(String, String)> {
    let nodes = index.list_nodes(&Filter::default(), Listing::ByPlace, 100_000);
    let mut all: Vec<(String, String)> = nodes
        .unwrap()
        .into_iter()
        .map(|node| (node.id, node.content))
        .collect();
    all.sort();
    all
}

/// Whole files only, with a vector and words for each of their nodes: tells how many files
/// there are by how many functions they have.
fn whole_files(index: &Index) -> BTreeMap<usize, usize> {
    let mut functions: BTreeMap<String, usize> = BTreeMap::new();
    let nodes = index.list_nodes(&Filter::default(), Listing::ByPlace, 100_000);
    for node in nodes.unwrap() {
        let count = functions.entry(node.path.unwrap()).or_default();
        *count += usize::from(node.id.contains('#'));
    }
    let stats = index.stats().unwrap();
    let files: u64 = stats.files.values().sum();
    assert_eq!(functions.len() as u64, files);
    assert_eq!(stats.vectors, stats.nodes.values().sum::<u64>(), "vectors");
    index.check().unwrap();
    let mut by_count = BTreeMap::new();
    for count in functions.into_values() {
        *by_count.entry(count).or_default() += 1;
    }
    by_count
}

/// An index of whole files, all as they were: how many.
fn is_whole(index: &Index) -> usize {
    let files = whole_files(index);
    assert!(files.keys().all(|count| *count == FUNCTIONS), "{files:?}");
    files.get(&FUNCTIONS).copied().unwrap_or(0)
}

#[test]
fn killed_at_any_file_an_index_is_whole_and_the_next_run_completes_it() {
    let world = project();
    let expected = content(&world.index().0);
    let mut halfway = 0;
    for place in 1..=PLACES {
        world.forget_index();
        kill_at(&world, FILES * place / (PLACES + 1));
        let index = world.open();
        let files = is_whole(&index);
        assert!(files < FILES);
        halfway += usize::from(files > 0);
        world.refresh(&index);
        assert_eq!(content(&index), expected, "killed at {place} of {PLACES}");
        assert_eq!(is_whole(&index), FILES);
        let found = index.search(&Query::new(format!("count{}_3", FILES - 1)));
        assert_eq!(
            found.unwrap().hits[0].node.name,
            format!("count{}_3", FILES - 1)
        );
    }
    assert!(halfway * 2 > PLACES, "{halfway} of {PLACES} were halfway");
}

#[test]
fn killed_while_it_reads_edited_files_each_is_what_it_was_or_what_it_is() {
    let world = project();
    let before = world.index().0;
    let copy = world.root().join("before.db");
    drop(before);
    std::fs::copy(world.file(), &copy).unwrap();
    for n in 0..EDITED {
        world.write(&format!("f{n}.rs"), &text(n, FUNCTIONS + 1));
    }
    let expected = content(&world.index().0);
    let mut halfway = 0;
    for place in 1..=PLACES_AGAIN {
        world.forget_index();
        std::fs::copy(&copy, world.file()).unwrap();
        kill_at(&world, EDITED * place / (PLACES_AGAIN + 1));
        let index = world.open();
        let files = whole_files(&index);
        let known = |count: &usize| [FUNCTIONS, FUNCTIONS + 1].contains(count);
        assert!(files.keys().all(known), "{files:?}");
        assert_eq!(files.values().sum::<usize>(), FILES);
        halfway += usize::from(files.contains_key(&(FUNCTIONS + 1)));
        assert!(files[&FUNCTIONS] > FILES - EDITED, "it was not done");
        world.refresh(&index);
        assert_eq!(content(&index), expected);
        index.check().unwrap();
    }
    assert!(halfway * 2 >= PLACES_AGAIN, "{halfway} were halfway");
}

#[test]
fn killed_at_any_moment_an_index_is_whole_and_the_next_run_completes_it() {
    let world = project();
    let begun = Instant::now();
    let mut child = victim(&world, None);
    let said = BufReader::new(child.stdout.take().unwrap()).lines().count();
    assert!(said > 0 && child.wait().unwrap().success());
    let life = begun.elapsed();
    let (index, report) = world.index();
    assert_eq!(report.indexed, 0, "it was complete");
    let expected = content(&index);
    assert_eq!(is_whole(&index), FILES);
    drop(index);
    for moment in 1..=MOMENTS {
        world.forget_index();
        let mut child = victim(&world, None);
        std::thread::sleep(life * moment / MOMENTS);
        child.kill().unwrap();
        child.wait().unwrap();
        let index = world.open();
        is_whole(&index);
        world.refresh(&index);
        assert_eq!(content(&index), expected, "killed at {moment} of {MOMENTS}");
        index.check().unwrap();
    }
}

#[test]
fn two_readers_find_whole_files_while_another_process_indexes() {
    let world = project();
    drop(world.open());
    let mut child = victim(&world, None);
    let until = Instant::now() + Duration::from_secs(120);
    let looks = std::thread::scope(|scope| {
        let look = || {
            let index = Index::open_existing(&world.file(), Arc::new(Hashed), world.clock());
            let index = index.unwrap();
            let mut looks = 0;
            while index.stats().unwrap().files.values().sum::<u64>() < FILES as u64 {
                assert!(Instant::now() < until, "it takes too long");
                for hit in index.search(&Query::new("weasels")).unwrap().hits {
                    let path = hit.node.path.unwrap();
                    let there = index.in_file(&path, &[], 99).unwrap();
                    assert_eq!(there.len(), FUNCTIONS + 1, "{path}");
                }
                looks += 1;
            }
            looks
        };
        let readers = [scope.spawn(look), scope.spawn(look)];
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(child.wait().unwrap().success());
    assert!(looks.iter().all(|looks| *looks > 0), "{looks:?}");
}
