//! How long questions take, where even an unoptimized build has to be quick enough. What
//! an optimized one does at ten times the size, `selvedge-bench` measures.

use std::time::Instant;

use selvedge_knowledge::{
    Budget, Candidate, Domain, Evidence, Filter, Index, Node, NodeType, Query, conflicts_among,
    prompt, select,
};

use crate::world::World;

const NODES: usize = 10_000;
const QUESTIONS: usize = 20;

/// Twelve words of a language of two thousand, some common and most rare.
fn words(seed: usize) -> String {
    let word = |at: usize| {
        let mix = (seed * 7_919 + at * 104_729 + 17) % 1_000_003;
        let share = (mix % 1_000) as f64 / 1_000.0;
        format!("w{}", (2_000f64.powf(share)) as usize)
    };
    (0..12).map(word).collect::<Vec<_>>().join(" ")
}

/// All that happens before a model sees something: search, conflicts, trust, freshness,
/// selection, prompt.
fn context(index: &Index, text: &str) -> String {
    let found = index.search(&Query::new(text)).unwrap();
    let nodes: Vec<Node> = found.hits.iter().map(|hit| hit.node.clone()).collect();
    let supports = |used: &str| index.supports(used).is_some();
    let conflicts = conflicts_among(&nodes, supports, index.now());
    let candidates = found.hits.into_iter().map(|hit| Candidate {
        similarity: hit.similarity,
        node: hit.node,
    });
    let candidates: Vec<Candidate> = candidates.collect();
    let picked = select(&candidates, &Budget::default(), index.now());
    prompt(text, &conflicts, &picked)
}

/// How often the same is done. The least time of these is what it costs; the others tell
/// what else the machine was doing.
const TIMES: usize = 5;

fn least_millis(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..TIMES).map(once).fold(f64::INFINITY, f64::min)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn a30_ten_thousand_nodes_are_searched_and_judged_in_time() {
    let world = World::new();
    let index = world.open();
    let node = |n: usize| {
        let node_type = match n % 4 {
            0 => NodeType::Decision,
            _ => NodeType::Function,
        };
        Node::new(format!("n{n}"), node_type, format!("w{}", n % 2_000))
            .with_content(words(n))
            .verified()
    };
    let nodes: Vec<Node> = (0..NODES).map(node).collect();
    index.put(&nodes).unwrap();
    let (mut filtered, mut judged) = (Vec::new(), Vec::new());
    for n in 0..QUESTIONS {
        let text: Vec<String> = words(n * 97)
            .split(' ')
            .take(5)
            .map(str::to_owned)
            .collect();
        let text = text.join(" ");
        let query = Query::new(text.clone()).within(Filter::of(Domain::History));
        assert_eq!(index.search(&query).unwrap().hits.len(), 10);
        filtered.push(least_millis(|| {
            index.search(&query).unwrap();
        }));
        assert!(context(&index, &text).contains("[1]"));
        judged.push(least_millis(|| {
            context(&index, &text);
        }));
    }
    let (filtered, judged) = (median(filtered), median(judged));
    eprintln!("filtered {filtered:.1} ms, judged {judged:.1} ms");
    assert!(filtered < 30.0, "{filtered} ms");
    assert!(judged < 100.0, "{judged} ms");
}
