#include "sim/report/compare_run.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/report/child.h"
#include "sim/report/part.h"

enum { ARGUMENTS_MAX = 320 };

enum run { RUN_PREDICT, RUN_MEASURE, RUN_PREDICT_FULL };

/* What is run: words before the scenario, and after it and its --set. */
static const struct {
    const char *name, *backend;
    const char *before[3], *after[6];
    bool measures;
} runs[] = {
    [RUN_PREDICT] = {"longhaul sim --lab-scale", "sim", {"sim"}, {"--lab-scale", "--json", "-"}, false},
    [RUN_MEASURE] = {"longhaul lab run", "emu", {"lab", "run"}, {"--strategies", "--quiet", "--json", "-"}, true},
    [RUN_PREDICT_FULL] = {"longhaul sim", "sim", {"sim"}, {"--json", "-"}, false},
};

struct session {
    const struct compare *compare;
    const struct compare_request *request;
    char door[PATH_MAX]; /* the front door */
    const struct compare_point *point;
    enum run run;
    time_t begin, start; /* of all, of this run */
    time_t shown;        /* when progress was, in this run; 0: not yet */
    int signal;
};

/* Beside this program; in a build tree this one lies in a folder of its own below it. */
static int find_door(char door[PATH_MAX], struct err *err)
{
    char folder[PATH_MAX], build[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    if (snprintf(door, PATH_MAX, "%s/longhaul", folder) < PATH_MAX && access(door, X_OK) == 0)
        return 0;
    bool tree = snprintf(build, sizeof build, "%s/../../build.ninja", folder) < PATH_MAX && access(build, F_OK) == 0;
    if (tree && snprintf(door, PATH_MAX, "%s/../longhaul", folder) < PATH_MAX && access(door, X_OK) == 0)
        return 0;
    return err_set(err, ENOTSUP, "no program longhaul beside this one, in %s: both backends are run through it",
                   folder);
}

/* ---- progress, on a terminal and after two seconds */

static void show_progress(void *context)
{
    struct session *session = context;
    const struct compare *compare = session->compare;
    time_t now = time(NULL);
    if (!isatty(STDERR_FILENO) || now - session->begin < 2 || now == session->shown)
        return;
    session->shown = now;
    fprintf(stderr, "\rpoint %zu of %zu: %s, %ld s\033[K", (size_t)(session->point - compare->points) + 1,
            compare->point_count, runs[session->run].name, (long)(now - session->start));
    fflush(stderr);
}

static void end_progress(const struct session *session)
{
    if (session->shown != 0)
        fputs("\r\033[K", stderr);
}

/* ---- one run of a backend */

struct command {
    size_t count;
    const char *words[ARGUMENTS_MAX];
};

static void add(struct command *command, const char *word)
{
    if (command->count < ARGUMENTS_MAX - 1)
        command->words[command->count++] = word;
}

static void add_sets(struct command *command, const char *const *sets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(command, "--set");
        add(command, sets[i]);
    }
}

static void build_command(const struct session *session, struct command *command)
{
    const struct compare_request *request = session->request;
    add(command, session->door);
    for (const char *const *word = runs[session->run].before; *word != NULL; word++)
        add(command, *word);
    add(command, request->scenario);
    add_sets(command, request->sets, request->set_count);
    add_sets(command, (const char *const *)session->point->sets, session->point->set_count);
    for (const char *const *word = runs[session->run].after; *word != NULL; word++)
        add(command, *word);
    if (runs[session->run].measures && request->steps != NULL) {
        add(command, "--steps");
        add(command, request->steps);
    }
}

static int run_backend(struct session *session, enum run run, json_t **json, struct err *err)
{
    struct command command = {0};
    struct child_output output;
    const struct child_watch watch = {session->request->timeout_s, show_progress, session};
    session->run = run;
    session->start = time(NULL);
    session->shown = 0;
    build_command(session, &command);
    int rc = child_run(command.words, &watch, &output, err);
    end_progress(session);
    session->signal = output.signal;
    rc = rc ? rc : child_json(&output, json, err);
    child_output_free(&output);
    return rc;
}

/* ---- one point */

/* A wrong answer is a failure of the backend, not of what the user asked. */
static int read_result(const json_t *json, enum run run, const struct scenario *scenario, struct result *result,
                       struct err *err)
{
    int rc = result_from_json(json, scenario, result, err);
    if (rc == 0 && strcmp(result->backend, runs[run].backend) != 0)
        return err_set(err, EIO, "a result of backend %s, not %s", result->backend, runs[run].backend);
    return rc == -EINVAL ? -EIO : rc;
}

/* The scenario that the simulator made, by the kernel efficiency it found. */
static int make_lab(const json_t *json, struct compare_point *point, struct err *err)
{
    int rc = 0;
    struct part document = part_document(json, &rc, err);
    struct part calibration = part_object(&document, "calibration");
    double efficiency = part_number(&calibration, "kernel_efficiency");
    if (rc == 0 && !(efficiency > 0 && efficiency <= 1))
        part_fail(&calibration, "kernel_efficiency", "must be above 0 and at most 1");
    if (rc < 0)
        return rc == -EINVAL ? -EIO : rc;
    return scenario_lab_scale(&point->full, efficiency, &point->lab, err);
}

static int take_result(struct session *session, enum run run, struct compare_point *point, struct err *err)
{
    struct result *results[] = {[RUN_PREDICT] = &point->predicted,
                                [RUN_MEASURE] = &point->measured,
                                [RUN_PREDICT_FULL] = &point->full_predicted};
    json_t *json = NULL;
    int rc = run_backend(session, run, &json, err);
    if (rc == 0 && run == RUN_PREDICT)
        rc = make_lab(json, point, err);
    const struct scenario *scenario = run == RUN_PREDICT_FULL ? &point->full : &point->lab;
    rc = rc ? rc : read_result(json, run, scenario, results[run], err);
    json_decref(json);
    if (rc < 0 && rc != -EINTR)
        err_prefix(err, "%s", runs[run].name);
    return rc;
}

static void name_point(const struct compare_point *point, char *name, size_t size)
{
    size_t used = 0;
    name[0] = '\0';
    for (size_t i = 0; i < point->set_count && used < size; i++)
        used += (size_t)snprintf(name + used, size - used, "%s%s", i > 0 ? " " : "", point->sets[i]);
}

static int run_point(struct session *session, struct compare_point *point, struct err *err)
{
    char name[256];
    session->point = point;
    int rc = take_result(session, RUN_PREDICT, point, err);
    rc = rc ? rc : take_result(session, RUN_MEASURE, point, err);
    point->scaled = rc == 0 && strcmp(point->full.hash, point->lab.hash) != 0;
    if (point->scaled)
        rc = take_result(session, RUN_PREDICT_FULL, point, err);
    name_point(point, name, sizeof name);
    if (rc < 0 && rc != -EINTR && name[0] != '\0')
        err_prefix(err, "%s", name);
    return rc;
}

int compare_run(struct compare *compare, const struct compare_request *request, int *signal, struct err *err)
{
    struct session session = {.compare = compare, .request = request, .begin = time(NULL)};
    int rc = find_door(session.door, err);
    for (size_t i = 0; i < compare->point_count && rc == 0; i++)
        rc = run_point(&session, &compare->points[i], err);
    *signal = session.signal;
    return rc;
}
