//! Files of the record, and the conclusions from them at a start.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::{PluginSource, one_line};

/// Version of the lines in a file, which its first line contains.
const FORMAT: u32 = 1;
/// Maximum size of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a plugin's name in a line, in characters.
const NAME_CHARS_MAX: usize = 253;
/// Length of a digest in hexadecimal digits.
const DIGEST_CHARS: usize = 64;
/// Number of ends of a process while the same code ran, after which it is quarantined even if other code ran too.
const ENDS_MAX: u32 = 3;
/// Beginning of the line of code that runs.
const RUNNING: &str = "running";
/// Beginning of the line of a suspect, before the number of ends.
const SUSPECTED: &str = "suspected";

/// Code of a plugin, and its activity: `load` or the name of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    /// SHA-256 of the code, as hexadecimal digits.
    pub(super) digest: String,
    pub(super) name: String,
    /// Name of the plugin, for messages.
    pub(super) plugin: String,
}

impl Activity {
    /// Returns the load of a plugin.
    pub(super) fn load(source: &PluginSource) -> Self {
        Self::new(source.digest().to_string(), "load", &source.name)
    }

    pub(super) fn new(digest: String, name: &str, plugin: &str) -> Self {
        Self {
            digest,
            name: name.to_owned(),
            plugin: one_line(plugin, NAME_CHARS_MAX),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let (digest, name) = (words.next()?, words.next()?);
        let is_digest = digest.len() == DIGEST_CHARS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_digest && is_name).then(|| Self::new(digest.to_ascii_lowercase(), name, words.next().unwrap_or_default()))
    }
}

/// Formats the activity as a line of a file.
impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.digest, self.name, self.plugin)
    }
}

/// Code that ran when a process ended, among other code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    /// Number of processes that ended while the code ran.
    pub(super) ends: u32,
    /// Activity of the code when the last of them ended.
    pub(super) activity: Activity,
}

/// Suspects by the digest of their code.
pub(super) type Suspects = BTreeMap<String, Suspect>;

/// Lines of a file, without comments and empty lines.
#[derive(Debug, Default)]
pub(super) struct Text {
    lines: Vec<String>,
    /// Newer format, if the file has one.
    newer: Option<u32>,
    /// True if the file is larger than the maximum.
    is_cut: bool,
}

impl Text {
    /// Reads a file. One that does not exist is empty. Bytes that are not UTF-8 damage only their line.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => file
                .take(FILE_BYTES_MAX + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| about(path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(about(path, &error)),
        };
        let is_cut = bytes.len() as u64 > FILE_BYTES_MAX;
        let mut text = Self {
            is_cut,
            ..Self::default()
        };
        for line in String::from_utf8_lossy(&bytes).lines().map(str::trim) {
            match line.strip_prefix('#') {
                Some(comment) => text.newer = text.newer.or(format_of(comment).filter(|format| *format > FORMAT)),
                None if line.is_empty() => {}
                None => text.lines.push(line.to_owned()),
            }
        }
        Ok(text)
    }

    /// Returns the lines of `plugins-quarantined` that are understood.
    pub(super) fn quarantined(&self) -> Vec<Activity> {
        self.lines.iter().filter_map(|line| Activity::parse(line)).collect()
    }

    /// Returns the lines of `plugins-running` that are understood: code that runs, and suspects.
    pub(super) fn running(&self) -> (Vec<Activity>, Suspects) {
        let (mut running, mut suspects) = (Vec::new(), Suspects::new());
        for line in &self.lines {
            match parse_running(line) {
                Some((0, activity)) => running.push(activity),
                Some((ends, activity)) => {
                    suspects.insert(activity.digest.clone(), Suspect { ends, activity });
                }
                None => {}
            }
        }
        (running, suspects)
    }

    /// Returns a message about a file of which only some lines are understood, or that a newer version wrote.
    pub(super) fn problem(&self, path: &Path, understood: usize) -> Option<String> {
        let ignored = self.lines.len().saturating_sub(understood);
        let mut causes = Vec::new();
        if let Some(newer) = self.newer {
            causes.push(format!(
                "a newer version of Bulkhead wrote it (format {newer}, this one reads {FORMAT})"
            ));
        }
        if self.is_cut {
            causes.push(format!(
                "it is larger than {FILE_BYTES_MAX} bytes, and the rest is ignored"
            ));
        }
        if ignored > 0 {
            causes.push(format!(
                "{ignored} of {} lines are damaged and ignored",
                self.lines.len()
            ));
        }
        let file = path.display();
        let what = causes.join("; ");
        (!causes.is_empty()).then(|| format!("{file}: {what}; the other lines apply; delete the file to drop them all"))
    }

    /// Returns the lines with further ones, without those that are there already. Lines that are not understood stay.
    pub(super) fn with(self, more: &[Activity]) -> Vec<String> {
        let format = self.newer.unwrap_or(FORMAT);
        let about = "code of plugins that ended a process; delete a line to let its plugin load again";
        let header = format!("# format {format}: {about}");
        let more: Vec<_> = more
            .iter()
            .map(Activity::to_string)
            .filter(|line| !self.lines.contains(line))
            .collect();
        std::iter::once(header).chain(self.lines).chain(more).collect()
    }
}

fn format_of(comment: &str) -> Option<u32> {
    comment
        .trim()
        .strip_prefix("format ")?
        .split(':')
        .next()?
        .trim()
        .parse()
        .ok()
}

/// Parses a line of `plugins-running`. The number of ends is 0 for code that runs.
fn parse_running(line: &str) -> Option<(u32, Activity)> {
    let (state, rest) = line.split_once(' ')?;
    match state {
        RUNNING => Some((0, Activity::parse(rest)?)),
        SUSPECTED => {
            let (ends, rest) = rest.split_once(' ')?;
            Some((ends.parse().ok().filter(|ends| *ends > 0)?, Activity::parse(rest)?))
        }
        _ => None,
    }
}

/// Returns the lines of `plugins-running`; none if there is nothing to record.
pub(super) fn running_lines<'a>(running: impl Iterator<Item = &'a Activity>, suspects: &Suspects) -> Vec<String> {
    let suspects = suspects
        .values()
        .map(|Suspect { ends, activity }| format!("{SUSPECTED} {ends} {activity}"));
    let lines: Vec<_> = running
        .map(|activity| format!("{RUNNING} {activity}"))
        .chain(suspects)
        .collect();
    if lines.is_empty() {
        return lines;
    }
    let header = format!("# format {FORMAT}: code of plugins that runs for the first time, and suspects");
    std::iter::once(header).chain(lines).collect()
}

/// Draws the conclusions from the code that ran when a process ended. Returns the code to quarantine, and updates the
/// suspects.
///
/// Code that ran alone ended the process. Of several, each is a suspect until the activity has ended once, or until
/// [`ENDS_MAX`] processes have ended with it.
pub(super) fn judge(ran: Vec<Activity>, suspects: &mut Suspects) -> Vec<Activity> {
    let by_code: BTreeMap<_, _> = ran
        .into_iter()
        .map(|activity| (activity.digest.clone(), activity))
        .collect();
    let is_alone = by_code.len() == 1;
    let mut quarantined = Vec::new();
    for (digest, activity) in by_code {
        let ends = suspects
            .remove(&digest)
            .map_or(0, |suspect| suspect.ends)
            .saturating_add(1);
        if is_alone || ends >= ENDS_MAX {
            quarantined.push(activity);
        } else {
            suspects.insert(digest, Suspect { ends, activity });
        }
    }
    quarantined
}

/// Events that a file survives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Survives {
    /// The end of the process.
    Process,
    /// The end of the machine too: the file is synced to the disk.
    Machine,
}

/// Replaces a file in one step. A file without lines is removed.
pub(super) fn replace(path: &Path, lines: &[String], survives: Survives) -> io::Result<()> {
    replace_file(path, lines, survives).map_err(|error| about(path, &error))
}

fn replace_file(path: &Path, lines: &[String], survives: Survives) -> io::Result<()> {
    if lines.is_empty() {
        fs::remove_file(path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    } else {
        let new = path.with_extension("new");
        let mut file = open(OpenOptions::new().write(true).create(true).truncate(true), &new)?;
        file.write_all(format!("{}\n", lines.join("\n")).as_bytes())?;
        if survives == Survives::Machine {
            file.sync_all()?;
        }
        fs::rename(&new, path)?;
    }
    match path.parent() {
        // The name of a file is on the disk when its directory is.
        Some(directory) if survives == Survives::Machine => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

/// Opens a file that is created for its owner only.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

pub(super) fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(code: char, name: &str) -> Activity {
        Activity::new(code.to_string().repeat(DIGEST_CHARS), name, "p")
    }

    fn codes(activities: &[Activity]) -> String {
        activities
            .iter()
            .filter_map(|activity| activity.digest.chars().next())
            .collect()
    }

    #[test]
    fn code_is_quarantined_if_it_ran_alone_or_ran_at_three_ends() {
        // Each step has the code that ran, the code that is quarantined then, and the suspects.
        let check = |steps: &[(&str, &str, &str)]| {
            let mut suspects = Suspects::new();
            for (ran, quarantined, suspected) in steps {
                let ran = ran.chars().map(|code| activity(code, "load")).collect();
                assert_eq!(codes(&judge(ran, &mut suspects)), *quarantined, "{steps:?}");
                let now: Vec<_> = suspects.values().map(|suspect| suspect.activity.clone()).collect();
                assert_eq!(codes(&now), *suspected, "{steps:?}");
            }
        };
        check(&[("a", "a", "")]);
        check(&[("aa", "a", "")]);
        check(&[("abc", "", "abc"), ("b", "b", "ac")]);
        check(&[("ab", "", "ab"), ("ac", "", "abc"), ("ad", "a", "bcd")]);
        check(&[("ab", "", "ab"), ("", "", "ab")]);
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugins-running");
        let running = [activity('a', "load"), activity('b', "InterpretHealth")];
        let suspect = Suspect {
            ends: 2,
            activity: activity('c', "Score"),
        };
        let suspects = Suspects::from([(suspect.activity.digest.clone(), suspect)]);
        for survives in [Survives::Process, Survives::Machine] {
            replace(&path, &running_lines(running.iter(), &suspects), survives).unwrap();
            let text = Text::read(&path).unwrap();
            assert_eq!(text.running(), (running.to_vec(), suspects.clone()));
            assert_eq!(text.problem(&path, 3), None);
        }
        replace(
            &path,
            &running_lines(std::iter::empty(), &Suspects::new()),
            Survives::Process,
        )
        .unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn damaged_lines_are_reported_and_the_others_apply() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugins-quarantined");
        let (a, b) = (activity('a', "load"), activity('b', "Score"));
        let check = |bytes: &[u8], understood: &[&Activity], problem: Option<&str>| {
            fs::write(&path, bytes).unwrap();
            let text = Text::read(&path).unwrap();
            let actual = text.quarantined();
            assert_eq!(actual.iter().collect::<Vec<_>>(), understood);
            let message = text.problem(&path, actual.len());
            match (problem, message) {
                (None, None) => {}
                (Some(part), Some(message)) => {
                    let way_out = message.contains(&path.display().to_string()) && message.contains("delete the file");
                    assert!(message.contains(part) && way_out, "{message}");
                }
                (expected, message) => panic!("{message:?} in place of {expected:?}"),
            }
            // Lines that are not understood are kept when another one is added.
            let lines = text.lines.clone();
            let with = text.with(std::slice::from_ref(&b));
            assert!(
                lines.iter().all(|line| with.contains(line)) && with.contains(&b.to_string()),
                "{with:?}"
            );
        };
        let (line_a, line_b) = (format!("{a}\n"), format!("{b}\n"));
        check(b"", &[], None);
        check(format!("\n{line_a}\n  {line_b}").as_bytes(), &[&a, &b], None);
        check(
            &[line_a.as_bytes(), b"\xff\xfe\x00\n", line_b.as_bytes()].concat(),
            &[&a, &b],
            Some("1 of 3 lines"),
        );
        check(&line_a.as_bytes()[..40], &[], Some("1 of 1 lines are damaged"));
        check(
            format!("{line_a}{}", &line_b[..64]).as_bytes(),
            &[&a],
            Some("1 of 2 lines"),
        );
        let newer = format!("# format 7: other\n{line_a}");
        check(
            newer.as_bytes(),
            &[&a],
            Some("a newer version of Bulkhead wrote it (format 7, this one reads 1)"),
        );
        let large = line_a.repeat(usize::try_from(FILE_BYTES_MAX).unwrap() / line_a.len() + 2);
        fs::write(&path, large).unwrap();
        let text = Text::read(&path).unwrap();
        assert!(
            text.problem(&path, text.quarantined().len())
                .unwrap()
                .contains("larger than 1048576 bytes")
        );
    }

    #[test]
    fn the_format_of_a_newer_version_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugins-quarantined");
        fs::write(&path, "# format 7: other\nsomething new\n").unwrap();
        let lines = Text::read(&path).unwrap().with(&[activity('a', "load")]);
        assert!(
            lines[0].starts_with("# format 7") && lines[1] == "something new" && lines.len() == 3,
            "{lines:?}"
        );
    }
}
