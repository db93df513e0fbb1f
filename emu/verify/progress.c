#include "emu/verify/progress.h"

#include "emu/verify/io.h"

#define SHORT_NS (2 * IO_NS_PER_S)
#define EVERY_NS (IO_NS_PER_S / 4)

void progress_begin(struct progress *progress, FILE *out, const char *what, const char *whom, int64_t end_ns)
{
    *progress = (struct progress){.what = what, .whom = whom, .end_ns = end_ns};
    if (end_ns - io_now_ns() > SHORT_NS)
        progress->out = out;
}

void progress_show(struct progress *progress)
{
    if (!progress || !progress->out)
        return;
    int64_t now_ns = io_now_ns();
    if (progress->shown_ns && now_ns - progress->shown_ns < EVERY_NS)
        return;
    progress->shown_ns = now_ns;
    int64_t left_ns = progress->end_ns > now_ns ? progress->end_ns - now_ns : 0;
    fprintf(progress->out, "\r%s %s: %.0f s left\033[K", progress->what, progress->whom,
            (double)left_ns / (double)IO_NS_PER_S);
    fflush(progress->out);
}

void progress_clear(struct progress *progress)
{
    if (progress->out && progress->shown_ns) {
        fputs("\r\033[K", progress->out);
        fflush(progress->out);
    }
    progress->shown_ns = 0;
}
