//! Ten thousand faulty answers, and what providers make of them.
//!
//! The client is real: providers, HTTP library, sockets of the local machine.
//! Only the server is not, and time is short: silence that a provider would
//! bear for a minute is borne for a moment. A case that failed is run again, alone, with
//! `SELVEDGE_SEED=123 cargo nextest run -p selvedge-model --test volume`.

mod gated;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use selvedge_model::{Door, Endpoint, HttpOptions, Message, Provider, Request};
use selvedge_testkit::{Case, STORM_KEY, Storm, Wire};
use tokio_util::sync::CancellationToken;

const CASES: u64 = 10_000;
const CONCURRENT: usize = 64;
/// No call may take this long, whatever happens to it.
const DEADLINE: Duration = Duration::from_secs(120);
/// What a patient client bears, on a machine that is busy with other tests, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the cases of one kind went.
#[derive(Default)]
struct Tally {
    met: u32,
    whole: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_makes_a_call_panic_wait_for_ever_or_answer_what_was_not_said() {
    let _alone = alone();
    let storm = Storm::start().await;
    let clients = Arc::new(Clients::new(&storm));
    let alone = std::env::var("SELVEDGE_SEED").ok();
    let alone: Option<u64> = alone.map(|seed| seed.parse().expect("a seed is a number"));
    let seeds = alone.map_or(0..CASES, |seed| seed..seed + 1);
    let results: Vec<_> = futures::stream::iter(seeds)
        .map(|seed| {
            let clients = Arc::clone(&clients);
            async move { (seed, tokio::spawn(meet(clients, seed)).await) }
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (seed, result) in results {
        let case = Case::new(seed);
        let verdict = result.unwrap_or_else(|panic| Err(panic.to_string()));
        let tally = tallies.entry(case.kind()).or_default();
        tally.met += 1;
        match verdict {
            Ok(answered) => tally.whole += u32::from(answered),
            Err(what) => wrong.push(format!(
                "SELVEDGE_SEED={seed}: {:?}, {}: {what}",
                case.wire,
                case.kind()
            )),
        }
    }
    let shown: Vec<_> = wrong.iter().take(20).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        shown.join("\n")
    );
    if alone.is_some() {
        return;
    }
    assert!(Case::kinds().count() >= 40);
    for kind in Case::kinds() {
        let met = tallies.get(kind).map_or(0, |tally| tally.met);
        assert!(met >= 20, "`{kind}` was met {met} times");
    }
    let fewest = tallies.values().map(|tally| tally.met).min().unwrap_or(0);
    let whole: u32 = tallies.values().map(|tally| tally.whole).sum();
    assert!(u64::from(whole) > CASES / 4, "only {whole} answers arrived");
    eprintln!(
        "{CASES} cases of {} kinds, each met {fewest} times or more; {whole} answered",
        Case::kinds().count()
    );
}

/// One storm at a time: each keeps both cores busy, and a patient client has an end to
/// its patience.
fn alone() -> File {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/storm.lock");
    let file = File::create(path).expect("the target folder can be written");
    file.lock().expect("a file there can be locked");
    file
}

/// Asks for one case; `Ok` says whether it answered.
async fn meet(clients: Arc<Clients>, seed: u64) -> Result<bool, String> {
    let case = Case::new(seed);
    let request = request(format!("storm/{}", case.model()));
    let cancel = CancellationToken::new();
    let provider = clients.of(&case);
    let mut unheard = |_| {};
    let asked = provider.ask(&request, &mut unheard, &cancel);
    let result = tokio::time::timeout(DEADLINE, asked).await;
    let result = result.map_err(|_| "waited past the deadline".to_owned())?;
    case.verdict(&result)?;
    Ok(result.is_ok())
}

fn request(model: String) -> Request {
    Request {
        model,
        agent: "engineer".into(),
        turn: 3,
        system: Arc::from("be brief"),
        messages: vec![Arc::new(Message::user("hello"))].into(),
        tools: Arc::from([]),
        output_schema: None,
        output_tokens_max: 256,
        temperature: None,
        effort: None,
    }
}

/// A client for each protocol, in a patient and an impatient form: only a case
/// that stalls is to end by impatience, however busy the machine is.
struct Clients {
    patient: Vec<(Wire, Box<dyn Provider>)>,
    impatient: Vec<(Wire, Box<dyn Provider>)>,
}

impl Clients {
    fn new(storm: &Storm) -> Self {
        let clients = |silence_max, answer_max| {
            let options = HttpOptions {
                silence_max,
                answer_max,
                answer_bytes_max: 1024 * 1024,
                ..HttpOptions::default()
            };
            let clients = Wire::ALL.map(|wire| (wire, client(storm, wire, &options)));
            clients.into_iter().collect()
        };
        Self {
            patient: clients(PATIENCE, PATIENCE),
            impatient: clients(Duration::from_millis(150), Duration::from_millis(400)),
        }
    }

    fn of(&self, case: &Case) -> &dyn Provider {
        let clients = match case.stalls() {
            true => &self.impatient,
            false => &self.patient,
        };
        let found = clients.iter().find(|(wire, _)| *wire == case.wire);
        &*found.expect("there is one for each").1
    }
}

fn client(storm: &Storm, wire: Wire, options: &HttpOptions) -> Box<dyn Provider> {
    let endpoint = Endpoint {
        provider: "storm".into(),
        base_url: storm.url(),
        door: Door::Plain,
        key: Some(STORM_KEY.into()),
        key_variable: None,
        options: options.clone(),
    };
    wire.provider(endpoint)
}
