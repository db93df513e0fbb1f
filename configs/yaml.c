#include "configs/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct build {
    struct origin origin;
    long column_offset;
    struct fy_diag *diag;
    struct fy_parser *parser;
    struct node *root;
    struct node *open[YAML_DEPTH_MAX]; /* containers not yet ended, outermost first */
    size_t depth;
    size_t nodes;
    char *key; /* of the value that comes next in the innermost map */
    struct mark key_mark;
    int documents;
};

static struct mark mark_of(const struct build *build, const struct fy_mark *mark)
{
    struct mark result = {build->origin, 1, 1};
    if (mark) {
        result.line = mark->line + 1;
        result.column = mark->column + 1;
    }
    if (result.line == 1)
        result.column += build->column_offset;
    return result;
}

/* libfyaml places quoted text behind its quote, and an absent value ("key:") nowhere. */
static struct mark event_mark(const struct build *build, struct fy_event *event)
{
    const struct fy_mark *start = fy_event_start_mark(event);
    struct mark mark = mark_of(build, start);
    struct fy_token *token = event->type == FYET_SCALAR ? event->scalar.value : NULL;
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
    if (!start && build->key)
        return build->key_mark;
    if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && mark.column > 1)
        mark.column--;
    return mark;
}

/* Length of the UTF-8 character at text, 0 where it is none or a control character that text files do not hold. */
static size_t character_length(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char mask, lead;
        size_t length;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if ((text[0] & forms[i].mask) != forms[i].lead)
            continue;
        if (forms[i].length > left)
            return 0;
        uint32_t code = text[0] & (unsigned char)~forms[i].mask;
        for (size_t k = 1; k < forms[i].length; k++) {
            if ((text[k] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (text[k] & 0x3f);
        }
        bool control = (code < ' ' && code != '\t' && code != '\n' && code != '\r') || (code >= 0x7f && code < 0xa0);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return control || surrogate || code < forms[i].least || code > 0x10ffff || code == 0xfeff ? 0 : forms[i].length;
    }
    return 0;
}

static int check_text(const struct build *build, const char *text, size_t length, struct err *err)
{
    struct fy_mark at = {0};
    for (size_t i = 0; i < length;) {
        size_t step = character_length((const unsigned char *)text + i, length - i);
        struct mark mark = mark_of(build, &at);
        if (!step)
            return mark_fail(&mark, err, "byte 0x%02x is not UTF-8 text; a scenario is a YAML text file",
                             (unsigned char)text[i]);
        if (text[i] == '%' && !at.column)
            return mark_fail(&mark, err, "a directive (%%...); scenarios have none, remove the line");
        at.column = text[i] == '\n' ? 0 : at.column + 1;
        at.line += text[i] == '\n';
        i += step;
    }
    return 0;
}

/* Escapes such as "\0" or "\ud800" can bring in what check_text() keeps out; line breaks are for the reader to judge.
 */
static bool is_text(const char *text, size_t length)
{
    for (size_t i = 0, step; i < length; i += step) {
        step = character_length((const unsigned char *)text + i, length - i);
        if (!step)
            return false;
    }
    return true;
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ENOMEM, "out of memory");
}

/* Hangs a finished scalar or a just opened container into the tree; takes ownership of it. */
static int attach(struct build *build, struct node *node, struct err *err)
{
    if (++build->nodes > YAML_NODES_MAX) {
        int rc = node_fail(node, err, "more than %d values; a scenario needs a few hundred", YAML_NODES_MAX);
        node_free(node);
        return rc;
    }
    if (!build->depth) {
        build->root = node;
        return 0;
    }
    struct node *parent = build->open[build->depth - 1];
    node->key = build->key;
    node->key_mark = node->key ? build->key_mark : node->mark;
    build->key = NULL;
    node_append(parent, node);
    return 0;
}

static int open_container(struct build *build, enum node_kind kind, struct mark mark, struct err *err)
{
    if (build->depth == YAML_DEPTH_MAX)
        return mark_fail(&mark, err, "nested more than %d deep; a scenario needs four levels", YAML_DEPTH_MAX);
    bool wants_key = build->depth && build->open[build->depth - 1]->kind == NODE_MAP && !build->key;
    if (wants_key)
        return mark_fail(&mark, err, "a list or mapping as key; a key is plain text, like 'nodes: 192'");
    struct node *node = node_new(kind, mark);
    if (!node)
        return out_of_memory(err);
    int rc = attach(build, node, err);
    if (!rc)
        build->open[build->depth++] = node;
    return rc;
}

static int take_key(struct build *build, char *text, struct mark mark, struct err *err)
{
    const struct node *map = build->open[build->depth - 1];
    const struct node *earlier = node_get(map, text);
    int rc = 0;
    if (!*text)
        rc = mark_fail(&mark, err, "an empty key; write 'key: value'");
    else if (earlier)
        rc = mark_fail(&mark, err, "'%.40s' is given twice, first in line %ld; keep one", text, earlier->key_mark.line);
    else if (map->count >= YAML_KEYS_MAX)
        rc = mark_fail(&mark, err, "more than %d keys in one mapping", YAML_KEYS_MAX);
    if (rc) {
        free(text);
        return rc;
    }
    build->key = text;
    build->key_mark = mark;
    return 0;
}

/* fy_token_get_text() of libfyaml 0.7.12 leaks on many quotes in a row; its iterator does not. */
static char *token_text(struct fy_token *token, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    struct fy_token_iter *iterator = out ? fy_token_iter_create(token) : NULL;
    bool failed = !iterator;
    const struct fy_iter_chunk *chunk = NULL;
    int broken = 0;
    while (iterator && (chunk = fy_token_iter_chunk_next(iterator, chunk, &broken)))
        fwrite(chunk->str, 1, chunk->len, out);
    if (iterator)
        fy_token_iter_destroy(iterator);
    failed = (out && fclose(out)) || failed || broken;
    if (!failed)
        return text;
    free(text);
    return NULL;
}

static int take_scalar(struct build *build, struct fy_token *token, struct mark mark, struct err *err)
{
    size_t length = 0;
    char *text = token ? token_text(token, &length) : strdup("");
    if (!text)
        return out_of_memory(err);
    if (!is_text(text, length)) {
        free(text);
        return mark_fail(&mark, err, "an escape that stands for no character; write plain text");
    }
    if (build->depth && build->open[build->depth - 1]->kind == NODE_MAP && !build->key)
        return take_key(build, text, mark, err);
    struct node *node = node_new(NODE_SCALAR, mark);
    if (!node) {
        free(text);
        return out_of_memory(err);
    }
    node->text = text;
    node->quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN;
    return attach(build, node, err);
}

/* Anchors and tags can hang on any value. */
static int refuse_properties(struct build *build, struct fy_event *event, struct err *err)
{
    struct fy_token *anchor = fy_event_get_anchor_token(event);
    struct fy_token *tag = fy_event_get_tag_token(event);
    struct mark mark = mark_of(build, fy_event_start_mark(event));
    if (anchor)
        return mark_fail(&mark, err, "an anchor (&name); scenarios have none, write the value where it is used");
    if (tag)
        return mark_fail(&mark, err, "a tag (!name); scenarios have none, write the plain value");
    return 0;
}

static int take_event(struct build *build, struct fy_event *event, struct err *err)
{
    struct mark mark = event_mark(build, event);
    int rc = 0;
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (build->documents++)
            return mark_fail(&mark, err, "a second document; one scenario is one document, remove what follows '---'");
        return 0;
    case FYET_ALIAS:
        return mark_fail(&mark, err, "an alias (*name); scenarios have none, write the value out");
    case FYET_MAPPING_START:
    case FYET_SEQUENCE_START:
        rc = refuse_properties(build, event, err);
        return rc ? rc : open_container(build, event->type == FYET_MAPPING_START ? NODE_MAP : NODE_LIST, mark, err);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        build->depth--;
        return 0;
    case FYET_SCALAR:
        rc = refuse_properties(build, event, err);
        return rc ? rc : take_scalar(build, event->scalar.value, mark, err);
    default:
        return 0;
    }
}

/* libfyaml prints its diagnostics unless they go somewhere else. */
static void drop_output(struct fy_diag *diag, void *user, const char *text, size_t length)
{
    (void)diag, (void)user, (void)text, (void)length;
}

static struct fy_diag *quiet_diag(void)
{
    struct fy_diag_cfg config;
    fy_diag_cfg_default(&config);
    config.fp = NULL;
    config.output_fn = drop_output;
    config.level = FYET_ERROR;
    struct fy_diag *diag = fy_diag_create(&config);
    if (diag)
        fy_diag_set_collect_errors(diag, true);
    return diag;
}

/* The first diagnostic of libfyaml, in our form. */
static int parse_failed(const struct build *build, struct err *err)
{
    void *previous = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(build->diag, &previous);
    struct mark mark = {build->origin, 1, 1};
    if (error && error->line > 0) {
        mark.line = error->line;
        mark.column = error->column;
    }
    if (mark.line == 1)
        mark.column += build->column_offset;
    return mark_fail(&mark, err, "not YAML: %.160s; keys are written 'key: value', lists '- item' or [a, b]",
                     error && error->msg ? error->msg : "syntax error");
}

static int take_events(struct build *build, struct err *err)
{
    struct fy_event *event;
    int rc = 0;
    while (!rc && (event = fy_parser_parse(build->parser))) {
        rc = take_event(build, event, err);
        fy_parser_event_free(build->parser, event);
    }
    if (!rc && fy_parser_get_stream_error(build->parser))
        rc = parse_failed(build, err);
    return rc;
}

int yaml_parse(struct origin origin, long column_offset, const char *text, size_t length, struct node **root,
               struct err *err)
{
    struct fy_parse_cfg config = {.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE};
    struct build build = {.origin = origin, .column_offset = column_offset};
    *root = NULL;
    struct mark start = mark_of(&build, NULL);
    if (length > YAML_BYTES_MAX)
        return mark_fail(&start, err, "the file is larger than 1 MiB; a scenario is a few kB");
    int rc = check_text(&build, text, length, err);
    if (rc)
        return rc;
    build.diag = config.diag = quiet_diag();
    build.parser = build.diag ? fy_parser_create(&config) : NULL;
    if (!build.parser || fy_parser_set_string(build.parser, text, length)) {
        rc = out_of_memory(err);
        goto out;
    }
    rc = take_events(&build, err);
    if (rc)
        goto out;
    *root = build.root;
    build.root = NULL;
out:
    free(build.key);
    node_free(build.root);
    if (build.parser)
        fy_parser_destroy(build.parser);
    fy_diag_reset_error(build.diag); /* libfyaml 0.7.12 leaks collected errors otherwise */
    fy_diag_unref(build.diag);
    return rc;
}
