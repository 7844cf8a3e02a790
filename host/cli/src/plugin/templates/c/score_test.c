#include "bulkhead_test.h"

static void check(const char *config, uint32_t first, uint32_t second) {
    bh_binding binding = bh_test_binding("{}", "[]");
    bh_clusters clusters = bh_test_clusters(
        "[{\"name\": \"member1\", \"spec\": {\"region\": \"us-east\"}},"
        " {\"name\": \"member2\", \"spec\": {\"region\": \"eu-west\"}}]", binding);
    uint32_t scores[2];
    BH_CHECK(bh_test_configure(config) == NULL);
    bulkhead_plugin.score(binding, clusters, scores);
    BH_CHECK(scores[0] == first);
    BH_CHECK(scores[1] == second);
}

int main(void) {
    check("null", 0, 100);
    check("{\"region\": \"us-east\"}", 100, 0);
    return bh_test_failures();
}
