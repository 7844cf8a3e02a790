//! Bounds on the code to be compiled.
//!
//! Compilation time grows faster than the size of the code: 3,000 nested loops fit into 23 KB and take more than a
//! minute. A compilation cannot be interrupted, so such code is rejected before it starts. The output of toolchains
//! is far below the bounds: compiled interpreters nest some hundred blocks for a `switch` and a handful of loops.

use wasmparser::{Operator, Parser, Payload};
use wasmtime::component::Component;
use wasmtime::{Engine, Error, Result};

/// Maximum nesting of loops in a function.
const LOOPS_MAX: usize = 100;
/// Maximum nesting of blocks, loops, conditions and handlers in a function.
const BLOCKS_MAX: usize = 5_000;
/// Maximum size of a function's body in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum number of functions of a component, over all its modules.
const FUNCTIONS_MAX: usize = 200_000;

/// Compiles a component. Fails before the compilation if its code exceeds a bound.
pub(crate) fn compile(engine: &Engine, code: &[u8]) -> Result<Component> {
    match objection(code) {
        Some(objection) => Err(Error::msg(objection)),
        None => Component::from_binary(engine, code),
    }
}

/// Returns the exceeded bound, if any. Unreadable code is left to the compiler, which reports the error.
fn objection(code: &[u8]) -> Option<String> {
    let mut functions = 0;
    for payload in Parser::new(0).parse_all(code) {
        let Ok(Payload::CodeSectionEntry(body)) = payload else {
            if payload.is_err() {
                return None;
            }
            continue;
        };
        functions += 1;
        if functions > FUNCTIONS_MAX {
            return Some(format!("it has more than {FUNCTIONS_MAX} functions"));
        }
        if body.range().len() > BODY_BYTES_MAX {
            return Some(format!("a function of it has more than {BODY_BYTES_MAX} bytes"));
        }
        if let Some(objection) = of_nesting(&body) {
            return Some(objection);
        }
    }
    None
}

fn of_nesting(body: &wasmparser::FunctionBody<'_>) -> Option<String> {
    let operators = body.get_operators_reader().ok()?;
    // One entry for each open block; true for a loop.
    let (mut open, mut loops) = (Vec::new(), 0);
    for operator in operators {
        match operator.ok()? {
            Operator::Loop { .. } => {
                open.push(true);
                loops += 1;
            }
            Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } | Operator::Try { .. } => {
                open.push(false);
            }
            Operator::End | Operator::Delegate { .. } => loops -= usize::from(open.pop() == Some(true)),
            _ => {}
        }
        if loops > LOOPS_MAX {
            return Some(format!("a function of it nests more than {LOOPS_MAX} loops"));
        }
        if open.len() > BLOCKS_MAX {
            return Some(format!("a function of it nests more than {BLOCKS_MAX} blocks"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a component with a function that nests `depth` blocks of a kind.
    fn nested(kind: &str, depth: usize) -> Vec<u8> {
        let body = format!("{}{}", format!("({kind} ").repeat(depth), ")".repeat(depth));
        wat::parse_str(format!("(component (core module (func {body})))")).unwrap()
    }

    #[test]
    fn nested_loops_that_take_minutes_to_compile_are_refused_before_that() {
        let check = |kind: &str, depth: usize, expected: Option<&str>| {
            let objection = objection(&nested(kind, depth));
            assert_eq!(objection.as_deref(), expected, "{depth} times {kind}");
        };
        check("loop", 3_000, Some("a function of it nests more than 100 loops"));
        check("loop", 100, None);
        check("block", 1_000, None);
        check("block", 6_000, Some("a function of it nests more than 5000 blocks"));
    }

    #[test]
    fn loops_side_by_side_are_not_nested() {
        let body = "(loop (loop)) ".repeat(1_000);
        let code = wat::parse_str(format!("(component (core module (func {body})))")).unwrap();
        assert_eq!(objection(&code), None);
    }

    #[test]
    fn code_that_cannot_be_read_is_left_to_the_compiler() {
        assert_eq!(objection(b"\0asm garbage"), None);
    }
}
