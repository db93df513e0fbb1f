#include "emu/lab/strategies.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "emu/lab/guest.h"
#include "sim/report/child.h"
#include "sim/report/part.h"
#include "sim/report/result.h"
#include "sim/training/step.h"

#define PROGRESS "longhaul-rank: measures "
#define RANK_BYTES 200e6 /* Open MPI, its buffers, the kernel's of TCP; measured: 120 MB */

/* ---- the calibration */

static int read_efficiency(struct child_output *output, double *efficiency, struct err *err)
{
    json_t *json = NULL;
    int rc = child_json(output, &json, err);
    if (rc)
        return rc;
    struct part document = part_document(json, &rc, err);
    struct part calibration = part_object(&document, "calibration");
    *efficiency = part_number(&calibration, "kernel_efficiency");
    json_decref(json);
    return rc;
}

static int simulate(const struct request *request, double *efficiency, struct err *err)
{
    const struct child_watch watch = {INFINITY, NULL, NULL};
    struct child_output output = {0};
    char simulator[PATH_MAX], *programs = prepare_programs(err);
    const char **words = calloc(2 * request->set_count + 6, sizeof *words), **word = words;
    int rc = programs && words ? prepare_program(programs, "longhaul-sim", simulator, err) : -ENOMEM;
    if (rc == 0) {
        *word++ = simulator;
        *word++ = request->scenario;
        for (size_t i = 0; i < request->set_count; i++)
            *word++ = "--set", *word++ = request->sets[i];
        *word++ = "--lab-scale", *word++ = "--json", *word++ = "-";
        rc = child_run(words, &watch, &output, err);
        rc = rc ? rc : read_efficiency(&output, efficiency, err);
    }
    if (rc == -EINTR)
        err_set(err, EINTR, "interrupted");
    else if (rc)
        err_prefix(err, "the calibration that the simulator makes");
    child_output_free(&output);
    free(words);
    free(programs);
    return rc;
}

int strategies_efficiency(const struct request *request, double *efficiency, struct err *err)
{
    struct scenario scenario;
    int rc = scenario_load(request->scenario, request->sets, request->set_count, &scenario, err);
    bool calibrates = rc == 0 && scenario.calibrate.present;
    *efficiency = 0;
    if (rc == 0)
        scenario_free(&scenario);
    return calibrates ? simulate(request, efficiency, err) : rc;
}

/* ---- the command */

static int find_programs(struct err *err)
{
    static const char *const needed[][2] = {
        {"mpirun", "mpirun is not installed here, and starts the ranks; install Open MPI (openmpi-bin)"},
        {"longhaul-rank", "longhaul-rank is not installed here; build longhaul with Open MPI (libopenmpi-dev)"},
    };
    char path[PATH_MAX], *programs = prepare_programs(err);
    int rc = programs ? 0 : -ENOMEM;
    for (size_t i = 0; i < sizeof needed / sizeof *needed && rc == 0; i++) {
        rc = prepare_program(programs, needed[i][0], path, err);
        if (rc == -ENOTSUP)
            err_set(err, ENOTSUP, "%s", needed[i][1]);
    }
    free(programs);
    return rc;
}

int strategies_open(struct strategies *strategies, bool progress, struct err *err)
{
    static char mpirun[] = "mpirun", quiet[] = "--quiet", program[] = "longhaul-rank", json[] = "--json",
                timeline[] = "--timeline", out[] = "-", check[] = "--check-all", windows[] = "--open-windows",
                steps[] = "--steps", strategy[] = "--strategy", report[] = "--progress", scenario[] = GUEST_SCENARIO;
    char **word = strategies->words;
    strategies->output[0] = strategies->output[1] = -1;
    int rc = find_programs(err);
    if (rc)
        return rc;
    *word++ = mpirun, *word++ = quiet, *word++ = program, *word++ = scenario;
    *word++ = check, *word++ = windows, *word++ = json, *word++ = out;
    if (strategies->timeline)
        *word++ = timeline, *word++ = out;
    if (strategies->steps)
        *word++ = steps, *word++ = (char *)strategies->steps;
    if (strategies->strategy)
        *word++ = strategy, *word++ = (char *)strategies->strategy;
    if (progress)
        *word++ = report;
    strategies->start = time(NULL);
    for (int i = 0; i < 2; i++)
        if ((strategies->output[i] = memfd_create("longhaul-lab", MFD_CLOEXEC)) < 0)
            return err_set(err, errno, "no file in memory: %s", strerror(errno));
    return 0;
}

void strategies_close(struct strategies *strategies)
{
    for (int i = 0; i < 2; i++)
        if (strategies->output[i] >= 0)
            close(strategies->output[i]);
}

int strategies_memory(const struct scenario *scenario, double *bytes, struct err *err)
{
    double most = 0;
    for (size_t i = 0; i < scenario->strategy_count; i++) {
        struct step_plan plan;
        int rc = step_plan_init(&plan, scenario, &scenario->strategies[i], scenario->training.kernel_efficiency, err);
        if (rc)
            return rc;
        most = fmax(most, (double)plan.gradient_bytes + (double)plan.parameter_bytes + (double)plan.activation_bytes);
        step_plan_free(&plan);
    }
    *bytes = (double)scenario->lab.hosts * (double)scenario->site_count * (2 * most + RANK_BYTES);
    return 0;
}

/* ---- what came back */

/* All of a file in memory; caller frees. */
static char *text_of(int file)
{
    off_t size = lseek(file, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    ssize_t length = text ? pread(file, text, (size_t)size, 0) : 0;
    if (text)
        text[length > 0 ? length : 0] = '\0';
    return text;
}

void strategies_tick(void *argument)
{
    struct strategies *strategies = argument;
    long passed = (long)(time(NULL) - strategies->start);
    char *text = passed < 2 ? NULL : text_of(strategies->output[1]), *last = NULL;
    for (char *line = text; line && (line = strstr(line, PROGRESS)) != NULL; line++)
        last = line + strlen(PROGRESS);
    if (passed >= 2)
        fprintf(stderr, "\rlab: %.*s, %ld s\033[K", last ? (int)strcspn(last, "\r\n") : 8, last ? last : "starting",
                passed);
    strategies->shown |= passed >= 2;
    free(text);
}

/* Other words than progress, of ranks that went well. */
static void pass_warnings(const char *text)
{
    for (size_t length; *text; text += length) {
        length = strcspn(text, "\n");
        length += text[length] == '\n';
        if (strncmp(text, PROGRESS, strlen(PROGRESS)) != 0)
            fprintf(stderr, "%.*s", (int)length, text);
    }
}

static int failed(char *text, int code, struct err *err)
{
    static const char own[] = "longhaul-rank: ", shell[] = "longhaul lab: ";
    for (char *line, *rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        const char *words = !strncmp(line, own, strlen(own))       ? line + strlen(own)
                            : !strncmp(line, shell, strlen(shell)) ? line + strlen(shell)
                                                                   : NULL;
        if (words && strncmp(line, PROGRESS, strlen(PROGRESS)) != 0)
            return err_set(err, code == EXIT_USAGE ? EINVAL : EIO, "%s", words);
    }
    if (code > 128)
        return err_set(err, EIO, "a rank was ended by signal %d (%s)", code - 128, strsignal(code - 128));
    return err_set(err, EIO, "a rank ended with exit code %d, without a word", code);
}

static int write_text(const char *path, const char *text, size_t length, struct err *err)
{
    FILE *file = options_open(path, err);
    if (!file)
        return -EIO;
    (void)fwrite(text, 1, length, file);
    return options_close(file, path, err);
}

static int print_result(const struct strategies *strategies, const struct scenario *scenario, const char *text,
                        struct err *err)
{
    struct result result = {0};
    json_error_t where;
    json_t *json = json_loads(text, 0, &where);
    int rc = json ? result_from_json(json, scenario, &result, err)
                  : err_set(err, EIO, "the ranks' result cannot be read: line %d: %s", where.line, where.text);
    if (rc == 0 && strategies->json) {
        rc = write_text(strategies->json, text, strlen(text), err);
    } else if (rc == 0) {
        result_print(&result, stdout, options_colour(stdout), options_width(stdout));
        rc = options_close(stdout, "-", err);
    }
    result_free(&result);
    json_decref(json);
    return rc == -EINVAL ? -EIO : rc;
}

/* The timeline, if there is one, comes first and is one JSON document too. */
static int print_all(const struct strategies *strategies, const struct scenario *scenario, const char *text,
                     struct err *err)
{
    json_error_t where;
    if (!strategies->timeline)
        return print_result(strategies, scenario, text, err);
    json_t *timeline = json_loads(text, JSON_DISABLE_EOF_CHECK, &where);
    size_t length = (size_t)where.position;
    if (!timeline)
        return err_set(err, EIO, "the timeline cannot be read: line %d: %s", where.line, where.text);
    json_decref(timeline);
    int rc = write_text(strategies->timeline, text, length, err);
    return rc ? rc : print_result(strategies, scenario, text + length, err);
}

int strategies_report(struct strategies *strategies, const struct scenario *scenario, int code, struct err *err)
{
    char *out = text_of(strategies->output[0]), *words = text_of(strategies->output[1]);
    int rc = out && words ? 0 : err_set(err, ENOMEM, "out of memory");
    if (strategies->shown)
        fputs("\r\033[K", stderr);
    if (rc == 0 && code == 0) {
        pass_warnings(words);
        rc = print_all(strategies, scenario, out, err);
    } else if (rc == 0) {
        rc = failed(words, code, err);
    }
    free(out);
    free(words);
    return rc;
}
