//! When single queues interrupt (`struct ethtool_per_queue_op`): messages have that only for the whole device.

use crate::kernel::codec::nested::{set_word, word};
use crate::kernel::ethtool::ioctl::{IoctlDevice, words};
use crate::kernel::ethtool::message::Values;
use crate::model::net::link::nic::NicValue;

const ETHTOOL_PERQUEUE: u32 = 0x4b;
const ETHTOOL_GCOALESCE: u32 = 0x0e;
/// `MAX_NUM_QUEUE`.
const MOST: usize = 4096;
/// The commands and the mask of queues.
const HEAD: usize = 8 + MOST / 8;
/// `struct ethtool_coalesce`.
const COALESCE: usize = 23 * 4;

/// Whether queues interrupt in different ways, as far as the driver does not choose that itself.
pub(in crate::kernel::ethtool) fn differ(
    device: &IoctlDevice<'_>,
    channels: Option<&Values>,
) -> bool {
    let queues = queues(channels);
    if !(2..=MOST).contains(&queues) {
        return false;
    }
    let answer = device.call(&request(queues));
    answer.is_ok_and(|answer: Vec<u8>| differ_in(answer.get(HEAD..).unwrap_or_default()))
}

/// The number of queues, as ethtool(8) counts them.
fn queues(channels: Option<&Values>) -> usize {
    let number = |name: &str| {
        let mut values = channels.into_iter().flatten();
        match values.find(|(key, _)| key.as_str() == name) {
            Some((_, NicValue::Number(number))) => usize::try_from(*number).unwrap_or(usize::MAX),
            _ => 0,
        }
    };
    number("combined").saturating_add(number("rx").max(number("tx")))
}

fn request(queues: usize) -> Vec<u8> {
    let mut request = words(&[ETHTOOL_PERQUEUE, ETHTOOL_GCOALESCE]);
    request.resize(HEAD + queues * COALESCE, 0);
    for queue in 0..queues {
        let at = 8 + queue / 32 * 4;
        let mask = word(&request, at).unwrap_or_default();
        set_word(&mut request, at, mask | 1 << (queue % 32));
    }
    request
}

fn differ_in(queues: &[u8]) -> bool {
    let mut queues = queues.chunks_exact(COALESCE).map(chosen);
    let first = queues.next();
    queues.any(|queue| Some(queue) != first)
}

/// The numbers of one queue, without those that its driver adapts.
fn chosen(queue: &[u8]) -> Vec<u32> {
    let numbers = queue.chunks_exact(4).filter_map(|bytes| word(bytes, 0));
    let mut numbers: Vec<u32> = numbers.collect();
    // The command; receive; transmit; whether each of both is adaptive.
    for (own, adaptive) in [(1..5, 10), (5..9, 11)] {
        if numbers.get(adaptive).is_some_and(|is_on| *is_on != 0) {
            numbers.get_mut(own).into_iter().for_each(|own| own.fill(0));
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ethtool::message::key;

    /// What a driver answers: microseconds of receive and whether they are adaptive, by queue.
    fn answer(queues: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = request(queues.len());
        for (at, (usecs, adaptive)) in queues.iter().enumerate() {
            let from = HEAD + at * COALESCE;
            set_word(&mut bytes, from, ETHTOOL_GCOALESCE);
            set_word(&mut bytes, from + 4, *usecs);
            set_word(&mut bytes, from + 40, *adaptive);
        }
        bytes.split_off(HEAD)
    }

    #[test]
    fn queues_differ_by_what_a_person_has_set() {
        assert!(!differ_in(&answer(&[(8, 0), (8, 0), (8, 0)])));
        assert!(differ_in(&answer(&[(8, 0), (8, 0), (50, 0)])));
        assert!(!differ_in(&answer(&[(8, 1), (50, 1)])));
        assert!(differ_in(&answer(&[(8, 0), (8, 1)])));
        assert!(!differ_in(&[]));
    }

    #[test]
    fn a_request_names_each_queue_of_the_device() {
        let number = |name: &str, number| (key(name).unwrap(), NicValue::Number(number));
        let channels = Values::from([number("combined", 32), number("tx", 1), number("rx", 2)]);
        assert_eq!((queues(Some(&channels)), queues(None)), (34, 0));
        let request = request(34);
        assert_eq!(request.len(), 520 + 34 * 92);
        let masks = [8, 12, 16].map(|at| word(&request, at));
        assert_eq!(masks, [Some(u32::MAX), Some(3), Some(0)]);
    }
}
