#include "bulkhead_json.h"
#include "bulkhead_memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Deeper documents are rejected. */
#define DEPTH_MAX 128

static bool parse(const char **at, bh_value *value, int depth);

static void skip(const char **at) { while (**at != 0 && strchr(" \t\r\n", **at) != NULL) ++*at; }

static bool word(const char **at, const char *expected) {
    size_t length = strlen(expected);
    if (strncmp(*at, expected, length) != 0) return false;
    *at += length;
    return true;
}

static size_t put_utf8(char *out, uint32_t code) {
    if (code < 0x80) return out[0] = (char)code, 1;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00 >> length) | code);
    return length;
}

static bool hex4(const char **at, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, ++*at) {
        if (!isxdigit((unsigned char)**at)) return false;
        int digit = tolower((unsigned char)**at);
        *code = *code * 16 + (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return true;
}

static const char *parse_text(const char **at) {
    if (*(*at)++ != '"') return NULL;
    size_t length = 0;
    for (const char *end = *at; *end != '"'; end++, length++) {
        if (*end == 0) return NULL;
        if (*end == '\\' && *++end == 0) return NULL;
    }
    char *text = bh_allocate(3 * length), *out = text;
    while (**at != '"') {
        if (**at != '\\') { *out++ = *(*at)++; continue; }
        char escape = *++*at;
        ++*at;
        static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
        const char *plain = strchr(names, escape);
        if (plain != NULL) {
            *out++ = values[plain - names];
            continue;
        }
        uint32_t code, low;
        if (escape != 'u') return NULL;
        if (!hex4(at, &code)) return NULL;
        if (code >= 0xd800 && code < 0xdc00) {
            if (!word(at, "\\u") || !hex4(at, &low) || low < 0xdc00 || low > 0xdfff) return NULL;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        out += put_utf8(out, code);
    }
    ++*at;
    return text;
}

static bool parse_number(const char **at, bh_value *value) {
    const char *start = *at;
    if (**at == '-') ++*at;
    if (!isdigit((unsigned char)**at)) return false;
    while (**at != 0 && strchr("0123456789.eE+-", **at) != NULL) ++*at;
    char *text = bh_allocate((size_t)(*at - start)), *end;
    memcpy(text, start, (size_t)(*at - start));
    value->text = text;
    value->number = strtod(text, &end);
    if (*end != 0) return false;
    errno = 0;
    value->integer = strtoll(text, &end, 10);
    value->kind = *end == 0 && errno == 0 ? BH_INTEGER : BH_NUMBER;
    return true;
}

static bool parse_items(const char **at, bh_value *value, int depth) {
    char close = value->kind == BH_MAP ? '}' : ']';
    size_t room = 0, keys_room = 0;
    ++*at;
    skip(at);
    if (**at == close) return ++*at, true;
    for (;;) {
        bh_value item = {0};
        if (value->kind == BH_MAP) {
            skip(at);
            const char *key = parse_text(at);
            skip(at);
            if (key == NULL || *(*at)++ != ':') return false;
            value->keys = bh_grow(value->keys, value->length, &keys_room, sizeof *value->keys);
            value->keys[value->length] = key;
        }
        if (!parse(at, &item, depth + 1)) return false;
        value->items = bh_grow(value->items, value->length, &room, sizeof *value->items);
        value->items[value->length++] = item;
        skip(at);
        if (**at == close) return ++*at, true;
        if (*(*at)++ != ',') return false;
    }
}

static bool parse(const char **at, bh_value *value, int depth) {
    skip(at);
    if (depth > DEPTH_MAX) return false;
    switch (**at) {
    case '{': value->kind = BH_MAP; return parse_items(at, value, depth);
    case '[': value->kind = BH_LIST; return parse_items(at, value, depth);
    case '"': value->kind = BH_TEXT; value->text = parse_text(at); return value->text != NULL;
    case 't': value->kind = BH_BOOLEAN; value->boolean = true; return word(at, "true");
    case 'f': value->kind = BH_BOOLEAN; return word(at, "false");
    case 'n': value->kind = BH_NULL; return word(at, "null");
    default: return parse_number(at, value);
    }
}

const bh_value *bh_json_parse(const char *json) {
    bh_value *value = bh_allocate(sizeof *value);
    if (!parse(&json, value, 0)) return NULL;
    skip(&json);
    return *json == 0 ? value : NULL;
}

static const bh_value *member(const bh_value *value, const char *part, size_t length) {
    char *key = bh_allocate(length), *out = key;
    for (size_t i = 0; i < length; i++) {
        bool escaped = part[i] == '~' && i + 1 < length && (part[i + 1] == '0' || part[i + 1] == '1');
        *out++ = escaped ? (part[++i] == '1' ? '/' : '~') : part[i];
    }
    if (value->kind == BH_MAP) {
        for (size_t i = value->length; i > 0; i--)
            if (strcmp(value->keys[i - 1], key) == 0) return &value->items[i - 1];
        return NULL;
    }
    bool is_index = length > 0 && strspn(key, "0123456789") == length && (length == 1 || key[0] != '0');
    if (value->kind != BH_LIST || !is_index) return NULL;
    unsigned long long index = strtoull(key, NULL, 10);
    return index < value->length ? &value->items[index] : NULL;
}

const bh_value *bh_json_at(const bh_value *document, const char *pointer) {
    while (document != NULL && *pointer == '/') {
        size_t length = strcspn(++pointer, "/");
        document = member(document, pointer, length);
        pointer += length;
    }
    return *pointer == 0 ? document : NULL;
}

const char *bh_json_text(const bh_value *document, const char *pointer, const char *otherwise) {
    const bh_value *found = bh_json_at(document, pointer);
    return found != NULL && found->kind == BH_TEXT ? found->text : otherwise;
}
