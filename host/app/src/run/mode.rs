//! What a process owns beside Karmada.

use bulkhead_controllers::controller_names;
use bulkhead_controllers::permissions::Mode;

use super::misuse::Misuse;

/// Reads the name of a mode.
///
/// # Errors
///
/// What there is, when there is no such mode.
pub(super) fn parse(text: &str) -> Result<Mode, String> {
    let found = Mode::ALL.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| format!("there are {}", Mode::ALL.map(Mode::name).join(", ")))
}

/// The modes of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modes(Vec<Mode>);

impl Modes {
    /// # Errors
    ///
    /// When modes contradict each other.
    pub(super) fn new(modes: &[Mode]) -> Result<Self, Misuse> {
        if modes.contains(&Mode::Report)
            && let Some(other) = modes.iter().find(|mode| **mode != Mode::Report)
        {
            let why = "a process that only reports writes nothing; leave one of them out";
            return Err(Misuse::new("mode", format!("report,{}: {why}", other.name())));
        }
        let mut sorted = modes.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Ok(Self(sorted))
    }

    /// Their names, separated by commas.
    pub(super) fn names(&self) -> String {
        self.0.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(",")
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Mode] {
        &self.0
    }

    /// Whether a mode is among them.
    pub(super) fn has(&self, mode: Mode) -> bool {
        self.0.contains(&mode)
    }

    /// Whether nothing may be written.
    pub(super) fn only_reports(&self) -> bool {
        self.has(Mode::Report)
    }

    /// Whether a controller belongs to one of them. To report is to decide like `evict`.
    fn runs(&self, controller: &str) -> bool {
        let deciding = |mode: &Mode| if *mode == Mode::Report { Mode::Evict } else { *mode };
        self.0.iter().map(deciding).any(|mode| mode.duties().iter().any(|duty| duty.name == controller))
    }

    /// The controllers of the modes that a list in Karmada's syntax names: the first entry that speaks of a controller
    /// decides.
    ///
    /// # Errors
    ///
    /// The name of a controller that does not exist, or that is named and belongs to none of the modes.
    pub(super) fn controllers(&self, list: &[String]) -> Result<Vec<&'static str>, Misuse> {
        for entry in list {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if name != "*" && !controller_names().any(|known| known == name) {
                let known: Vec<_> = controller_names().collect();
                let why = format!("there is no controller {name}; there are {}", known.join(", "));
                return Err(Misuse::new("controllers", why));
            }
            if name != "*" && entry == name && !self.runs(name) {
                let why = format!("{name} does not run in this --mode; it does in mode all");
                return Err(Misuse::new("controllers", why));
            }
        }
        let decides = |name: &str| {
            let exact = list.iter().find_map(|entry| match entry.strip_prefix('-') {
                Some(off) => (off == name).then_some(false),
                None => (entry == name).then_some(true),
            });
            exact.unwrap_or_else(|| list.iter().any(|entry| entry == "*"))
        };
        Ok(controller_names().filter(|name| self.runs(name) && decides(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(modes: &[Mode], list: &[&str]) -> Result<Vec<&'static str>, Misuse> {
        Modes::new(modes)?.controllers(&list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn controllers_are_chosen_in_karmadas_syntax() {
        let all = |list: &[&str]| chosen(&[Mode::All], list);
        assert_eq!(all(&["*"]).unwrap().len(), controller_names().count());
        assert_eq!(all(&["scheduler", "binding"]).unwrap(), ["scheduler", "binding"]);
        let most = all(&["*", "-taintManager"]).unwrap();
        assert!(most.len() + 1 == controller_names().count() && !most.contains(&"taintManager"));
        let error = all(&["sheduler"]).unwrap_err().to_string();
        assert!(error.contains("no controller sheduler") && error.contains("scheduler"), "{error}");
    }

    #[test]
    fn a_mode_runs_what_it_owns() {
        assert_eq!(chosen(&[Mode::Finish], &["*"]).unwrap(), ["gracefulEviction", "pluginStatus"]);
        assert_eq!(chosen(&[Mode::Interpret], &["*"]).unwrap(), ["pluginStatus"]);
        let evict = chosen(&[Mode::Evict, Mode::Interpret], &["*"]).unwrap();
        assert!(evict.contains(&"taintManager") && !evict.contains(&"scheduler"), "{evict:?}");
        assert_eq!(evict, chosen(&[Mode::Report], &["*"]).unwrap());
        let error = chosen(&[Mode::Evict], &["scheduler"]).unwrap_err().to_string();
        assert!(error.contains("scheduler does not run in this --mode"), "{error}");
    }

    #[test]
    fn reporting_goes_with_nothing_that_writes() {
        let error = Modes::new(&[Mode::Report, Mode::Evict]).unwrap_err().to_string();
        assert!(error.contains("report,evict"), "{error}");
        assert!(Modes::new(&[Mode::Report]).unwrap().only_reports());
    }
}
