//! Texts of errors with their causes.

use std::error::Error;

/// Returns the texts of an error and its causes, each once. The response of an API server is quoted with its code.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            texts.push(format!("{} ({})", status.message.trim(), status.code));
            break;
        }
        let text = error.to_string();
        // Many texts end with the text of their cause.
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    // The names of the client's layers do not help a reader.
    let text = texts.join(": ");
    text.trim_start_matches("ServiceError: ")
        .trim_start_matches("client error (Connect): ")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn each_cause_is_printed_once() {
        let check = |texts: &[&'static str], expected: &str| {
            let layers = texts
                .iter()
                .rev()
                .fold(None, |source, text| Some(Box::new(Layer { text, source })));
            assert_eq!(causes(&*layers.unwrap()), expected);
        };
        let status = kube::core::Status::failure("leases is forbidden", "Forbidden").with_code(403);
        assert_eq!(causes(&kube::Error::Api(Box::new(status))), "leases is forbidden (403)");
        check(&["a"], "a");
        check(&["reading a: no such file", "no such file"], "reading a: no such file");
        check(
            &["ServiceError: client error (Connect)", "tcp connect error", "refused"],
            "tcp connect error: refused",
        );
    }
}
