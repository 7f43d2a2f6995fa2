//! An indexing process that is killed, at many moments of its life.
//!
//! The process is this test program itself, run again for the one test that indexes. What
//! a kill leaves must be whole files, each with its words and vectors; the next run makes
//! of it what a run without a kill would have made.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_knowledge::{Filter, Hashed, Index, Listing, Query};

use crate::world::World;

/// Tells the process that it is the one to be killed, and which project to index.
const VICTIM: &str = "SELVEDGE_TEST_VICTIM";
/// More than one transaction's worth.
const FILES: usize = 400;
const FUNCTIONS: usize = 12;
/// Moments at which it is killed, spread over its life.
const MOMENTS: u32 = 12;

fn project() -> World {
    let world = World::new();
    for n in 0..FILES {
        let function = |m: usize| {
            format!("/// Counts weasels of kind {m}.\nfn count{n}_{m}() {{\n    other{m}()\n}}\n")
        };
        let text: String = (0..FUNCTIONS).map(function).collect();
        world.write(&format!("f{n}.rs"), &text);
    }
    world
}

/// What the process does that is killed; nothing in an ordinary run.
#[test]
fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(VICTIM) else {
        return;
    };
    let world = World::at(Path::new(&root));
    world.index();
}

fn victim(world: &World) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::the_process_that_is_killed"])
        .env(VICTIM, world.root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
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

/// Whole files only, with a vector and words for each of their nodes.
fn is_whole(index: &Index) -> usize {
    let stats = index.stats().unwrap();
    let files: u64 = stats.files.values().sum();
    let nodes: u64 = stats.nodes.values().sum();
    assert_eq!(nodes, files * (FUNCTIONS as u64 + 1), "a file is whole");
    assert_eq!(stats.vectors, nodes, "and so are its vectors");
    index.check().unwrap();
    files as usize
}

#[test]
fn killed_at_any_moment_an_index_is_whole_and_the_next_run_completes_it() {
    let world = project();
    let begun = Instant::now();
    assert!(victim(&world).wait().unwrap().success());
    let life = begun.elapsed();
    let (index, report) = world.index();
    assert_eq!(report.indexed, 0, "it was complete");
    let expected = content(&index);
    assert_eq!(is_whole(&index), FILES);
    drop(index);
    let mut halfway = 0;
    for moment in 1..=MOMENTS {
        world.forget_index();
        let mut child = victim(&world);
        std::thread::sleep(life * moment / MOMENTS);
        child.kill().unwrap();
        child.wait().unwrap();
        let index = world.open();
        let files = is_whole(&index);
        halfway += usize::from(files > 0 && files < FILES);
        world.refresh(&index);
        assert_eq!(content(&index), expected, "killed at {moment} of {MOMENTS}");
        assert_eq!(is_whole(&index), FILES);
        let found = index.search(&Query::new(format!("count{}_3", FILES - 1)));
        assert_eq!(
            found.unwrap().hits[0].node.name,
            format!("count{}_3", FILES - 1)
        );
    }
    eprintln!("{halfway} of {MOMENTS} kills left an index halfway, of {life:?}");
}

#[test]
fn two_readers_find_whole_files_while_another_process_indexes() {
    let world = project();
    drop(world.open());
    let mut child = victim(&world);
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
