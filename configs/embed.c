/* Build tool: writes the preset files as C arrays. Usage: embed OUT FILE...
 * The kind of a file is its folder (gpus, models, scenarios). Files are given sorted by name. */
#include <stdio.h>
#include <string.h>

static const struct {
    const char *folder, *array;
} kinds[] = {{"scenarios", "PRESET_SCENARIO"}, {"models", "PRESET_MODEL"}, {"gpus", "PRESET_GPU"}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int in_folder(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    const char *name = file_name(path);
    return name - path > (long)length && !strncmp(name - 1 - length, folder, length) &&
           (name - path == (long)length + 1 || name[-2 - (long)length] == '/');
}

static int write_bytes(FILE *out, const char *path, int index)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    fprintf(out, "static const char text_%d[] = {", index);
    int c;
    for (long i = 0; (c = getc(in)) != EOF; i++)
        fprintf(out, "%s%d,", i % 24 ? "" : "\n    ", c < 128 ? c : c - 256);
    fprintf(out, "0};\n");
    return fclose(in) != 0;
}

static void write_array(FILE *out, int kind, int count, char **paths)
{
    fprintf(out, "static const struct preset presets_%d[] = {\n", kind);
    for (int i = 0; i < count; i++) {
        const char *name = file_name(paths[i]);
        if (in_folder(paths[i], kinds[kind].folder))
            fprintf(out, "    {\"%.*s\", \"configs/%s/%s\", text_%d, sizeof text_%d - 1},\n", (int)strcspn(name, "."),
                    name, kinds[kind].folder, name, i, i);
    }
    fprintf(out, "};\n");
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT FILE...\n");
        return 2;
    }
    int failed = 0;
    fprintf(out, "#include \"configs/preset.h\"\n\n");
    for (int i = 2; i < argc; i++)
        failed |= write_bytes(out, argv[i], i - 2);
    for (int kind = 0; kind < KINDS; kind++)
        write_array(out, kind, argc - 2, argv + 2);
    fprintf(out, "const struct preset_array preset_arrays[PRESET_KIND_COUNT] = {\n");
    for (int kind = 0; kind < KINDS; kind++)
        fprintf(out, "    [%s] = {presets_%d, sizeof presets_%d / sizeof presets_%d[0]},\n", kinds[kind].array, kind,
                kind, kind);
    fprintf(out, "};\n");
    return fclose(out) != 0 || failed;
}
