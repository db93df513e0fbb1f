/* JSON as YAML. libfyaml 0.7.12's event emitter writes every list in flow style, so this little subset is written here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/yaml.h"

static int emit_value(FILE *out, const json_t *json, int indent);

/* Plain where that reads back as the same text, else quoted: a JSON string is a YAML string. */
static int emit_scalar(FILE *out, const json_t *json)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-+/%$()";
    const char *string = json_string_value(json);
    if (string && *string && !strchr(" -%", *string) && string[strlen(string) - 1] != ' ' &&
        !string[strspn(string, plain)])
        return fputs(string, out) < 0;
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    int failed = !text || fputs(text, out) < 0;
    free(text);
    return failed;
}

/* The first key stands where the caller is, behind "- ". */
static int emit_object(FILE *out, const json_t *json, int indent)
{
    const char *key;
    json_t *value;
    int failed = 0, first = 1;
    json_object_foreach((json_t *)json, key, value)
    {
        bool nested = json_is_object(value) || json_is_object(json_array_get(value, 0));
        fprintf(out, "%*s%s:%s", first ? 0 : indent, "", key, nested ? "\n" : " ");
        if (json_is_object(value))
            fprintf(out, "%*s", indent + 2, "");
        failed = failed || emit_value(out, value, indent + (json_is_object(value) ? 2 : 0));
        first = 0;
    }
    return failed;
}

/* Lists of single values stay on one line: "between: [ord, iad]". */
static int emit_array(FILE *out, const json_t *json, int indent)
{
    bool flow = !json_is_object(json_array_get(json, 0));
    size_t index;
    json_t *value;
    int failed = 0;
    if (flow)
        fputc('[', out);
    json_array_foreach(json, index, value)
    {
        if (flow)
            fputs(index ? ", " : "", out);
        else
            fprintf(out, "%*s- ", indent, "");
        failed = failed || (flow ? emit_scalar(out, value) : emit_object(out, value, indent + 2));
    }
    if (flow)
        fputs("]\n", out);
    return failed;
}

static int emit_value(FILE *out, const json_t *json, int indent)
{
    if (json_is_object(json))
        return emit_object(out, json, indent);
    if (json_is_array(json))
        return emit_array(out, json, indent);
    return emit_scalar(out, json) || fputc('\n', out) < 0;
}

int yaml_emit(const json_t *json, char **text, struct err *err)
{
    size_t size;
    *text = NULL;
    FILE *out = open_memstream(text, &size);
    int failed = !out || emit_value(out, json, 0);
    failed |= out && (ferror(out) || fclose(out));
    if (!failed)
        return 0;
    free(*text);
    *text = NULL;
    return err_set(err, ENOMEM, "out of memory");
}
