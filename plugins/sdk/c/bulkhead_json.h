/* JSON documents: the configuration of a plugin, and inputs of tests. */
#ifndef BULKHEAD_JSON_H
#define BULKHEAD_JSON_H

#include "bulkhead.h"

/* A value of a document. */
typedef struct bh_value bh_value;
struct bh_value {
    bh_kind kind;
    bool boolean;
    int64_t integer;     /* of BH_INTEGER */
    double number;       /* of BH_INTEGER and BH_NUMBER */
    const char *text;    /* of BH_TEXT, and the digits of a number */
    const char **keys;   /* of BH_MAP */
    bh_value *items;     /* of BH_MAP and BH_LIST */
    size_t length;
};

/* Returns a document, which stays valid until the call ends; NULL if the text is not JSON. */
const bh_value *bh_json_parse(const char *json);
/* Returns the value at a JSON Pointer; NULL if it is absent, or if the document is NULL. */
const bh_value *bh_json_at(const bh_value *document, const char *pointer);
/* Returns the text at a JSON Pointer; `otherwise` if it is absent or not a text. */
const char *bh_json_text(const bh_value *document, const char *pointer, const char *otherwise);

#endif
