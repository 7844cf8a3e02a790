/* Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static const char *minimum;
static int64_t least;

/* Reads a number of at most four digits; -1 if there is none. Moves the text behind it. */
static int64_t number(const char **text) {
    const char *start = *text;
    int64_t value = 0;
    for (; **text >= '0' && **text <= '9' && *text - start < 4; ++*text) value = 10 * value + (**text - '0');
    return *text == start ? -1 : value;
}

/* Returns a number that orders versions such as "v1.30.2" by major and minor number; -1 if the text is no version. */
static int64_t version(const char *text) {
    if (text == NULL) return -1;
    if (*text == 'v') text++;
    int64_t major = number(&text);
    if (major < 0 || *text++ != '.') return -1;
    int64_t minor = number(&text);
    return minor < 0 ? -1 : 10000 * major + minor;
}

static void configure(const bh_value *config) {
    minimum = bh_keep(bh_json_text(config, "/minimum", "1.28"));
    least = version(minimum);
}

static void filter(bh_binding binding, bh_clusters candidates, bh_filter_verdict *verdicts) {
    (void)binding;
    bh_texts versions = bh_clusters_text(candidates, "/status/kubernetesVersion");
    for (size_t i = 0; i < versions.length; i++) {
        int64_t found = version(versions.items[i]);
        if (found < 0)
            verdicts[i] = (bh_filter_verdict){.opinion = BH_NO_FILTER_OPINION};
        else if (found >= least)
            verdicts[i] = bh_fit();
        else
            verdicts[i] = bh_unfit("VersionTooOld",
                                   bh_format("it runs %s, and %s is needed", versions.items[i], minimum));
    }
}

const bh_plugin bulkhead_plugin = {
    .name = "version-floor",
    .version = "0.1.0",
    .reusable = true,
    .config_schema =
        "{\"type\": [\"object\", \"null\"],"
        " \"properties\": {\"minimum\": {\"type\": \"string\", \"pattern\": \"^[0-9]{1,4}[.][0-9]{1,4}$\"}},"
        " \"additionalProperties\": false,"
        " \"examples\": [null, {\"minimum\": \"1.30\"}]}",
    .configure = configure,
    .filter = filter,
};
