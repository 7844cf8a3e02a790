use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// List that distinguishes an explicit empty list from an absent one.
///
/// Go distinguishes the two in comparisons, and Karmada's scheduler compares placements that way: an explicit `[]` in
/// a live placement never equals the recorded placement, which omits empty lists. Otherwise the type behaves like a
/// `Vec`.
#[derive(Clone, PartialEq, Eq)]
pub struct List<T> {
    items: Vec<T>,
    /// True if the list was present, even if empty.
    present: bool,
}

impl<T> List<T> {
    /// Returns true if the list is absent: it has no items and was not an explicit empty list.
    pub fn is_absent(&self) -> bool {
        !self.present
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            present: false,
        }
    }
}

impl<T> From<Vec<T>> for List<T> {
    /// Treats an empty vector as absent, as on the wire.
    fn from(items: Vec<T>) -> Self {
        let present = !items.is_empty();
        Self { items, present }
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    /// Reads null as absent.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items: Option<Vec<T>> = Option::deserialize(deserializer)?;
        Ok(Self {
            present: items.is_some(),
            items: items.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn an_explicit_empty_list_differs_from_none() {
        let read = |text: &str| serde_json::from_str::<List<i32>>(text).unwrap();
        assert_ne!(read("[]"), List::default());
        assert_eq!(read("null"), List::default());
        assert_eq!(read("[1, 2]"), List::from(vec![1, 2]));
        assert!(List::<i32>::from(Vec::new()).is_absent() && !read("[]").is_absent());
    }
}
