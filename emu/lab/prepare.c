#include "emu/lab/prepare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/yaml.h"
#include "emu/lab/machine.h"

/* ---- programs */

char *prepare_programs(struct err *err)
{
    char folder[PATH_MAX], mark[PATH_MAX + 32], *folders = NULL;
    if (machine_program(folder, sizeof folder, err))
        return NULL;
    *strrchr(folder, '/') = '\0';
    snprintf(mark, sizeof mark, "%s/../../build.ninja", folder);
    char *top = access(mark, F_OK) == 0 ? strdup(folder) : NULL;
    for (int i = 0; top && i < 2; i++)
        *strrchr(top, '/') = '\0';
    int length = top ? asprintf(&folders, "%s:%s/sim:%s/sim/engine:%s/configs:%s/emu/verbs:%s/emu/mpi", folder, top,
                                top, top, top, top)
                     : asprintf(&folders, "%s", folder);
    free(top);
    if (length >= 0)
        return folders;
    err_set(err, ENOMEM, "out of memory");
    return NULL;
}

int prepare_program(const char *programs, const char *name, char path[PATH_MAX], struct err *err)
{
    const char *user = getenv("PATH");
    char *folders = NULL;
    bool found = false;
    if (asprintf(&folders, "%s:%s", programs, user ? user : "") < 0)
        return err_set(err, ENOMEM, "out of memory");
    char *rest = folders;
    for (char *folder; !found && (folder = strsep(&rest, ":")) != NULL;)
        found = *folder == '/' && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(path, X_OK) == 0;
    free(folders);
    return found ? 0 : err_set(err, ENOTSUP, "%s is not installed here", name);
}

int prepare_shaper(const char *programs, char path[PATH_MAX], struct err *err)
{
    int rc = prepare_program(programs, "longhaul-emu", path, err);
    return rc == -ENOTSUP ? err_set(err, ENOTSUP,
                                    "longhaul-emu is not installed here, and shapes the links of the lab; install "
                                    "longhaul with libnl (libnl-3-dev)")
                          : rc;
}

/* ---- folders */

static bool below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return path && !strncmp(path, folder, length) && (path[length] == '/' || path[length] == '\0');
}

/* Too much of the machine to be written by default: a folder that holds the home folder, one right below /, the
 * system's. */
static bool is_precious(const char *folder, const char *home)
{
    static const char *const system[] = {"/boot", "/dev", "/etc", "/usr"};
    bool precious = strrchr(folder, '/') == folder || (home && below(home, folder));
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        precious |= below(folder, system[i]);
    return precious;
}

static int choose_writable(const char *given, const char *working, char **writable, struct err *err)
{
    char real[PATH_MAX];
    const char *home = getenv("HOME");
    struct stat status;
    if (!given && is_precious(working, home && realpath(home, real) ? real : NULL))
        return 0; /* nothing: a slip there would cost too much */
    if (!realpath(given ? given : working, real) || stat(real, &status) || !S_ISDIR(status.st_mode))
        return err_set(err, EINVAL, "--writable %s: not a folder that is there", given);
    *writable = strdup(real);
    return *writable ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* May an empty /tmp cover the host's? Not where something that the lab needs lies below it. */
static bool tmp_can_be_covered(const struct spec *spec)
{
    char command[PATH_MAX], *programs = strdup(spec->programs), *rest = programs;
    bool needed = !programs || below(spec->folder, "/tmp") || below(spec->writable, "/tmp") ||
                  below(spec->shaper, "/tmp") ||
                  (strchr(spec->argv[0], '/') && realpath(spec->argv[0], command) && below(command, "/tmp"));
    for (char *folder; programs && (folder = strsep(&rest, ":")) != NULL;)
        needed |= below(folder, "/tmp");
    free(programs);
    return !needed;
}

/* ---- */

static char **copy_list(char *const *list)
{
    size_t count = 0;
    while (list[count])
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = strdup(list[i]))) {
            while (i--)
                free(copy[i]);
            free(copy);
            return NULL;
        }
    return copy;
}

static int check_host(const struct topology *topology, const char *host, struct err *err)
{
    if (!host || topology_host(topology, host))
        return 0;
    return err_set(err, EINVAL, "--on %s: no such host; hosts are %s to %s", host, topology->hosts[0].name,
                   topology->hosts[topology->host_count - 1].name);
}

static int scenario_text(const struct scenario *scenario, char **text, struct err *err)
{
    json_t *json = scenario_to_json(scenario);
    int rc = json ? yaml_emit(json, text, err) : err_set(err, ENOMEM, "out of memory");
    json_decref(json);
    return rc;
}

static int fill(const struct request *request, struct spec *spec, struct err *err)
{
    char shaper[PATH_MAX];
    spec->folder = getcwd(NULL, 0);
    if (!spec->folder)
        return err_set(err, errno, "the working directory is gone: %s", strerror(errno));
    spec->programs = prepare_programs(err);
    int rc = spec->programs ? 0 : -ENOMEM;
    rc = rc ? rc : prepare_shaper(spec->programs, shaper, err);
    rc = rc ? rc : choose_writable(request->writable, spec->folder, &spec->writable, err);
    if (rc)
        return rc;
    spec->shaper = strdup(shaper);
    spec->host = request->host ? strdup(request->host) : NULL;
    spec->argv = copy_list(request->command);
    spec->envp = copy_list(environ);
    if (!spec->shaper || !spec->argv || !spec->envp || (request->host && !spec->host))
        return err_set(err, ENOMEM, "out of memory");
    spec->private_tmp = tmp_can_be_covered(spec);
    return 0;
}

int prepare(const struct request *request, struct scenario *scenario, struct topology *topology, struct spec *spec,
            struct err *err)
{
    struct scenario full;
    int rc = scenario_load(request->scenario, request->sets, request->set_count, &full, err);
    if (rc)
        return rc;
    rc = scenario_lab_scale(&full, request->kernel_efficiency, scenario, err);
    scenario_free(&full);
    rc = rc ? rc : topology_build(scenario, topology, err);
    rc = rc ? rc : check_host(topology, request->host, err);
    rc = rc ? rc : scenario_text(scenario, &spec->scenario, err);
    return rc ? rc : fill(request, spec, err);
}
