//! Names of the imports and exports of a component, read from its bytes.
//!
//! They determine the contract version before anything is compiled. The parser reads only names and gives up on
//! unexpected input: wasmtime validates the component afterwards, and its list of imports is checked as well.

/// Names at the outer level of a component, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Names of the imports.
    pub(crate) imports: Vec<String>,
    /// Names of the exports.
    pub(crate) exports: Vec<String>,
}

const IMPORT_SECTION: u8 = 10;
const EXPORT_SECTION: u8 = 11;

/// Type of a binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// Neither a core module nor a component.
    Foreign,
    /// A core module, which has no typed interface.
    CoreModule,
    /// A component.
    Component,
}

/// Detects the type from the preamble: `\0asm`, two bytes of version, two bytes of layer.
pub(crate) fn recognise(code: &[u8]) -> Binary {
    match code {
        [0, b'a', b's', b'm', _, _, 0, 0, ..] => Binary::CoreModule,
        [0, b'a', b's', b'm', _, _, 1, 0, ..] => Binary::Component,
        _ => Binary::Foreign,
    }
}

/// Reads the names of a component; `None` if the bytes are malformed.
pub(crate) fn read(component: &[u8]) -> Option<Outline> {
    let mut bytes = Bytes(component.get(8..)?);
    let mut outline = Outline::default();
    while !bytes.0.is_empty() {
        let (id, size) = (bytes.byte()?, bytes.number()?);
        let mut section = Bytes(bytes.take(size)?);
        match id {
            IMPORT_SECTION => section.imports(&mut outline.imports)?,
            EXPORT_SECTION => section.exports(&mut outline.exports)?,
            _ => {}
        }
    }
    Some(outline)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, size: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(size).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads an unsigned LEB128 number of at most 32 bits.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok();
            }
        }
        None
    }

    fn name(&mut self) -> Option<String> {
        // Old encoders mark the name of an interface with 1; 2 is followed by options, which wasmtime 48 rejects.
        if self.byte()? > 1 {
            return None;
        }
        let size = self.number()?;
        String::from_utf8(self.take(size)?.to_vec()).ok()
    }

    /// Reads the sort of an item; a core sort has a second byte.
    fn sort(&mut self) -> Option<u8> {
        let sort = self.byte()?;
        if sort == 0 { self.byte() } else { Some(sort) }
    }

    /// Skips the description of an item.
    fn description(&mut self) -> Option<()> {
        const VALUE: u8 = 2;
        const TYPE: u8 = 3;
        match self.sort()? {
            VALUE => None,
            TYPE => match self.byte()? {
                0 => self.number().map(drop),
                _ => Some(()),
            },
            _ => self.number().map(drop),
        }
    }

    fn imports(&mut self, names: &mut Vec<String>) -> Option<()> {
        for _ in 0..self.number()? {
            names.push(self.name()?);
            self.description()?;
        }
        Some(())
    }

    fn exports(&mut self, names: &mut Vec<String>) -> Option<()> {
        for _ in 0..self.number()? {
            names.push(self.name()?);
            self.sort()?;
            self.number()?;
            if self.byte()? == 1 {
                self.description()?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Binary, Outline, read, recognise};

    #[test]
    fn names_are_read_in_order() {
        let component = wat::parse_str(
            r#"(component
                (import "a:b/c@0.1.0" (instance $c (export "t" (type (sub resource)))))
                (import "f" (func (param "x" u32)))
                (core module)
                (component (import "inner" (func)) (export "hidden" (func 0)))
                (export "a:b/d@1.0.0" (instance $c))
                (export "g" (func 0)))"#,
        );
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let expected = Outline {
            imports: names(&["a:b/c@0.1.0", "f"]),
            exports: names(&["a:b/d@1.0.0", "g"]),
        };
        assert_eq!(read(&component.unwrap()), Some(expected));
    }

    #[test]
    fn a_cut_component_has_no_outline() {
        let component = wat::parse_str(r#"(component (import "f" (func)))"#).unwrap();
        assert_eq!(recognise(&component), Binary::Component);
        assert_eq!(read(&component[..component.len() - 1]), None);
        assert_eq!(read(b"\0asm"), None);
    }

    #[test]
    fn a_core_module_is_recognised() {
        assert_eq!(recognise(&wat::parse_str("(module)").unwrap()), Binary::CoreModule);
        assert_eq!(recognise(b"(component)"), Binary::Foreign);
    }
}
