//! Functions added to a component that read its state and set it back.
//!
//! The library that makes snapshots adds exports of each memory and each mutable global. [`added`] adds functions that
//! use these: `save` copies all globals and memories, `restore` copies the globals back, `memory0`, `memory1`, … return
//! the memories, and `restore0`, `restore1`, … copy a part of a memory back.
//!
//! A list that a component returns is described by two numbers in its memory. `save` adds a page to each memory for them,
//! and the list includes that page.

use wasm_encoder::{
    Alias, BlockType, CanonicalFunctionSection, CanonicalOption, CodeSection, Component, ComponentAliasSection,
    ComponentExportKind, ComponentExportSection, ComponentInstanceSection, ComponentTypeSection, ComponentValType,
    ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType,
    ImportSection, InstanceSection, InstructionSink, MemArg, MemorySection, MemoryType, Module, ModuleArg,
    ModuleSection, PrimitiveValType, TypeSection, ValType,
};
use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ExternalKind, Imports, Instance,
    Parser, Payload, TypeRef,
};

use crate::limits::{INSTANCES_MAX, MEMORIES_MAX};

/// Name of the instance with the functions of the library.
const LIBRARY: &str = "wasmtime:wizer/access";
/// Name of the instance with our functions.
pub(crate) const ADDED: &str = "bulkhead:snapshot/state";
/// Function that copies the state.
pub(crate) const SAVE: &str = "save";
/// Function that copies the globals back, and prefix of those that copy a part of a memory back.
pub(crate) const RESTORE: &str = "restore";
/// Prefix of the functions that return a memory.
pub(crate) const MEMORY: &str = "memory";
/// Size of a page, as a power of two.
const PAGE_BITS: i32 = 16;
/// Length of the preamble of a component, in bytes.
const PREAMBLE_BYTES: usize = 8;

/// True for the name of an export that a snapshot adds to a component.
pub(crate) fn is_added(export: &str) -> bool {
    export == LIBRARY || export == ADDED
}

/// Returns the component with the functions. `instrumented` is a component as the library instruments it. `None` if it
/// has too many memories or instances for those that are added, or parts that the library does not support either.
pub(crate) fn added(instrumented: &[u8]) -> Option<Vec<u8>> {
    let outer = Outer::read(instrumented)?;
    if 2 * outer.memories.len() > MEMORIES_MAX || outer.instantiations >= INSTANCES_MAX {
        return None;
    }
    let names = outer.functions_added();
    let mut component = Component::new();
    component.section(&ModuleSection(&outer.module()));
    let mut instances = InstanceSection::new();
    let arguments = outer.arguments.iter().filter(|(name, _)| outer.imports(name));
    let arguments: Vec<_> = arguments
        .map(|(name, instance)| (name.as_str(), ModuleArg::Instance(*instance)))
        .collect();
    instances.instantiate(outer.modules, arguments);
    component.section(&instances);

    let mut aliases = ComponentAliasSection::new();
    for name in &names {
        aliases.alias(Alias::CoreInstanceExport {
            instance: outer.core_instances,
            kind: ExportKind::Func,
            name,
        });
    }
    for (of, name) in &outer.memories {
        let (_, instance) = outer.arguments.iter().find(|(known, _)| known == of)?;
        aliases.alias(Alias::CoreInstanceExport {
            instance: *instance,
            kind: ExportKind::Memory,
            name,
        });
    }
    component.section(&aliases);

    let mut types = ComponentTypeSection::new();
    let no_parameters = [("", ComponentValType::Type(0)); 0];
    types.function().params(no_parameters).result(None);
    types
        .defined_type()
        .list(ComponentValType::Primitive(PrimitiveValType::U8));
    let list = ComponentValType::Type(outer.types + 1);
    types.function().params(no_parameters).result(Some(list));
    let number = ComponentValType::Primitive(PrimitiveValType::U32);
    types
        .function()
        .params([("offset", number), ("length", number)])
        .result(None);
    component.section(&types);

    let mut functions = CanonicalFunctionSection::new();
    for (index, _) in (0..).zip([SAVE, RESTORE]) {
        functions.lift(outer.core_functions + index, outer.types, []);
    }
    for (index, _) in (0..).zip(&outer.memories) {
        let memory = CanonicalOption::Memory(outer.core_memories + index);
        functions.lift(outer.core_functions + 2 + index, outer.types + 2, [memory]);
    }
    for (index, _) in (0..).zip(&outer.memories) {
        let function = outer.core_functions + 2 + count(&outer.memories) + index;
        functions.lift(function, outer.types + 3, []);
    }
    component.section(&functions);

    let mut lifted = ComponentInstanceSection::new();
    let items = (0..).zip(&names);
    let items: Vec<_> = items
        .map(|(index, name)| (name.as_str(), ComponentExportKind::Func, outer.functions + index))
        .collect();
    lifted.export_items(items);
    component.section(&lifted);
    let mut exports = ComponentExportSection::new();
    exports.export(ADDED, ComponentExportKind::Instance, outer.instances, None);
    component.section(&exports);
    let sections = component.finish();
    Some([instrumented, sections.get(PREAMBLE_BYTES..)?].concat())
}

/// Indexes that the next items of a component get, and the state that its last module imports.
#[derive(Default)]
struct Outer {
    modules: u32,
    core_instances: u32,
    core_functions: u32,
    core_memories: u32,
    types: u32,
    functions: u32,
    instances: u32,
    /// Number of core instances that are made of modules.
    instantiations: usize,
    /// Instances that the last core instance was instantiated with, by name.
    arguments: Vec<(String, u32)>,
    /// Mutable globals that the last module imports: name of the instance, name of the global, type.
    globals: Vec<(String, String, ValType)>,
    /// Memories that the last module imports: name of the instance, name of the memory.
    memories: Vec<(String, String)>,
}

impl Outer {
    /// Reads a component. `None` if it has parts that the library does not support either.
    fn read(component: &[u8]) -> Option<Self> {
        let mut outer = Self::default();
        // One entry for each component or module around the current payload; true for a module of the outer component.
        let mut around = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.ok()?;
            match &payload {
                Payload::ModuleSection { .. } => {
                    let is_ours = around.is_empty();
                    if is_ours {
                        outer.modules += 1;
                        outer.globals.clear();
                        outer.memories.clear();
                    }
                    around.push(is_ours);
                }
                Payload::ComponentSection { .. } => around.push(false),
                Payload::End(_) => drop(around.pop()),
                _ if around.is_empty() => outer.count(payload)?,
                Payload::ImportSection(imports) if around == [true] => {
                    for group in imports.clone() {
                        let Imports::Single(_, import) = group.ok()? else {
                            return None;
                        };
                        let (instance, name) = (import.module.to_owned(), import.name.to_owned());
                        match import.ty {
                            TypeRef::Global(global) => {
                                let kind = ValType::try_from(global.content_type).ok()?;
                                outer.globals.push((instance, name, kind));
                            }
                            TypeRef::Memory(_) => outer.memories.push((instance, name)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Some(outer)
    }

    /// Counts the items of a section of the outer component.
    fn count(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    self.core_instances += 1;
                    if let Instance::Instantiate { args, .. } = instance.ok()? {
                        self.instantiations += 1;
                        let arguments = args.iter().map(|argument| (argument.name.to_owned(), argument.index));
                        self.arguments = arguments.collect();
                    }
                }
            }
            Payload::ComponentInstanceSection(instances) => self.instances += instances.count(),
            Payload::ComponentTypeSection(types) => self.types += types.count(),
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    match alias.ok()? {
                        ComponentAlias::CoreInstanceExport { kind, .. } => {
                            self.core_functions += u32::from(kind == ExternalKind::Func);
                            self.core_memories += u32::from(kind == ExternalKind::Memory);
                        }
                        ComponentAlias::InstanceExport { kind, .. } => self.count_item(kind),
                        ComponentAlias::Outer { kind, .. } => {
                            self.types += u32::from(kind == ComponentOuterAliasKind::Type);
                        }
                    }
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    match function.ok()? {
                        CanonicalFunction::Lift { .. } => self.functions += 1,
                        _ => self.core_functions += 1,
                    }
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    self.count_item(import.ok()?.ty.kind());
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    self.count_item(export.ok()?.kind);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn count_item(&mut self, kind: ComponentExternalKind) {
        match kind {
            ComponentExternalKind::Func => self.functions += 1,
            ComponentExternalKind::Type => self.types += 1,
            ComponentExternalKind::Instance => self.instances += 1,
            _ => {}
        }
    }

    /// True if a global or a memory is imported from an instance of this name.
    fn imports(&self, instance: &str) -> bool {
        let globals = self.globals.iter().map(|(of, _, _)| of);
        globals
            .chain(self.memories.iter().map(|(of, _)| of))
            .any(|of| of == instance)
    }

    /// Returns the names of the added functions, in the order of their indexes.
    fn functions_added(&self) -> Vec<String> {
        let of_memories =
            |prefix: &'static str| (0..self.memories.len()).map(move |memory| format!("{prefix}{memory}"));
        let of_globals = [SAVE, RESTORE].map(str::to_owned).into_iter();
        of_globals
            .chain(of_memories(MEMORY))
            .chain(of_memories(RESTORE))
            .collect()
    }

    /// Returns the module with the functions. It imports globals and memories, and has a global of its own for each: the
    /// copy of the value, or the size in bytes. It has a memory of its own for the copy of each memory.
    fn module(&self) -> Module {
        let (mut imports, mut own, mut copies) = (ImportSection::new(), GlobalSection::new(), MemorySection::new());
        for (instance, name, kind) in &self.globals {
            imports.import(instance, name, EntityType::Global(mutable(*kind)));
            own.global(mutable(*kind), &zero(*kind));
        }
        for (instance, name) in &self.memories {
            let any = MemoryType {
                minimum: 0,
                maximum: None,
                memory64: false,
                shared: false,
                page_size_log2: None,
            };
            imports.import(instance, name, EntityType::Memory(any));
            copies.memory(any);
            own.global(mutable(ValType::I32), &zero(ValType::I32));
        }
        let mut types = TypeSection::new();
        types.ty().function([], []);
        types.ty().function([], [ValType::I32]);
        types.ty().function([ValType::I32; 2], []);
        let (mut functions, mut exports) = (FunctionSection::new(), ExportSection::new());
        let memories = count(&self.memories);
        for (index, name) in (0..).zip(self.functions_added()) {
            functions.function(u32::from(index >= 2) + u32::from(index >= 2 + memories));
            exports.export(&name, ExportKind::Func, index);
        }
        let mut code = CodeSection::new();
        code.function(&self.save()).function(&self.restore());
        for memory in 0..memories {
            code.function(&self.memory(memory));
        }
        for memory in 0..memories {
            code.function(&self.restore_part(memory));
        }
        let mut module = Module::new();
        module
            .section(&types)
            .section(&imports)
            .section(&functions)
            .section(&copies)
            .section(&own)
            .section(&exports)
            .section(&code);
        module
    }

    /// Returns the index of the global with the size of a memory.
    fn size_of(&self, memory: u32) -> u32 {
        2 * count(&self.globals) + memory
    }

    fn save(&self) -> Function {
        let globals = count(&self.globals);
        let mut body = Function::new([]);
        let mut code = body.instructions();
        for global in 0..globals {
            code.global_get(global).global_set(globals + global);
        }
        for memory in 0..count(&self.memories) {
            code.i32_const(1).memory_grow(memory).i32_const(-1).i32_eq();
            code.if_(BlockType::Empty).unreachable().end();
            code.memory_size(memory).i32_const(PAGE_BITS).i32_shl();
            code.global_set(self.size_of(memory));
            // 4 GiB are no number of 32 bits.
            code.global_get(self.size_of(memory)).i32_eqz();
            code.if_(BlockType::Empty).unreachable().end();
            self.describe(memory, &mut code);
            let copy = count(&self.memories) + memory;
            code.memory_size(memory).memory_grow(copy).i32_const(-1).i32_eq();
            code.if_(BlockType::Empty).unreachable().end();
            code.i32_const(0).i32_const(0).global_get(self.size_of(memory));
            code.memory_copy(copy, memory);
        }
        code.end();
        body
    }

    fn restore(&self) -> Function {
        let globals = count(&self.globals);
        let mut body = Function::new([]);
        let mut code = body.instructions();
        for global in 0..globals {
            code.global_get(globals + global).global_set(global);
        }
        code.end();
        body
    }

    /// Writes start and size of a memory to the page that was added to it.
    fn describe(&self, memory: u32, code: &mut InstructionSink<'_>) {
        let at = |offset| MemArg {
            offset,
            align: 2,
            memory_index: memory,
        };
        self.description(memory, code);
        code.i32_const(0).i32_store(at(0));
        self.description(memory, code);
        code.global_get(self.size_of(memory)).i32_store(at(4));
    }

    /// Puts the address of the page that was added to a memory on the stack.
    fn description(&self, memory: u32, code: &mut InstructionSink<'_>) {
        code.global_get(self.size_of(memory))
            .i32_const(1 << PAGE_BITS)
            .i32_sub();
    }

    /// Returns a function that returns a memory, and describes it again: a guest may have written to that page.
    fn memory(&self, memory: u32) -> Function {
        let mut body = Function::new([]);
        let mut code = body.instructions();
        self.describe(memory, &mut code);
        self.description(memory, &mut code);
        code.end();
        body
    }

    /// Returns a function that copies a part of a memory back, by offset and length.
    fn restore_part(&self, memory: u32) -> Function {
        let copy = count(&self.memories) + memory;
        let mut body = Function::new([]);
        let mut code = body.instructions();
        code.local_get(0).local_get(0).local_get(1).memory_copy(memory, copy);
        code.end();
        body
    }
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

fn mutable(kind: ValType) -> GlobalType {
    GlobalType {
        val_type: kind,
        mutable: true,
        shared: false,
    }
}

fn zero(kind: ValType) -> ConstExpr {
    match kind {
        ValType::I64 => ConstExpr::i64_const(0),
        ValType::F32 => ConstExpr::f32_const(0.0.into()),
        ValType::F64 => ConstExpr::f64_const(0.0.into()),
        _ => ConstExpr::i32_const(0),
    }
}
