/* Coroutines on their own stacks (ucontext), known to the address sanitizer.
 *
 * Exactly one runs at a time and control moves only where the code says, so whatever is built on them repeats exactly.
 */
#ifndef LONGHAUL_COROUTINE_H
#define LONGHAUL_COROUTINE_H

#include <stdbool.h>

struct coroutine;

/* A coroutine that will run function(argument) on its own stack of 256 KiB, guarded below. Nothing runs before the
 * first resume. NULL when there is no memory. The caller frees it. */
struct coroutine *coroutine_new(void (*function)(void *argument), void *argument);

/* Runs it until it yields or its function returns. True while it has more to do. Only outside of it, only while it has.
 */
bool coroutine_resume(struct coroutine *coroutine);

/* Back to whoever resumed it; returns at the next resume. Only inside of it. */
void coroutine_yield(struct coroutine *coroutine);

/* Frees the stack, even one that is not finished: what that one held is never released. NULL is fine. */
void coroutine_free(struct coroutine *coroutine);

#endif
