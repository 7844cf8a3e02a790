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
    let seats = i64::from(seats) - allocate_in_bulk(i64::from(seats), parties);
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
/// Maximum number of halvings of the interval that contains a threshold.
const HALVINGS_MAX: usize = 200;

/// Allocates in bulk seats that one-at-a-time allocation would give out first, so the remaining allocation is
/// unaffected. At most four seats per party remain, unless several parties passed the wrap-around. Returns the number of allocated seats.
fn allocate_in_bulk(seats: i64, parties: &mut [Party]) -> i64 {
    let count = parties.len() as i64;
    let votes: f64 = parties.iter().map(|party| party.votes.max(0) as f64).sum();
    let spare = seats - count;
    if spare <= count || votes <= 0.0 {
        return 0;
    }
    // About `votes / (2 * bar)` seats are above the threshold `bar`, with an error of at most one per party, if no party
    // has any and none reaches the wrap-around.
    let bar = votes / (2 * spare) as f64;
    let mut given = give_above(bar, seats, parties).unwrap_or(0);
    if seats - given > 4 * count {
        given += give_above(lowest_bar(seats - given, parties), seats - given, parties).unwrap_or(0);
        given += give_without_claims(seats - given, parties);
    }
    given
}

/// Allocates all seats with a quotient above a threshold. Allocates none and returns `None` if there are more than
/// `seats`.
fn give_above(bar: f64, seats: i64, parties: &mut [Party]) -> Option<i64> {
    let given: Vec<i64> = parties.iter().map(|party| seats_above(bar, party)).collect();
    let total: i64 = given.iter().sum();
    if total > seats {
        return None;
    }
    for (party, given) in parties.iter_mut().zip(given) {
        party.seats = party.seats.saturating_add(given as i32);
    }
    Some(total)
}

/// Returns the number of further seats of a party with a quotient above a threshold.
fn seats_above(bar: f64, party: &Party) -> i64 {
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
}

/// Returns the lowest threshold, to a few seats, above which there are at most `seats` seats.
fn lowest_bar(seats: i64, parties: &[Party]) -> f64 {
    let total = |bar: f64| -> i64 { parties.iter().map(|party| seats_above(bar, party)).sum() };
    if total(0.0) <= seats {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, parties.iter().map(|party| party.votes as f64).fold(0.0, f64::max));
    for _ in 0..HALVINGS_MAX {
        let middle = f64::midpoint(low, high);
        let above = total(middle);
        if above > seats {
            low = middle;
        } else {
            high = middle;
            if seats - above <= parties.len() as i64 {
                break;
            }
        }
    }
    high
}

/// Allocates seats of which no party has a positive claim: all others passed the wrap-around. They are divided evenly
/// among the parties without votes, as far as this leaves no party with more than another one.
fn give_without_claims(seats: i64, parties: &mut [Party]) -> i64 {
    if parties.iter().any(|party| seats_above(0.0, party) > 0) {
        return 0;
    }
    if let [party] = parties {
        party.seats = party.seats.wrapping_add(seats as i32);
        return seats;
    }
    let mut without: Vec<&mut Party> = parties.iter_mut().filter(|party| party.votes == 0).collect();
    let each = seats / (without.len() as i64).max(1);
    let are_level = without.windows(2).all(|pair| pair[0].seats == pair[1].seats);
    let has_space = |party: &&mut Party| i64::from(party.seats) + each < SEATS_BEFORE_WRAP;
    if !are_level || !without.iter().all(has_space) {
        return 0;
    }
    for party in &mut without {
        party.seats += each as i32;
    }
    each * without.len() as i64
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
    fn billions_of_seats_are_allocated_at_once_beyond_the_wrap_around_too() {
        let billions = 2_000_000_000;
        let wrap = 1 << 30;
        let check = |votes: &[i64], seats: &[i32], expected: &[i32]| {
            let party = |(votes, seats): (&i64, &i32)| Party {
                votes: *votes,
                seats: *seats,
            };
            let mut parties: Vec<_> = votes.iter().zip(seats).map(party).collect();
            let rest = i64::from(billions) - allocate_in_bulk(i64::from(billions), &mut parties);
            assert!(rest <= 4 * parties.len() as i64, "{rest} seats are left of {votes:?}");
            allocate(rest as i32, &mut parties, TieBreak::Ascending);
            let allocated: Vec<_> = parties.iter().map(|party| party.seats).collect();
            assert_eq!(allocated, expected, "{votes:?} {seats:?}");
        };
        check(&[1], &[0], &[billions]);
        check(&[1, 1, 2], &[0, 0, 0], &[500_000_000, 500_000_000, 1_000_000_000]);
        // The first party has a negative quotient from this seat on, as in Karmada.
        check(&[3, 1], &[0, 0], &[wrap, billions - wrap]);
        check(
            &[1, 0, 0],
            &[0, 0, 0],
            &[wrap, (billions - wrap) / 2, (billions - wrap) / 2],
        );
        check(&[1, 9], &[0, 100_000_000], &[billions + 100_000_000 - wrap, wrap]);
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
                    seats: next(if round % 3 == 0 { 300 } else { 4 }) as i32,
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
