//! The seat dispenser behind weighted division (Karmada: `pkg/util/helper/webstermethod.go`).

use std::cmp::Ordering;

use crate::names::fnv1a_32;

/// A party: name, votes, seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Name of the cluster.
    pub name: String,
    /// Its weight.
    pub votes: i64,
    /// Replicas it has so far.
    pub seats: i32,
}

/// Gives out `seats` one by one (Sainte-Laguë), each to the largest quotient `votes / (2 seats + 1)`. Ties go to
/// fewer seats, then by name: ascending, or descending if `uid` is non-empty and its FNV-1a hash is odd.
/// Nothing is given out when there are no votes. The parties come back sorted by name.
pub fn allocate(mut seats: i32, mut parties: Vec<Party>, uid: &str) -> Vec<Party> {
    parties.sort_by(|a, b| a.name.cmp(&b.name));
    let votes = parties.iter().fold(0_i64, |sum, party| sum.wrapping_add(party.votes));
    if votes == 0 {
        return parties;
    }
    let descending = !uid.is_empty() && fnv1a_32(uid.as_bytes()) % 2 == 1;
    // Quotients are compared as floating-point numbers because Karmada compares them so.
    let quotient = |party: &Party| party.votes as f64 / f64::from(party.seats.wrapping_mul(2).wrapping_add(1));
    while seats > 0 {
        let better = |a: &Party, b: &Party| {
            let by_name = if descending { a.name.cmp(&b.name) } else { b.name.cmp(&a.name) };
            let by_quotient = quotient(a).partial_cmp(&quotient(b)).unwrap_or(Ordering::Equal);
            by_quotient.then(b.seats.cmp(&a.seats)).then(by_name)
        };
        let Some(winner) = parties.iter_mut().max_by(|a, b| better(a, b)) else { break };
        winner.seats += 1;
        seats -= 1;
    }
    parties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_karmadas() {
        let check = |seats, votes: &[i64], uid, expected: &[i32]| {
            let party = |(n, votes): (usize, &i64)| Party { name: format!("m{}", n + 1), votes: *votes, seats: 0 };
            let parties = allocate(seats, votes.iter().enumerate().map(party).collect(), uid);
            assert_eq!(
                parties.iter().map(|party| party.seats).collect::<Vec<_>>(),
                expected,
                "{seats} {votes:?} {uid}"
            );
        };
        check(7, &[1, 1, 1], "", &[3, 2, 2]);
        check(7, &[1, 1, 1], "a", &[3, 2, 2]);
        check(7, &[1, 1, 1], "b", &[2, 2, 3]);
        check(2, &[3, 1], "", &[1, 1]);
        check(9, &[1, 3], "", &[2, 7]);
        check(10, &[90, 5, 5], "", &[9, 1, 0]);
        check(3, &[1, 2], "", &[1, 2]);
        check(5, &[0, 0], "", &[0, 0]);
    }
}
