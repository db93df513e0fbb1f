/* longhaul-config: looks at scenarios and presets without running anything. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "configs/keys.h"
#include "configs/options.h"
#include "configs/preset.h"
#include "configs/scenario.h"
#include "configs/yaml.h"

enum { FILES_MAX = 256 };

struct arguments {
    struct options_sets sets;
    const char *json; /* NULL, or FILE or "-" */
    const char *verb;
    const char *files[FILES_MAX];
    size_t file_count;
};

static int load(const struct arguments *arguments, const char *file, struct scenario *scenario, struct err *err)
{
    return scenario_load(file, arguments->sets.texts, arguments->sets.count, scenario, err);
}

static int check_files(const struct arguments *arguments, struct err *err)
{
    int worst = EXIT_FINE;
    for (size_t i = 0; i < arguments->file_count; i++) {
        struct scenario scenario;
        int rc = load(arguments, arguments->files[i], &scenario, err);
        if (rc) {
            fprintf(stderr, "%s\n", err->text);
            worst = worst > err_exit_code(rc) ? worst : err_exit_code(rc);
            continue;
        }
        printf("%s: fine: %zu site%s, %ld GPUs, %s, %zu strateg%s, hash %s\n", arguments->files[i], scenario.site_count,
               scenario.site_count == 1 ? "" : "s", scenario_gpus(&scenario), scenario.model.name,
               scenario.strategy_count, scenario.strategy_count == 1 ? "y" : "ies", scenario.hash);
        scenario_free(&scenario);
    }
    err->text[0] = '\0'; /* already printed */
    return worst;
}

static int write_scenario(const struct scenario *scenario, const char *json_path, struct err *err)
{
    const char *path = json_path ? json_path : "-";
    char *text = NULL;
    json_t *json = scenario_to_json(scenario);
    int rc = json ? 0 : err_set(err, ENOMEM, "out of memory");
    if (!rc && json_path)
        text = json_dumps(json, JSON_INDENT(2));
    else if (!rc)
        rc = yaml_emit(json, &text, err);
    if (!rc && !text)
        rc = err_set(err, ENOMEM, "out of memory");
    FILE *out = rc ? NULL : options_open(path, err);
    if (out) {
        fputs(text, out);
        if (text[strlen(text) - 1] != '\n')
            fputc('\n', out);
        rc = options_close(out, path, err);
    } else if (!rc) {
        rc = -EIO;
    }
    free(text);
    json_decref(json);
    return rc;
}

static int show_file(const struct arguments *arguments, struct err *err)
{
    struct scenario scenario;
    int rc = load(arguments, arguments->files[0], &scenario, err);
    rc = rc ? rc : write_scenario(&scenario, arguments->json, err);
    scenario_free(&scenario);
    return err_exit_code(rc);
}

static int list_presets(const struct arguments *arguments, struct err *err)
{
    (void)arguments, (void)err;
    for (enum preset_kind kind = 0; kind < PRESET_KIND_COUNT; kind++) {
        size_t count;
        const struct preset *presets = preset_list(kind, &count);
        printf("%s%ss\n", kind ? "\n" : "", preset_kind_name(kind));
        for (size_t i = 0; i < count; i++) {
            char title[256];
            printf("  %-16s  %s\n", presets[i].name, preset_title(&presets[i], title, sizeof title));
        }
    }
    return EXIT_FINE;
}

static int list_keys(const struct arguments *arguments, struct err *err)
{
    (void)arguments, (void)err;
    printf("| key | range | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; tables_all[i]; i++)
        for (size_t k = 0; k < tables_all[i]->count; k++) {
            const struct key *key = &tables_all[i]->keys[k];
            char range[160];
            printf("| `%s%s%s` | %s | %s | %s |\n", tables_all[i]->path, *tables_all[i]->path ? "." : "", key->name,
                   key->kind == KEY_SECTION ? "" : key_range(key, range, sizeof range),
                   key->required  ? "required"
                   : key->initial ? key->initial
                                  : "",
                   key->meaning);
        }
    return EXIT_FINE;
}

static const struct verb {
    const char *name;
    size_t least, most; /* files */
    int (*run)(const struct arguments *arguments, struct err *err);
} verbs[] = {
    {"check", 1, FILES_MAX, check_files},
    {"show", 1, 1, show_file},
    {"list", 0, 0, list_presets},
    {"keys", 0, 0, list_keys},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->sets;
    else if (key == 'j')
        arguments->json = argument ? argument : "-";
    else if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    else if (!arguments->verb)
        arguments->verb = argument;
    else if (arguments->file_count == FILES_MAX)
        argp_error(state, "more than %d files", FILES_MAX);
    else
        arguments->files[arguments->file_count++] = argument;
    return 0;
}

static const struct argp_option options[] = {
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "show: write JSON instead of YAML, to FILE or standard output", 0}, {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "check SCENARIO...\nshow SCENARIO\nlist\nkeys",
    .doc = "Checks and explains longhaul scenarios; nothing is run.\n\n"
           "check  says `fine', or where a scenario is wrong and what would be right\n"
           "show   prints the scenario with every default; the output loads again\n"
           "list   prints the shipped scenarios, models and GPUs\n"
           "keys   prints every key of a scenario with range, default, meaning\n\n"
           "SCENARIO is a YAML file or the name of a shipped scenario.\v"
           "Example: start from twin-1536 with sites 5 ms apart, edit, check.\n\n"
           "  longhaul config show twin-1536 --set wan.rtt=5ms > mine.yaml\n"
           "  longhaul config check mine.yaml\n\n"
           "Exit status: 0 fine, 1 failed, 2 wrong usage or a wrong scenario.",
};

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    options_setup();
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    const struct verb *verb = arguments.verb ? find_verb(arguments.verb) : NULL;
    if (!verb || arguments.file_count < verb->least || arguments.file_count > verb->most) {
        fprintf(stderr, "longhaul-config: %s; try --help\n",
                verb ? "wrong number of scenarios" : "needs a verb: check, show, list or keys");
        return EXIT_USAGE;
    }
    int code = verb->run(&arguments, &err);
    if (code == EXIT_FINE && options_close(stdout, "-", &err) < 0)
        code = EXIT_FAILED;
    if (err.text[0])
        fprintf(stderr, "longhaul-config: %s\n", err.text);
    return code;
}
