//! Components whose instances start configured.
//!
//! Before its first call, an instance of an interpreter starts its runtime and reads the configuration, which takes up
//! to two million steps. For a large component this happens once: an instance of an instrumented copy is configured, and
//! the state of its memories and globals becomes the initial state of the component that answers calls. All calls start
//! in this state: in an instance of their own, or in one that got its state back (`origin`).
//!
//! A component is used as it is if its state is more than memories and numbers (changing tables, references, nested
//! components, resources of its own), or if its configuration depends on a call: on its time, its seed, or a handle.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;
use wasmparser::{CanonicalFunction, Parser, Payload, ValType};
use wasmtime::Store;
use wasmtime::component::{Instance, Lift, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use crate::host::Host;

/// Maximum number of parts of a memory. The library needs 24 bytes for each of them.
const PARTS_MAX: usize = 4 << 20;

/// Returns a copy of a component with functions that read its state, and what is needed to make a snapshot of it. `None`
/// if the state of the component is more than memories and numbers.
pub(crate) fn instrumented(code: &[u8]) -> Option<(ComponentContext<'_>, Vec<u8>)> {
    if !is_plain(code)? {
        return None;
    }
    contained(|| Wizer::new().instrument_component(code).ok())
}

/// Returns the component with the state of an instance of its instrumented copy. The store has no limits.
pub(crate) fn taken(context: &ComponentContext<'_>, store: &mut Store<Host>, instance: Instance) -> Option<Vec<u8>> {
    contained(|| {
        let mut state = State {
            store,
            instance,
            is_complete: true,
        };
        // Guests are not asynchronous, so neither is their state.
        let snapshot = Wizer::new().snapshot_component(context, &mut state).now_or_never()?;
        snapshot.ok().filter(|_| state.is_complete)
    })
}

/// Contains a panic of the library: a plugin must not be able to end the process.
fn contained<T>(run: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok().flatten()
}

/// True if the memories and globals of a component are its whole state: no global holds a vector, whose value the library
/// cannot read, and no resource is defined by the component itself, because its handles would hold data. `None` for
/// malformed code.
fn is_plain(code: &[u8]) -> Option<bool> {
    for payload in Parser::new(0).parse_all(code) {
        match payload.ok()? {
            Payload::GlobalSection(globals) => {
                for global in globals {
                    let kind = global.ok()?.ty;
                    if kind.mutable && kind.content_type == ValType::V128 {
                        return Some(false);
                    }
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    let is_plain = matches!(
                        function.ok()?,
                        CanonicalFunction::Lift { .. }
                            | CanonicalFunction::Lower { .. }
                            | CanonicalFunction::ResourceDrop { .. }
                    );
                    if !is_plain {
                        return Some(false);
                    }
                }
            }
            _ => {}
        }
    }
    Some(true)
}

/// True if a memory has so many parts between zeros that the library would need too much memory to list them.
fn has_too_many_parts(memory: &[u8]) -> bool {
    let starts = |pair: &[u8; 2]| pair[0] == 0 && pair[1] != 0;
    memory.array_windows().filter(|pair| starts(pair)).count() > PARTS_MAX
}

/// State of an instance of an instrumented component.
struct State<'a> {
    store: &'a mut Store<Host>,
    instance: Instance,
    /// False if a part could not be read.
    is_complete: bool,
}

impl State<'_> {
    /// Calls a function of the instrumentation, and returns a part of its result. An error is a default value: the
    /// snapshot is discarded.
    fn read<R: Lift + 'static, T: Default>(
        &mut self,
        instance: &str,
        function: &str,
        part: impl FnOnce(&mut Store<Host>, R) -> T,
    ) -> T {
        let mut called = || {
            let instance = self.instance.get_export_index(&mut *self.store, None, instance)?;
            let function = self
                .instance
                .get_export_index(&mut *self.store, Some(&instance), function)?;
            let function = self
                .instance
                .get_typed_func::<(), (R,)>(&mut *self.store, function)
                .ok()?;
            function.call(&mut *self.store, ()).ok()
        };
        if let Some((result,)) = called() {
            part(self.store, result)
        } else {
            self.is_complete = false;
            T::default()
        }
    }
}

impl ComponentInstanceState for State<'_> {
    async fn call_func_ret_list_u8(&mut self, instance: &str, func: &str, contents: impl FnOnce(&[u8]) + Send) {
        let fits = self.read(instance, func, |store, list: WasmList<u8>| {
            let memory = list.as_le_slice(&*store);
            let fits = !has_too_many_parts(memory);
            contents(if fits { memory } else { &[] });
            fits
        });
        self.is_complete &= fits;
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.read(instance, func, |_, value| value)
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.read(instance, func, |_, value| value)
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.read(instance, func, |_, value: f32| value.to_bits())
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.read(instance, func, |_, value: f64| value.to_bits())
    }
}
