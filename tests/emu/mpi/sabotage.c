/* Preloaded into longhaul-rank by tests: rank SABOTAGE_RANK (default 3) does what SABOTAGE says at its 40th message:
 * "flip" one bit of what it sends, "kill" itself, "hang" for ever, "spin" for ever. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WHEN = 40 };

static const void *flipped(const void *buffer, int bytes)
{
    unsigned char *copy = malloc((size_t)bytes); /* for as long as MPI sends */
    memcpy(copy, buffer, (size_t)bytes);
    copy[2] ^= 0x40; /* of the first float: its mantissa */
    return copy;
}

static int is_due(void)
{
    static int sent;
    const char *own = getenv("OMPI_COMM_WORLD_RANK"), *who = getenv("SABOTAGE_RANK");
    return own && !strcmp(own, who ? who : "3") && ++sent == WHEN;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    const char *what = getenv("SABOTAGE");
    const struct timespec for_ever = {1000000, 0};
    if (what && is_due()) {
        if (!strcmp(what, "flip") && count > 3)
            buffer = flipped(buffer, count);
        else if (!strcmp(what, "kill"))
            raise(SIGKILL);
        else if (!strcmp(what, "hang"))
            nanosleep(&for_ever, NULL);
        else
            while (!strcmp(what, "spin"))
                ;
    }
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}
