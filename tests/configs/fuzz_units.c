/* First byte: dimension; the rest: text. What is accepted is finite or inf, not negative, and survives writing and
 * reading. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/units.h"
#include "tests/configs/fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    enum dimension dimension = (enum dimension)(data[0] % DIM_COUNT);
    char *text = strndup((const char *)data + 1, size - 1), written[64];
    struct err err = {""};
    double value, back;
    if (units_parse(text, dimension, &value, &err)) {
        require(err.text[0] && !strchr(err.text, '\n'));
    } else {
        require(value >= 0);
        units_format(value, dimension, 0, written, sizeof written);
        require(!units_parse(written, dimension, &back, &err));
        require(back >= value && back <= value);
        units_format(value, dimension, 3, written, sizeof written);
        require(isinf(value) || !units_parse(written, dimension, &back, &err));
    }
    free(text);
    return 0;
}
