/* Memory, texts and verdicts, for components and for tests. */
#include "bulkhead.h"
#include "bulkhead_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of a call, as a list of blocks. */
typedef struct block { struct block *next; uint64_t data[]; } block;

static block *blocks;
static bool is_over;

bh_error bh_current_error;

void bh_begin(void) {
    if (is_over) {
        while (blocks != NULL) {
            block *next = blocks->next;
            free(blocks);
            blocks = next;
        }
        is_over = false;
    }
    bh_current_error = (bh_error){BH_NO_ERROR, NULL};
}

void bh_end(void) { is_over = true; }

void *bh_allocate(size_t size) {
    block *made = calloc(1, sizeof(block) + size + 1); /* the last byte ends a text */
    if (made == NULL) abort();
    made->next = blocks;
    blocks = made;
    return made->data;
}

void *bh_grow(void *items, size_t length, size_t *room, size_t size) {
    if (length < *room) return items;
    *room = *room == 0 ? 8 : 2 * *room;
    void *grown = bh_allocate(*room * size);
    if (length > 0) memcpy(grown, items, length * size);
    return grown;
}

const char *bh_copy(const char *text) {
    char *copy = bh_allocate(strlen(text));
    return strcpy(copy, text);
}

const char *bh_keep(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    if (copy == NULL) abort();
    return strcpy(copy, text);
}

const char *bh_format(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = bh_allocate(length < 0 ? 0 : (size_t)length);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

bool bh_equal(const char *a, const char *b) { return a != NULL && b != NULL && strcmp(a, b) == 0; }

static void fail(bh_error_kind kind, const char *message) {
    if (bh_current_error.kind == BH_NO_ERROR) bh_current_error = (bh_error){kind, message};
}

void bh_fail(const char *message) { fail(BH_INTERNAL, message); }
void bh_unsupported(void) { fail(BH_UNSUPPORTED, NULL); }
void bh_invalid_config(const char *message) { fail(BH_INVALID_CONFIG, message); }

static bh_health_verdict health(bh_state state, const char *code, const char *message) {
    return (bh_health_verdict){state, {code, message}};
}

bh_health_verdict bh_healthy(const char *code, const char *message) { return health(BH_HEALTHY, code, message); }
bh_health_verdict bh_unhealthy(const char *code, const char *message) { return health(BH_UNHEALTHY, code, message); }
bh_health_verdict bh_unknown(const char *code, const char *message) { return health(BH_UNKNOWN, code, message); }

bh_filter_verdict bh_fit(void) { return (bh_filter_verdict){BH_FIT, {NULL, NULL}}; }
bh_filter_verdict bh_unfit(const char *code, const char *message) {
    return (bh_filter_verdict){BH_UNFIT, {code, message}};
}

bh_eviction_verdict bh_release(const char *code, const char *message) {
    return (bh_eviction_verdict){BH_RELEASE, {code, message}, 0};
}
bh_eviction_verdict bh_hold(const char *code, const char *message) {
    return (bh_eviction_verdict){BH_HOLD, {code, message}, 0};
}

#define APPEND(list, ...)                                                                                \
    do {                                                                                                 \
        (list)->items = bh_grow((list)->items, (list)->length, &(list)->room, sizeof *(list)->items);    \
        (list)->items[(list)->length++] = __VA_ARGS__;                                                   \
    } while (0)

void bh_add_taint(bh_taint_changes *changes, const char *key, bh_effect effect, const char *code, const char *message) {
    APPEND(changes, (bh_taint_change){false, key, "", effect, {code, message}});
}
void bh_remove_taint(bh_taint_changes *changes, const char *key, bh_effect effect, const char *code, const char *message) {
    APPEND(changes, (bh_taint_change){true, key, "", effect, {code, message}});
}
void bh_set(bh_edits *edits, const char *pointer, const char *json) {
    APPEND(edits, (bh_edit){false, pointer, json});
}
void bh_remove(bh_edits *edits, const char *pointer) { APPEND(edits, (bh_edit){true, pointer, NULL}); }
void bh_add_component(bh_components *components, bh_component component) { APPEND(components, component); }
void bh_add_dependency(bh_dependencies *dependencies, bh_dependency dependency) { APPEND(dependencies, dependency); }
