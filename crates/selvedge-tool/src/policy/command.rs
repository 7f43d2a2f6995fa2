//! What a shell command would do, part by part.
//!
//! The kernel is the fence. A plain command that needs no more than the fence gives
//! is not worth a question; one that is risky, wants more, or hides what it does is.

use std::path::{Path, PathBuf};

use super::Policy;
use super::arguments::{
    guarded, inner_commands, leading_options, removal, set_by, takes_text_first,
};
use super::git;
use super::programs::{Kind, PROGRAMS, spellings};
use super::rules::base;
use super::script::{awk_is_plain, sed_is_plain};
use super::shell::{self, Redirect, Script, Segment, Word};
use super::site::{Place, Site};
use super::verdict::{Decision, Finding, Part};
use super::wrapper;

/// Text within text within text: a command that quotes others deeper than this is
/// asked about.
const QUOTING_MAX: usize = 4;

/// What was found out about a command.
pub(super) struct Judged {
    pub(super) findings: Vec<Finding>,
    pub(super) parts: Vec<Part>,
    /// The files of the workspace that it runs.
    pub(super) scripts: Vec<PathBuf>,
}

/// Judges a command that is run in `cwd`, a folder of the workspace.
pub(super) fn judge(policy: &Policy, site: &Site, command: &str, cwd: &Path) -> Judged {
    let mut court = Court {
        policy,
        site,
        here: Some(cwd.to_owned()),
        scripts: Vec::new(),
        quoting: 0,
    };
    let script = shell::read(command);
    let mut parts = court.script(&script);
    let mut findings: Vec<Finding> = doubts(&script).collect();
    findings.extend(parts.iter().map(|part| part.finding.clone()));
    if findings.is_empty() {
        findings.push(Finding::allow("nothing", "it does nothing"));
    }
    if parts.len() == 1 {
        parts.clear();
    }
    Judged {
        findings,
        parts,
        scripts: court.scripts,
    }
}

fn doubts(script: &Script) -> impl Iterator<Item = Finding> {
    script
        .doubts
        .iter()
        .map(|why| Finding::ask("shell syntax", why))
}

/// A program that runs what another one fetches: `bash <(curl …)`, `eval "$(curl …)"`.
fn fetched(script: &Script, at: usize, segment: &Segment) -> Option<Finding> {
    let name = base(segment.program()?);
    let runs = matches!(
        PROGRAMS.kind(PROGRAMS.known_as(name)),
        Kind::Interprets { .. }
    ) || matches!(name, "eval" | "source" | ".");
    let inner = script.segments.get(at + 1..).unwrap_or_default();
    let is_read = |text: &str| {
        let from = |redirect: &Redirect| match redirect {
            Redirect::From(word) => word.shown().contains(text),
            Redirect::To(_) | Redirect::Text => false,
        };
        segment.redirects.iter().any(from)
    };
    let is_inside = |other: &&Segment| {
        other.is_apart && (segment.text.contains(&*other.text) || is_read(&other.text))
    };
    let mut inside = inner.iter().take_while(is_inside);
    let is_fetched = |other: &Segment| {
        let program = other.program().map(base);
        program.is_some_and(|program| PROGRAMS.is_fetcher(program))
    };
    (runs && inside.any(is_fetched)).then(|| {
        let reason = format!("`{name}` would run what was fetched from the network");
        Finding::deny("fetched program", reason)
    })
}

struct Court<'a> {
    policy: &'a Policy,
    site: &'a Site,
    /// The folder that relative paths begin at; unknown after some `cd`s.
    here: Option<PathBuf>,
    scripts: Vec<PathBuf>,
    quoting: usize,
}

impl Court<'_> {
    fn script(&mut self, script: &Script) -> Vec<Part> {
        let judge = |(at, segment): (usize, &Segment)| {
            let findings = self.segment(script, at, segment);
            let finding = super::Verdict::of(findings, Vec::new()).finding;
            let text = segment.text.clone();
            Part { text, finding }
        };
        script.segments.iter().enumerate().map(judge).collect()
    }

    fn segment(&mut self, script: &Script, at: usize, segment: &Segment) -> Vec<Finding> {
        let mut findings = Vec::new();
        for name in segment
            .assigns
            .iter()
            .filter(|name| PROGRAMS.is_decisive(name))
        {
            let reason = format!("it sets `{name}`, which decides what runs");
            findings.push(Finding::ask(format!("variable {name}"), reason));
        }
        findings.extend(segment.redirects.iter().filter_map(|r| self.redirect(r)));
        if segment.words.is_empty() {
            findings.push(Finding::allow("no program", "it runs no program"));
            return findings;
        }
        let feed = segment.is_fed().then(|| {
            let from = segment.fed_by.unwrap_or(at);
            let feeders = script.segments[from..at].iter();
            feeders
                .filter_map(Segment::program)
                .any(|p| PROGRAMS.is_fetcher(base(p)))
        });
        findings.extend(self.words(&segment.words, feed));
        findings.extend(fetched(script, at, segment));
        match segment.program() {
            Some("cd" | "pushd") => self.go(segment),
            Some("popd") => self.here = None,
            _ => {}
        }
        findings
    }

    /// Follows a `cd`.
    fn go(&mut self, segment: &Segment) {
        let target = segment.words.get(1).and_then(Word::plain);
        let here = self.here.take();
        if let (Some(target), Some(here), false) = (target, here, segment.is_apart)
            && let Place::Inside(place) = self.site.place(&here, target)
        {
            self.here = Some(place);
        }
    }

    fn place(&self, text: &str) -> Option<Place> {
        let home = ["$HOME", "${HOME}"]
            .iter()
            .find_map(|home| text.strip_prefix(home));
        let home = home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let home = home.map(|rest| format!("~{rest}"));
        let text = home.as_deref().unwrap_or(text);
        let is_relative = !text.starts_with(['/', '~']);
        match &self.here {
            None if is_relative => None,
            here => Some(
                self.site
                    .place(here.as_deref().unwrap_or(Path::new("")), text),
            ),
        }
    }

    fn redirect(&self, redirect: &Redirect) -> Option<Finding> {
        match redirect {
            Redirect::Text => None,
            Redirect::From(source) => match self.place(source.shown()) {
                Some(Place::Outside) => {
                    let reason = format!("`{}` is outside of the workspace", source.shown());
                    Some(Finding::ask("input", reason))
                }
                _ => None,
            },
            Redirect::To(target) => self.written(target),
        }
    }

    fn written(&self, target: &Word) -> Option<Finding> {
        let text = target.shown();
        let is_known = target.plain().is_some() || text.starts_with('~');
        match self.place(text).filter(|_| is_known) {
            None => {
                let reason = "where it writes is known only while it runs";
                Some(Finding::ask("redirection", reason))
            }
            Some(Place::Nowhere) => None,
            Some(Place::Temporary) => self.unfenced("it writes a file"),
            Some(Place::Inside(place)) => {
                guarded(&place).or_else(|| self.unfenced("it writes a file"))
            }
            Some(Place::System | Place::Outside) => {
                let reason = format!("it writes to `{text}`, outside of the workspace");
                Some(Finding::deny("redirection", reason))
            }
        }
    }

    /// What is asked about only where there is no fence.
    fn unfenced(&self, what: &str) -> Option<Finding> {
        let reason = format!("{what}, and there is no sandbox around it");
        self.policy
            .fence
            .is_none()
            .then(|| Finding::ask("no sandbox", reason))
    }

    /// Judges a program and its arguments. `feed` says that it reads what others
    /// print, and whether that comes from the network.
    fn words(&mut self, words: &[Word], feed: Option<bool>) -> Vec<Finding> {
        let Some(program) = words.first().and_then(Word::plain) else {
            let reason = "which program it runs is known only while it runs";
            return vec![Finding::ask("program", reason)];
        };
        let name = base(program);
        let mut texts: Vec<&str> = words.iter().map(Word::shown).collect();
        let mut findings = Vec::new();
        if name == "git" {
            let line = git::read(&texts);
            findings.extend(self.git(&line));
            texts = line.words;
        }
        texts[0] = program;
        let name = PROGRAMS.known_as(name);
        let kind = PROGRAMS.kind(name);
        let ruled = self.rules(&texts, words, kind);
        let is_allowed = !ruled.is_empty() && ruled.iter().all(|f| f.decision == Decision::Allow);
        findings.extend(ruled);
        texts[0] = name;
        let known = self.known(program, &texts, words, kind, feed);
        // What a person's rule allows is not asked about for being what it is; what
        // is forbidden stays so.
        findings.extend(
            known
                .into_iter()
                .filter(|f| !is_allowed || f.decision == Decision::Deny),
        );
        findings
    }

    /// What the layers of rules say.
    fn rules(&self, texts: &[&str], words: &[Word], kind: Kind) -> Vec<Finding> {
        let is_written_out = words.iter().all(|word| !word.is_dynamic());
        let mut findings = Vec::new();
        for layer in &self.policy.layers {
            // What a wrapper runs begins somewhere among its words; so may what another
            // program runs, but that is not known.
            let tails = match kind {
                Kind::Wraps | Kind::Runs | Kind::Writes => texts.len(),
                Kind::Reads | Kind::Interprets { .. } => 1,
            };
            for from in 0..tails {
                let (at, spellings) = (layer, spellings(&texts[from..]));
                let decided = spellings.iter().enumerate().filter_map(|(n, tail)| {
                    let (decision, pattern) = at.rules.decide(tail)?;
                    // An option that was left out may be what is not allowed.
                    (n == 0 || decision != Decision::Allow).then_some((decision, pattern))
                });
                let Some((decision, pattern)) = decided.max_by_key(|(decision, _)| *decision)
                else {
                    continue;
                };
                if decision == Decision::Allow && !(is_written_out && from == 0) {
                    continue;
                }
                let says = pattern.as_str();
                if from > 0 && kind != Kind::Wraps {
                    let is_named = decision == Decision::Deny && self.may_run(texts, from, kind);
                    let reason = format!("a rule forbids `{says}`, which `{}` may run", texts[0]);
                    let finding = Finding::new(Decision::Ask, layer.source, says, reason);
                    findings.extend(is_named.then_some(finding));
                    continue;
                }
                let reason = match decision {
                    Decision::Allow => format!("a rule allows `{says}`"),
                    Decision::Ask => format!("a rule wants `{says}` to be asked about"),
                    Decision::Deny => format!("a rule forbids `{says}`"),
                };
                findings.push(Finding::new(decision, layer.source, says, reason));
            }
        }
        findings
    }

    /// Whether the word at `at` may be a program that is run, or that is given another
    /// name.
    fn may_run(&self, texts: &[&str], at: usize, kind: Kind) -> bool {
        const RUNNERS: [&str; 6] = ["run", "exec", "-c", "--", "--run", "--exec"];
        let is_system = matches!(self.place(texts[at]), Some(Place::System));
        match kind {
            // Under another name it is not forbidden any more.
            Kind::Writes => is_system,
            _ => is_system || RUNNERS.contains(&texts[at - 1]),
        }
    }

    fn git(&self, line: &git::Line<'_>) -> Vec<Finding> {
        let mut findings = vec![git::judge(&self.policy.crafts, line.operation)];
        findings.extend(line.doubt.iter().map(|why| Finding::ask("git option", why)));
        if line.operation.is_remote() {
            findings.push(Finding::ask("git", "it reaches the network"));
        } else if !line.operation.is_read() {
            let reason = "it changes the repository; the git tools do that without a question";
            findings.push(Finding::ask("git", reason));
        }
        findings
    }

    /// What is known of the program itself.
    fn known(
        &mut self,
        program: &str,
        texts: &[&str],
        words: &[Word],
        kind: Kind,
        feed: Option<bool>,
    ) -> Vec<Finding> {
        let name = texts[0];
        let mut findings = Vec::new();
        if program.contains('/') {
            findings.extend(self.program_at(program));
        }
        let is_about_itself = matches!(texts, [_, "--version" | "-V" | "--help" | "help"]);
        let is_offline = texts.contains(&"--offline") && kind == Kind::Runs;
        if let Some((pattern, because)) = PROGRAMS.concern(texts)
            && !is_about_itself
            && !(is_offline && because == "it reaches the network")
        {
            findings.push(Finding::ask(pattern.as_str(), because));
        }
        let arguments = match kind {
            Kind::Interprets { .. } => leading_options(&texts[1..]),
            _ => &texts[1..],
        };
        if let Some(option) = PROGRAMS.reaching(name, arguments) {
            let reason = format!("`{option}` makes `{name}` write a file or run a program");
            findings.push(Finding::ask(format!("{name} {option}"), reason));
        }
        match kind {
            Kind::Wraps => findings.extend(self.wrapped(name, words, feed)),
            Kind::Interprets { is_shell } => {
                findings.extend(self.interpreted(name, words, is_shell, feed));
            }
            Kind::Reads | Kind::Writes | Kind::Runs => {
                findings.extend(self.arguments(name, words, kind));
                findings.extend(set_by(name, words));
                if kind == Kind::Runs && feed.is_some() && texts.contains(&"-") {
                    let reason = format!("`{name} -` runs what it is fed");
                    findings.push(Finding::ask("program as text", reason));
                }
            }
        }
        findings.extend(
            inner_commands(name, words)
                .iter()
                .flat_map(|inner| self.words(inner, None)),
        );
        findings
    }

    /// A program that is named by where it is.
    fn program_at(&mut self, program: &str) -> Option<Finding> {
        match self.place(program) {
            Some(Place::System) => None,
            Some(Place::Inside(place)) => {
                self.scripts.push(place);
                None
            }
            _ => {
                let reason = format!("`{program}` is outside of the workspace");
                Some(Finding::ask("program", reason))
            }
        }
    }

    /// A command behind `env`, `timeout`, `xargs` and the like.
    fn wrapped(&mut self, name: &str, words: &[Word], feed: Option<bool>) -> Vec<Finding> {
        let inner = wrapper::strip(name, &words[1..]);
        let mut findings = Vec::new();
        if matches!(name, "flock" | "runuser" | "setpriv") {
            let mut rest = words.iter().map(Word::shown);
            let text = rest
                .find(|word| matches!(*word, "-c" | "--command"))
                .and_then(|_| rest.next());
            if let Some(text) = text {
                let reason = format!("`{name} -c` runs a command that is given as text");
                findings.push(Finding::ask(format!("{name} -c"), reason));
                findings.extend(self.quoted(text));
                return findings;
            }
        }
        for variable in inner
            .assigns
            .iter()
            .filter(|name| PROGRAMS.is_decisive(name))
        {
            let reason = format!("it sets `{variable}`, which decides what runs");
            findings.push(Finding::ask(format!("variable {variable}"), reason));
        }
        match inner.words {
            [] => findings.push(Finding::allow(name, format!("`{name}` runs nothing"))),
            words => findings.extend(self.words(words, feed)),
        }
        findings
    }

    fn interpreted(
        &mut self,
        name: &str,
        words: &[Word],
        is_shell: bool,
        feed: Option<bool>,
    ) -> Vec<Finding> {
        let texts: Vec<&str> = words.iter().map(Word::shown).collect();
        let options = leading_options(&texts[1..]);
        let rest = &words[1 + options.len()..];
        if is_shell
            && options
                .iter()
                .any(|o| !o.starts_with("--") && o.contains('c'))
        {
            let reason = format!("`{name} -c` runs a command that is given as text");
            let mut findings = vec![Finding::ask(format!("{name} -c"), reason)];
            findings.extend(
                rest.first()
                    .and_then(Word::plain)
                    .map(|text| self.quoted(text))
                    .into_iter()
                    .flatten(),
            );
            return findings;
        }
        let file = rest.first().filter(|word| word.shown() != "-");
        let is_module = options
            .iter()
            .any(|o| matches!(*o, "-m" | "--version" | "-V" | "--help"));
        let names_module =
            |o: &&&str| !o.starts_with("--") && o.len() > 2 && o.contains('m') && !is_shell;
        if let Some(option) = options.iter().find(names_module) {
            let reason = format!("`{option}` hides which module `{name}` runs");
            return vec![Finding::ask(format!("{name} -m"), reason)];
        }
        match (file, feed) {
            (Some(_), _) if is_module && !is_shell => self.ordinary(Kind::Runs, name),
            (None, None) => self.ordinary(Kind::Reads, name),
            (None, Some(true)) => {
                let reason = format!("`{name}` would run what was fetched from the network");
                vec![Finding::deny("fetched program", reason)]
            }
            (None, Some(false)) => {
                let reason = format!("`{name}` runs a program that is given as text");
                vec![Finding::ask("program as text", reason)]
            }
            (Some(file), _) => match file.plain().and_then(|text| self.place(text)) {
                Some(Place::Inside(place)) => {
                    self.scripts.push(place);
                    self.ordinary(Kind::Runs, name)
                }
                _ => {
                    let reason = format!("`{}` is not a script of the workspace", file.shown());
                    vec![Finding::ask("script", reason)]
                }
            },
        }
    }

    /// A command within a command, given as text.
    fn quoted(&mut self, text: &str) -> Vec<Finding> {
        if self.quoting >= QUOTING_MAX {
            return vec![Finding::ask(
                "quoting",
                "it quotes commands too deeply to be judged",
            )];
        }
        self.quoting += 1;
        let script = shell::read(text);
        let parts = self.script(&script);
        self.quoting -= 1;
        doubts(&script)
            .chain(parts.into_iter().map(|part| part.finding))
            .collect()
    }

    /// What the arguments of an ordinary program name.
    fn arguments(&mut self, name: &str, words: &[Word], kind: Kind) -> Vec<Finding> {
        let mut findings = self.ordinary(kind, name);
        let texts = words[1..].iter().map(Word::shown);
        match name {
            "eval" => {
                let text: Vec<&str> = texts.collect();
                findings.extend(self.quoted(&text.join(" ")));
                return findings;
            }
            "source" | "." => {
                let place = words
                    .get(1)
                    .and_then(Word::plain)
                    .and_then(|text| self.place(text));
                match place {
                    Some(Place::Inside(place)) => self.scripts.push(place),
                    _ => findings.push(Finding::ask(name, "it runs a script from elsewhere")),
                }
                return findings;
            }
            "sed" if !sed_is_plain(words) => {
                findings.push(Finding::ask(
                    "sed",
                    "a sed script can write files and run programs",
                ));
            }
            "awk" | "gawk" | "mawk" | "nawk" | "original-awk" if !awk_is_plain(words) => {
                findings.push(Finding::ask(
                    "awk",
                    "an awk script can write files and run programs",
                ));
            }
            _ => {}
        }
        let mut is_free = takes_text_first(name);
        for word in &words[1..] {
            let text = word.shown();
            let value = match text.split_once('=') {
                Some((_, value)) if text.starts_with('-') => value,
                // `-C/etc`: a place that stands right behind its option.
                _ if text.starts_with('-') => match text.get(2..) {
                    Some(value) if kind == Kind::Writes && value.starts_with(['/', '~', '.']) => {
                        value
                    }
                    _ => continue,
                },
                _ => text,
            };
            if std::mem::take(&mut is_free) || matches!(name, "echo" | "printf") {
                continue;
            }
            findings.extend(self.argument(name, value, kind));
        }
        if name == "rm" {
            findings.extend(removal(words));
        }
        findings
    }

    fn argument(&self, name: &str, text: &str, kind: Kind) -> Option<Finding> {
        let is_path = text.contains('/') || text.starts_with(['~', '.']);
        let changes = kind == Kind::Writes || (name == "sed" && kind == Kind::Reads);
        match self.place(text)? {
            Place::Outside if is_path && !text.contains("://") => {
                let reason = format!("`{text}` is outside of the workspace");
                Some(Finding::ask("path", reason))
            }
            Place::Inside(place) if changes => guarded(&place),
            _ => None,
        }
    }

    fn ordinary(&self, kind: Kind, name: &str) -> Vec<Finding> {
        let unfenced = match kind {
            Kind::Reads => None,
            Kind::Writes => self.unfenced("it changes files"),
            _ => self.unfenced("it runs a program that could do anything"),
        };
        vec![unfenced.unwrap_or_else(|| match kind {
            Kind::Reads => Finding::allow(name, format!("`{name}` only looks")),
            _ => Finding::allow("sandbox", "it can do no more than the sandbox lets it"),
        })]
    }
}
