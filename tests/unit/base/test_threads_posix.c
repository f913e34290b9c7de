/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that the library's threads block signals, which leaves them to the program's own threads.
 */
#include "support/unit.h"

#include "base/threads.h"

#include <signal.h>

static void *look_at_mask(void *mask)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, mask);
    return NULL;
}

TEST(threads__block_signals)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD};
    sigset_t before, after, inside;
    (void)sigemptyset(&inside);
    look_at_mask(&before);
    thread t;
    assert_ok(thread_start(&t, look_at_mask, &inside));
    thread_join(t);
    look_at_mask(&after);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(sigismember(&inside, signals[i]), 1);
        assert_int_equal(sigismember(&before, signals[i]), 0);
        assert_int_equal(sigismember(&after, signals[i]), 0);
    }
}
