/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the failing allocator. Not thread-safe, except for its counters, which are atomic.
 */
#include "support/fakes/failing_alloc.h"

#include "support/unit.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ALLOCATIONS ((size_t)1000000)

static atomic_size_t n_live, n_calls;
static size_t fail_at = SIZE_MAX;
static atomic_bool has_failed;

static void *resize(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    if (size_bytes == 0) {
        if (memory) atomic_fetch_sub(&n_live, 1);
        free(memory);
        return NULL;
    }
    if (atomic_fetch_add(&n_calls, 1) == fail_at) {
        atomic_store(&has_failed, true);
        return NULL;
    }
    void *moved = realloc(memory, size_bytes);
    if (moved && !memory) {
        memset(moved, 0xa5, size_bytes); /* callers must not rely on zeros */
        atomic_fetch_add(&n_live, 1);
    }
    return moved;
}

void failing_alloc_install(void)
{
    clg_allocator allocator = {.resize = resize};
    failing_alloc_arm(SIZE_MAX);
    assert_ok(memory_set_allocator(&allocator));
}

void failing_alloc_remove(void) { assert_ok(memory_set_allocator(NULL)); }

void failing_alloc_arm(size_t n)
{
    atomic_store(&n_calls, 0);
    atomic_store(&has_failed, false);
    fail_at = n;
}

bool failing_alloc_has_failed(void) { return atomic_load(&has_failed); }

size_t failing_alloc_n_live(void) { return atomic_load(&n_live); }

size_t fault_loop(fault_body body, void *user)
{
    static const char stale[] = "the message of an earlier error";
    for (size_t n = 0; n < MAX_ALLOCATIONS; n++) {
        size_t live_before = failing_alloc_n_live();
        (void)error_set(CLG_ERROR_INTERNAL, "%s", stale);
        failing_alloc_arm(n);
        clg_status status = body(user);
        bool failed = failing_alloc_has_failed();
        failing_alloc_arm(SIZE_MAX);
        if (failing_alloc_n_live() != live_before) fail_msg("allocation %zu failing leaks", n);
        if (!failed) {
            assert_ok(status);
            return n;
        }
        if (status >= 0) fail_msg("allocation %zu failing gave no error", n);
        if (error_text()[0] == '\0' || strcmp(error_text(), stale) == 0) {
            fail_msg("allocation %zu failing left no message", n);
        }
    }
    fail_msg("the body never gets through");
    return 0;
}

size_t fault_loop_alone(fault_body body, void *user)
{
    failing_alloc_install();
    const size_t n = fault_loop(body, user);
    failing_alloc_remove();
    return n;
}
