/* Stands in for libFuzzer: runs the target once over every file of a folder. Usage: replay FOLDER */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/configs/fuzz.h"

enum { BYTES_MAX = 1 << 21 };

static int replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    uint8_t *data = file ? malloc(BYTES_MAX) : NULL;
    if (data)
        LLVMFuzzerTestOneInput(data, fread(data, 1, BYTES_MAX, file));
    int failed = !data;
    free(data);
    if (file)
        fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    int files = 0, failed = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            failed |= replay(argv[1], entry->d_name);
            files++;
        }
    closedir(folder);
    printf("%d files\n", files);
    return failed || !files;
}
