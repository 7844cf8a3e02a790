/* Makes the mistake that the object names, and has no function for scores although its build.yaml has the kind. */
#include "bulkhead.h"

#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

static bh_health_verdict interpret(bh_object observed) {
    const char *mistake = bh_text(observed, "/spec/mistake");
    if (bh_equal(mistake, "exception")) bh_fail("spec.replicas must be positive");
    if (bh_equal(mistake, "wrong type")) return (bh_health_verdict){(bh_state)7, {"Ready", ""}};
    if (bh_equal(mistake, "endless loop"))
        for (volatile int i = 0;;) i++;
    if (bh_equal(mistake, "memory"))
        for (;;)
            if ((kept = malloc(10 * 1000 * 1000)) == NULL) abort();
    if (bh_equal(mistake, "exit")) {
        fprintf(stderr, "plugin.c: the list of %d replicas is not sorted\n", 3);
        abort();
    }
    return bh_unknown("NoMistake", "");
}

const bh_plugin bulkhead_plugin = {.name = "mistakes", .version = "0.1.0", .health = interpret};
