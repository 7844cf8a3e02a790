/* Functions of the canonical ABI of components, shared by the parts of the SDK that are built for WebAssembly only. */
#ifndef BULKHEAD_ABI_H
#define BULKHEAD_ABI_H

#include <stdint.h>

#define IMPORT(interface, name) \
    __attribute__((import_module("bulkhead:policy/" interface "@0.1.0"), import_name(name)))
#define EXPORT(interface, name) __attribute__((export_name("bulkhead:policy/" interface "@0.1.0#" name)))

typedef uint32_t u32;

/* Notes a handle that is released when the call ends. */
u32 bh_release_later(u32 handle, void (*drop)(u32));

/* Starts a call in the WASI of Bulkhead, which reads the time. */
__attribute__((import_module("wasi_snapshot_preview1"), import_name("begin_call"))) void begin_call(void);

IMPORT("object", "[resource-drop]object") void object_drop(u32 self);
IMPORT("observations", "[resource-drop]observations") void observations_drop(u32 self);
IMPORT("binding", "[resource-drop]binding") void binding_drop(u32 self);
IMPORT("binding", "[resource-drop]eviction-task") void task_drop(u32 self);
IMPORT("cluster", "[resource-drop]cluster") void cluster_drop(u32 self);
IMPORT("clusters", "[resource-drop]clusters") void clusters_drop(u32 self);

#endif
