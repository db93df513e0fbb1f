#include "coroutine.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define COROUTINE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COROUTINE_ASAN 1
#endif
#endif

typedef int swap_function(ucontext_t *save, const ucontext_t *to);

#ifdef COROUTINE_ASAN
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>

/* The C library's own swapcontext: the sanitizer's prints a warning that the calls below make needless. */
static swap_function *swap_find(void)
{
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    swap_function *swap = library ? (swap_function *)(uintptr_t)dlsym(library, "swapcontext") : NULL;

    if (library)
        dlclose(library);
    return swap ? swap : swapcontext;
}
#else
/* The same calls without the sanitizer: nothing to tell. */
static swap_function *swap_find(void)
{
    return swapcontext;
}
static void __asan_unpoison_memory_region(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}
static void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t bytes)
{
    (void)save, (void)bottom, (void)bytes;
}
static void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *bytes)
{
    (void)save, (void)bottom, (void)bytes;
}
#endif

enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 64 * 1024 };

struct coroutine {
    ucontext_t inside, outside;
    swap_function *swap;
    void (*function)(void *);
    void *argument;
    char *map; /* the guard, then the stack */
    bool finished;
    const void *outside_stack; /* for the sanitizer: the stack to go back to */
    size_t outside_bytes;
};

/* makecontext passes ints only, so the pointer comes in two halves. */
static void coroutine_entry(unsigned high, unsigned low)
{
    struct coroutine *coroutine = (struct coroutine *)(((uintptr_t)high << 32) | low);

    __sanitizer_finish_switch_fiber(NULL, &coroutine->outside_stack, &coroutine->outside_bytes);
    coroutine->function(coroutine->argument);
    coroutine->finished = true;
    __sanitizer_start_switch_fiber(NULL, coroutine->outside_stack, coroutine->outside_bytes);
    setcontext(&coroutine->outside);
}

static char *stack_map(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    char *map = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (map == MAP_FAILED)
        return NULL;
    if (mprotect(map, GUARD_BYTES, PROT_NONE) != 0) {
        munmap(map, GUARD_BYTES + STACK_BYTES);
        return NULL;
    }
    __asan_unpoison_memory_region(map + GUARD_BYTES, STACK_BYTES); /* marks of an earlier stack at this address */
    return map;
}

/* Apart from coroutine_new, for getcontext returns twice. False when it cannot. */
static bool context_make(struct coroutine *coroutine)
{
    uintptr_t address = (uintptr_t)coroutine;

    if (getcontext(&coroutine->inside) != 0)
        return false;
    coroutine->inside.uc_stack.ss_sp = coroutine->map + GUARD_BYTES;
    coroutine->inside.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine->inside, (void (*)(void))coroutine_entry, 2, (unsigned)(address >> 32), (unsigned)address);
    return true;
}

struct coroutine *coroutine_new(void (*function)(void *argument), void *argument)
{
    struct coroutine *coroutine = calloc(1, sizeof *coroutine);

    if (!coroutine)
        return NULL;
    coroutine->function = function;
    coroutine->argument = argument;
    coroutine->swap = swap_find();
    coroutine->map = stack_map();
    if (!coroutine->map || !context_make(coroutine)) {
        coroutine_free(coroutine);
        return NULL;
    }
    return coroutine;
}

bool coroutine_resume(struct coroutine *coroutine)
{
    void *save = NULL;

    __sanitizer_start_switch_fiber(&save, coroutine->map + GUARD_BYTES, STACK_BYTES);
    coroutine->swap(&coroutine->outside, &coroutine->inside);
    __sanitizer_finish_switch_fiber(save, NULL, NULL);
    return !coroutine->finished;
}

void coroutine_yield(struct coroutine *coroutine)
{
    void *save = NULL;

    __sanitizer_start_switch_fiber(&save, coroutine->outside_stack, coroutine->outside_bytes);
    coroutine->swap(&coroutine->inside, &coroutine->outside);
    __sanitizer_finish_switch_fiber(save, &coroutine->outside_stack, &coroutine->outside_bytes);
}

void coroutine_free(struct coroutine *coroutine)
{
    if (!coroutine)
        return;
    if (coroutine->map)
        munmap(coroutine->map, GUARD_BYTES + STACK_BYTES);
    free(coroutine);
}
