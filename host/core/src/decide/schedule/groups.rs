//! Which regions to use: the best combination of groups (Karmada: `spreadconstraint/select_groups.go`).
//!
//! Karmada lists every combination and sorts them. The same combination is found here without listing them: what
//! can no longer beat the best one found so far is not looked at.

use std::cmp::Reverse;

/// A group of clusters that is chosen or not as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, unique.
    pub name: String,
    /// What it adds to the size that is needed: the number of its clusters.
    pub value: i64,
    /// How good it is.
    pub weight: i64,
}

/// What a combination must fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest groups.
    pub groups_min: i64,
    /// Most groups.
    pub groups_max: i64,
    /// Least sum of values.
    pub value_min: i64,
}

impl Bounds {
    fn are_met(self, len: usize, value: i64) -> bool {
        value >= self.value_min && (self.groups_min..=self.groups_max).contains(&(len as i64))
    }
}

/// Tables larger than this are replaced by one coarse row.
const TABLE_ENTRIES_MAX: usize = 1 << 16;

/// Indices of the chosen groups, best first; absent when no combination fulfils the bounds.
///
/// Combinations are tried in order of (value ascending, weight descending, name); one that fulfils the bounds is
/// not extended. The best has the largest weight, then the largest value, then was found first. If a part of it,
/// cut at the end, was found as well, the shortest such part is used instead.
pub fn select_groups(groups: &[Group], bounds: Bounds) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&index| (groups[index].value, Reverse(groups[index].weight), &groups[index].name));
    let most = usize::try_from(bounds.groups_max).unwrap_or(0).min(groups.len());
    let mut search = Search { groups, order: &order, bounds, most, best: None, path: Vec::new(), limits: Vec::new() };
    search.limits = search.limits();
    search.visit(0, 0, 0);
    let mut best = search.best?.path;
    let by_rank = |index: &usize| (Reverse(groups[*index].weight), &groups[*index].name);
    best.sort_by_key(by_rank);
    let cut = (0..best.len()).find(|len| search_finds(groups, &best[..*len], bounds));
    best.truncate(cut.unwrap_or(best.len()));
    Some(best)
}

/// Whether the search would come upon exactly these groups: they fulfil the bounds, and no shorter beginning, in
/// the order of the search, does.
fn search_finds(groups: &[Group], chosen: &[usize], bounds: Bounds) -> bool {
    let mut order = chosen.to_vec();
    order.sort_by_key(|&index| (groups[index].value, Reverse(groups[index].weight), &groups[index].name));
    let mut value = 0;
    for (len, &index) in order.iter().enumerate() {
        if bounds.are_met(len, value) {
            return false;
        }
        value += groups[index].value;
    }
    bounds.are_met(order.len(), value)
}

struct Best {
    weight: i64,
    value: i64,
    path: Vec<usize>,
}

struct Search<'a> {
    groups: &'a [Group],
    order: &'a [usize],
    bounds: Bounds,
    most: usize,
    best: Option<Best>,
    path: Vec<usize>,
    /// For each start and number of groups left: the most weight and value that can still be added.
    limits: Vec<Vec<(i64, i64)>>,
}

impl Search<'_> {
    /// One row per start, from the last one backwards; a single row for all when that would be too large.
    fn limits(&self) -> Vec<Vec<(i64, i64)>> {
        let fine = (self.order.len() + 1) * (self.most + 1) <= TABLE_ENTRIES_MAX;
        let starts: Vec<usize> = if fine { (0..=self.order.len()).collect() } else { vec![0] };
        let row = |start: &usize| {
            let rest = self.order.get(*start..).unwrap_or_default();
            let column = |value: fn(&Group) -> i64| {
                let mut values: Vec<_> = rest.iter().map(|&index| value(&self.groups[index]).max(0)).collect();
                values.sort_unstable_by_key(|value| Reverse(*value));
                values
            };
            let (weights, values) = (column(|group| group.weight), column(|group| group.value));
            let mut sums = vec![(0_i64, 0_i64)];
            let (mut weight, mut value) = (0_i64, 0_i64);
            for position in 0..self.most {
                weight = weight.saturating_add(weights.get(position).copied().unwrap_or(0));
                value = value.saturating_add(values.get(position).copied().unwrap_or(0));
                sums.push((weight, value));
            }
            sums
        };
        starts.iter().map(row).collect()
    }

    fn visit(&mut self, start: usize, weight: i64, value: i64) {
        if self.bounds.are_met(self.path.len(), value) {
            let better = |best: &Best| (weight, value) > (best.weight, best.value);
            if self.best.as_ref().is_none_or(better) {
                self.best = Some(Best { weight, value, path: self.path.clone() });
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

    /// Whether nothing that starts here beats what was found, or fulfils the bounds at all.
    fn cannot_win(&self, start: usize, weight: i64, value: i64) -> bool {
        let left = self.most - self.path.len();
        let row = self.limits.get(start).or_else(|| self.limits.last());
        let Some((more_weight, more_value)) = row.and_then(|row| row.get(left)).copied() else { return false };
        let most = (weight.saturating_add(more_weight), value.saturating_add(more_value));
        let groups_left = self.order.len() - start;
        let too_few = ((self.path.len() + groups_left) as i64) < self.bounds.groups_min;
        too_few
            || most.1 < self.bounds.value_min
            || self.best.as_ref().is_some_and(|best| most <= (best.weight, best.value))
    }
}
