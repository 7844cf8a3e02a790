/* Memory and errors of a call, shared by the parts of the SDK. Plugins do not need it. */
#ifndef BULKHEAD_MEMORY_H
#define BULKHEAD_MEMORY_H

#include <stddef.h>

typedef enum { BH_NO_ERROR, BH_UNSUPPORTED, BH_INVALID_CONFIG, BH_INTERNAL } bh_error_kind;
typedef struct { bh_error_kind kind; const char *message; } bh_error;

/* Error of the current call. */
extern bh_error bh_current_error;

/* Starts a call: frees the memory of the last one, and clears the error. */
void bh_begin(void);
/* Ends a call. Its memory stays until the next one begins, because the host reads the reply from it. */
void bh_end(void);
/* Returns memory for one more item of a list. */
void *bh_grow(void *items, size_t length, size_t *room, size_t size);

#endif
