#include "configs/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* User text may hold line breaks or escape codes; a message is one printable line whatever it quotes. */
static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

int err_set(struct err *err, int code, const char *format, ...)
{
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(err->text, sizeof err->text, format, arguments);
        va_end(arguments);
        one_line(err->text);
    }
    return -code;
}

void err_prefix(struct err *err, const char *format, ...)
{
    if (!err)
        return;
    char old[ERR_TEXT_MAX];
    memcpy(old, err->text, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used + sizeof ": " < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - used, ": %.*s", (int)(sizeof err->text - used - sizeof ": "),
                 old);
    one_line(err->text);
}

int err_exit_code(int negative_errno)
{
    static const struct {
        int error;
        enum exit_code code;
    } known[] = {
        {0, EXIT_FINE},
        {-EINVAL, EXIT_USAGE},
        {-ENOENT, EXIT_USAGE},
        {-ENOTSUP, EXIT_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].error == negative_errno)
            return known[i].code;
    return EXIT_FAILED;
}
