/* A jitter table's text. What is accepted has the numbers that stand there, at most the kernel's count; what is refused
 * is refused in one line that names a place in the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/shape/distribution.h"
#include "tests/configs/fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_refusal(const struct distribution *table, const struct err *err, size_t size)
{
    unsigned long line = 0, column = 0;
    require(!table->table && !table->count);
    require(sscanf(err->text, "table:%lu:%lu: ", &line, &column) == 2 && !strchr(err->text, '\n'));
    require(line >= 1 && line <= size + 1 && column >= 1 && column <= size + 1);
}

/* Written out and read again it is the same. */
static void check_table(const struct distribution *table)
{
    struct distribution back;
    struct err err;
    double mean, sd;
    char *text = NULL;
    size_t size;
    require(table->count >= 2 && table->count <= DISTRIBUTION_COUNT_MAX);
    distribution_moments(table, &mean, &sd);
    require(mean >= -4 && mean <= 4 && sd >= 0 && sd <= 4);
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < table->count; i++)
        fprintf(out, "%d%s", table->table[i], i % 8 == 7 ? " # eight\n" : " ");
    fclose(out);
    require(!distribution_parse("table", text, &back, &err) && back.count == table->count);
    require(!memcmp(back.table, table->table, table->count * sizeof *table->table));
    distribution_free(&back);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct distribution table;
    struct err err = {""};
    char *text = strndup((const char *)data, size);
    int rc = distribution_parse("table", text, &table, &err);
    if (rc)
        check_refusal(&table, &err, size);
    else
        check_table(&table);
    distribution_free(&table);
    free(text);
    return 0;
}
