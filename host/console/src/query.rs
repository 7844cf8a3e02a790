//! Parameters of the address of a page.

use bulkhead_core::time::Time;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Largest position of the scale of time.
pub const POSITION_MAX: i64 = 1000;

/// Parameters of an address, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query of an address, as a form writes it. Empty values are left out.
    ///
    /// # Errors
    ///
    /// A value is not UTF-8.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8();
            let value = value.map_err(|_| format!("{name}: the value is not UTF-8"))?;
            if !value.trim().is_empty() {
                parameters.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        Ok(Self(parameters))
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter; empty without one.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns the parameters with another value of one. An empty value removes it.
    #[must_use]
    pub fn with(&self, name: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        let mut changed: Vec<_> = self.0.iter().filter(|(known, _)| known != name).cloned().collect();
        if !value.is_empty() {
            changed.push((name.to_owned(), value));
        }
        Self(changed)
    }

    /// Returns the address of a page with these parameters.
    pub fn link(&self, path: &str) -> String {
        let encode = |(name, value): &(String, String)| {
            format!(
                "{}={}",
                utf8_percent_encode(name, NON_ALPHANUMERIC),
                utf8_percent_encode(value, NON_ALPHANUMERIC)
            )
        };
        let pairs: Vec<_> = self.0.iter().map(encode).collect();
        if pairs.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", pairs.join("&"))
        }
    }

    /// Returns the parameters but these, for the hidden fields of a form.
    pub fn others<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        let others = self.0.iter().filter(move |(name, _)| !names.contains(&name.as_str()));
        others.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a positive number, such as that of a page of a list.
    ///
    /// # Errors
    ///
    /// The value is not a positive number.
    pub fn number(&self, name: &str) -> Result<Option<usize>, String> {
        let parsed = self.get(name).map(|value| match value.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{name}: {value:?} is not a positive number")),
        });
        parsed.transpose()
    }

    /// Returns the value of a parameter that has one of these options, each a value and a text. Without the parameter,
    /// the value is empty.
    ///
    /// # Errors
    ///
    /// The value is none of the options.
    pub fn option(&self, name: &str, options: &[(&str, &str)]) -> Result<&str, String> {
        let value = self.text(name);
        if options.iter().any(|(known, _)| *known == value) {
            Ok(value)
        } else {
            Err(format!("{name}: there is no {name} {value:?}"))
        }
    }

    /// Returns a time, given as RFC 3339 or in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// The value is no time.
    pub fn time(&self, name: &str) -> Result<Option<Time>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        if let Ok(millis) = value.parse::<i64>() {
            return Ok(Some(Time::from_millis(millis)));
        }
        let parsed = value.parse::<jiff::Timestamp>();
        let wrong = |_| format!("{name}: {value:?} is not a time such as 2026-01-31T12:00:00Z");
        parsed.map(|time| Some(Time::new(time))).map_err(wrong)
    }

    /// Returns the time that the page shows: `at`, or the `position` between two times. `None` for the end.
    ///
    /// # Errors
    ///
    /// A value is no time, or no position.
    pub fn moment(&self, extent: Option<(Time, Time)>) -> Result<Option<Time>, String> {
        if let Some(at) = self.time("at")? {
            return Ok(Some(at));
        }
        let Some(value) = self.get("position") else {
            return Ok(None);
        };
        let position = value
            .parse::<i64>()
            .ok()
            .filter(|position| (0..=POSITION_MAX).contains(position));
        let position = position.ok_or_else(|| format!("position: {value:?} is not in 0 to {POSITION_MAX}"))?;
        let within = extent.filter(|_| position < POSITION_MAX).map(|(first, last)| {
            let span_ms = last.millis_since(first).max(0);
            Time::from_millis(
                first.as_millis()
                    + span_ms / POSITION_MAX * position
                    + span_ms % POSITION_MAX * position / POSITION_MAX,
            )
        });
        Ok(within)
    }
}

/// Part of a list that a page shows.
pub struct Paged<T> {
    /// Items of this page.
    pub items: Vec<T>,
    /// Number of the page, from 1.
    pub number: usize,
    /// Number of pages, at least 1.
    pub pages: usize,
    /// Number of all items.
    pub total: usize,
    /// Position of the first item of the page, from 0.
    pub first: usize,
}

impl<T> Paged<T> {
    /// Returns a page of a list. A number after the last page stands for the last page.
    pub fn of(all: impl ExactSizeIterator<Item = T>, number: usize, size: usize) -> Self {
        let total = all.len();
        let pages = total.div_ceil(size).max(1);
        let number = number.clamp(1, pages);
        let first = (number - 1) * size;
        Self {
            items: all.skip(first).take(size).collect(),
            number,
            pages,
            total,
            first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_they_are_written() {
        let parameters = Parameters::parse("a=x+y%26&b=&c=%3Cscript%3E&a=2&d=+").unwrap();
        assert_eq!(parameters.get("a"), Some("x y&"));
        assert_eq!((parameters.get("b"), parameters.text("d")), (None, ""));
        let link = parameters.with("c", "ü").with("e", "1").link("/p");
        assert_eq!(link, "/p?a=x%20y%26&a=2&c=%C3%BC&e=1");
        assert_eq!(Parameters::parse(&link[3..]).unwrap().get("c"), Some("ü"));
        assert_eq!(Parameters::default().link("/"), "/");
        assert_eq!(Parameters::parse("x=%ff").unwrap_err(), "x: the value is not UTF-8");
    }

    #[test]
    fn times_positions_and_numbers_are_checked() {
        let extent = Some((Time::from_millis(10_000), Time::from_millis(12_500)));
        let check = |query: &str, expected: Result<Option<i64>, &str>| {
            let found = Parameters::parse(query).unwrap().moment(extent);
            let found = found.map(|time| time.map(Time::as_millis));
            match (found, expected) {
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{query}"),
            }
        };
        check("", Ok(None));
        check("at=12", Ok(Some(12)));
        check("at=1970-01-01T00:00:01.5Z", Ok(Some(1_500)));
        check("at=noon", Err("at: \"noon\" is not a time"));
        check("position=0", Ok(Some(10_000)));
        check("position=501", Ok(Some(11_252)));
        check("position=1000", Ok(None));
        check("position=1001", Err("is not in 0 to 1000"));
        check("position=x&at=3", Ok(Some(3)));
        assert!(Parameters::parse("page=0").unwrap().number("page").is_err());
        assert_eq!(Parameters::parse("page=7").unwrap().number("page"), Ok(Some(7)));
    }

    #[test]
    fn pages_have_bounds() {
        let page = |total: usize, number: usize| {
            let page = Paged::of(0..total, number, 10);
            (page.items, page.number, page.pages)
        };
        assert_eq!(page(0, 1), (vec![], 1, 1));
        assert_eq!(page(10, 2), ((0..10).collect(), 1, 1));
        assert_eq!(page(11, 2), (vec![10], 2, 2));
        assert_eq!(page(11, usize::MAX), (vec![10], 2, 2));
        assert_eq!(page(11, 0).1, 1);
    }
}
