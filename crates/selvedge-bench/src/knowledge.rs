//! What an index costs and how well it finds: reading a project, one edited file, a
//! question at a hundred thousand entries, and the retrieval evaluation.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use selvedge_knowledge::{
    Budget, Candidate, Clock, Discretion, Domain, Embedder, Evidence, Filter, Hashed, Index,
    Listing, MODES, Model, Node, NodeType, Piece, Project, Query, Time, Vector, conflicts_among,
    evaluate, index_project, prompt, questions_from_comments, select,
};
use selvedge_tool::Secrets;

use crate::figures::{Figures, peak_kb};
use crate::rig::scratch;

/// Lines of the project that is read.
const LINES: usize = 100_000;
/// Entries of the index that is asked.
const ENTRIES: usize = 100_000;
const QUESTIONS: usize = 200;

/// The secrets are looked for as the binary does it.
struct Private(Secrets);

impl Discretion for Private {
    fn is_sensitive(&self, path: &Path) -> bool {
        self.0.is_sensitive(path)
    }

    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.redact(text)
    }
}

type Measure = fn(&mut Figures) -> anyhow::Result<()>;

/// The parts, each of which can be measured alone. Memory is the most that the process
/// ever had, so its figures are right only where a part is measured alone.
pub const PARTS: [(&str, Measure); 5] = [
    ("knowledge-reading", reading),
    ("knowledge-asking", asking),
    ("knowledge-dense", asking_of_a_dense_one),
    ("knowledge-choosing", choosing),
    ("knowledge-finding", finding),
];

fn clock() -> Clock {
    Arc::new(|| Time(4_000_000_000_000))
}

fn read(index: &Index, root: &Path) -> anyhow::Result<()> {
    let project = Project {
        root: root.to_owned(),
        discretion: &Private(Secrets::new()),
        progress: &|_| {},
        stop: &AtomicBool::new(false),
    };
    index_project(index, &project)?;
    Ok(())
}

/// The sources of this repository.
fn sources() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("it is in `crates`").to_owned()
}

/// Copies this repository's sources until there are enough lines.
fn project(root: &Path) -> anyhow::Result<usize> {
    let mut files = Vec::new();
    let mut folders = vec![sources()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    let mut lines = 0;
    for (at, file) in files.iter().cycle().enumerate() {
        if lines >= LINES {
            break;
        }
        let text = std::fs::read_to_string(file)?;
        lines += text.lines().count();
        let folder = root.join(format!("part{}", at / 40));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("file{at}.rs")), text)?;
    }
    Ok(lines)
}

fn reading(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    let root = folder.path().join("project");
    std::fs::create_dir(&root)?;
    let lines = project(&root)?;
    let index = Index::open(&folder.path().join("index.db"), Arc::new(Hashed), clock())?;
    let begun = Instant::now();
    read(&index, &root)?;
    let seconds = begun.elapsed().as_secs_f64();
    figures.add(
        format!("indexing {lines} lines from nothing"),
        seconds,
        "s",
        Some(15.0),
    );
    let megabytes = std::fs::metadata(index.path())?.len() as f64 / 1e6;
    figures.add("that index on disk", megabytes, "MB", None);
    figures.add(
        "memory of indexing, at most",
        peak_kb() / 1024.0,
        "MB",
        Some(400.0),
    );
    let file = root.join("part0/file0.rs");
    let mut text = std::fs::read_to_string(&file)?;
    text.push_str("\npub fn something_new() -> u8 {\n    7\n}\n");
    std::fs::write(&file, text)?;
    let begun = Instant::now();
    read(&index, &root)?;
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    figures.add("indexing after one edited file", millis, "ms", Some(200.0));
    let begun = Instant::now();
    read(&index, &root)?;
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    figures.add("finding that nothing was edited", millis, "ms", None);
    Ok(())
}

/// Words that occur as those of a language do: few often, many rarely.
fn text(seed: usize) -> String {
    let mut state = seed as u64 * 2_654_435_761 + 1;
    let mut words = String::new();
    for _ in 0..40 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = (state >> 33) as f64 / f64::from(1u32 << 31);
        // Zipf's law, nearly: the rank falls off as the share's power.
        let rank = (20_000f64.powf(share)) as u64;
        words.push_str(&word(rank));
        words.push(' ');
    }
    words
}

fn word(rank: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ta", "re", "mo", "li", "ka", "su", "ne", "do", "vi", "pa", "ro", "ge", "bu", "fi", "zo",
        "he",
    ];
    let mut rest = rank + 16;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[(rest % 16) as usize]);
        rest /= 16;
    }
    word
}

/// An index of so many entries.
fn entries(folder: &Path, count: usize, embedder: Arc<dyn Embedder>) -> anyhow::Result<Index> {
    let index = Index::open(&folder.join("index.db"), embedder, clock())?;
    for some in (0..count).collect::<Vec<_>>().chunks(2_000) {
        let node = |n: &usize| {
            let node_type = match n % 4 {
                0 => NodeType::Decision,
                _ => NodeType::Function,
            };
            let mut node = Node::new(format!("n{n}"), node_type, word(*n as u64 * 7));
            node.path = Some(format!("src/part{}/file{}.rs", n % 50, n / 20));
            node.with_content(text(*n)).verified()
        };
        let nodes: Vec<Node> = some.iter().map(node).collect();
        index.put(&nodes)?;
    }
    Ok(index)
}

/// Five of the words of some entry, rare and common.
fn question(n: usize) -> String {
    let whole = text(n * 487);
    let words: Vec<&str> = whole.split(' ').skip(n % 20).take(5).collect();
    words.join(" ")
}

fn asking(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    let begun = Instant::now();
    let index = entries(folder.path(), ENTRIES, Arc::new(Hashed))?;
    let seconds = begun.elapsed().as_secs_f64();
    figures.add(format!("storing {ENTRIES} entries"), seconds, "s", None);
    let mut times = Vec::new();
    for n in 0..QUESTIONS {
        let query = Query::new(question(n));
        let begun = Instant::now();
        std::hint::black_box(index.search(&query)?);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let what = format!("a question at {ENTRIES} entries");
    quantiles(figures, &what, times, (15.0, 60.0));
    let begun = Instant::now();
    let file = index.path().to_owned();
    let opened = Index::open_existing(&file, Arc::new(Hashed), clock())?;
    opened.search(&Query::new("tare moli"))?;
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    figures.add(
        "opening that index, and a first question",
        millis,
        "ms",
        None,
    );
    figures.add(
        "memory of storing and asking, at most",
        peak_kb() / 1024.0,
        "MB",
        Some(400.0),
    );
    Ok(())
}

/// Vectors of a sentence model's size, without its cost: of every word, a place in each.
struct Dense;

const DENSE: usize = 384;

impl Embedder for Dense {
    fn model(&self) -> Model {
        Model {
            name: "as-large-as-minilm".into(),
            dimensions: DENSE,
        }
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        let vector = |piece: &Piece<'_>| {
            let mut values = vec![0.01f32; DENSE];
            for word in piece.text.split(' ') {
                let hash = word
                    .bytes()
                    .fold(7usize, |h, b| h.wrapping_mul(31) ^ usize::from(b));
                for step in 1..9 {
                    values[hash.wrapping_mul(step * 2 + 1) % DENSE] += 1.0;
                }
            }
            Vector::Dense(values)
        };
        Ok(pieces.iter().map(vector).collect())
    }
}

/// The exact scan of dense vectors: whether it has to give way to an approximate index
/// is decided by this figure.
fn asking_of_a_dense_one(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    let index = entries(folder.path(), ENTRIES, Arc::new(Dense))?;
    let mut times = Vec::new();
    for n in 0..QUESTIONS / 4 {
        let query = Query::new(question(n));
        let begun = Instant::now();
        std::hint::black_box(index.search(&query)?);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let what = format!("a question at {ENTRIES} dense vectors");
    quantiles(figures, &what, times, (15.0, 60.0));
    figures.add(
        "memory with dense vectors, at most",
        peak_kb() / 1024.0,
        "MB",
        Some(400.0),
    );
    Ok(())
}

fn quantiles(figures: &mut Figures, what: &str, mut times: Vec<f64>, goals: (f64, f64)) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    figures.add(format!("{what}, p50"), at(0.5), "ms", Some(goals.0));
    figures.add(format!("{what}, p99"), at(0.99), "ms", Some(goals.1));
}

/// A search among one domain of ten thousand entries, and the same with everything that
/// follows before a model sees it: conflicts, trust, freshness, selection, prompt.
fn choosing(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    let index = entries(folder.path(), 10_000, Arc::new(Hashed))?;
    let (mut filtered, mut chosen) = (Vec::new(), Vec::new());
    for n in 0..QUESTIONS {
        let text = question(n);
        let filter = Filter::of(Domain::History);
        let query = Query::new(text.clone()).within(filter);
        let begun = Instant::now();
        std::hint::black_box(index.search(&query)?);
        filtered.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        let found = index.search(&Query::new(text.clone()))?;
        let nodes: Vec<Node> = found.hits.iter().map(|hit| hit.node.clone()).collect();
        let supports = |used: &str| Evidence::supports(&index, used).is_some();
        let conflicts = conflicts_among(&nodes, supports, index.now());
        let candidates: Vec<Candidate> = found
            .hits
            .into_iter()
            .map(|hit| Candidate {
                similarity: hit.similarity,
                node: hit.node,
            })
            .collect();
        let picked = select(&candidates, &Budget::default(), index.now());
        std::hint::black_box(prompt(&text, &conflicts, &picked));
        chosen.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let what = "a filtered question at 10,000 entries";
    quantiles(figures, what, filtered, (30.0, 30.0));
    let what = "context chosen at 10,000 entries";
    quantiles(figures, what, chosen, (100.0, 100.0));
    Ok(())
}

/// The repositories whose comments become questions: this one, and those named in
/// `SELVEDGE_BENCH_REPOSITORIES`, with colons between them.
fn finding(figures: &mut Figures) -> anyhow::Result<()> {
    let more = std::env::var("SELVEDGE_BENCH_REPOSITORIES").unwrap_or_default();
    let more = more
        .split(':')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let folder = scratch()?;
    for (at, root) in std::iter::once(sources()).chain(more).enumerate() {
        let whole = Index::open(
            &folder.path().join(format!("{at}.db")),
            Arc::new(Hashed),
            clock(),
        )?;
        read(&whole, &root)?;
        let mut nodes = whole.list_nodes(&Filter::default(), Listing::ByPlace, 1_000_000)?;
        let questions = questions_from_comments(&mut nodes);
        let bare = folder.path().join(format!("{at}-bare.db"));
        let bare = Index::open(&bare, Arc::new(Hashed), clock())?;
        for some in nodes.chunks(5_000) {
            bare.put(some)?;
        }
        let name = root
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for (mode, search) in MODES {
            let marks = evaluate(&bare, &questions, search)?;
            let what = format!("{mode} on {} comments of `{name}`", questions.len());
            for (figure, value) in [
                ("recall@5", marks.recall_at_5),
                ("recall@10", marks.recall_at_10),
                ("MRR", marks.mrr),
            ] {
                figures.add(format!("{figure}, {what}"), value, "", None);
            }
            figures.add(format!("p50, {what}"), marks.millis_p50, "ms", None);
        }
    }
    Ok(())
}
