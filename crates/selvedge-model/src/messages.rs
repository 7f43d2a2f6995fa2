//! A conversation as a list that is cheap to share and to continue.
//!
//! A conversation grows at its end and is sent as a whole on every turn. Messages are
//! held in blocks that copies share: a copy touches a block for every few dozen
//! messages, and what was measured of a block is not measured again. So what a turn
//! costs hardly depends on how many there were.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::types::{Message, Part};

/// Messages in a block. Continuing a list that is shared copies one block at most, so
/// fewer make that cheaper, and more make copying cheaper.
const BLOCK: usize = 32;

/// Messages, in order.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// All are full but the last.
    blocks: Vec<Arc<Block>>,
}

/// A few messages, and what was measured of them.
#[derive(Clone, Debug, Default)]
pub struct Block {
    messages: Vec<Arc<Message>>,
    /// Length of their text.
    bytes: u64,
    has_images: bool,
}

impl Messages {
    /// How many there are.
    pub fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * BLOCK;
        full + self.blocks.last().map_or(0, |block| block.messages.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The `n`th, from 0.
    pub fn get(&self, n: usize) -> Option<&Arc<Message>> {
        self.blocks.get(n / BLOCK)?.messages.get(n % BLOCK)
    }

    /// The last one.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.blocks.last()?.messages.last()
    }

    /// All of them, in order.
    pub fn iter(&self) -> Iter<'_> {
        self.blocks.iter().flat_map(|block| block.messages.iter())
    }

    /// Where the last one is that `is_it` says of.
    pub fn rposition(&self, mut is_it: impl FnMut(&Message) -> bool) -> Option<usize> {
        let after = self.iter().rev().position(|message| is_it(message))?;
        Some(self.len() - 1 - after)
    }

    /// Adds one at the end.
    pub fn push(&mut self, message: Arc<Message>) {
        match self.blocks.last_mut() {
            Some(block) if block.messages.len() < BLOCK => Arc::make_mut(block).push(message),
            _ => {
                let mut block = Block::default();
                block.push(message);
                self.blocks.push(Arc::new(block));
            }
        }
    }

    /// Puts another in the place of the `n`th, which must exist.
    pub fn set(&mut self, n: usize, message: Arc<Message>) {
        let block = Arc::make_mut(&mut self.blocks[n / BLOCK]);
        block.messages[n % BLOCK] = message;
        block.measure();
    }

    /// Leaves the first `count` of them.
    pub fn truncate(&mut self, count: usize) {
        if count >= self.len() {
            return;
        }
        self.blocks.truncate(count.div_ceil(BLOCK));
        let left = count % BLOCK;
        if let Some(last) = self.blocks.last_mut().filter(|_| left > 0) {
            let block = Arc::make_mut(last);
            block.messages.truncate(left);
            block.measure();
        }
    }

    /// The first `count` of them.
    pub fn first(&self, count: usize) -> Self {
        let mut first = self.clone();
        first.truncate(count);
        first
    }

    /// How many of the first are the very same in both: not alike, but one.
    pub fn shared_with(&self, other: &Self) -> usize {
        let blocks = self.blocks.iter().zip(&other.blocks);
        let same = blocks.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        match (self.blocks.get(same), other.blocks.get(same)) {
            (Some(a), Some(b)) => {
                let pairs = a.messages.iter().zip(&b.messages);
                same * BLOCK + pairs.take_while(|(a, b)| Arc::ptr_eq(a, b)).count()
            }
            _ => self.len().min(other.len()),
        }
    }

    /// Length of all their text.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }

    /// Whether there is anything to look at.
    pub(crate) fn has_images(&self) -> bool {
        self.blocks.iter().any(|block| block.has_images)
    }
}

impl Block {
    fn push(&mut self, message: Arc<Message>) {
        self.bytes += bytes(&message);
        self.has_images |= has_images(&message);
        self.messages.push(message);
    }

    fn measure(&mut self) {
        self.bytes = self.messages.iter().map(|message| bytes(message)).sum();
        self.has_images = self.messages.iter().any(|message| has_images(message));
    }
}

fn bytes(message: &Message) -> u64 {
    message.parts.iter().map(Part::bytes).sum()
}

fn has_images(message: &Message) -> bool {
    message.parts.iter().any(|part| !part.images().is_empty())
}

/// Goes through messages in order.
pub type Iter<'a> = std::iter::FlatMap<
    std::slice::Iter<'a, Arc<Block>>,
    std::slice::Iter<'a, Arc<Message>>,
    fn(&'a Arc<Block>) -> std::slice::Iter<'a, Arc<Message>>,
>;

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Arc<Message>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl std::ops::Index<usize> for Messages {
    type Output = Arc<Message>;

    fn index(&self, n: usize) -> &Arc<Message> {
        &self.blocks[n / BLOCK].messages[n % BLOCK]
    }
}

impl Extend<Arc<Message>> for Messages {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl FromIterator<Arc<Message>> for Messages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut list = Self::default();
        list.extend(messages);
        list
    }
}

impl From<Vec<Arc<Message>>> for Messages {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        messages.into_iter().collect()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Arc<Message>>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(n: usize) -> Arc<Message> {
        Arc::new(Message::user("x".repeat(n)))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Set(usize, usize),
        Truncate(usize),
        Share,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..50_usize).prop_map(Step::Push),
            1 => (0..200_usize, 0..50_usize).prop_map(|(n, l)| Step::Set(n, l)),
            1 => (0..200_usize).prop_map(Step::Truncate),
            1 => Just(Step::Share),
        ]
    }

    proptest! {
        #[test]
        fn it_is_what_a_plain_list_would_be(steps in proptest::collection::vec(step(), 0..300)) {
            let (mut list, mut plain) = (Messages::default(), Vec::new());
            let (mut shared, mut kept) = (list.clone(), plain.clone());
            for step in steps {
                match step {
                    Step::Push(n) => {
                        let message = message(n);
                        list.push(message.clone());
                        plain.push(message);
                    }
                    Step::Set(n, length) if n < plain.len() => {
                        let message = message(length);
                        list.set(n, message.clone());
                        plain[n] = message;
                    }
                    Step::Set(..) => {}
                    Step::Truncate(n) => {
                        list.truncate(n);
                        plain.truncate(n);
                    }
                    Step::Share => (shared, kept) = (list.clone(), plain.clone()),
                }
                prop_assert_eq!(list.len(), plain.len());
                prop_assert_eq!(list.is_empty(), plain.is_empty());
                prop_assert!(list.iter().eq(plain.iter()));
                prop_assert_eq!(list.last(), plain.last());
                let length = plain.iter().map(|message| bytes(message)).sum::<u64>();
                prop_assert_eq!(list.bytes(), length);
                let pairs = kept.iter().zip(&plain);
                let same = pairs.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
                prop_assert_eq!(shared.shared_with(&list), same);
                prop_assert!(shared.iter().eq(kept.iter()), "a copy does not change");
            }
        }
    }

    #[test]
    fn a_copy_shares_its_blocks() {
        let list: Messages = (0..100).map(message).collect();
        let mut longer = list.clone();
        longer.push(message(1));
        let shared = list.blocks.iter().zip(&longer.blocks);
        assert_eq!(shared.filter(|(a, b)| Arc::ptr_eq(a, b)).count(), 3);
        assert_eq!(list.shared_with(&longer), 100);
    }
}
