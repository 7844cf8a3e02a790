/* A host stub: inputs from JSON in the shape of the cases of `bulkhead plugin test`, for tests that need no WebAssembly.
 *
 * Invalid JSON ends the program with a message.
 */
#ifndef BULKHEAD_TEST_H
#define BULKHEAD_TEST_H

#include "bulkhead.h"

#include <stdio.h>

bh_object bh_test_object(const char *json);
bh_cluster bh_test_cluster(const char *json);
bh_clusters bh_test_clusters(const char *json, bh_binding scheduled); /* those that `scheduled` has are current */
bh_binding bh_test_binding(const char *json, const char *reports);
bh_observations bh_test_observations(const char *json);
bh_task bh_test_task(const char *json);

/* Sets the time of the calls that follow. */
void bh_test_now_ms(int64_t now);
/* Configures the plugin. Returns the error message; NULL if it accepts the configuration. */
const char *bh_test_configure(const char *json);
/* Returns the message of `bh_fail` and the like since the last time; NULL if there was none. */
const char *bh_test_error(void);

/* Checks a condition, and counts a failure with its place. `main` returns `bh_test_failures()`. */
#define BH_CHECK(condition) bh_test_check((condition), #condition, __FILE__, __LINE__)
void bh_test_check(bool holds, const char *condition, const char *file, int line);
int bh_test_failures(void);

#endif
