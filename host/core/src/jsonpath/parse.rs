//! Parser for templates.

use serde_json::Value;

use super::{Comparison, Node, Operand, PathError, Step, TEMPLATE_BYTES_MAX};

/// Maximum nesting depth of ranges and filters.
const DEPTH_MAX: usize = 8;

/// Parses a template.
pub(super) fn template(text: &str) -> Result<Vec<Node>, PathError> {
    Reader::new(text)?.nodes(false)
}

/// Parses a path without braces and text around it.
pub(super) fn path(text: &str) -> Result<Vec<Step>, PathError> {
    let mut reader = Reader::new(text)?;
    let steps = reader.path()?;
    if reader.rest().is_empty() {
        Ok(steps)
    } else {
        Err(syntax(reader.at, "expected the end of the path"))
    }
}

fn syntax(at: usize, message: impl Into<String>) -> PathError {
    PathError::Syntax {
        at,
        message: message.into(),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self, PathError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(syntax(TEMPLATE_BYTES_MAX, "the template is too long"));
        }
        Ok(Self { text, at: 0, depth: 0 })
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), PathError> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(syntax(self.at, format!("expected {token:?}")))
        }
    }

    fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let taken = rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())].to_owned();
        self.at += taken.len();
        taken
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, PathError>) -> Result<T, PathError> {
        if self.depth == DEPTH_MAX {
            return Err(syntax(self.at, format!("nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses text and actions, up to `{end}` inside a range.
    fn nodes(&mut self, in_range: bool) -> Result<Vec<Node>, PathError> {
        let mut nodes = Vec::new();
        loop {
            let text = self.take_while(|c| c != '{');
            if !text.is_empty() {
                nodes.push(Node::Text(text));
            }
            if !self.eat("{") {
                let open = in_range.then(|| syntax(self.at, "a range without {end}"));
                return open.map_or(Ok(nodes), Err);
            }
            self.skip_spaces();
            if self.eat("end") {
                self.skip_spaces();
                self.expect("}")?;
                let lone = (!in_range).then(|| syntax(self.at, "{end} without a range"));
                return lone.map_or(Ok(nodes), Err);
            }
            nodes.push(self.action()?);
        }
    }

    fn action(&mut self) -> Result<Node, PathError> {
        if matches!(self.peek(), Some('"' | '\'')) {
            let text = self.quoted()?;
            self.skip_spaces();
            self.expect("}")?;
            return Ok(Node::Text(text));
        }
        let is_range = self
            .rest()
            .strip_prefix("range")
            .is_some_and(|rest| rest.starts_with([' ', '.', '$', '@', '[']));
        if is_range {
            self.expect("range")?;
        }
        let steps = self.path()?;
        self.expect("}")?;
        if is_range {
            return Ok(Node::Range(steps, self.deeper(|reader| reader.nodes(true))?));
        }
        Ok(Node::Path(steps))
    }

    fn path(&mut self) -> Result<Vec<Step>, PathError> {
        self.skip_spaces();
        let mut steps = Vec::new();
        if self.eat("$") {
            steps.push(Step::Root);
        } else {
            self.eat("@");
        }
        loop {
            if self.eat("..") {
                steps.push(Step::Descend);
                if self.peek() != Some('[') {
                    steps.push(self.name()?);
                }
            } else if self.eat(".") {
                if !matches!(self.peek(), Some('[' | '}') | None) {
                    steps.push(self.name()?);
                }
            } else if self.eat("[") {
                steps.push(self.brackets()?);
            } else {
                self.skip_spaces();
                return Ok(steps);
            }
        }
    }

    fn name(&mut self) -> Result<Step, PathError> {
        if self.eat("*") {
            return Ok(Step::Wildcard);
        }
        let mut name = String::new();
        loop {
            let ends =
                |c: char| c.is_whitespace() || matches!(c, '.' | '[' | ']' | '}' | ')' | '=' | '!' | '<' | '>' | ',');
            name += &self.take_while(|c| c != '\\' && !ends(c));
            // A backslash escapes a dot in a name.
            if !self.eat("\\") {
                break;
            }
            let escaped = self
                .peek()
                .ok_or_else(|| syntax(self.at, "nothing after the backslash"))?;
            self.at += escaped.len_utf8();
            name.push(escaped);
        }
        if name.is_empty() {
            Err(syntax(self.at, "expected a field name"))
        } else {
            Ok(Step::Field(name))
        }
    }

    fn brackets(&mut self) -> Result<Step, PathError> {
        self.skip_spaces();
        if self.eat("?(") {
            let filter = self.deeper(Self::filter)?;
            self.skip_spaces();
            self.expect("]")?;
            return Ok(filter);
        }
        let mut steps = vec![self.element()?];
        self.skip_spaces();
        while self.eat(",") {
            self.skip_spaces();
            steps.push(self.element()?);
            self.skip_spaces();
        }
        self.expect("]")?;
        Ok(if steps.len() > 1 {
            Step::Union(steps)
        } else {
            steps.remove(0)
        })
    }

    fn element(&mut self) -> Result<Step, PathError> {
        if self.eat("*") {
            return Ok(Step::Wildcard);
        }
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.quoted().map(Step::Field);
        }
        let from = self.integer()?;
        if !self.eat(":") {
            return from
                .map(Step::Index)
                .ok_or_else(|| syntax(self.at, "expected an index, a slice, '*' or a quoted name"));
        }
        let to = self.integer()?;
        let by = if self.eat(":") { self.integer()? } else { None };
        Ok(Step::Slice(from, to, by))
    }

    fn integer(&mut self) -> Result<Option<i64>, PathError> {
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '-');
        if digits.is_empty() {
            return Ok(None);
        }
        digits
            .parse()
            .map(Some)
            .map_err(|_| syntax(at, format!("{digits:?} is not a number")))
    }

    fn quoted(&mut self) -> Result<String, PathError> {
        let (start, mut text) = (self.at, String::new());
        let quote = self.peek().unwrap_or_default();
        self.at += quote.len_utf8();
        loop {
            let c = self.peek().ok_or_else(|| syntax(start, "unterminated string"))?;
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    let escaped = self.peek().ok_or_else(|| syntax(start, "unterminated string"))?;
                    self.at += escaped.len_utf8();
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                }
                c => text.push(c),
            }
        }
    }

    fn filter(&mut self) -> Result<Step, PathError> {
        let left = self.operand()?;
        self.skip_spaces();
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let operator = operators
            .into_iter()
            .find(|(token, _)| self.eat(token))
            .map(|(_, operator)| operator);
        let right = operator.map(|operator| Ok((operator, self.operand()?))).transpose()?;
        self.skip_spaces();
        self.expect(")")?;
        Ok(Step::Filter(left, right))
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        self.skip_spaces();
        match self.peek() {
            Some('@' | '$' | '.') => self.path().map(Operand::Path),
            Some('"' | '\'') => self.quoted().map(|text| Operand::Literal(Value::String(text))),
            _ => {
                let at = self.at;
                let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
                serde_json::from_str(&word)
                    .map(Operand::Literal)
                    .map_err(|_| syntax(at, "expected @, $, a quoted text, a number, true or false"))
            }
        }
    }
}
