//! Exact port of Go's `sort.Sort` (Go 1.19 and later: `sort/zsortinterface.go`, pattern-defeating quicksort).
//!
//! The sort is not stable, and Karmada truncates lists sorted with it, so the order of equal elements determines the
//! placement of replicas. The order is deterministic for a given length and content.

/// Sorts with the same result as Go.
pub(super) fn sort<T>(data: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let limit = usize::BITS - data.len().leading_zeros();
    let end = data.len();
    Sorter { data, less }.quicksort(0, end, limit);
}

const INSERTION_MAX: usize = 12;
const NINTHER_MIN: usize = 50;
const SWAPS_MAX: usize = 12;
const REPAIRS_MAX: usize = 5;
const SHIFTING_MIN: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

struct Sorter<'a, T, L> {
    data: &'a mut [T],
    less: L,
}

impl<T, L: Fn(&T, &T) -> bool> Sorter<'_, T, L> {
    fn less(&self, a: usize, b: usize) -> bool {
        (self.less)(&self.data[a], &self.data[b])
    }

    fn quicksort(&mut self, mut a: usize, mut b: usize, mut limit: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        loop {
            let length = b - a;
            if length <= INSERTION_MAX {
                return self.insertion_sort(a, b);
            }
            if limit == 0 {
                return self.heap_sort(a, b);
            }
            if !balanced {
                self.break_patterns(a, b);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(a, b);
            if hint == Hint::Decreasing {
                self.data[a..b].reverse();
                pivot = (b - 1) - (pivot - a);
                hint = Hint::Increasing;
            }
            if balanced && partitioned && hint == Hint::Increasing && self.partial_insertion_sort(a, b) {
                return;
            }
            if a > 0 && !self.less(a - 1, pivot) {
                a = self.partition_equal(a, b, pivot);
                continue;
            }
            let middle;
            (middle, partitioned) = self.partition(a, b, pivot);
            let (left, right) = (middle - a, b - middle);
            balanced = left.min(right) >= length / 8;
            if left < right {
                self.quicksort(a, middle, limit);
                a = middle + 1;
            } else {
                self.quicksort(middle + 1, b, limit);
                b = middle;
            }
        }
    }

    fn insertion_sort(&mut self, a: usize, b: usize) {
        for i in a + 1..b {
            let mut j = i;
            while j > a && self.less(j, j - 1) {
                self.data.swap(j, j - 1);
                j -= 1;
            }
        }
    }

    fn heap_sort(&mut self, a: usize, b: usize) {
        let length = b - a;
        for i in (0..=length.saturating_sub(1) / 2).rev() {
            self.sift_down(i, length, a);
        }
        for i in (0..length).rev() {
            self.data.swap(a, a + i);
            self.sift_down(0, i, a);
        }
    }

    fn sift_down(&mut self, mut root: usize, end: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.data.swap(first + root, first + child);
            root = child;
        }
    }

    /// Moves smaller elements to the left of the pivot and the others to its right. Returns the position of the
    /// pivot, and true if the range was already partitioned.
    fn partition(&mut self, a: usize, b: usize, pivot: usize) -> (usize, bool) {
        self.data.swap(a, pivot);
        let (mut i, mut j, mut already) = (a + 1, b - 1, true);
        loop {
            while i <= j && self.less(i, a) {
                i += 1;
            }
            while i <= j && !self.less(j, a) {
                j -= 1;
            }
            if i > j {
                break;
            }
            already = false;
            self.data.swap(i, j);
            i += 1;
            j -= 1;
        }
        self.data.swap(j, a);
        (j, already)
    }

    /// Moves elements equal to the pivot to the left and greater ones to the right.
    fn partition_equal(&mut self, a: usize, b: usize, pivot: usize) -> usize {
        self.data.swap(a, pivot);
        let (mut i, mut j) = (a + 1, b - 1);
        loop {
            while i <= j && !self.less(a, i) {
                i += 1;
            }
            while i <= j && self.less(a, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.data.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    fn partial_insertion_sort(&mut self, a: usize, b: usize) -> bool {
        let mut i = a + 1;
        for _ in 0..REPAIRS_MAX {
            while i < b && !self.less(i, i - 1) {
                i += 1;
            }
            if i == b {
                return true;
            }
            if b - a < SHIFTING_MIN {
                return false;
            }
            self.data.swap(i, i - 1);
            if i - a >= 2 {
                let mut j = i - 1;
                while j >= 1 && self.less(j, j - 1) {
                    self.data.swap(j, j - 1);
                    j -= 1;
                }
            }
            if b - i >= 2 {
                let mut j = i + 1;
                while j < b && self.less(j, j - 1) {
                    self.data.swap(j, j - 1);
                    j += 1;
                }
            }
        }
        false
    }

    /// Swaps three elements to break patterns that cause unbalanced partitions.
    fn break_patterns(&mut self, a: usize, b: usize) {
        let length = b - a;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let modulus = 1_u64 << (usize::BITS - length.leading_zeros());
        let middle = a + (length / 4) * 2 - 1;
        for i in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = (random & (modulus - 1)) as usize;
            let other = if other >= length { other - length } else { other };
            self.data.swap(middle + i, a + other);
        }
    }

    fn choose_pivot(&self, start: usize, end: usize) -> (usize, Hint) {
        let length = end - start;
        let mut swaps = 0;
        let mut quarters = [1, 2, 3].map(|quarter| start + length / 4 * quarter);
        if length >= NINTHER_MIN {
            quarters = quarters.map(|middle| self.median(middle - 1, middle, middle + 1, &mut swaps));
        }
        let [first, middle, last] = quarters;
        let pivot = if length >= 8 {
            self.median(first, middle, last, &mut swaps)
        } else {
            middle
        };
        let hint = match swaps {
            0 => Hint::Increasing,
            SWAPS_MAX => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (pivot, hint)
    }

    fn median(&self, a: usize, b: usize, c: usize, swaps: &mut usize) -> usize {
        let mut ordered = |a, b| {
            if self.less(b, a) {
                *swaps += 1;
                (b, a)
            } else {
                (a, b)
            }
        };
        let (a, b) = ordered(a, b);
        let (b, _) = ordered(b, c);
        let (_, b) = ordered(a, b);
        b
    }
}

#[cfg(test)]
mod tests {
    use super::{Sorter, sort};

    #[test]
    fn without_attempts_left_a_range_is_sorted_by_heap_and_the_rest_stays() {
        for length in 13..60_usize {
            let content = |i: usize| (i * 7919 + length) % 31;
            let mut data: Vec<_> = (0..length + 10).map(content).collect();
            let (range, mut expected) = (5..length + 5, data.clone());
            expected[range.clone()].sort_unstable();
            let less = |a: &usize, b: &usize| a < b;
            Sorter { data: &mut data, less }.quicksort(range.start, range.end, 0);
            assert_eq!(data, expected);
        }
    }

    #[test]
    fn every_length_and_pattern_comes_out_sorted() {
        for length in 0..300_u64 {
            let patterns: [fn(u64, u64) -> u64; 5] = [
                |i, _| i,
                |i, n| n - i,
                |i, _| i % 3,
                |i, n| (i * 7919) % (n + 1),
                |i, n| if i < n / 2 { i } else { n - i },
            ];
            for pattern in patterns {
                let mut data: Vec<_> = (0..length).map(|i| pattern(i, length)).collect();
                let mut expected = data.clone();
                expected.sort_unstable();
                sort(&mut data, |a, b| a < b);
                assert_eq!(data, expected);
            }
        }
    }

    /// The expected digest is the output of a Go 1.26 program that sorts the same 20,000 lists in descending order.
    #[test]
    fn equal_elements_end_up_where_go_puts_them() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut digest = 14_695_981_039_346_656_037_u64;
        for _ in 0..20_000 {
            let (length, divisor, mode) = (next() % 300, next() % 20 + 1, next() % 4);
            let mut list: Vec<(u64, u64)> = (0..length)
                .map(|i| {
                    let random = next() % divisor;
                    let value = match mode {
                        1 => i / divisor,
                        2 => (length - i) / divisor,
                        3 => {
                            let ramp = if i < length / 2 {
                                i / divisor
                            } else {
                                (length - i) / divisor
                            };
                            if next() % 10 == 0 { 0 } else { ramp }
                        }
                        _ => random,
                    };
                    (value, i)
                })
                .collect();
            sort(&mut list, |a, b| a.0 > b.0);
            for (_, index) in list {
                digest = (digest ^ index).wrapping_mul(1_099_511_628_211);
            }
        }
        assert_eq!(digest, 12_473_577_234_642_942_670);
    }
}
