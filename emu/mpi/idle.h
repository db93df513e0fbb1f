/* How this program waits inside MPI without spinning: MPI polls its sockets with timeout 0 for ever, which burns a core
 * and stops a virtual clock. poll and epoll_wait of this program, which the MPI library calls, are our own: where MPI's
 * look finds nothing they wait on what MPI looked at, so that it sees an event at the moment it happens.
 *
 * What MPI would see in other ways (shared memory) it sees late by up to a quarter of the time it has waited for it:
 * ranks are on hosts of their own, and MPI between them is TCP. */
#ifndef LONGHAUL_MPI_IDLE_H
#define LONGHAUL_MPI_IDLE_H

/* From now on a wait of this thread ends when the bell (an eventfd) rings, too. */
void idle_begin(int bell);
void idle_end(void);
/* Waits for the bell alone. */
void idle_wait(void);

#endif
