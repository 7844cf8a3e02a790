//! Ownership of objects in member clusters. Several control planes can share a member, and each of them marks its objects
//! with `karmada.io/managed=true`, so that label alone does not say whose an object is.

use std::fmt;

/// Marks on an object in a member cluster, or those that a Work gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// True if some control plane manages the object (label `karmada.io/managed`).
    pub managed: bool,
    /// Permanent id of its Work; empty if it has none.
    pub work_id: String,
    /// Namespace and name of its Work; empty if it names none.
    pub work: (String, String),
    /// Uid of its resource template; empty if it names none. No two control planes have the same.
    pub template_uid: String,
}

/// Relation of an object to a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// No control plane manages it.
    Unmanaged,
    /// It came from the Work, or from an earlier Work of the same template.
    Ours,
    /// It came from another Work.
    Foreign,
}

/// Decides whether an object came from a Work.
///
/// `exists` is true for a Work, by namespace and name, that this control plane has besides the one in question.
///
/// 1. The same permanent id: ours. It stays the same when Karmada hands over to Bulkhead or the other way round.
/// 2. A Work that exists beside ours: foreign.
/// 3. The same template: ours. The Work was made anew, for example after its cluster left and joined again.
/// 4. Another permanent id: foreign.
/// 5. No permanent id, as old versions of Karmada leave it: ours unless it names another Work.
pub fn ownership(object: &Marks, ours: &Marks, exists: impl FnOnce(&(String, String)) -> bool) -> Ownership {
    if !object.managed {
        return Ownership::Unmanaged;
    }
    if !object.work_id.is_empty() && object.work_id == ours.work_id {
        return Ownership::Ours;
    }
    let names_another = !object.work.1.is_empty() && object.work != ours.work;
    if names_another && exists(&object.work) {
        return Ownership::Foreign;
    }
    if !object.template_uid.is_empty() && object.template_uid == ours.template_uid {
        return Ownership::Ours;
    }
    if object.work_id.is_empty() && !names_another { Ownership::Ours } else { Ownership::Foreign }
}

/// The Work that the marks name, with its permanent id.
impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = &self.work;
        match (name.as_str(), self.work_id.as_str()) {
            ("", id) => write!(f, "a Work with permanent id {id}"),
            (name, "") => write!(f, "Work {namespace}/{name}"),
            (name, id) => write!(f, "Work {namespace}/{name} with permanent id {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(work_id: &str, work: &str, template_uid: &str) -> Marks {
        let work = if work.is_empty() { Default::default() } else { ("karmada-es-m1".to_owned(), work.to_owned()) };
        Marks { managed: true, work_id: work_id.to_owned(), work, template_uid: template_uid.to_owned() }
    }

    #[test]
    fn an_object_belongs_to_the_work_with_its_permanent_id() {
        let ours = marks("a", "web-1", "t1");
        let check = |object: Marks, exists: bool, expected: Ownership| {
            assert_eq!(ownership(&object, &ours, |_| exists), expected, "{object:?} {exists}");
        };
        check(Marks { managed: false, ..ours.clone() }, false, Ownership::Unmanaged);
        check(ours.clone(), false, Ownership::Ours);
        // Another control plane that calls the member by the same name derives the same name of the Work.
        check(marks("b", "web-1", "t2"), false, Ownership::Foreign);
        check(marks("b", "web-2", "t2"), false, Ownership::Foreign);
        check(marks("b", "", ""), false, Ownership::Foreign);
        // The Work was made anew for the same template, under the same or another name of the cluster.
        check(marks("b", "web-1", "t1"), false, Ownership::Ours);
        check(marks("b", "web-2", "t1"), false, Ownership::Ours);
        check(marks("b", "web-2", "t1"), true, Ownership::Foreign);
        // Old versions of Karmada set no permanent id.
        check(marks("", "web-1", ""), false, Ownership::Ours);
        check(marks("", "", ""), false, Ownership::Ours);
        check(marks("", "web-2", "t2"), false, Ownership::Foreign);
    }

    #[test]
    fn a_work_without_permanent_id_owns_no_object_of_another_one() {
        let ours = marks("", "web-1", "t1");
        assert_eq!(ownership(&marks("b", "web-1", "t2"), &ours, |_| false), Ownership::Foreign);
        assert_eq!(ownership(&marks("", "web-1", "t1"), &ours, |_| false), Ownership::Ours);
    }
}
