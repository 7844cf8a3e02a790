//! Recent changes of one kind, for watches and for other followers.
//!
//! All but the newest are text: most followers have read them, and a tree takes several times as much memory.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::object::{Change, ChangeType, Object, ObjectKey};

/// Number of the newest changes that are kept as they are.
const WHOLE_MAX: usize = 64;

/// Changes, oldest first.
#[derive(Default)]
pub(crate) struct History {
    changes: VecDeque<Kept>,
    /// Version of the newest change that was dropped.
    dropped: u64,
}

enum Kept {
    Whole(Arc<Change>),
    Text(Text),
}

/// Change whose objects are text.
struct Text {
    key: ObjectKey,
    object: Line,
    previous: Option<Line>,
}

/// Object as the watch event of the change that led to it.
struct Line {
    line: Bytes,
    resource_version: u64,
    change_type: ChangeType,
}

impl From<&Object> for Line {
    fn from(object: &Object) -> Self {
        Self {
            line: object.line(),
            resource_version: object.resource_version(),
            change_type: object.change_type(),
        }
    }
}

impl Line {
    fn object(&self) -> Arc<Object> {
        let object = Object::from_line(self.line.clone(), self.resource_version, self.change_type);
        Arc::new(object)
    }
}

impl From<&Change> for Text {
    fn from(change: &Change) -> Self {
        Self {
            key: change.key.clone(),
            object: Line::from(&*change.object),
            previous: change.previous.as_deref().map(Line::from),
        }
    }
}

impl Kept {
    fn resource_version(&self) -> u64 {
        match self {
            Self::Whole(change) => change.resource_version(),
            Self::Text(change) => change.object.resource_version,
        }
    }

    fn change(&self) -> Arc<Change> {
        match self {
            Self::Whole(change) => Arc::clone(change),
            Self::Text(change) => Arc::new(Change {
                key: change.key.clone(),
                object: change.object.object(),
                previous: change.previous.as_ref().map(Line::object),
            }),
        }
    }
}

impl History {
    /// Returns the changes after `version`, oldest first. The caller has compared `version` with [`History::dropped`].
    pub(crate) fn after(&self, version: u64) -> impl Iterator<Item = Arc<Change>> {
        let is_new = |change: &&Kept| change.resource_version() > version;
        let count = self.changes.iter().rev().take_while(is_new).count();
        self.changes.range(self.changes.len() - count..).map(Kept::change)
    }

    /// Returns the version of the newest change that was dropped; the oldest version from which a watch can resume.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds a change, and drops the oldest ones beyond `changes_max`.
    pub(crate) fn push(&mut self, change: Change, changes_max: usize) {
        self.changes.push_back(Kept::Whole(Arc::new(change)));
        let before_newest = self.changes.len().checked_sub(WHOLE_MAX + 1);
        if let Some(kept) = before_newest.and_then(|index| self.changes.get_mut(index))
            && let Kept::Whole(change) = kept
        {
            *kept = Kept::Text(Text::from(&**change));
        }
        while self.changes.len() > changes_max {
            if let Some(dropped) = self.changes.pop_front() {
                self.dropped = dropped.resource_version();
            }
        }
    }

    /// Drops all changes. A watch that has not seen the last of them gets 410.
    pub(crate) fn compact(&mut self) {
        if let Some(last) = self.changes.back() {
            self.dropped = last.resource_version();
        }
        self.changes.clear();
    }

    /// Returns a history without changes that ends at a version.
    pub(crate) fn from(version: u64) -> Self {
        Self {
            changes: VecDeque::new(),
            dropped: version,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::content::Content;
    use crate::kind::KindId;

    fn object(version: u64, change_type: ChangeType) -> Arc<Object> {
        let value = json!({"metadata": {"name": "a", "resourceVersion": version.to_string()}, "size": 0.5});
        Arc::new(Object::new(Content::from(value), version, change_type))
    }

    #[test]
    fn changes_are_the_same_as_text() {
        let mut history = History::default();
        let mut previous = None;
        for version in 1..=200 {
            let change_type = match version {
                1 => ChangeType::Added,
                150 => ChangeType::Deleted,
                _ => ChangeType::Modified,
            };
            let object = object(version, change_type);
            let change = Change {
                key: ObjectKey::new(KindId(0), "", "a"),
                object: Arc::clone(&object),
                previous: previous.replace(object),
            };
            history.push(change, 190);
        }
        assert_eq!(history.dropped(), 10);
        let whole = history.changes.iter().filter(|kept| matches!(kept, Kept::Whole(_)));
        assert_eq!(whole.count(), WHOLE_MAX);
        assert_eq!(history.after(195).count(), 5);
        let changes: Vec<_> = history.after(10).collect();
        assert_eq!(changes.len(), 190);
        for (change, version) in changes.iter().zip(11..) {
            let expected = object(version, change.change_type());
            assert_eq!(change.resource_version(), version);
            assert_eq!(change.object.content(), expected.content());
            assert_eq!(
                (change.object.line(), change.object.bytes()),
                (expected.line(), expected.bytes())
            );
            let previous = change.previous.as_ref().unwrap();
            assert_eq!(previous.content(), object(version - 1, change.change_type()).content());
        }
        assert_eq!(changes[139].change_type(), ChangeType::Deleted);
        history.compact();
        assert_eq!((history.dropped(), history.after(10).count()), (200, 0));
    }
}
