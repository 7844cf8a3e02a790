//! Kubernetes quantities, to the extent that CPU and memory need them.

/// Parses a quantity into thousandths of its unit, rounded up. Returns `None` if the text is not a quantity.
pub(crate) fn parse_milli(text: &str) -> Option<u64> {
    const SUFFIXES: [(&str, u128); 12] = [
        ("Ki", 1_000 << 10),
        ("Mi", 1_000 << 20),
        ("Gi", 1_000 << 30),
        ("Ti", 1_000 << 40),
        ("Pi", 1_000 << 50),
        ("m", 1),
        ("k", 1_000_000),
        ("M", 1_000_000_000),
        ("G", 1_000_000_000_000),
        ("T", 1_000_000_000_000_000),
        ("P", 1_000_000_000_000_000_000),
        ("", 1_000),
    ];
    let text = text.trim();
    let (number, scale) = SUFFIXES.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !number.is_empty() && whole.len() + fraction.len() <= 18;
    if !is_number || !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10_u128.pow(fraction.len() as u32);
    u64::try_from((digits * scale).div_ceil(divisor)).ok()
}

/// Parses a quantity into whole units, rounded up. Returns `None` if the text is not a quantity.
pub(crate) fn parse_units(text: &str) -> Option<u64> {
    parse_milli(text).map(|milli| milli.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        let cases = [
            ("100m", Some(100)),
            ("2", Some(2_000)),
            ("0.5", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1k", Some(1_000_000)),
            ("", None),
            ("abc", None),
            ("-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_milli(text), expected, "{text}");
        }
        assert_eq!(parse_units("100m"), Some(1));
        assert_eq!(parse_units("16Gi"), Some(16 << 30));
    }
}
