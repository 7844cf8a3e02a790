#include "bulkhead_test.h"

static void check(const char *config, bh_filter_opinion first, bh_filter_opinion second) {
    bh_binding binding = bh_test_binding("{}", "[]");
    bh_clusters clusters = bh_test_clusters(
        "[{\"name\": \"member1\", \"labels\": {\"example.io/allowed\": \"yes\"}},"
        " {\"name\": \"member2\", \"labels\": {\"tier\": \"1\"}}]", binding);
    bh_filter_verdict verdicts[2];
    BH_CHECK(bh_test_configure(config) == NULL);
    bulkhead_plugin.filter(binding, clusters, verdicts);
    BH_CHECK(verdicts[0].opinion == first);
    BH_CHECK(verdicts[1].opinion == second);
}

int main(void) {
    check("null", BH_FIT, BH_UNFIT);
    check("{\"key\": \"tier\"}", BH_UNFIT, BH_FIT);
    return bh_test_failures();
}
