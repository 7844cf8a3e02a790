//! Exact Kubernetes quantities: parsing, addition, comparison and canonical formatting. (Kubernetes:
//! `k8s.io/apimachinery/pkg/api/resource/quantity.go`.)
//!
//! As in Kubernetes, the finest precision is one billionth (rounded away from zero) and the largest value is 2^63-1.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// Maximum length in bytes of a quantity that an interpreter may return; Kubernetes writes at most about twenty.
pub const QUANTITY_BYTES_MAX: usize = 63;

const NANOS: i128 = 1_000_000_000;
const NANOS_MAX: i128 = i64::MAX as i128 * NANOS;
/// Maximum number of digits read before and after the point; dropped digits only round up or exceed the maximum.
const INTEGER_DIGITS_MAX: usize = 19;
const FRACTION_DIGITS_MAX: usize = 15;

/// Output format of a quantity, taken from its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `500m`, `2`, `3k`.
    #[default]
    Decimal,
    /// `128Mi`.
    Binary,
    /// `12e6`.
    Exponent,
}

/// Amount of a resource. Equality compares amounts and ignores the format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Error for text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAQuantity;

/// Kubernetes' own error message.
impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    }
}

impl std::error::Error for NotAQuantity {}

impl Quantity {
    /// Creates a quantity from a whole number.
    pub fn from_units(units: i128, format: Format) -> Self {
        Self::from_nanos(units.saturating_mul(NANOS), format)
    }

    /// Creates a quantity from thousandths.
    pub fn from_millis(millis: i128, format: Format) -> Self {
        Self::from_nanos(millis.saturating_mul(NANOS / 1000), format)
    }

    fn from_nanos(nanos: i128, format: Format) -> Self {
        Self {
            nanos: nanos.clamp(-NANOS_MAX, NANOS_MAX),
            format,
        }
    }

    /// Parses a JSON string or number.
    pub fn from_json(value: &Value) -> Result<Self, NotAQuantity> {
        match value {
            Value::String(text) => text.parse(),
            Value::Number(number) => number.to_string().parse(),
            _ => Err(NotAQuantity),
        }
    }

    /// Returns the amount in units, rounded away from zero.
    pub fn units(self) -> i128 {
        divide_away(self.nanos, NANOS)
    }

    /// Returns the amount in thousandths, rounded away from zero.
    pub fn millis(self) -> i128 {
        divide_away(self.nanos, NANOS / 1000)
    }

    /// Returns the nearest float.
    pub fn as_f64(self) -> f64 {
        self.nanos as f64 / NANOS as f64
    }

    /// Returns true if the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Returns the output format.
    pub fn format(self) -> Format {
        self.format
    }

    /// Returns the difference. Uses the format of `other` if `self` is zero.
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nanos: -other.nanos,
            format: other.format,
        })
    }

    /// Returns the sum. Uses the format of `other` if `self` is zero.
    pub fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self::from_nanos(self.nanos.saturating_add(other.nanos), format)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Converts an amount to 64 bits as in Go; out-of-range values saturate.
pub(crate) fn whole(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

fn divide_away(value: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (value / divisor, value % divisor);
    quotient + remainder.signum()
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_end);
        let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
        if integer.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(NotAQuantity);
        }
        let (multiplier, exponent, format) = scale(suffix).ok_or(NotAQuantity)?;
        let magnitude = magnitude(integer, fraction, multiplier, exponent);
        Ok(Self::from_nanos(if negative { -magnitude } else { magnitude }, format))
    }
}

/// Returns the factor, power of ten and format of a suffix.
fn scale(suffix: &str) -> Option<(i128, i32, Format)> {
    let binary = |power: u32| (1_i128 << (10 * power), 0, Format::Binary);
    Some(match suffix {
        "n" => (1, -9, Format::Decimal),
        "u" => (1, -6, Format::Decimal),
        "m" => (1, -3, Format::Decimal),
        "" => (1, 0, Format::Decimal),
        "k" => (1, 3, Format::Decimal),
        "M" => (1, 6, Format::Decimal),
        "G" => (1, 9, Format::Decimal),
        "T" => (1, 12, Format::Decimal),
        "P" => (1, 15, Format::Decimal),
        "E" => (1, 18, Format::Decimal),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (1, exponent.parse::<i8>().ok()?.into(), Format::Exponent)
        }
    })
}

fn magnitude(integer: &str, fraction: &str, multiplier: i128, exponent: i32) -> i128 {
    let integer = integer.trim_start_matches('0');
    if integer.len() > INTEGER_DIGITS_MAX {
        return NANOS_MAX;
    }
    let kept = fraction.get(..FRACTION_DIGITS_MAX).unwrap_or(fraction);
    let cut_something = fraction.bytes().skip(kept.len()).any(|digit| digit != b'0');
    let digits = integer.bytes().chain(kept.bytes());
    let mantissa = digits.fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    let mantissa = mantissa + i128::from(cut_something);
    if mantissa == 0 {
        return 0;
    }
    let power = 9 + exponent - kept.len() as i32;
    let ten_to = |power: u32| 10_i128.checked_pow(power);
    let scaled = mantissa.checked_mul(multiplier).and_then(|value| {
        if power >= 0 {
            ten_to(power.unsigned_abs()).and_then(|factor| value.checked_mul(factor))
        } else {
            // A divisor that overflows leaves less than the smallest amount, which rounds up to it.
            Some(ten_to(power.unsigned_abs()).map_or(1, |divisor| divide_away(value, divisor)))
        }
    });
    scaled.unwrap_or(NANOS_MAX)
}

/// Canonical form: no fraction, and the largest suffix that permits this.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Small and fractional amounts have no binary form.
        let binary = self.format == Format::Binary && self.nanos % NANOS == 0 && self.nanos.abs() >= 1024 * NANOS;
        if self.nanos == 0 {
            f.write_str("0")
        } else if binary {
            let (mantissa, power) = without_factors(self.nanos / NANOS, 1024, 6);
            write!(f, "{mantissa}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
        } else {
            let (mantissa, power) = without_factors(self.nanos, 1000, 9);
            if self.format == Format::Exponent {
                match power as i32 * 3 - 9 {
                    0 => write!(f, "{mantissa}"),
                    exponent => write!(f, "{mantissa}e{exponent}"),
                }
            } else {
                write!(
                    f,
                    "{mantissa}{}",
                    ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power]
                )
            }
        }
    }
}

fn without_factors(mut value: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut count = 0;
    while count < most && value % factor == 0 {
        value /= factor;
        count += 1;
    }
    (value, count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_print_in_canonical_form() {
        let check = |text: &str, expected: &str| {
            let printed = text
                .parse::<Quantity>()
                .map_or_else(|_| "error".to_owned(), |quantity| quantity.to_string());
            assert_eq!(printed, expected, "{text:?}");
        };
        check("0", "0");
        check("0Mi", "0");
        check("1500m", "1500m");
        check("2000m", "2");
        check("0.5", "500m");
        check(".5", "500m");
        check("1.", "1");
        check("+1", "1");
        check("-1500m", "-1500m");
        check("1000", "1k");
        check("1024", "1024");
        check("1536Mi", "1536Mi");
        check("1024Mi", "1Gi");
        check("0.5Gi", "512Mi");
        check("512", "512");
        check("1Ki", "1Ki");
        check("0.5Ki", "512");
        check("1.5", "1500m");
        check("0.1Ki", "102400m");
        check("12e6", "12e6");
        check("12E6", "12e6");
        check("1e-3", "1e-3");
        check("1e0", "1");
        check("1E", "1E");
        check("0.0000000001", "1n");
        check("0.00000000000000000001", "1n");
        check("1e-100", "1e-9");
        check("9223372036854775807", "9223372036854775807");
        check("9223372036854775808", "9223372036854775807");
        check("99999999999999999999999", "9223372036854775807");
        check("8Ei", "9223372036854775807");
        check("1e100", "9223372036854775807");
        for text in [
            "", "abc", ".", "1.2.3", "1x", "1 ", "--1", "1mi", "1ee3", "1e", "1K", "é",
        ] {
            check(text, "error");
        }
    }

    #[test]
    fn json_numbers_are_quantities_too() {
        let check = |value: Value, expected: Option<&str>| {
            let printed = Quantity::from_json(&value).ok().map(|quantity| quantity.to_string());
            assert_eq!(printed.as_deref(), expected, "{value}");
        };
        check(json!(1), Some("1"));
        check(json!(0.5), Some("500m"));
        check(json!("250m"), Some("250m"));
        check(json!(true), None);
    }

    #[test]
    fn rounding_is_away_from_zero() {
        let check = |text: &str, units: i128, millis: i128| {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.units(), quantity.millis()), (units, millis), "{text}");
        };
        check("1500m", 2, 1500);
        check("100u", 1, 1);
        check("-1500m", -2, -1500);
        check("1Gi", 1 << 30, 1000 << 30);
    }

    #[test]
    fn the_first_amount_decides_how_a_sum_is_written() {
        let check = |texts: &[&str], expected: &str| {
            let add = |sum: Quantity, text: &&str| sum.plus(text.parse().unwrap());
            assert_eq!(
                texts.iter().fold(Quantity::default(), add).to_string(),
                expected,
                "{texts:?}"
            );
        };
        check(&[], "0");
        check(&["100m", "1", "900m"], "2");
        check(&["1Gi", "1G"], "2073741824");
        check(&["0", "1Gi", "1Gi"], "2Gi");
    }

    #[test]
    fn comparison_is_by_amount() {
        let quantity = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(quantity("1"), quantity("1000m"));
        assert!(quantity("1Ki") > quantity("1k"));
    }
}
