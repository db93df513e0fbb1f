#include "emu/lab/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct text {
    const char *name;
    size_t offset;
} texts[] = {
    {"scenario", offsetof(struct spec, scenario)}, {"host", offsetof(struct spec, host)},
    {"folder", offsetof(struct spec, folder)},     {"writable", offsetof(struct spec, writable)},
    {"programs", offsetof(struct spec, programs)}, {"shaper", offsetof(struct spec, shaper)},
};
enum { TEXT_COUNT = sizeof texts / sizeof *texts };

static char **text_of(struct spec *spec, size_t i)
{
    return (char **)(void *)((char *)spec + texts[i].offset);
}

/* Command lines and environments are bytes, JSON is UTF-8: each byte travels as the character of its number. */
static json_t *bytes_to_json(const char *text)
{
    char *wide = malloc(2 * strlen(text) + 1), *out = wide;
    if (!wide)
        return NULL;
    for (const unsigned char *in = (const unsigned char *)text; *in; in++) {
        if (*in >= 0x80)
            *out++ = (char)(0xc0 | *in >> 6);
        *out++ = (char)(*in >= 0x80 ? 0x80 | (*in & 0x3f) : *in);
    }
    json_t *json = json_stringn(wide, (size_t)(out - wide));
    free(wide);
    return json;
}

static char *bytes_from_json(const json_t *json)
{
    char *text = json_is_string(json) ? strdup(json_string_value(json)) : NULL, *out = text;
    if (!text)
        return NULL;
    for (const unsigned char *in = (const unsigned char *)text; *in; in++) {
        bool wide = *in >= 0xc0 && in[1];
        *out++ = (char)(wide ? (in[0] & 3) << 6 | (in[1] & 0x3f) : *in);
        in += wide;
    }
    *out = '\0';
    return text;
}

static json_t *list_to_json(char *const *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && list && list[i]; i++)
        if (json_array_append_new(array, bytes_to_json(list[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static char **list_from_json(const json_t *array)
{
    size_t count = json_array_size(array);
    char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (!(list[i] = bytes_from_json(json_array_get(array, i)))) {
            for (size_t k = 0; k < i; k++)
                free(list[k]);
            free(list);
            return NULL;
        }
    return list;
}

static json_t *to_json(struct spec *spec)
{
    json_t *root =
        json_pack("{so so sb sb sb sb sb si si}", "argv", list_to_json(spec->argv), "envp", list_to_json(spec->envp),
                  "real_time", spec->real_time, "private_tmp", spec->private_tmp, "shell", spec->shell, "terminal_out",
                  spec->terminal[0], "terminal_error", spec->terminal[1], "rows", spec->rows, "columns", spec->columns);
    for (size_t i = 0; root && i < TEXT_COUNT; i++)
        if (*text_of(spec, i) && json_object_set_new(root, texts[i].name, bytes_to_json(*text_of(spec, i)))) {
            json_decref(root);
            return NULL;
        }
    return root;
}

int spec_write(const struct spec *spec, const char *path, struct err *err)
{
    struct spec copy = *spec;
    json_t *root = to_json(&copy);
    if (!root)
        return err_set(err, ENOMEM, "out of memory");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd < 0 ? err_set(err, errno, "%s: cannot be written: %s", path, strerror(errno)) : 0;
    if (!rc && json_dumpfd(root, fd, JSON_COMPACT))
        rc = err_set(err, EIO, "%s: writing failed", path);
    if (fd >= 0 && close(fd) && !rc)
        rc = err_set(err, errno, "%s: writing failed: %s", path, strerror(errno));
    json_decref(root);
    return rc;
}

int spec_read(const char *path, struct spec *spec, struct err *err)
{
    json_error_t where;
    int terminal_out, terminal_error, private_tmp, shell, real_time;
    const json_t *argv, *envp;
    *spec = (struct spec){0};
    json_t *root = json_load_file(path, 0, &where);
    if (!root ||
        json_unpack_ex(root, &where, 0, "{so so sb sb sb sb sb si si}", "argv", &argv, "envp", &envp, "real_time",
                       &real_time, "private_tmp", &private_tmp, "shell", &shell, "terminal_out", &terminal_out,
                       "terminal_error", &terminal_error, "rows", &spec->rows, "columns", &spec->columns)) {
        json_decref(root);
        return err_set(err, EINVAL, "%s: %s", path, where.text);
    }
    spec->private_tmp = private_tmp, spec->shell = shell, spec->real_time = real_time;
    spec->terminal[0] = terminal_out, spec->terminal[1] = terminal_error;
    spec->argv = list_from_json(argv), spec->envp = list_from_json(envp);
    bool full = spec->argv && spec->envp;
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        const json_t *text = json_object_get(root, texts[i].name);
        full &= !text || (*text_of(spec, i) = bytes_from_json(text));
    }
    json_decref(root);
    if (full)
        return 0;
    spec_free(spec);
    return err_set(err, ENOMEM, "out of memory");
}

static void list_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void spec_free(struct spec *spec)
{
    for (size_t i = 0; i < TEXT_COUNT; i++)
        free(*text_of(spec, i));
    list_free(spec->argv);
    list_free(spec->envp);
    *spec = (struct spec){0};
}
