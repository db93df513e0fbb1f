/* One line on a terminal that says how long it still takes. */
#ifndef LONGHAUL_VERIFY_PROGRESS_H
#define LONGHAUL_VERIFY_PROGRESS_H

#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *out;        /* NULL: nobody to tell */
    const char *what; /* "probing", literal */
    const char *whom; /* borrowed */
    int64_t end_ns, shown_ns;
};

/* Something that is over at end_ns begins; 2 s or less are not worth a line. */
void progress_begin(struct progress *progress, FILE *out, const char *what, const char *whom, int64_t end_ns);
/* Call as often as you like: it is shown four times a second. NULL is fine. */
void progress_show(struct progress *progress);
void progress_clear(struct progress *progress);

#endif
