/* What MPI needs to start ranks on the hosts, and to wait for them in virtual time. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/lab/guest.h"
#include "emu/lab/machine.h"

#define HOST_FILE GUEST_FOLDER "/hostfile"
#define RSH_FILE GUEST_FOLDER "/rsh"
#define CLOCK_FILE GUEST_FOLDER "/clock.so" /* LD_PRELOAD takes no path with blanks or colons */
#define HOSTS_NETWORK "10.0.0.0/8"          /* all addresses of topology.h */

/* Each is an option that a user can set otherwise, by the same name. */
static const struct {
    const char *name, *value;
} settings[] = {
    /* Open MPI 4: where, and how to get there; no tree of daemons, the network's addresses are no secret of one host */
    {"OMPI_MCA_orte_default_hostfile", HOST_FILE},
    {"OMPI_MCA_plm", "rsh"},
    {"OMPI_MCA_plm_rsh_agent", RSH_FILE},
    {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
    {"OMPI_MCA_routed", "direct"},
    {"OMPI_MCA_oob_tcp_if_include", HOSTS_NETWORK},
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    /* every message crosses the network, none the memory that the hosts have in common */
    {"OMPI_MCA_pml", "ob1"},
    {"OMPI_MCA_mtl", "^psm,psm2,ofi"},
    {"OMPI_MCA_btl", "tcp,self"},
    {"OMPI_MCA_btl_tcp_if_include", HOSTS_NETWORK},
    /* what a socket has is read in one piece: a system call is dear here */
    {"OMPI_MCA_btl_tcp_endpoint_cache", "300000"},
    /* one CPU for all; more ranks than hosts are welcome */
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
};

/* ---- files */

static int write_hosts(const struct topology *topology, struct err *err)
{
    FILE *file = fopen(HOST_FILE, "w");
    bool failed = !file;
    for (size_t i = 0; !failed && i < topology->host_count; i++)
        failed = fprintf(file, "%s slots=1\n", topology->hosts[i].name) < 0;
    if (file)
        failed |= fclose(file) != 0;
    return failed ? err_set(err, EIO, HOST_FILE ": cannot be written: %s", strerror(errno)) : 0;
}

/* Where the library lies: beside this program's folder in a build tree, else where it is installed. */
static void link_clock(const char *program)
{
    static const char *const places[] = {"../mpi", CLOCK_FOLDER};
    char path[PATH_MAX];
    int length = (int)(strrchr(program, '/') - program);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (*places[i] == '/')
            snprintf(path, sizeof path, "%s/" CLOCK_LIBRARY, places[i]);
        else
            snprintf(path, sizeof path, "%.*s/%s/" CLOCK_LIBRARY, length, program, places[i]);
        if (access(path, R_OK) == 0 && symlink(path, CLOCK_FILE) == 0)
            return;
    }
}

int guest_mpi_files(const struct spec *spec, const struct topology *topology, struct err *err)
{
    char program[PATH_MAX];
    int rc = machine_program(program, sizeof program, err);
    rc = rc ? rc : write_hosts(topology, err);
    if (!rc && symlink(program, RSH_FILE))
        rc = err_set(err, errno, RSH_FILE ": %s", strerror(errno));
    if (!rc && !spec->real_time)
        link_clock(program);
    return rc;
}

/* ---- environment */

/* Ours first, so that what the user's own library calls is ours too. */
static int preload(void)
{
    const char *given = getenv("LD_PRELOAD");
    char *list = NULL;
    if (asprintf(&list, "%s%s%s", CLOCK_FILE, given && *given ? ":" : "", given ? given : "") < 0)
        return -ENOMEM;
    int failed = setenv("LD_PRELOAD", list, 1);
    free(list);
    return failed ? -ENOMEM : 0;
}

int guest_mpi_environment(const struct spec *spec, struct err *err)
{
    bool failed = false;
    if (!spec->real_time && access(CLOCK_FILE, R_OK) == 0)
        failed = preload() != 0;
    else if (!spec->real_time)
        fputs("longhaul lab: " CLOCK_LIBRARY " is not installed: MPI ranks that wait stop the virtual clock\n", stderr);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        failed |= setenv(settings[i].name, settings[i].value, 0) != 0;
    return failed ? err_set(err, ENOMEM, "out of memory") : 0;
}
