//! What people read in the log about controllers and informers: each thing once, when it begins and when it is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bulkhead_controllers::{Context, InformerState};

use super::say;

/// How often to look for news.
const LOOK: Duration = Duration::from_secs(1);
/// Most lines about failed reconciles in one look; what is left out then is counted, and is in the metrics.
const LINES_MAX: usize = 20;

/// Says what goes wrong, for ever.
pub(super) async fn tell(context: Context) {
    let (mut informers, mut failures) = (BTreeMap::new(), BTreeSet::new());
    loop {
        tokio::time::sleep(LOOK).await;
        for line in of_informers(context.stores.informers(&context.scope), &mut informers) {
            say(&line);
        }
        let seen = context.failures.counts().into_iter().map(|(controller, error, _)| (controller, error));
        for line in of_failures(seen, &mut failures) {
            say(&line);
        }
    }
}

/// Informers whose trouble is another one than before.
fn of_informers(now: Vec<(String, InformerState)>, before: &mut BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, state) in now {
        match state.trouble {
            Some(trouble) if before.get(&name) != Some(&trouble) => {
                lines.push(format!("{name} {trouble}"));
                before.insert(name, trouble);
            }
            None if before.remove(&name).is_some() => lines.push(format!("{name} are watched again")),
            _ => {}
        }
    }
    lines
}

/// Failures of reconciles that were not seen before.
fn of_failures(now: impl Iterator<Item = (String, String)>, before: &mut BTreeSet<(String, String)>) -> Vec<String> {
    let new: Vec<_> = now.filter(|failure| !before.contains(failure)).collect();
    let mut lines: Vec<_> =
        new.iter().take(LINES_MAX).map(|(controller, error)| format!("{controller}: {error}")).collect();
    if new.len() > LINES_MAX {
        lines.push(format!("{} more failures of other texts", new.len() - LINES_MAX));
    }
    before.extend(new);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_when_it_begins_changes_and_ends() {
        let mut before = BTreeMap::new();
        let mut check = |trouble: Option<&str>, expected: &[&str]| {
            let state = InformerState { listed: false, trouble: trouble.map(str::to_owned), errors: 1 };
            assert_eq!(of_informers(vec![("works".to_owned(), state)], &mut before), expected, "{trouble:?}");
        };
        check(None, &[]);
        check(Some("cannot be listed: no"), &["works cannot be listed: no"]);
        check(Some("cannot be listed: no"), &[]);
        check(Some("the watch was cut"), &["works the watch was cut"]);
        check(None, &["works are watched again"]);
        check(None, &[]);
    }

    #[test]
    fn a_storm_of_failures_does_not_flood_the_log() {
        let mut before = BTreeSet::new();
        let failures = |count: usize| (0..count).map(|number| ("scheduler".to_owned(), format!("{number:03}")));
        assert_eq!(of_failures(failures(2), &mut before), ["scheduler: 000", "scheduler: 001"]);
        assert_eq!(of_failures(failures(2), &mut before).len(), 0);
        let flood = of_failures(failures(100), &mut before);
        assert!(flood.len() == LINES_MAX + 1 && flood[LINES_MAX] == "78 more failures of other texts", "{flood:?}");
    }
}
