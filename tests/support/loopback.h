/* The smallest full backend of sim/training/transport.h: every rank in this process, real buffers, no SimGrid, no MPI.
 *
 * Streams are coroutines that run one at a time, in the order in which they became ready, so a run repeats exactly.
 * It is as strict as the contract allows, so that what works here works on every backend:
 *  - a send is done only once its receive is posted (no message is eager);
 *  - a message carries the bytes of the moment of its isend, and a span that changed before the send's wait is an
 * error;
 *  - a receive fills its span in transport_wait, not before;
 *  - a rank does not send to itself; every request is waited for, every spawned stream joined once.
 * Time: messages cost nothing. A message is done at the later of its isend and irecv, compute adds its seconds, a wait
 * or a join moves the stream to the later time: transport_now is the critical path with free communication.
 */
#ifndef LONGHAUL_LOOPBACK_H
#define LONGHAUL_LOOPBACK_H

#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"
#include "sim/training/transport.h"

enum { LOOPBACK_REGIONS = REGION_ACTIVATION + 1 };

/* As a region's size: no buffer, spans of any size are only counted, as in the simulator. */
#define LOOPBACK_COUNTED SIZE_MAX

struct loopback;

/* A world of `ranks` (1 .. 1048576; a few thousand is practical) whose ranks all have regions of these sizes, zeroed.
 * Sizes are bytes per rank, 0 and LOOPBACK_COUNTED included. NULL when a value is out of range or memory is short.
 * The caller frees it. */
struct loopback *loopback_new(int ranks, const size_t region_bytes[LOOPBACK_REGIONS]);

/* NULL is fine. Not inside a run. */
void loopback_free(struct loopback *loopback);

/* The buffer of a rank's region, owned by the loopback until loopback_free; its contents survive runs. Aligned for
 * float, bytes / 4 of them whole. NULL for a region without a buffer (size 0 or LOOPBACK_COUNTED), a rank or region
 * that is not. */
float *loopback_region(const struct loopback *loopback, int rank, enum region region);

/* Runs main(stream, argument) as the first stream of every rank, rank 0 first, until all streams have ended. The
 * argument is shared by all ranks and stays the caller's. May be called again; counters below go on. One run at a time.
 *
 * Returns 0, or a negative errno with a message in err (NULL is fine) for the first thing that went wrong:
 *  -EDEADLK  every stream is blocked; names the lowest blocked rank and what it waits for
 *  -EINVAL   lengths of a send and its receive differ; a rank, channel (< 0), span, region or time (< 0, not finite)
 * that is not; a send to itself; a span to accumulate that is not whole floats; a span changed while being sent; a
 *            request waited for by another stream; a stream joined twice or by another rank; and at the end a send or
 *            receive without its other half, a request never waited for, a stream never joined
 *  -ENOMEM   memory
 * After the first error operations do nothing (isend and irecv return NULL, waits return at once) and the streams run
 * to their end, so that they release what they hold; what is in the regions is then of no meaning. */
int loopback_run(struct loopback *loopback, stream_function *main, void *argument, struct err *err);

/* The latest time at which a stream of the last run ended, in s: see "Time" above. */
double loopback_time(const struct loopback *loopback);

/* What rank `from` sent to rank `to` and was received (posted, at least), in all runs so far. 0 for ranks that are not.
 */
uint64_t loopback_bytes(const struct loopback *loopback, int from, int to);
uint64_t loopback_messages(const struct loopback *loopback, int from, int to);

/* Bytes from all ranks of one site to all ranks of another (or the same); site_of[rank] for every rank. */
uint64_t loopback_site_bytes(const struct loopback *loopback, const int *site_of, int from_site, int to_site);

#endif
