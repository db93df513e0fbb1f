/* What a scenario asks of its WAN that no simulation here models: jitter and loss. It is said, never dropped in
 * silence.
 */
#ifndef LONGHAUL_UNMODELLED_H
#define LONGHAUL_UNMODELLED_H

#include "configs/scenario.h"

/* Does any link have jitter or loss? */
bool unmodelled_any(const struct scenario *scenario);

/* One sentence for people, with the figures of every link up to a few: "Not simulated, as if it were zero: ord-iad
 * jitter 700 us (sd of the RTT), loss 0.1 % (one way)...". *text NULL where there is nothing to say; caller frees. 0 or
 * -ENOMEM. */
int unmodelled_text(const struct scenario *scenario, char **text, struct err *err);

#endif
