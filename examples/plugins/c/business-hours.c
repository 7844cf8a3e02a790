/* Holds evictions in business hours, Monday to Friday in UTC. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static int64_t open_hour, close_hour;

static void configure(const bh_value *config) {
    const bh_value *open = bh_json_at(config, "/open"), *close = bh_json_at(config, "/close");
    open_hour = open == NULL ? 8 : open->integer;
    close_hour = close == NULL ? 18 : close->integer;
}

static bh_eviction_verdict check(bh_binding binding, bh_task task) {
    (void)binding;
    (void)task;
    int64_t now = bh_now_ms() / 1000, day = now / 86400, second = now % 86400;
    /* 1970 began on a Thursday. */
    bool is_workday = (day + 3) % 7 < 5;
    if (!is_workday || second < open_hour * 3600 || second >= close_hour * 3600) return bh_release("OutOfHours", "");
    const char *message = bh_format("evictions wait until %02lld:00 UTC", (long long)close_hour);
    bh_eviction_verdict verdict = bh_hold("BusinessHours", message);
    verdict.recheck_after_s = (uint32_t)(close_hour * 3600 - second);
    return verdict;
}

const bh_plugin bulkhead_plugin = {
    .name = "business-hours",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"open\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 24},"
                     " \"close\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 24}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"open\": 7, \"close\": 20}]}",
    .configure = configure,
    .eviction_check = check,
};
