//! What a loss of power leaves: the durable bytes and some of the pending.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::content::Content;
use super::medium::{Change, FileId, Medium, PendingName};
use super::plan::PowerLoss;

// The unit a drive writes whole. SQLite is told of larger sectors, but drives
// that emulate 512-byte ones tear at these boundaries.
const TEAR_BYTES: u64 = 512;

/// Applies a loss of power; afterwards everything that remains is durable.
pub(super) fn lose_power(medium: &mut Medium, policy: PowerLoss, rng: &mut ChaCha8Rng) {
    let policy = match policy {
        PowerLoss::Any => draw_policy(rng),
        chosen => chosen,
    };
    let operations = in_order(medium);
    let fates = choose(policy, &operations, rng);
    for (operation, fate) in operations.iter().zip(fates) {
        operation.settle(medium, fate, rng);
    }
    medium.names = medium.durable_names.clone();
    medium.pending_names.clear();
    for file in medium.files.values_mut() {
        file.written = file.durable.clone();
        file.pending.clear();
        file.pending_bytes.clear();
    }
    medium.drop_handles();
}

/// What becomes of one pending operation.
#[derive(Clone, Copy)]
enum Fate {
    Lost,
    Kept,
    /// One side of a cut at a sector boundary survives.
    Cut,
    /// Each sector decides for itself.
    Scattered,
}

enum Operation {
    Name(PendingName),
    Bytes {
        order: u64,
        file: FileId,
        index: usize,
    },
}

fn draw_policy(rng: &mut ChaCha8Rng) -> PowerLoss {
    match below(rng, 6) {
        0 => PowerLoss::Nothing,
        1 => PowerLoss::Everything,
        2 => PowerLoss::Prefix,
        3 => PowerLoss::Subset,
        4 => PowerLoss::Torn,
        _ => PowerLoss::Sectors,
    }
}

fn in_order(medium: &Medium) -> Vec<Operation> {
    let names = medium.pending_names.iter().cloned().map(Operation::Name);
    let bytes = medium.files.iter().flat_map(|(id, file)| {
        file.pending
            .iter()
            .enumerate()
            .map(|(index, pending)| Operation::Bytes {
                order: pending.order,
                file: *id,
                index,
            })
    });
    let mut operations: Vec<Operation> = names.chain(bytes).collect();
    operations.sort_by_key(Operation::order);
    operations
}

fn choose(policy: PowerLoss, operations: &[Operation], rng: &mut ChaCha8Rng) -> Vec<Fate> {
    let count = operations.len();
    match policy {
        PowerLoss::Nothing => vec![Fate::Lost; count],
        PowerLoss::Everything => vec![Fate::Kept; count],
        PowerLoss::Subset => (0..count)
            .map(|_| if coin(rng) { Fate::Kept } else { Fate::Lost })
            .collect(),
        PowerLoss::Sectors | PowerLoss::Any => vec![Fate::Scattered; count],
        PowerLoss::Prefix | PowerLoss::Torn => {
            let kept = below(rng, count as u64 + 1) as usize;
            let mut fates = vec![Fate::Lost; count];
            fates[..kept].fill(Fate::Kept);
            if policy == PowerLoss::Torn && kept < count {
                fates[kept] = Fate::Cut;
            }
            fates
        }
    }
}

impl Operation {
    fn order(&self) -> u64 {
        match self {
            Operation::Name(pending) => pending.order,
            Operation::Bytes { order, .. } => *order,
        }
    }

    fn settle(&self, medium: &mut Medium, fate: Fate, rng: &mut ChaCha8Rng) {
        match self {
            Operation::Name(pending) => {
                if whole(fate, rng) {
                    pending.apply(&mut medium.durable_names);
                }
            }
            Operation::Bytes { file, index, .. } => {
                let file = medium
                    .files
                    .get_mut(file)
                    .expect("a listed operation has its file");
                match file.pending[*index].change {
                    Change::Truncate { len } => {
                        if whole(fate, rng) {
                            file.durable.truncate(len);
                        }
                    }
                    Change::Write { offset, start, len } => {
                        let data = &file.pending_bytes[start..start + len];
                        settle_write(&mut file.durable, offset, data, fate, rng);
                    }
                }
            }
        }
    }
}

/// The fate of an operation that has no parts.
fn whole(fate: Fate, rng: &mut ChaCha8Rng) -> bool {
    match fate {
        Fate::Lost => false,
        Fate::Kept => true,
        Fate::Cut | Fate::Scattered => coin(rng),
    }
}

fn settle_write(content: &mut Content, offset: u64, data: &[u8], fate: Fate, rng: &mut ChaCha8Rng) {
    match fate {
        Fate::Lost => {}
        Fate::Kept => content.write(offset, data),
        Fate::Cut => {
            let first = next_boundary(offset);
            let end = offset + data.len() as u64;
            if first >= end {
                if coin(rng) {
                    content.write(offset, data);
                }
                return;
            }
            let boundaries = (end - 1 - first) / TEAR_BYTES + 1;
            let cut = first + below(rng, boundaries) * TEAR_BYTES;
            let (head, tail) = data.split_at((cut - offset) as usize);
            if coin(rng) {
                content.write(offset, head);
            } else {
                content.write(cut, tail);
            }
        }
        Fate::Scattered => {
            let mut rest = data;
            let mut at = offset;
            while !rest.is_empty() {
                let part = rest.len().min((next_boundary(at) - at) as usize);
                let (sector, others) = rest.split_at(part);
                if coin(rng) {
                    content.write(at, sector);
                }
                at += part as u64;
                rest = others;
            }
        }
    }
}

fn next_boundary(offset: u64) -> u64 {
    (offset / TEAR_BYTES + 1) * TEAR_BYTES
}

fn coin(rng: &mut ChaCha8Rng) -> bool {
    rng.next_u32() & 1 == 1
}

/// A number under `bound`; the bias of a remainder is harmless at these sizes.
fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    rng.next_u64() % bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    const SECTORS: usize = 8;

    /// Loses power over a page of zeros with a pending page of ones, and shows
    /// which sectors became ones.
    fn survivors(policy: PowerLoss, seed: u64) -> String {
        let mut medium = Medium::default();
        let file = medium.create(Some("/a"));
        medium.write(file, 0, &[0; SECTORS * TEAR_BYTES as usize]);
        medium.sync(file);
        medium.write(file, 0, &[1; SECTORS * TEAR_BYTES as usize]);
        lose_power(&mut medium, policy, &mut ChaCha8Rng::seed_from_u64(seed));
        let bytes = medium.written("/a").expect("its name was synced");
        assert_eq!(medium.durable("/a").as_ref(), Some(&bytes));
        bytes
            .chunks(TEAR_BYTES as usize)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]));
                if sector[0] == 1 { '#' } else { '.' }
            })
            .collect()
    }

    /// All outcomes of a policy, each once.
    fn outcomes(policy: PowerLoss) -> Vec<String> {
        let mut all: Vec<String> = (0..200).map(|seed| survivors(policy, seed)).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn a_whole_write_survives_or_does_not() {
        assert_eq!(outcomes(PowerLoss::Nothing), ["........"]);
        assert_eq!(outcomes(PowerLoss::Everything), ["########"]);
        assert_eq!(outcomes(PowerLoss::Prefix), ["########", "........"]);
        assert_eq!(outcomes(PowerLoss::Subset), ["########", "........"]);
    }

    #[test]
    fn a_torn_write_keeps_one_side_of_a_boundary() {
        let torn = outcomes(PowerLoss::Torn);
        assert!(torn.iter().any(|kept| kept == "###....."));
        assert!(torn.iter().any(|kept| kept == "...#####"));
        // Seven boundaries with two sides each, and the whole write.
        assert_eq!(torn.len(), 7 * 2 + 1);
    }

    #[test]
    fn scattered_sectors_survive_in_any_pattern() {
        assert!(outcomes(PowerLoss::Sectors).len() > 100);
    }
}
