//! Who is asked first when there are more calls than slots.
//!
//! Two levels: calls that somebody waits for, then the rest. Within a level, a
//! call of priority `p` counts as if it had come `p` times `AGEING` earlier, so
//! order is a plain comparison and nothing starves. When all slots are taken, a
//! call that somebody waits for may take the place of one in the background
//! that has not begun to answer; that one goes back to its place in the queue.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Milliseconds of waiting that outweigh one point of priority.
const AGEING_MILLIS: i64 = 1_000;
/// A call that had to give way this often does not any more.
const PREEMPTIONS_MAX: u32 = 3;

/// How many calls may be under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// To one provider. Default: 10.
    pub per_provider: usize,
    /// To all of them together. Default: 50.
    pub in_all: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            per_provider: 10,
            in_all: 50,
        }
    }
}

/// How urgent a call is. Inherited along the chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Whether somebody is waiting for the answer.
    pub awaited: bool,
    /// Among calls of the same kind: 0 to 100, more is sooner. Default: 60.
    pub priority: u8,
}

impl Default for Urgency {
    fn default() -> Self {
        Self {
            awaited: false,
            priority: 60,
        }
    }
}

/// The queue in front of the providers. Clones are the same queue.
#[derive(Clone)]
pub struct Queue(Arc<Mutex<State>>);

struct State {
    slots: Slots,
    in_use: HashMap<String, usize>,
    in_use_in_all: usize,
    /// By provider, then by order.
    waiting: BTreeMap<String, BTreeMap<Order, Waiting>>,
    /// From the moment of the grant, whether or not its owner has noticed.
    active: BTreeMap<u64, Active>,
    next: u64,
}

/// The smaller, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    background: bool,
    virtual_arrival: i64,
    number: u64,
}

/// A call that is under way.
struct Active {
    provider: String,
    urgency: Urgency,
    preemptions: u32,
    answering: bool,
    give_way: CancellationToken,
}

/// A call that is not under way yet.
struct Waiting {
    grant: oneshot::Sender<()>,
    call: Active,
}

/// A place in the queue, kept when a call must give way.
#[derive(Clone, Debug)]
pub struct Ticket {
    provider: String,
    urgency: Urgency,
    arrived_millis: i64,
    number: u64,
    preemptions: u32,
}

/// The right to have one call under way; given back when dropped.
pub struct Slot {
    queue: Queue,
    number: u64,
    /// Set when the call must give way to one that somebody waits for.
    pub give_way: CancellationToken,
}

impl Slot {
    /// The answer has begun: the call cannot be made to give way any more.
    pub fn answering(&self) {
        if let Some(active) = self.queue.state().active.get_mut(&self.number) {
            active.answering = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.give_back(self.number);
        state.dispatch();
    }
}

impl Queue {
    /// A queue with so many slots.
    pub fn new(slots: Slots) -> Self {
        Self(Arc::new(Mutex::new(State {
            slots,
            in_use: HashMap::new(),
            in_use_in_all: 0,
            waiting: BTreeMap::new(),
            active: BTreeMap::new(),
            next: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic under this lock")
    }

    /// Takes a number.
    pub fn ticket(&self, provider: &str, urgency: Urgency, now_millis: i64) -> Ticket {
        let mut state = self.state();
        state.next += 1;
        Ticket {
            provider: provider.to_owned(),
            urgency,
            arrived_millis: now_millis,
            number: state.next,
            preemptions: 0,
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub async fn enter(&self, ticket: &Ticket) -> Slot {
        let order = Order {
            background: !ticket.urgency.awaited,
            virtual_arrival: ticket.arrived_millis
                - i64::from(ticket.urgency.priority) * AGEING_MILLIS,
            number: ticket.number,
        };
        let (grant, granted) = oneshot::channel();
        let give_way = CancellationToken::new();
        let call = Active {
            provider: ticket.provider.clone(),
            urgency: ticket.urgency,
            preemptions: ticket.preemptions,
            answering: false,
            give_way: give_way.clone(),
        };
        let place = {
            let mut state = self.state();
            let waiting = state.waiting.entry(ticket.provider.clone()).or_default();
            waiting.insert(order, Waiting { grant, call });
            state.dispatch();
            if ticket.urgency.awaited {
                state.make_room(&ticket.provider, order);
            }
            Place {
                queue: self,
                provider: &ticket.provider,
                order,
                granted,
                taken: false,
            }
        };
        place.wait().await;
        Slot {
            queue: self.clone(),
            number: ticket.number,
            give_way,
        }
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.state().waiting.values().map(BTreeMap::len).sum()
    }
}

impl Ticket {
    /// The same place, for a call that had to give way.
    pub fn again(mut self) -> Self {
        self.preemptions += 1;
        self
    }
}

/// A place in the queue; leaving it gives it up, or the slot that was granted
/// in the same moment.
struct Place<'a> {
    queue: &'a Queue,
    provider: &'a str,
    order: Order,
    granted: oneshot::Receiver<()>,
    taken: bool,
}

impl Place<'_> {
    async fn wait(mut self) {
        self.taken = (&mut self.granted).await.is_ok();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut state = self.queue.state();
        if let Some(waiting) = state.waiting.get_mut(self.provider) {
            waiting.remove(&self.order);
        }
        if state.give_back(self.order.number) {
            state.dispatch();
        }
    }
}

impl State {
    fn has_room(&self, provider: &str) -> bool {
        let used = self.in_use.get(provider).copied().unwrap_or(0);
        used < self.slots.per_provider && self.in_use_in_all < self.slots.in_all
    }

    /// Takes a slot back from the call that has it. False if it has none.
    fn give_back(&mut self, number: u64) -> bool {
        let Some(call) = self.active.remove(&number) else {
            return false;
        };
        if let Some(used) = self.in_use.get_mut(&call.provider) {
            *used -= 1;
        }
        self.in_use_in_all -= 1;
        true
    }

    /// Hands out slots while there are any, the most urgent call first.
    fn dispatch(&mut self) {
        loop {
            let next = self
                .waiting
                .iter()
                .filter(|(provider, _)| self.has_room(provider))
                .filter_map(|(provider, w)| Some((*w.first_key_value()?.0, provider.clone())))
                .min();
            let Some((order, provider)) = next else {
                return;
            };
            let waiting = self.waiting.get_mut(&provider).expect("just seen");
            let Waiting { grant, call } = waiting.remove(&order).expect("just seen");
            // One that has left the queue meanwhile needs no slot.
            if grant.send(()).is_ok() {
                self.active.insert(order.number, call);
                *self.in_use.entry(provider).or_default() += 1;
                self.in_use_in_all += 1;
            }
        }
    }

    /// Makes a background call give way if this one still waits for a slot.
    fn make_room(&mut self, provider: &str, order: Order) {
        let still_waits = self
            .waiting
            .get(provider)
            .is_some_and(|w| w.contains_key(&order));
        if !still_waits {
            return;
        }
        let used = self.in_use.get(provider).copied().unwrap_or(0);
        let provider_is_full = used >= self.slots.per_provider;
        let victim = self
            .active
            .iter()
            .filter(|(_, a)| !a.urgency.awaited && !a.answering)
            .filter(|(_, a)| a.preemptions < PREEMPTIONS_MAX && !a.give_way.is_cancelled())
            .filter(|(_, a)| !provider_is_full || a.provider == provider)
            .min_by_key(|(number, a)| (a.urgency.priority, std::cmp::Reverse(**number)));
        if let Some((_, victim)) = victim {
            victim.give_way.cancel();
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
