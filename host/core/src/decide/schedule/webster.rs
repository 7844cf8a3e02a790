//! Webster's method for weighted division (Karmada: `pkg/util/helper/webstermethod.go`).
//!
//! Parties are passed and returned in name order, so the position of a party represents its name.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::names::fnv1a_32;

/// Party with its votes and current seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Weight of the party.
    pub votes: i64,
    /// Current replicas of the party.
    pub seats: i32,
}

/// Tie-break between parties with equal claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The first name gets the seat.
    Ascending,
    /// The last name gets the seat.
    Descending,
}

impl TieBreak {
    /// Returns descending if the uid is not empty and its FNV-1a hash is odd, so that workloads favor different
    /// clusters.
    pub fn of_uid(uid: &str) -> Self {
        if !uid.is_empty() && fnv1a_32(uid.as_bytes()) % 2 == 1 {
            Self::Descending
        } else {
            Self::Ascending
        }
    }
}

/// Allocates `seats` by weight, starting from zero. Returns `None` if the weights add up to zero, with Go's
/// wrap-around (Karmada: `binding.go:TakeByWeight`).
pub fn dispense(seats: i32, votes: &[i64], ties: TieBreak) -> Option<Vec<i32>> {
    if votes.iter().fold(0_i64, |sum, votes| sum.wrapping_add(*votes)) == 0 {
        return None;
    }
    let mut parties: Vec<_> = votes
        .iter()
        .map(|votes| Party {
            votes: *votes,
            seats: 0,
        })
        .collect();
    allocate(seats, &mut parties, ties);
    Some(parties.into_iter().map(|party| party.seats).collect())
}

/// Allocates `seats` one at a time (Sainte-Laguë), each to the largest quotient `votes / (2 seats + 1)`. Ties go to
/// the party with fewer seats, then by name.
pub fn allocate(seats: i32, parties: &mut [Party], ties: TieBreak) {
    let seats = i64::from(seats) - allocate_in_bulk(seats, parties);
    let mut queue: BinaryHeap<Claim> = parties
        .iter()
        .enumerate()
        .map(|(place, party)| Claim::new(*party, place, ties))
        .collect();
    for _ in 0..seats {
        let Some(mut first) = queue.peek_mut() else { break };
        let party = &mut parties[first.place];
        party.seats = party.seats.wrapping_add(1);
        *first = Claim::new(*party, first.place, ties);
    }
}

/// Number of seats before Go's 32-bit `2 seats + 1` wraps around.
const SEATS_BEFORE_WRAP: i64 = 1 << 30;

/// Allocates in bulk the seats that one-at-a-time allocation would give out first: all seats with a quotient above a
/// threshold. The threshold admits no more seats than requested, so the remaining allocation is unaffected. Returns
/// the number of allocated seats.
fn allocate_in_bulk(seats: i32, parties: &mut [Party]) -> i64 {
    let count = parties.len() as i64;
    let votes: f64 = parties.iter().map(|party| party.votes.max(0) as f64).sum();
    let spare = i64::from(seats) - count;
    if spare <= count || votes <= 0.0 {
        return 0;
    }
    // About `votes / (2 * bar)` seats are above the threshold `bar`, with an error of at most one per party.
    let bar = votes / (2 * spare) as f64;
    let above = |party: &Party| -> i64 {
        if party.votes <= 0 || party.seats < 0 {
            return 0;
        }
        let quotient = |seats: i64| party.votes as f64 / (2 * seats + 1) as f64;
        let mut until = (((party.votes as f64 / bar) - 1.0) / 2.0)
            .ceil()
            .clamp(0.0, SEATS_BEFORE_WRAP as f64) as i64;
        while until > 0 && quotient(until - 1) <= bar {
            until -= 1;
        }
        (until - i64::from(party.seats)).max(0)
    };
    let given: Vec<i64> = parties.iter().map(above).collect();
    let total: i64 = given.iter().sum();
    if total > i64::from(seats) {
        return 0;
    }
    for (party, given) in parties.iter_mut().zip(given) {
        party.seats = party.seats.saturating_add(given as i32);
    }
    total
}

/// Claim of a party to the next seat; the greatest claim wins.
#[derive(Clone, Copy, Debug)]
struct Claim {
    quotient: f64,
    seats: i32,
    /// Name order, adjusted for the direction of the tie-break.
    rank: i64,
    place: usize,
}

impl Claim {
    fn new(party: Party, place: usize, ties: TieBreak) -> Self {
        // Quotients are floating-point numbers and divisors wrap around, as in Karmada.
        let quotient = party.votes as f64 / f64::from(party.seats.wrapping_mul(2).wrapping_add(1));
        let rank = match ties {
            TieBreak::Ascending => -(place as i64),
            TieBreak::Descending => place as i64,
        };
        Self {
            quotient,
            seats: party.seats,
            rank,
            place,
        }
    }
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_quotient = self.quotient.partial_cmp(&other.quotient).unwrap_or(Ordering::Equal);
        by_quotient
            .then(other.seats.cmp(&self.seats))
            .then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Claim {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_karmadas() {
        let check = |seats, votes: &[i64], uid, expected: &[i32]| {
            let given = dispense(seats, votes, TieBreak::of_uid(uid)).unwrap_or_else(|| vec![0; votes.len()]);
            assert_eq!(given, expected, "{seats} {votes:?} {uid}");
        };
        check(7, &[1, 1, 1], "", &[3, 2, 2]);
        check(7, &[1, 1, 1], "a", &[3, 2, 2]);
        check(7, &[1, 1, 1], "b", &[2, 2, 3]);
        check(2, &[3, 1], "", &[1, 1]);
        check(9, &[1, 3], "", &[2, 7]);
        check(10, &[90, 5, 5], "", &[9, 1, 0]);
        check(3, &[1, 2], "", &[1, 2]);
        check(5, &[0, 0], "", &[0, 0]);
        check(i32::MAX, &[1, 1], "", &[1 << 30, (1 << 30) - 1]);
    }

    #[test]
    fn bulk_allocation_changes_nothing() {
        // A custom generator gives the same numbers on every machine.
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for round in 0..500 {
            let parties: Vec<_> = (0..=next(7))
                .map(|_| Party {
                    votes: next(if round % 2 == 0 { 9 } else { 1_000_000 }) as i64,
                    seats: next(4) as i32,
                })
                .collect();
            let (seats, ties) = (
                next(400) as i32,
                if next(2) == 0 {
                    TieBreak::Ascending
                } else {
                    TieBreak::Descending
                },
            );
            let (mut at_once, mut one_by_one) = (parties.clone(), parties.clone());
            allocate(seats, &mut at_once, ties);
            (0..seats).for_each(|_| allocate(1, &mut one_by_one, ties));
            assert_eq!(at_once, one_by_one, "{seats} over {parties:?}");
        }
    }
}
