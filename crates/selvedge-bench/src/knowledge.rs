//! What an index costs and how well it finds: reading a project, one edited file, a
//! question at a hundred thousand entries, and the retrieval evaluation.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use selvedge_knowledge::{
    Clock, Discretion, Filter, Hashed, Index, Listing, MODES, Node, NodeType, Project, Query, Time,
    evaluate, index_project, questions_from_comments,
};
use selvedge_tool::Secrets;

use crate::figures::{Figures, resident_kb};
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

/// Measures all of it.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    reading(figures)?;
    asking(figures)?;
    finding(figures)
}

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
    let before = resident_kb();
    let begun = Instant::now();
    read(&index, &root)?;
    let seconds = begun.elapsed().as_secs_f64();
    figures.add(
        format!("indexing {lines} lines from nothing"),
        seconds,
        "s",
        Some(15.0),
    );
    let grown = (resident_kb() - before) / 1024.0;
    figures.add("memory that indexing takes", grown, "MB", Some(400.0));
    let file = root.join("part0/file0.rs");
    let mut text = std::fs::read_to_string(&file)?;
    text.push_str("\npub fn something_new() -> u8 {\n    7\n}\n");
    std::fs::write(&file, text)?;
    let begun = Instant::now();
    read(&index, &root)?;
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    figures.add("indexing after one edited file", millis, "ms", Some(200.0));
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

fn asking(figures: &mut Figures) -> anyhow::Result<()> {
    let folder = scratch()?;
    let index = Index::open(&folder.path().join("index.db"), Arc::new(Hashed), clock())?;
    let begun = Instant::now();
    for some in (0..ENTRIES).collect::<Vec<_>>().chunks(2_000) {
        let node = |n: &usize| {
            let mut node = Node::new(format!("n{n}"), NodeType::Function, word(*n as u64 * 7));
            node.path = Some(format!("src/part{}/file{}.rs", n % 50, n / 20));
            node.with_content(text(*n)).verified()
        };
        let nodes: Vec<Node> = some.iter().map(node).collect();
        index.put(&nodes)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    figures.add(format!("storing {ENTRIES} entries"), seconds, "s", None);
    let mut times = Vec::new();
    for n in 0..QUESTIONS {
        // The words of some entry, five of them, rare and common.
        let whole = text(n * 487);
        let words: Vec<&str> = whole.split(' ').skip(n % 20).take(5).collect();
        let query = Query::new(words.join(" "));
        let begun = Instant::now();
        std::hint::black_box(index.search(&query)?);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    figures.add(
        format!("a question at {ENTRIES} entries, p50"),
        at(0.5),
        "ms",
        Some(15.0),
    );
    figures.add(
        format!("a question at {ENTRIES} entries, p99"),
        at(0.99),
        "ms",
        Some(60.0),
    );
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
        "memory after all of it",
        resident_kb() / 1024.0,
        "MB",
        Some(400.0),
    );
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
