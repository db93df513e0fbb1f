/* Gradients whose sums are exact in float, and parameters that every rank knows: small whole numbers. */
#include <pthread.h>

#include "emu/mpi/process.h"

static float gradient_value(int rank, uint64_t place)
{
    return (float)((uint64_t)(rank + 1) * (place % 7 + 1) + place % 11);
}

static float parameter_value(uint64_t place)
{
    return (float)(place % 8191 + 1);
}

static void for_floats(struct process *process, struct span span, float (*value)(int rank, uint64_t place))
{
    float *floats = process_memory(process, span);
    uint64_t first = span.offset / sizeof(float);
    for (uint64_t i = 0; i < span.bytes / sizeof(float); i++)
        floats[i] = value(process->rank, first + i);
}

static void mismatch(struct process *process, const char *what, uint64_t place, float found, float expected)
{
    pthread_mutex_lock(&process->lock);
    if (!process->wrong.text[0])
        err_set(&process->wrong, EXIT_FAILED, "rank %d: %s %llu is %g, expected %g", process->rank, what,
                (unsigned long long)place, (double)found, (double)expected);
    pthread_mutex_unlock(&process->lock);
}

static void produced(struct stream *stream, struct span span)
{
    struct process *process = transport_process(stream);
    if (process->check)
        for_floats(process, span, gradient_value);
}

/* sum over the group of (rank + 1) (place % 7 + 1) + place % 11, in closed form. */
static void reduced(struct stream *stream, struct span part, const struct group *over)
{
    struct process *process = transport_process(stream);
    const float *floats = process_memory(process, part);
    uint64_t first = part.offset / sizeof(float), weight = 0;
    if (!process->check)
        return;
    for (int i = 0; i < over->count; i++)
        weight += (uint64_t)over->ranks[i] + 1;
    for (uint64_t i = 0; i < part.bytes / sizeof(float); i++) {
        uint64_t place = first + i;
        float expected = (float)(weight * (place % 7 + 1) + (uint64_t)over->count * (place % 11));
        if (floats[i] != expected) {
            mismatch(process, "the sum of gradient element", place, floats[i], expected);
            return;
        }
    }
    atomic_fetch_add(&process->checked_bytes, part.bytes);
}

/* Parameters that are being gathered. Two gathers of the same ones may be under way at once, for the last layer's
 * forward and backward: the later must not clear what the earlier has received. */
enum { GATHERS_MAX = 256 };
static struct {
    pthread_mutex_t lock;
    uint64_t offsets[GATHERS_MAX];
    int count;
} under_way = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* True where no other gather of them is under way. */
static bool begin_gather(struct span span)
{
    bool alone = true;
    pthread_mutex_lock(&under_way.lock);
    for (int i = 0; i < under_way.count; i++)
        alone = alone && under_way.offsets[i] != span.offset;
    if (under_way.count < GATHERS_MAX)
        under_way.offsets[under_way.count++] = span.offset;
    pthread_mutex_unlock(&under_way.lock);
    return alone;
}

static void end_gather(struct span span)
{
    pthread_mutex_lock(&under_way.lock);
    for (int i = 0; i < under_way.count; i++)
        if (under_way.offsets[i] == span.offset) {
            under_way.offsets[i] = under_way.offsets[--under_way.count];
            break;
        }
    pthread_mutex_unlock(&under_way.lock);
}

static void cleared(struct stream *stream, struct span span)
{
    struct process *process = transport_process(stream);
    float *floats = process_memory(process, span);
    bool clears = begin_gather(span) && process->check;
    for (uint64_t i = 0; clears && i < span.bytes / sizeof(float); i++)
        floats[i] = -1;
}

static float own_value(int rank, uint64_t place)
{
    (void)rank;
    return parameter_value(place);
}

static void owned(struct stream *stream, struct span part)
{
    struct process *process = transport_process(stream);
    if (process->check)
        for_floats(process, part, own_value);
}

static void gathered(struct stream *stream, struct span span)
{
    struct process *process = transport_process(stream);
    const float *floats = process_memory(process, span);
    uint64_t first = span.offset / sizeof(float);
    end_gather(span);
    if (!process->check)
        return;
    for (uint64_t i = 0; i < span.bytes / sizeof(float); i++)
        if (floats[i] != parameter_value(first + i)) {
            mismatch(process, "the gathered parameter", first + i, floats[i], parameter_value(first + i));
            return;
        }
    atomic_fetch_add(&process->checked_bytes, span.bytes);
}

const struct step_values process_values = {produced, reduced, cleared, owned, gathered};
