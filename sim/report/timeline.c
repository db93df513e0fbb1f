#include "sim/report/timeline.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/text.h"

struct track {
    int process, thread;
    size_t process_name, thread_name;
};

struct span {
    int process, thread;
    size_t category, name;
    double start_s, end_s, bytes;
    size_t order; /* of recording: keeps equal starts apart */
};

struct point {
    int process;
    size_t name;
    double time_s, value;
    size_t order;
};

struct timeline {
    json_t *names; /* text -> its number */
    char **texts;  /* by number, already quoted and escaped as JSON */
    size_t text_count, text_capacity;
    struct track *tracks;
    size_t track_count, track_capacity;
    struct span *spans;
    size_t span_count, span_capacity;
    struct point *points;
    size_t point_count, point_capacity;
    int failed; /* first negative errno while recording; said by timeline_write */
};

struct timeline *timeline_new(void)
{
    struct timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline == NULL)
        return NULL;
    timeline->names = json_object();
    if (timeline->names == NULL) {
        free(timeline);
        return NULL;
    }
    return timeline;
}

void timeline_free(struct timeline *timeline)
{
    if (timeline == NULL)
        return;
    free(timeline->points);
    free(timeline->spans);
    free(timeline->tracks);
    for (size_t i = 0; i < timeline->text_count; i++)
        free(timeline->texts[i]);
    free(timeline->texts);
    json_decref(timeline->names);
    free(timeline);
}

static void fail(struct timeline *timeline, int code)
{
    if (timeline->failed == 0)
        timeline->failed = code;
}

/* Makes room for one more element in *array. */
static bool reserve(struct timeline *timeline, void **array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = reallocarray(*array, larger, size);
    if (grown == NULL) {
        fail(timeline, -ENOMEM);
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

static char *quote(const char *text)
{
    char *clean = text_clean(text);
    json_t *json = clean != NULL ? json_string(clean) : NULL;
    char *quoted = json != NULL ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
    json_decref(json);
    free(clean);
    return quoted;
}

/* The number of a text; few texts name many spans, so each is kept once. 0 (and a failed timeline) when out of memory.
 */
static size_t intern(struct timeline *timeline, const char *text)
{
    json_t *known = json_object_get(timeline->names, text);
    if (known != NULL)
        return (size_t)json_integer_value(known);
    if (!reserve(timeline, (void **)&timeline->texts, timeline->text_count, &timeline->text_capacity, sizeof(char *)))
        return 0;
    char *quoted = quote(text);
    json_t *number = json_integer((json_int_t)timeline->text_count);
    if (quoted == NULL || json_object_set_new_nocheck(timeline->names, text, number) != 0) {
        fail(timeline, -ENOMEM);
        free(quoted);
        return 0;
    }
    timeline->texts[timeline->text_count] = quoted;
    return timeline->text_count++;
}

void timeline_name(struct timeline *timeline, int process, const char *process_name, int thread,
                   const char *thread_name)
{
    if (!reserve(timeline, (void **)&timeline->tracks, timeline->track_count, &timeline->track_capacity,
                 sizeof(struct track)))
        return;
    timeline->tracks[timeline->track_count++] = (struct track){
        .process = process,
        .thread = thread,
        .process_name = intern(timeline, process_name),
        .thread_name = intern(timeline, thread_name),
    };
}

void timeline_span(struct timeline *timeline, int process, int thread, const char *category, const char *name,
                   double start_s, double end_s, double bytes)
{
    if (!isfinite(start_s) || !isfinite(end_s) || !isfinite(bytes) || end_s < start_s) {
        fail(timeline, -EINVAL);
        return;
    }
    if (!reserve(timeline, (void **)&timeline->spans, timeline->span_count, &timeline->span_capacity,
                 sizeof(struct span)))
        return;
    timeline->spans[timeline->span_count] = (struct span){
        .process = process,
        .thread = thread,
        .category = intern(timeline, category),
        .name = intern(timeline, name),
        .start_s = start_s,
        .end_s = end_s,
        .bytes = bytes,
        .order = timeline->span_count,
    };
    timeline->span_count++;
}

void timeline_counter(struct timeline *timeline, int process, const char *name, double time_s, double value)
{
    if (!isfinite(time_s) || !isfinite(value)) {
        fail(timeline, -EINVAL);
        return;
    }
    if (!reserve(timeline, (void **)&timeline->points, timeline->point_count, &timeline->point_capacity,
                 sizeof(struct point)))
        return;
    timeline->points[timeline->point_count] = (struct point){
        .process = process,
        .name = intern(timeline, name),
        .time_s = time_s,
        .value = value,
        .order = timeline->point_count,
    };
    timeline->point_count++;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_tracks(const void *left, const void *right)
{
    const struct track *a = left, *b = right;
    int process = COMPARE(a->process, b->process);
    return process != 0 ? process : COMPARE(a->thread, b->thread);
}

/* By track, then time; of two that start together the longer one first, as nested slices need. */
static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    const int keys[] = {COMPARE(a->process, b->process), COMPARE(a->thread, b->thread), COMPARE(a->start_s, b->start_s),
                        COMPARE(b->end_s, a->end_s), COMPARE(a->order, b->order)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i] != 0)
            return keys[i];
    }
    return 0;
}

static int compare_points(const void *left, const void *right)
{
    const struct point *a = left, *b = right;
    const int keys[] = {COMPARE(a->process, b->process), COMPARE(a->name, b->name), COMPARE(a->time_s, b->time_s),
                        COMPARE(a->order, b->order)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i] != 0)
            return keys[i];
    }
    return 0;
}

/* A copy in order; NULL when out of memory (or count is 0, which needs none). */
static void *sorted(const void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    void *copy = count > 0 ? reallocarray(NULL, count, size) : NULL;
    if (copy != NULL) {
        memcpy(copy, array, count * size);
        qsort(copy, count, size, compare);
    }
    return copy;
}

/* Seconds to the format's microseconds: the one factor of this file. Three decimals are nanoseconds. */
static double microseconds(double seconds)
{
    return seconds * 1e6;
}

static void separate(FILE *out, bool *first)
{
    fputs(*first ? "\n" : ",\n", out);
    *first = false;
}

static void write_tracks(const struct timeline *timeline, const struct track *tracks, FILE *out, bool *first)
{
    for (size_t i = 0; i < timeline->track_count; i++) {
        const struct track *track = &tracks[i];
        if (i == 0 || tracks[i - 1].process != track->process) {
            separate(out, first);
            fprintf(out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":%s}}", track->process,
                    timeline->texts[track->process_name]);
            separate(out, first);
            fprintf(out, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                    track->process, track->process);
        }
        separate(out, first);
        fprintf(out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":%s}}",
                track->process, track->thread, timeline->texts[track->thread_name]);
    }
}

static void write_spans(const struct timeline *timeline, const struct span *spans, FILE *out, bool *first)
{
    for (size_t i = 0; i < timeline->span_count; i++) {
        const struct span *span = &spans[i];
        separate(out, first);
        fprintf(out, "{\"ph\":\"X\",\"name\":%s,\"cat\":%s,\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                timeline->texts[span->name], timeline->texts[span->category], span->process, span->thread,
                microseconds(span->start_s), microseconds(span->end_s - span->start_s));
        if (span->bytes != 0)
            fprintf(out, ",\"args\":{\"bytes\":%.0f}", span->bytes);
        fputc('}', out);
    }
}

static void write_points(const struct timeline *timeline, const struct point *points, FILE *out, bool *first)
{
    for (size_t i = 0; i < timeline->point_count; i++) {
        separate(out, first);
        fprintf(out, "{\"ph\":\"C\",\"name\":%s,\"pid\":%d,\"ts\":%.3f,\"args\":{\"value\":%.17g}}",
                timeline->texts[points[i].name], points[i].process, microseconds(points[i].time_s), points[i].value);
    }
}

int timeline_write(const struct timeline *timeline, FILE *out, struct err *err)
{
    if (timeline->failed == -EINVAL)
        return err_set(err, EINVAL, "timeline: an event has no finite time or value, or ends before it starts");
    if (timeline->failed != 0)
        return err_set(err, -timeline->failed, "timeline: out of memory while recording");
    int code = 0;
    bool first = true;
    struct track *tracks = sorted(timeline->tracks, timeline->track_count, sizeof *tracks, compare_tracks);
    struct span *spans = sorted(timeline->spans, timeline->span_count, sizeof *spans, compare_spans);
    struct point *points = sorted(timeline->points, timeline->point_count, sizeof *points, compare_points);
    if ((tracks == NULL && timeline->track_count > 0) || (spans == NULL && timeline->span_count > 0) ||
        (points == NULL && timeline->point_count > 0)) {
        code = err_set(err, ENOMEM, "timeline: out of memory while sorting");
        goto out;
    }
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
    write_tracks(timeline, tracks, out, &first);
    write_spans(timeline, spans, out, &first);
    write_points(timeline, points, out, &first);
    fputs("\n]}\n", out);
    if (fflush(out) != 0 || ferror(out))
        code = err_set(err, EIO, "timeline: cannot write: %s", strerror(errno));
out:
    free(points);
    free(spans);
    free(tracks);
    return code;
}
