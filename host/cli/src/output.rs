//! Output of data. Every command that prints data has the same formats.

use std::io::{ErrorKind, Write as _};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Serialize;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The values have no descriptions, which the long help would print on a line each.
impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Text, Self::Json, Self::Yaml]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }))
    }
}

impl Format {
    /// Renders the text or the data, with a line feed at the end.
    pub(crate) fn render(self, text: impl FnOnce() -> String, data: &impl Serialize) -> anyhow::Result<String> {
        Ok(match self {
            Self::Text => text(),
            Self::Json => serde_json::to_string_pretty(data)? + "\n",
            // Enums have the shape that they have in JSON, without the tags of YAML.
            Self::Yaml => serde_saphyr::to_string(&serde_json::to_value(data)?)?,
        })
    }

    /// Prints the text or the data.
    pub(crate) fn print(self, text: impl FnOnce() -> String, data: &impl Serialize) -> anyhow::Result<()> {
        print(&self.render(text, data)?)
    }
}

/// Writes to standard output. A closed pipe is no error, so that the exit code does not depend on the reader.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum Verdict {
        Hold { reason: &'static str },
        Release,
    }

    #[test]
    fn all_formats_have_the_same_data() {
        let texts = [
            "yes",
            "1.0",
            "~",
            "a: b",
            "two\nlines",
            " edge ",
            "# no comment",
            "",
            "2026-01-01T00:00:00Z",
        ];
        let data = json!({
            "texts": texts,
            "verdicts": [json!(Verdict::Hold { reason: "1 of 2" }), json!(Verdict::Release)],
            "count": 3,
            "none": null,
        });
        let rendered = |format: Format| format.render(|| "text\n".to_owned(), &data).unwrap();
        assert_eq!(rendered(Format::Text), "text\n");
        assert_eq!(serde_json::from_str::<Value>(&rendered(Format::Json)).unwrap(), data);
        let yaml = rendered(Format::Yaml);
        assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), data, "{yaml}");
        assert!(yaml.ends_with('\n') && rendered(Format::Json).ends_with("}\n"));
    }

    #[test]
    fn a_variant_in_yaml_is_the_one_of_json() {
        let verdict = Verdict::Hold { reason: "full" };
        let yaml = Format::Yaml.render(String::new, &verdict).unwrap();
        assert_eq!(
            serde_saphyr::from_str::<Value>(&yaml).unwrap(),
            json!({"hold": {"reason": "full"}}),
            "{yaml}"
        );
    }
}
