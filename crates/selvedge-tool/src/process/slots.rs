//! How many commands run at once, and who goes first.
//!
//! Agents are many and processors are few. A part of the places is kept for runs that
//! somebody is waiting for, so that a night's worth of background work does not make a
//! person wait for `git status`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

/// Places for commands.
pub(crate) struct Slots {
    state: Mutex<State>,
}

/// A place. Dropped, it is free again.
pub(crate) struct Slot {
    slots: Arc<Slots>,
}

struct State {
    queue: Queue,
    doors: Vec<(Ticket, oneshot::Sender<Slot>)>,
}

impl Slots {
    /// As many places as make sense on this machine: commands wait for disks as much
    /// as for processors.
    pub(crate) fn for_this_machine() -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(2, |n| n.get());
        Self::new((processors * 2).max(4))
    }

    /// This many places, a fifth of them for those whom somebody is waiting for.
    pub(crate) fn new(places: usize) -> Arc<Self> {
        let queue = Queue {
            places,
            reserved: (places / 5).max(1),
            ..Queue::default()
        };
        let state = State {
            queue,
            doors: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// Waits for a place.
    pub(crate) async fn take(self: &Arc<Self>, is_awaited: bool) -> Slot {
        let (sender, receiver) = oneshot::channel();
        self.change(|state| {
            let ticket = state.queue.ask(is_awaited);
            state.doors.push((ticket, sender));
        });
        receiver.await.expect("a door stays until it is opened")
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut opened = Vec::new();
        {
            let mut state = self.state.lock().expect("no panic under this lock");
            change(&mut state);
            for ticket in state.queue.admit() {
                let at = state.doors.iter().position(|(door, _)| *door == ticket);
                let at = at.expect("every ticket has a door");
                opened.push(state.doors.swap_remove(at).1);
            }
        }
        for door in opened {
            let slots = self.clone();
            // Whoever stopped waiting does not take it: then it is dropped, and free.
            let _ = door.send(Slot { slots });
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.change(|state| state.queue.leave());
    }
}

type Ticket = u64;

/// Who runs and who waits: a value without locks or time.
#[derive(Default)]
struct Queue {
    places: usize,
    reserved: usize,
    running: usize,
    awaited: VecDeque<Ticket>,
    others: VecDeque<Ticket>,
    next: Ticket,
}

impl Queue {
    fn ask(&mut self, is_awaited: bool) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        match is_awaited {
            true => self.awaited.push_back(ticket),
            false => self.others.push_back(ticket),
        }
        ticket
    }

    /// Those who may run now, in order.
    fn admit(&mut self) -> Vec<Ticket> {
        let mut admitted = Vec::new();
        loop {
            let free = self.places.saturating_sub(self.running);
            let ticket = match free {
                0 => None,
                free if free > self.reserved => {
                    self.awaited.pop_front().or_else(|| self.others.pop_front())
                }
                _ => self.awaited.pop_front(),
            };
            match ticket {
                Some(ticket) => admitted.push(ticket),
                None => return admitted,
            }
            self.running += 1;
        }
    }

    fn leave(&mut self) {
        self.running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u` is somebody whom a user waits for, `b` is background work, `-` leaves.
    fn admitted(story: &str) -> Vec<Ticket> {
        let mut queue = Queue {
            places: 3,
            reserved: 1,
            ..Queue::default()
        };
        let mut admitted = Vec::new();
        for step in story.chars() {
            match step {
                '-' => queue.leave(),
                who => drop(queue.ask(who == 'u')),
            }
            admitted.extend(queue.admit());
        }
        admitted
    }

    #[test]
    fn a_user_finds_a_place_when_all_others_are_taken() {
        assert_eq!(admitted("bbb"), [0, 1], "one is kept");
        assert_eq!(admitted("bbbu"), [0, 1, 3]);
        assert_eq!(admitted("uuu"), [0, 1, 2], "a user may have all");
        assert_eq!(admitted("bbbuu-"), [0, 1, 3, 4], "and goes first");
        assert_eq!(admitted("bbbb--"), [0, 1, 2, 3], "in the order of asking");
        assert_eq!(
            admitted("bbub-"),
            [0, 1, 2],
            "the place that is kept is kept"
        );
    }

    #[tokio::test]
    async fn a_place_that_nobody_takes_is_free_again() {
        let slots = Slots::new(2);
        let first = slots.take(false).await;
        {
            let waiting = slots.take(false);
            tokio::pin!(waiting);
            assert!(futures_poll(&mut waiting).await.is_none(), "one is kept");
        }
        drop(first);
        let user = (slots.take(true).await, slots.take(true).await);
        drop(user);
        slots.take(false).await;
    }

    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }
}
