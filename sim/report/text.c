#include "sim/report/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "configs/units.h"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text != '\0'; text++)
        columns += !is_continuation((unsigned char)*text);
    return columns;
}

/* Length of the valid UTF-8 sequence at text (RFC 3629: shortest form, no surrogates, up to U+10FFFF), 0 when there is
 * none. */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC0 || text[0] > 0xF4)
        return 0;
    uint32_t point = text[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(text[i]))
            return 0;
        point = point << 6 | (text[i] & 0x3F);
    }
    bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return point < smallest[length] || surrogate || point > 0x10FFFF ? 0 : length;
}

char *text_clean(const char *text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    char *clean = malloc(3 * strlen(text) + 1);
    if (clean == NULL)
        return NULL;
    char *end = clean;
    for (const char *from = text; *from != '\0';) {
        size_t length = utf8_length((const unsigned char *)from);
        if (length > 0)
            end = mempcpy(end, from, length);
        else
            end = mempcpy(end, replacement, 3);
        from += length > 0 ? length : 1;
    }
    *end = '\0';
    return clean;
}

void text_wrap(FILE *out, const char *text, int width, int indent)
{
    int column = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        int columns = 0;
        for (size_t i = 0; i < length; i++)
            columns += !is_continuation((unsigned char)text[i]);
        if (column > indent && column + 1 + columns > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > 0) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += columns;
        text += length;
        text += *text == ' ';
    }
    fputc('\n', out);
}

char *text_count(double count, char *buffer, size_t size)
{
    static const char prefixes[] = "\0kMGTP";
    int prefix = 0;
    while (count >= 999.5 && prefix < 5) {
        count /= 1000;
        prefix++;
    }
    int decimals = prefix == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
    snprintf(buffer, size, "%.*f%.1s", decimals, count, &prefixes[prefix]);
    return buffer;
}

char *text_time(double time_s, int digits, char *buffer, size_t size)
{
    const double shortest_s = 1e-9;
    char text[48];
    units_format(time_s < shortest_s ? 0 : time_s, DIM_TIME, digits, text, sizeof text);
    size_t length = strspn(text, "0123456789.");
    size_t zeros = strspn(text, "0.");
    int written = 0;
    for (size_t i = zeros; i < length; i++)
        written += text[i] != '.';
    bool whole = memchr(text, '.', length) == NULL;
    int missing = written > 0 && digits > written ? digits - written : 0;
    snprintf(buffer, size, "%.*s%s%.*s%s", (int)length, text, whole && missing > 0 ? "." : "", missing,
             "00000000000000000", text + length);
    return buffer;
}
