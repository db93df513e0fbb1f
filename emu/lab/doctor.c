/* longhaul-lab doctor. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "emu/lab/kernel.h"
#include "emu/lab/lab.h"
#include "emu/lab/network.h"
#include "emu/lab/prepare.h"
#include "emu/lab/pump.h"

#define START_LIMIT_S 30.0
#define MEMORY_BYTES 2e9

enum need { FOR_RUN, FOR_BUILD, OPTIONAL };
struct finding {
    bool good;
    char text[ERR_TEXT_MAX];
};

struct doctor {
    bool json;
    const char *kernel; /* --kernel */
};

static void set(struct finding *finding, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void set(struct finding *finding, bool good, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    finding->good = good;
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

/* ---- what is looked at */

static void look_kernel(const struct doctor *doctor, struct finding *finding)
{
    char path[PATH_MAX];
    struct err err = {""};
    if (kernel_find(doctor->kernel, path, &err))
        set(finding, false, "%s", err.text);
    else
        set(finding, true, "%.900s", path);
}

/* Really starts it: ptrace, executable shared memory and all that may be forbidden here. */
static void look_start(const struct doctor *doctor, struct finding *finding)
{
    char kernel[PATH_MAX];
    char *nothing[] = {NULL};
    struct err err = {""};
    struct machine machine;
    const struct spec spec = {.argv = nothing, .envp = nothing};
    struct machine_options options = {.kernel = kernel, .spec = &spec, .memory_bytes = MEMORY_BYTES, .terminal = -1};
    const struct pump_options pump = {
        .input = -1, .output = {STDOUT_FILENO, STDERR_FILENO}, .deadline_s = START_LIMIT_S};
    struct timespec start, end;
    int code = EXIT_FAILED;
    if (kernel_find(doctor->kernel, kernel, &err)) {
        set(finding, false, "not tried: no kernel");
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    int rc = machine_start(&options, &machine, &err);
    rc = rc ? rc : pump_run(&machine, &pump, &code, &err);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double taken_s = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    if (rc || code)
        set(finding, false, "the kernel does not start here (ptrace or executable shared memory forbidden?): %.700s",
            err.text);
    else
        set(finding, true, "starts and ends in %.1f s", taken_s);
}

static void look_shaper(const struct doctor *doctor, struct finding *finding)
{
    char path[PATH_MAX];
    struct err err = {""};
    char *programs = prepare_programs(&err);
    int rc = programs ? prepare_shaper(programs, path, &err) : -ENOMEM;
    (void)doctor;
    set(finding, !rc, "%.900s", rc ? err.text : path);
    free(programs);
}

static void look_memory(const struct doctor *doctor, struct finding *finding)
{
    struct statvfs room;
    double available_bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), shared_bytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    double kibibytes;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kibibytes) == 1)
            available_bytes = kibibytes * 1024;
    if (file)
        fclose(file);
    if (!statvfs("/dev/shm", &room))
        shared_bytes = (double)room.f_bavail * (double)room.f_frsize;
    (void)doctor;
    set(finding, available_bytes >= MEMORY_BYTES / 4, "%.1f GB free, %.1f GB in /dev/shm%s", available_bytes / 1e9,
        shared_bytes / 1e9,
        available_bytes < MEMORY_BYTES ? "; the lab takes up to 2 GB: --memory gives it less"
        : shared_bytes < MEMORY_BYTES  ? "; the lab's memory will be a file in /tmp (slower)"
                                       : "");
}

static void look_tools(const struct doctor *doctor, struct finding *finding)
{
    char tools[128], packages[128];
    (void)doctor;
    kernel_missing_tools(tools, sizeof tools, packages, sizeof packages);
    if (*tools)
        set(finding, false, "missing: %s; install: apt-get install %s", tools, packages);
    else
        set(finding, true, "make, gcc, bc, bison, flex, xz");
}

static void look_source(const struct doctor *doctor, struct finding *finding)
{
    struct kernel_source source;
    struct err err = {""};
    (void)doctor;
    int rc = kernel_source_find(NULL, &source, &err);
    set(finding, !rc, "%.900s", rc ? err.text : source.path);
}

static void look_program(const char *const *names, const char *package, const char *use, struct finding *finding)
{
    for (size_t i = 0; names[i]; i++)
        if (!kernel_on_path(names[i])) {
            set(finding, false, "no %s (%s); install: apt-get install %s", names[i], use, package);
            return;
        }
    set(finding, true, "%s", use);
}

static void look_iproute(const struct doctor *doctor, struct finding *finding)
{
    static const char *const names[] = {"ip", "tc", NULL};
    (void)doctor;
    look_program(names, "iproute2", "ip and tc, to look around inside", finding);
}

static void look_mpi(const struct doctor *doctor, struct finding *finding)
{
    static const char *const names[] = {"mpirun", NULL};
    (void)doctor;
    look_program(names, "openmpi-bin", "mpirun, for MPI programs in the lab", finding);
}

static void look_native(const struct doctor *doctor, struct finding *finding)
{
    struct err err = {""};
    (void)doctor;
    int rc = network_probe(&err);
    set(finding, !rc, "%s", rc ? err.text : "root, namespaces and netem are here");
}

static const struct check {
    const char *name;
    enum need need;
    void (*look)(const struct doctor *doctor, struct finding *finding);
} checks[] = {
    {"lab kernel", FOR_RUN, look_kernel},   {"start", FOR_RUN, look_start},
    {"longhaul-emu", FOR_RUN, look_shaper}, {"memory", FOR_RUN, look_memory},
    {"build tools", FOR_BUILD, look_tools}, {"kernel source", FOR_BUILD, look_source},
    {"iproute2", OPTIONAL, look_iproute},   {"mpirun", OPTIONAL, look_mpi},
    {"up --native", OPTIONAL, look_native},
};
enum { CHECK_COUNT = sizeof checks / sizeof *checks };

/* ---- what is said */

static const char *word(const struct check *check, const struct finding *finding)
{
    static const char *const words[] = {[FOR_RUN] = "MISSING", [FOR_BUILD] = "missing", [OPTIONAL] = "absent"};
    return finding->good ? "ok" : words[check->need];
}

static int print_json(const struct finding *findings, bool ready)
{
    static const char *const needs[] = {[FOR_RUN] = "run", [FOR_BUILD] = "build", [OPTIONAL] = "optional"};
    json_t *list = json_array();
    for (size_t i = 0; i < CHECK_COUNT; i++)
        json_array_append_new(list, json_pack("{ss ss sb ss}", "name", checks[i].name, "for", needs[checks[i].need],
                                              "good", findings[i].good, "text", findings[i].text));
    json_t *root = json_pack("{sb so}", "ready", ready, "checks", list);
    int failed = !root || json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
    return failed;
}

static void print_text(const struct finding *findings, bool ready)
{
    for (size_t i = 0; i < CHECK_COUNT; i++)
        printf("%-13s  %-7s  %s\n", checks[i].name, word(&checks[i], &findings[i]), findings[i].text);
    puts(ready ? "\n`longhaul lab run` works here."
               : "\n`longhaul lab run` does not work here yet: see MISSING above.");
}

static error_t take(int key, char *text, struct argp_state *state)
{
    struct doctor *doctor = state->input;
    if (key == 'j')
        doctor->json = true;
    else if (key == 'k')
        doctor->kernel = text;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "takes no '%s'", text);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {"kernel", 'k', "FILE", 0, "Try this kernel (default: the one that `longhaul lab build` made)", 0},
    {0}};
static const struct argp parser = {
    .options = options,
    .parser = take,
    .doc = "Says what the lab finds here, what is missing, and what to install. Starts the lab's kernel to see that it "
           "can (a second).\v"
           "  longhaul lab doctor\n"
           "  longhaul lab doctor --json | jq .ready\n\n"
           "Exit status: 0 `longhaul lab run` works here, 77 it does not, 2 wrong usage.",
};

int verb_doctor(int argc, char **argv)
{
    struct doctor doctor = {0};
    struct finding findings[CHECK_COUNT];
    bool ready = true;
    argp_parse(&parser, argc, argv, 0, NULL, &doctor);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        checks[i].look(&doctor, &findings[i]);
        ready &= findings[i].good || checks[i].need != FOR_RUN;
    }
    if (doctor.json && print_json(findings, ready))
        return EXIT_FAILED;
    if (!doctor.json)
        print_text(findings, ready);
    return ready ? EXIT_FINE : EXIT_UNAVAILABLE;
}
