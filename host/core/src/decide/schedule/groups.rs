//! Region selection: the best combination of groups (Karmada: `spreadconstraint/select_groups.go`).
//!
//! Karmada lists all combinations and sorts them. This module finds the same combination by branch and bound,
//! skipping branches that cannot beat the best combination so far.

use std::cmp::Reverse;

/// Group of clusters that is chosen as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Unique name of the group.
    pub name: &'a str,
    /// Contribution to the required size: the number of its clusters.
    pub value: i64,
    /// Score of the group.
    pub weight: i64,
}

/// Requirements on a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Minimum number of groups.
    pub groups_min: i64,
    /// Maximum number of groups.
    pub groups_max: i64,
    /// Minimum sum of values.
    pub value_min: i64,
}

impl Bounds {
    fn are_met(self, len: usize, value: i64) -> bool {
        value >= self.value_min && (self.groups_min..=self.groups_max).contains(&(len as i64))
    }
}

/// Maximum table size; a larger table is replaced by a single coarse row.
const TABLE_ENTRIES_MAX: usize = 1 << 16;

/// Returns the indices of the chosen groups, best first; `None` if no combination meets the bounds.
///
/// Combinations are tried in order of (value ascending, weight descending, name); a combination that meets the bounds
/// is not extended. The best one has the largest weight, then the largest value, then the earliest position. If the
/// search also found a prefix of it, the shortest such prefix is used instead.
pub fn select_groups(groups: &[Group<'_>], bounds: Bounds) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&index| (groups[index].value, Reverse(groups[index].weight), groups[index].name));
    let most = usize::try_from(bounds.groups_max).unwrap_or(0).min(groups.len());
    let mut search = Search {
        groups,
        order: &order,
        bounds,
        most,
        best: None,
        path: Vec::new(),
        limits: Vec::new(),
    };
    search.limits = search.limits();
    search.visit(0, 0, 0);
    let mut best = search.best?.path;
    let by_rank = |index: &usize| (Reverse(groups[*index].weight), groups[*index].name);
    best.sort_by_key(by_rank);
    let cut = (0..best.len()).find(|len| search_finds(groups, &best[..*len], bounds));
    best.truncate(cut.unwrap_or(best.len()));
    Some(best)
}

/// Returns true if the search would find exactly these groups: they meet the bounds, and no shorter prefix in search
/// order does.
fn search_finds(groups: &[Group<'_>], chosen: &[usize], bounds: Bounds) -> bool {
    let mut order = chosen.to_vec();
    order.sort_by_key(|&index| (groups[index].value, Reverse(groups[index].weight), groups[index].name));
    let mut value = 0;
    for (len, &index) in order.iter().enumerate() {
        if bounds.are_met(len, value) {
            return false;
        }
        value += groups[index].value;
    }
    bounds.are_met(order.len(), value)
}

/// Largest numbers seen so far; negative ones count as zero.
struct Largest {
    most: usize,
    /// Numbers in descending order.
    numbers: Vec<i64>,
}

impl Largest {
    fn new(most: usize) -> Self {
        Self {
            most,
            numbers: Vec::with_capacity(most + 1),
        }
    }

    fn insert(&mut self, number: i64) {
        let number = number.max(0);
        let place = self.numbers.partition_point(|existing| *existing >= number);
        self.numbers.insert(place, number);
        self.numbers.truncate(self.most);
    }

    /// Returns the sums of the largest zero, one, two, … numbers.
    fn sums(&self) -> impl Iterator<Item = i64> {
        let padded = self.numbers.iter().copied().chain(std::iter::repeat(0)).take(self.most);
        let sums = padded.scan(0_i64, |sum, number| {
            *sum = sum.saturating_add(number);
            Some(*sum)
        });
        std::iter::once(0).chain(sums)
    }
}

struct Best {
    weight: i64,
    value: i64,
    path: Vec<usize>,
}

struct Search<'a> {
    groups: &'a [Group<'a>],
    order: &'a [usize],
    bounds: Bounds,
    most: usize,
    best: Option<Best>,
    path: Vec<usize>,
    /// For each start and number of remaining groups: the maximum weight and value that can still be added.
    limits: Vec<Vec<(i64, i64)>>,
}

impl Search<'_> {
    /// Returns one row per start, or a single row for all starts if the table would be too large.
    fn limits(&self) -> Vec<Vec<(i64, i64)>> {
        let fine = (self.order.len() + 1) * (self.most + 1) <= TABLE_ENTRIES_MAX;
        let (mut weights, mut values) = (Largest::new(self.most), Largest::new(self.most));
        let mut row = vec![(0, 0); self.most + 1];
        let mut rows = Vec::new();
        for index in self.order.iter().rev() {
            weights.insert(self.groups[*index].weight);
            values.insert(self.groups[*index].value);
            let next = weights.sums().zip(values.sums()).collect();
            let after = std::mem::replace(&mut row, next);
            if fine {
                rows.push(after);
            }
        }
        rows.push(row);
        rows.reverse();
        rows
    }

    fn visit(&mut self, start: usize, weight: i64, value: i64) {
        if self.bounds.are_met(self.path.len(), value) {
            let better = |best: &Best| (weight, value) > (best.weight, best.value);
            if self.best.as_ref().is_none_or(better) {
                self.best = Some(Best {
                    weight,
                    value,
                    path: self.path.clone(),
                });
            }
            return;
        }
        if self.path.len() >= self.most {
            return;
        }
        for position in start..self.order.len() {
            if self.cannot_win(position, weight, value) {
                return;
            }
            let index = self.order[position];
            let group = &self.groups[index];
            let (weight, value) = (weight.wrapping_add(group.weight), value.wrapping_add(group.value));
            self.path.push(index);
            self.visit(position + 1, weight, value);
            self.path.pop();
        }
    }

    /// Returns the maximum number of groups that can be added before a combination meets the bounds and is not
    /// extended. No later group is smaller than the next one.
    fn groups_left(&self, start: usize, value: i64) -> usize {
        let most = self.most - self.path.len();
        let smallest = self.order.get(start).map_or(0, |index| self.groups[*index].value);
        if smallest <= 0 {
            return most;
        }
        let missing = self.bounds.value_min.saturating_sub(value).max(0);
        let for_value = missing / smallest + i64::from(missing % smallest > 0);
        let for_count = self.bounds.groups_min.saturating_sub(self.path.len() as i64);
        usize::try_from(for_value.max(for_count).max(1))
            .unwrap_or(most)
            .min(most)
    }

    /// Returns true if no combination from this start can meet the bounds or beat the best one.
    fn cannot_win(&self, start: usize, weight: i64, value: i64) -> bool {
        let left = self.groups_left(start, value);
        let row = self.limits.get(start).or(self.limits.first());
        let Some((more_weight, more_value)) = row.and_then(|row| row.get(left)).copied() else {
            return false;
        };
        let most = (weight.saturating_add(more_weight), value.saturating_add(more_value));
        let groups_left = self.order.len() - start;
        let too_few = ((self.path.len() + groups_left) as i64) < self.bounds.groups_min;
        too_few
            || most.1 < self.bounds.value_min
            || self.best.as_ref().is_some_and(|best| most <= (best.weight, best.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: lists all combinations and applies Karmada's rules literally.
    fn by_listing(groups: &[Group<'_>], bounds: Bounds) -> Option<Vec<usize>> {
        fn list(groups: &[Group<'_>], order: &[usize], bounds: Bounds, path: &[usize], found: &mut Vec<Vec<usize>>) {
            let value = path.iter().map(|index| groups[*index].value).sum();
            if bounds.are_met(path.len(), value) {
                return found.push(path.to_vec());
            }
            if path.len() as i64 >= bounds.groups_max {
                return;
            }
            for (position, index) in order.iter().enumerate() {
                let longer: Vec<_> = path.iter().chain([index]).copied().collect();
                list(groups, &order[position + 1..], bounds, &longer, found);
            }
        }
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&index| (groups[index].value, Reverse(groups[index].weight), groups[index].name));
        let mut found = Vec::new();
        list(groups, &order, bounds, &[], &mut found);
        for path in &mut found {
            path.sort_by_key(|&index| (Reverse(groups[index].weight), groups[index].name));
        }
        let sum = |path: &[usize], of: fn(&Group<'_>) -> i64| path.iter().map(|index| of(&groups[*index])).sum::<i64>();
        found.sort_by_key(|path| {
            (
                Reverse(sum(path, |group| group.weight)),
                Reverse(sum(path, |group| group.value)),
            )
        });
        let mut paths = found.into_iter();
        let first = paths.next()?;
        Some(paths.fold(first, |best, path| {
            if path.len() < best.len() && best.starts_with(&path) {
                path
            } else {
                best
            }
        }))
    }

    #[test]
    fn leaving_out_what_cannot_win_changes_nothing() {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        // A custom generator gives the same numbers on every machine.
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below) as i64
        };
        for _ in 0..5_000 {
            let count = next(9) as usize;
            let groups: Vec<_> = NAMES
                .iter()
                .take(count)
                .map(|&name| Group {
                    name,
                    value: 1 + next(4),
                    weight: next(4) * 1000 + next(2) * 50,
                })
                .collect();
            let groups_min = next(4);
            let bounds = Bounds {
                groups_min,
                groups_max: groups_min + next(3),
                value_min: next(12),
            };
            assert_eq!(
                select_groups(&groups, bounds),
                by_listing(&groups, bounds),
                "{groups:?} {bounds:?}"
            );
        }
    }
}
