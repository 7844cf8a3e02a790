//! Permissions of directories and files that hold code, or digests of code.

use std::fs::Metadata;

/// Returns the reason why other users could change a directory or a file, with a remedy; `None` if it belongs to the
/// user of the process or to root, and only its owner can write to it. On systems other than Unix, permissions are up
/// to the operator.
#[cfg(unix)]
pub fn write_objection(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = rustix::process::geteuid().as_raw();
    objection(metadata.uid(), metadata.mode(), ours)
}

#[cfg(not(unix))]
pub fn write_objection(_metadata: &Metadata) -> Option<String> {
    None
}

/// Returns the objection to an owner and a mode, for a process of user `ours`.
#[cfg(unix)]
fn objection(owner: u32, mode: u32, ours: u32) -> Option<String> {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    const ROOT: u32 = 0;
    if owner != ours && owner != ROOT {
        return Some(format!(
            "belongs to user {owner}, and must belong to user {ours} or to root"
        ));
    }
    (mode & WRITABLE_BY_OTHERS != 0).then(|| {
        format!(
            "can be written by others (mode {:o}); `chmod go-w` makes it safe",
            mode & 0o7777
        )
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_may_write() {
        let check = |owner: u32, mode: u32, part: Option<&str>| match (objection(owner, mode, 7), part) {
            (None, None) => {}
            (Some(found), Some(part)) => assert!(found.contains(part), "no {part:?} in: {found}"),
            (found, part) => panic!("{owner} {mode:o}: {found:?}, not {part:?}"),
        };
        check(7, 0o40_700, None);
        check(0, 0o40_755, None);
        check(
            8,
            0o40_700,
            Some("belongs to user 8, and must belong to user 7 or to root"),
        );
        check(7, 0o40_770, Some("can be written by others (mode 770); `chmod go-w`"));
        check(7, 0o41_777, Some("(mode 1777)"));
    }
}
