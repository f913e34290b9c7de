/* SPDX-License-Identifier: Apache-2.0
 *
 * Loses the device at each launch, upload, download, wait and other call of sessions and streams
 * (those of CLG_TEST_SHARE), in the layer opencl_lost: the call that fails says so, the next ones
 * fail without calling the driver, and after clg_context_recover the same sessions give right
 * results and hold nothing of the lost context. The device is lost again at each call of a
 * recovery, and each of its allocations fails.
 */
/* ctest: label slow timeout 900 */
#include "support/unit.h"

#include "support/case_share.h"
#include "support/fakes/failing_alloc.h"
#include "support/fakes/opencl_lost.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/session_life/session_life.h"
#include "support/fixtures/stream_rows.h"
#include "support/scratch.h"

#include "base/memory.h"
#include "ocl/buffer/buffer_pages.h"
#include "session/session.h"

#include <clgraph/opencl.h>

#include <string.h>

enum { SHARE = 4 }; /* see case_share_next */

static opencl_lost lost;

/* As drivers report a loss; the last one is NVIDIA's, of a kernel that read beyond a buffer. */
static const int codes[] = {CL_OUT_OF_RESOURCES,
                            OPENCL_LOST_MIXED,
                            CL_INVALID_COMMAND_QUEUE,
                            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                            CL_DEVICE_NOT_AVAILABLE,
                            CL_INVALID_CONTEXT,
                            -9999};
enum { N_CODES = sizeof codes / sizeof *codes };

static const char *const kind_names[] = {"launch", "write", "read", "wait", "call"};

/* with_probes: nothing is known of the device, and this process probes it. */
static clg_status open_context_for(bool with_probes, clg_context **out_context)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    options.cache_dir = with_probes ? "" : scratch_path("store");
    if (with_probes) options.compile_helper = "off";
    return clg_context_create(ocl_platforms_test_device(), &options, out_context);
}

static clg_status open_context(clg_context **out_context)
{
    return open_context_for(false, out_context);
}

/* What loses its device: `use` once, or the whole life of a session. */
typedef struct job {
    const session_life *life;
    clg_context *context;
    clg_session *session; /* NULL: created and freed by each job */
} job;

static clg_status do_job(const job *j)
{
    return j->session ? j->life->use(j->context, j->session)
                      : session_life_lead(j->life, j->context);
}

/* Recovers the context; the job is then right, and nothing of the lost context is left. is_known:
 * the library has seen the loss; otherwise one call asks the device. */
static void expect_recovery(const job *j, const char *what, long n, bool is_known)
{
    lost.arm(OPENCL_LOST_CALLS, -1, 0);
    clg_status status = clg_context_recover(j->context);
    if (status == CLG_OK) status = do_job(j);
    if (j->session) { /* a life may use only clones of it */
        assert_ok(session_enter(j->session));
        if (status == CLG_OK) status = session_renew(j->session);
        session_leave(j->session);
    }
    if (status != CLG_OK)
        fail_msg("%s: %s %ld: no recovery: %s", j->life->name, what, n, error_text());
    if (lost.n_touches() > (is_known ? 0 : 1))
        fail_msg("%s: %s %ld: %ld calls with lost objects", j->life->name, what, n,
                 lost.n_touches());
    if (lost.n_lost() > 0)
        fail_msg("%s: %s %ld: %ld lost objects are held", j->life->name, what, n, lost.n_lost());
}

/* Uses a lost context: it fails at once, and says what to call. */
static void expect_lost(const job *j, const char *what, long n)
{
    const long before = lost.n_touches();
    if (do_job(j) != CLG_ERROR_DEVICE_LOST)
        fail_msg("%s: %s %ld: not lost then: %s", j->life->name, what, n, error_text());
    assert_non_null(strstr(error_hint_text(), "clg_context_recover"));
    if (lost.n_touches() != before)
        fail_msg("%s: %s %ld: a lost object was used", j->life->name, what, n);
}

/* Loses the device at call n of a kind. Returns false when the job made fewer calls. */
static bool lose_at(const job *j, opencl_lost_kind kind, long n, int code)
{
    lost.arm(kind, n, code);
    const clg_status status = do_job(j);
    if (!lost.has_fired()) {
        lost.arm(OPENCL_LOST_CALLS, -1, 0);
        assert_ok(status);
        return false;
    }
    /* A session that is freed may be what found the loss. Creations may lack memory. */
    const bool is_seen = status == CLG_ERROR_DEVICE_LOST;
    const bool is_known =
        is_seen && lost.fired_code() != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (!is_seen && status != CLG_OK && kind != OPENCL_LOST_CALLS)
        fail_msg("%s: %s %ld, code %d: gave %s: %s", j->life->name, kind_names[kind], n, code,
                 status_name(status), error_text());
    if (is_known) expect_lost(j, kind_names[kind], n);
    expect_recovery(j, kind_names[kind], n, is_known);
    return true;
}

/* Loses the device at the calls of this run's share, with another code each time. Returns their
 * number, at most SHARE - 1 too many. */
static long lose_at_each(const job *j, opencl_lost_kind kind)
{
    size_t n = 0, code = 0;
    while (lose_at(j, kind, (long)n, codes[code % N_CODES])) {
        n = case_share_next(n, SHARE);
        code++;
    }
    return (long)n;
}

TEST(lost_device__at_every_launch_transfer_and_wait_of_a_session)
{
    for (size_t i = 0; i < n_session_lives; i++) {
        buffer_pages_use_from(i % 2); /* of every second life all, see session_faults */
        job j = {.life = &session_lives[i]};
        long n[OPENCL_LOST_KINDS];
        assert_ok(open_context(&j.context));
        assert_ok(session_life_open(j.life, j.context, &j.session));
        assert_ok(do_job(&j));
        for (int kind = 0; kind < OPENCL_LOST_CALLS; kind++)
            n[kind] = lose_at_each(&j, (opencl_lost_kind)kind);
        print_message("%s: %ld launches, %ld writes, %ld reads, %ld waits\n", j.life->name,
                      n[OPENCL_LOST_LAUNCHES], n[OPENCL_LOST_WRITES], n[OPENCL_LOST_READS],
                      n[OPENCL_LOST_WAITS]);
        assert_true(n[OPENCL_LOST_WAITS] > 0);
        clg_session_free(j.session);
        clg_context_free(j.context);
        assert_int_equal(lost.n_live(), 0);
        assert_int_equal(memory_n_live(), 0);
    }
}

TEST(lost_device__at_calls_of_a_sessions_creation_run_and_release)
{
    for (size_t i = 0; i < n_session_lives; i++) {
        buffer_pages_use_from(i % 2); /* of every second life all, see session_faults */
        job j = {.life = &session_lives[i]};
        assert_ok(open_context(&j.context));
        assert_ok(do_job(&j));
        const long n = lose_at_each(&j, OPENCL_LOST_CALLS);
        print_message("%s: %ld calls\n", j.life->name, n);
        assert_true(n > 20);
        clg_context_free(j.context);
        assert_int_equal(lost.n_live(), 0);
        assert_int_equal(memory_n_live(), 0);
    }
}

TEST(lost_device__at_every_call_of_a_contexts_creation)
{
    clg_context *context;
    long n = 0;
    for (bool fired = true; fired; n++) {
        lost.arm(OPENCL_LOST_CALLS, n, codes[n % N_CODES]);
        const clg_status status = open_context_for(true, &context);
        fired = lost.has_fired();
        lost.arm(OPENCL_LOST_CALLS, -1, 0);
        if (status == CLG_OK) {
            if (fired) assert_ok(clg_context_recover(context));
            clg_context_free(context);
        }
        assert_true(fired || status == CLG_OK);
        assert_int_equal(lost.n_live(), 0);
        assert_int_equal(memory_n_live(), 0);
    }
    assert_true(n > 3);
}

/* ---- the recovery ---------------------------------------------------------------------------- */

/* The lives of which each call and allocation of a recovery fails: with computed, packed weights
 * and with several segments. */
static const char *const recovered_lives[] = {
    "a computed weight in two forms", "a count from the device", "linked state, asynchronously"};

static void open_job(job *j, const char *name)
{
    *j = (job){0};
    for (size_t i = 0; i < n_session_lives; i++)
        if (strcmp(session_lives[i].name, name) == 0) j->life = &session_lives[i];
    assert_non_null(j->life);
    assert_ok(open_context(&j->context));
    assert_ok(session_life_open(j->life, j->context, &j->session));
    assert_ok(do_job(j));
}

static void close_job(job *j)
{
    clg_session_free(j->session);
    clg_context_free(j->context);
    assert_int_equal(lost.n_live(), 0);
}

static void lose(const job *j)
{
    lost.arm(OPENCL_LOST_WAITS, 0, CL_OUT_OF_RESOURCES);
    assert_int_equal(do_job(j), CLG_ERROR_DEVICE_LOST);
    lost.arm(OPENCL_LOST_WAITS, -1, 0);
}

/* Loses the device again at call n of the recovery and the rebuild. Returns false when there are
 * fewer. */
static bool lose_again_at(const job *j, long n)
{
    lose(j);
    lost.arm(OPENCL_LOST_CALLS, n, codes[n % N_CODES]);
    clg_status status = clg_context_recover(j->context);
    if (status == CLG_OK) status = do_job(j);
    if (!lost.has_fired()) {
        lost.arm(OPENCL_LOST_CALLS, -1, 0);
        assert_ok(status);
        return false;
    }
    if (status != CLG_OK) assert_true(error_text()[0] != '\0');
    expect_recovery(j, "call of a recovery", n, false);
    return true;
}

TEST(lost_device__again_at_every_call_of_its_recovery)
{
    job j;
    for (size_t i = 0; i < sizeof recovered_lives / sizeof *recovered_lives; i++) {
        open_job(&j, recovered_lives[i]);
        long n = 0;
        while (lose_again_at(&j, n)) n = (long)case_share_next((size_t)n, SHARE);
        print_message("%s: %ld calls of a recovery\n", j.life->name, n);
        assert_true(n > 20);
        close_job(&j);
        assert_int_equal(memory_n_live(), 0);
    }
}

/* Lets allocation n of the recovery and the rebuild fail. Returns false when there are fewer. */
static bool lack_memory_at(const job *j, size_t n)
{
    lose(j);
    failing_alloc_arm(n);
    clg_status status = clg_context_recover(j->context);
    if (status == CLG_OK) status = do_job(j);
    const bool failed = failing_alloc_has_failed();
    failing_alloc_arm(SIZE_MAX);
    if (!failed) {
        assert_ok(status);
        return false;
    }
    expect_recovery(j, "allocation of a recovery", (long)n, true);
    return true;
}

TEST(lost_device__every_allocation_of_its_recovery_fails)
{
    job j;
    failing_alloc_install();
    for (size_t i = 0; i < sizeof recovered_lives / sizeof *recovered_lives; i++) {
        open_job(&j, recovered_lives[i]);
        size_t n = 0;
        while (lack_memory_at(&j, n)) n = case_share_next(n, SHARE);
        print_message("%s: %zu allocations of a recovery\n", j.life->name, n);
        assert_true(n > 50);
        close_job(&j);
        assert_int_equal(failing_alloc_n_live(), 0);
    }
    failing_alloc_remove();
}

/* ---- streams --------------------------------------------------------------------------------- */

enum { BATCH = 4, DEPTH = 3, N_ROWS = 30 };

static long lose_stream(clg_context *context, clg_stream *stream, opencl_lost_kind kind)
{
    for (long n = 0;; n++) {
        stream_rows rows = {.n_rows = N_ROWS, .stream = stream};
        lost.arm(kind, n, codes[n % N_CODES]);
        const clg_status status = clg_stream_run(stream, stream_rows_give, stream_rows_take, &rows);
        if (!lost.has_fired()) {
            lost.arm(OPENCL_LOST_CALLS, -1, 0);
            assert_ok(status);
            return n;
        }
        /* after the last row, a loss may remain unseen */
        if (status != CLG_OK) assert_int_equal(status, CLG_ERROR_DEVICE_LOST);
        lost.arm(kind, -1, 0);
        assert_ok(clg_context_recover(context));
        stream_rows_run(stream, N_ROWS, 0);
        assert_int_equal(lost.n_touches(), 0);
    }
}

static void lose_streams(stream_memory memory)
{
    clg_context *context;
    assert_ok(open_context(&context));
    clg_model *model = stream_rows_model(-1);
    clg_session *s = stream_rows_session_of(context, model);
    clg_stream *stream = stream_rows_make(&s, 1, BATCH, DEPTH, memory);
    clg_session_free(s);
    clg_model_free(model);
    for (int kind = 0; kind < OPENCL_LOST_CALLS; kind++) {
        const long n = lose_stream(context, stream, (opencl_lost_kind)kind);
        print_message("a stream: %ld of kind '%s'\n", n, kind_names[kind]);
        assert_true(n > 0 || kind == OPENCL_LOST_WRITES);
    }
    assert_int_equal(lost.n_lost(), 0);
    clg_stream_free(stream);
    clg_context_free(context);
    assert_int_equal(lost.n_live(), 0);
    assert_int_equal(memory_n_live(), 0);
}

TEST(lost_device__at_every_launch_transfer_and_wait_of_a_stream)
{
    lose_streams(STREAM_MEMORY_AUTO);
    lose_streams(STREAM_MEMORY_STAGED);
}

/* Two threads run batches: where a buffer of one cannot be created since the other's command has
 * lost the device, the result is the loss and no lack of memory. */
TEST(lost_device__seen_first_by_another_thread_of_a_stream)
{
    size_t n_streams = 0;
    lost.late(true);
    for (size_t i = 0; i < n_session_lives; i++) {
        job j;
        if (strncmp(session_lives[i].name, "a stream", 8) != 0) continue;
        n_streams++;
        open_job(&j, session_lives[i].name);
        for (int kind = 0; kind < OPENCL_LOST_CALLS; kind++)
            for (long n = 0; lose_at(&j, (opencl_lost_kind)kind, n, codes[n % N_CODES]); n++)
                continue;
        close_job(&j);
        assert_int_equal(memory_n_live(), 0);
    }
    lost.late(false);
    assert_int_equal(n_streams, 2);
}

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    ocl_platforms_show_pocl();
    if (!opencl_lost_open(&lost)) return 1;
    return test_run_all();
}
