#include "configs/preset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "configs/suggest.h"

const char *preset_kind_name(enum preset_kind kind)
{
    static const char *const names[PRESET_KIND_COUNT] = {
        [PRESET_SCENARIO] = "scenario", [PRESET_MODEL] = "model", [PRESET_GPU] = "GPU"};
    return names[kind];
}

const struct preset *preset_list(enum preset_kind kind, size_t *count)
{
    *count = preset_arrays[kind].count;
    return preset_arrays[kind].presets;
}

const struct preset *preset_find(enum preset_kind kind, const char *name)
{
    size_t count;
    const struct preset *presets = preset_list(kind, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(presets[i].name, name))
            return &presets[i];
    return NULL;
}

char *preset_title(const struct preset *preset, char *buffer, size_t size)
{
    const char *text = preset->text + strspn(preset->text, "# ");
    snprintf(buffer, size, "%.*s", (int)strcspn(text, "\n"), text);
    return buffer;
}

char *preset_unknown(enum preset_kind kind, const char *name, char *buffer, size_t size)
{
    char phrase[96], list[256];
    size_t count;
    const struct preset *presets = preset_list(kind, &count);
    suggest_phrase(name, presets, count, sizeof presets[0], phrase, sizeof phrase);
    suggest_list(presets, count, sizeof presets[0], list, sizeof list);
    snprintf(buffer, size, "no %s preset '%.40s'%s; presets: %s", preset_kind_name(kind), name, phrase, list);
    return buffer;
}

/* Moves the members of `from` that `into` lacks; maps that both have are merged. */
static void fill_in(struct node *into, struct node *from)
{
    struct node *member = from->first;
    from->first = from->last = NULL;
    while (member) {
        struct node *next = member->next;
        struct node *own = node_get(into, member->key);
        if (!own) {
            node_append(into, member);
        } else {
            if (own->kind == NODE_MAP && member->kind == NODE_MAP)
                fill_in(own, member);
            node_free(member);
        }
        member = next;
    }
}

static int fill_from_preset(struct node *map, const struct node *named, enum preset_kind kind, struct err *err)
{
    char unknown[512];
    if (named->kind != NODE_SCALAR)
        return node_fail(named, err, "a preset is one name, like 'preset: NAME'");
    const struct preset *preset = preset_find(kind, named->text);
    if (!preset)
        return node_fail(named, err, "%s", preset_unknown(kind, named->text, unknown, sizeof unknown));
    struct node *shipped;
    int rc = yaml_parse((struct origin){preset->path, false}, 0, preset->text, preset->length, &shipped, err);
    if (rc)
        return rc;
    fill_in(map, shipped);
    node_free(shipped);
    return 0;
}

int preset_expand(struct node *map, const char *key, enum preset_kind kind, struct err *err)
{
    struct node *member = node_get(map, key);
    if (!member)
        return 0;
    if (member->kind == NODE_SCALAR)
        member = node_wrap(map, member, "preset", member->mark);
    if (!member)
        return err_set(err, ENOMEM, "out of memory");
    const struct node *named = node_get(member, "preset");
    return named ? fill_from_preset(member, named, kind, err) : 0;
}
