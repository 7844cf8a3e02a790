//! Ownership of objects in member clusters. Several control planes can share a member cluster, and each of them sets
//! `karmada.io/managed=true`, so the label alone does not identify the owner.

use std::fmt;

/// Ownership metadata of an object in a member cluster, or as set by a Work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnershipMetadata {
    /// True if some control plane manages the object (label `karmada.io/managed`).
    pub managed: bool,
    /// Permanent id of its Work; empty if not set.
    pub work_id: String,
    /// Namespace and name of its Work; empty if not set.
    pub work: (String, String),
    /// Uid of its resource template; empty if not set. Unique across control planes.
    pub template_uid: String,
}

/// Relation of an object to a Work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// No control plane manages the object.
    Unmanaged,
    /// The object comes from this Work, or from an earlier Work of the same template.
    Ours,
    /// The object comes from another Work.
    Foreign,
}

/// Determines the relation of an object to a Work.
///
/// `exists` returns true if this control plane has another Work with the given namespace and name.
///
/// 1. Same permanent id: ours. It does not change in a handover between Karmada and Bulkhead.
/// 2. The object names another existing Work: foreign.
/// 3. Same template: ours. The Work was recreated, for example after its cluster left and joined again.
/// 4. Different permanent id: foreign.
/// 5. No permanent id, as set by old versions of Karmada: ours unless the object names another Work.
pub fn ownership(
    object: &OwnershipMetadata,
    ours: &OwnershipMetadata,
    exists: impl FnOnce(&(String, String)) -> bool,
) -> Ownership {
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
    if object.work_id.is_empty() && !names_another {
        Ownership::Ours
    } else {
        Ownership::Foreign
    }
}

/// Work that the metadata names, with its permanent id.
impl fmt::Display for OwnershipMetadata {
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

    fn marks(work_id: &str, work: &str, template_uid: &str) -> OwnershipMetadata {
        let work = if work.is_empty() {
            Default::default()
        } else {
            ("karmada-es-m1".to_owned(), work.to_owned())
        };
        OwnershipMetadata {
            managed: true,
            work_id: work_id.to_owned(),
            work,
            template_uid: template_uid.to_owned(),
        }
    }

    #[test]
    fn an_object_belongs_to_the_work_with_its_permanent_id() {
        let ours = marks("a", "web-1", "t1");
        let check = |object: OwnershipMetadata, exists: bool, expected: Ownership| {
            assert_eq!(ownership(&object, &ours, |_| exists), expected, "{object:?} {exists}");
        };
        check(
            OwnershipMetadata {
                managed: false,
                ..ours.clone()
            },
            false,
            Ownership::Unmanaged,
        );
        check(ours.clone(), false, Ownership::Ours);
        check(marks("a", "web-2", "t2"), true, Ownership::Ours);
        // Another control plane that uses the same name for the member cluster derives the same name for the Work.
        check(marks("b", "web-1", "t2"), false, Ownership::Foreign);
        check(marks("b", "web-2", "t2"), false, Ownership::Foreign);
        check(marks("b", "", ""), false, Ownership::Foreign);
        // The Work was recreated for the same template, under the same or another name of the cluster.
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
        assert_eq!(
            ownership(&marks("b", "web-1", "t2"), &ours, |_| false),
            Ownership::Foreign
        );
        assert_eq!(ownership(&marks("", "web-1", "t1"), &ours, |_| false), Ownership::Ours);
    }

    #[test]
    fn a_work_is_described_by_what_is_known_of_it() {
        let described = |work_id: &str, work: &str| marks(work_id, work, "t1").to_string();
        assert_eq!(described("a", ""), "a Work with permanent id a");
        assert_eq!(described("", "web-1"), "Work karmada-es-m1/web-1");
        assert_eq!(described("a", "web-1"), "Work karmada-es-m1/web-1 with permanent id a");
    }
}
