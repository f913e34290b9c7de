/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements progress.h, and the functions of output.h for progress. A thread redraws the line
 * while something is compiled, since a single kernel may take seconds.
 */
#include "progress.h"

#include "host.h"
#include "interrupt.h"
#include "output.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SHOW_AFTER_MS 300
#define SHOW_EVERY_MS 50 /* terminals are slow */
#define TICK_MS 200
#define MAX_RUNNING 16   /* kernels at a time that are known; there are at most four helpers */
#define PHASE_GAP_MS 500 /* without compiling, after which it is counted anew */

static bool shows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock. */
static struct {
    bool is_shown, has_ticker;
    double since_ms; /* when the command's work began; 0: no such work */
    double shown_ms; /* when the line was drawn last */
    char text[256];  /* of the command; "": none */
    /* kernels that are being compiled */
    char running[MAX_RUNNING][96]; /* their names, the first one begun first */
    size_t n_running, n_begun;
    double compiling_since_ms, compiled_ms; /* of this phase; when the last one ended */
    char drawn[512];
} line;

bool progress_shows(void) { return shows; }

/* ---- drawing, with the lock held ------------------------------------------------------------- */

static void hide(void)
{
    if (line.is_shown) (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
    line.is_shown = false;
}

/* Writes the text of the line. */
static void compose(double now, char *text, size_t n)
{
    static const char counted[] = "compiling kernels";
    /* short work shows none */
    const bool compiles = line.n_running > 0 && now - line.compiling_since_ms >= SHOW_AFTER_MS;
    if (!compiles) {
        (void)snprintf(text, n, "%s", line.text);
        return;
    }
    const double seconds = floor((now - line.compiling_since_ms) / 1e3);
    if (line.text[0] == '\0')
        (void)snprintf(text, n, "%s %zu: %s, %.0f s", counted, line.n_begun,
                       printable(line.running[0]), seconds);
    else
        (void)snprintf(text, n, "%s%s%s, %.0f s", line.text,
                       strncmp(line.text, counted, sizeof counted - 1) == 0 ? ": " : "; compiling ",
                       printable(line.running[0]), seconds);
}

static void draw(double now)
{
    char text[sizeof line.drawn];
    if (interrupt_seen()) return; /* nothing goes on */
    compose(now, text, sizeof text);
    if (text[0] == '\0') {
        hide();
        return;
    }
    if (line.is_shown && strcmp(text, line.drawn) == 0) return;
    (void)fprintf(stderr, "\r\033[K%s", text);
    (void)fflush(stderr);
    memcpy(line.drawn, text, sizeof text);
    line.is_shown = true;
    line.shown_ms = now;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static void *tick(void *unused)
{
    for (;;) {
        host_pause_ms(TICK_MS);
        (void)pthread_mutex_lock(&lock);
        if (line.n_running > 0) draw(now_ms());
        (void)pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Starts the thread at the first kernel; without it, the line is drawn at each kernel only. */
static void start_ticker(void)
{
    pthread_t thread;
    if (line.has_ticker) return;
    line.has_ticker = true;
    if (pthread_create(&thread, NULL, tick, NULL) == 0) (void)pthread_detach(thread);
}

static void begin_kernel(const char *what)
{
    const double now = now_ms();
    if (line.n_running == 0 && now - line.compiled_ms > PHASE_GAP_MS) {
        line.n_begun = 0;
        line.compiling_since_ms = now;
    }
    line.n_begun++;
    if (line.n_running == MAX_RUNNING) return;
    (void)snprintf(line.running[line.n_running++], sizeof *line.running, "%s", what);
    start_ticker();
    if (now - line.shown_ms >= SHOW_EVERY_MS) draw(now);
}

static void end_kernel(const char *what)
{
    size_t i = 0;
    while (i < line.n_running && strncmp(line.running[i], what, sizeof *line.running - 1) != 0) i++;
    if (i == line.n_running) return;
    line.n_running--;
    for (; i < line.n_running; i++)
        memcpy(line.running[i], line.running[i + 1], sizeof *line.running);
    line.compiled_ms = now_ms();
    if (line.n_running == 0) draw(line.compiled_ms);
}

static void see_kernel(void *unused, const char *kernel, bool has_ended)
{
    (void)unused;
    (void)pthread_mutex_lock(&lock);
    if (has_ended)
        end_kernel(kernel);
    else
        begin_kernel(kernel);
    (void)pthread_mutex_unlock(&lock);
}

void progress_setup(bool is_on)
{
    shows = is_on;
    clg_set_compile_callback(is_on ? see_kernel : NULL, NULL);
}

/* ---- the command's line ---------------------------------------------------------------------- */

bool output_progress_due(void)
{
    if (!shows) return false;
    const double now = now_ms();
    (void)pthread_mutex_lock(&lock);
    if (line.since_ms == 0) line.since_ms = now;
    const bool is_due =
        now - line.since_ms >= SHOW_AFTER_MS && now - line.shown_ms >= SHOW_EVERY_MS;
    (void)pthread_mutex_unlock(&lock);
    return is_due;
}

void output_progress_text(const char *text)
{
    (void)pthread_mutex_lock(&lock);
    (void)snprintf(line.text, sizeof line.text, "%s", text);
    draw(now_ms());
    (void)pthread_mutex_unlock(&lock);
}

void output_progress(const char *what, size_t done, size_t total)
{
    char text[256];
    if (!output_progress_due()) return;
    if (total > 0)
        (void)snprintf(text, sizeof text, "%s %zu/%zu", what, done, total);
    else
        (void)snprintf(text, sizeof text, "%s %zu", what, done);
    output_progress_text(text);
}

static void end_text(bool ends_work)
{
    (void)pthread_mutex_lock(&lock);
    hide();
    line.text[0] = '\0';
    if (ends_work) line.since_ms = 0;
    (void)pthread_mutex_unlock(&lock);
}

void output_progress_hide(void) { end_text(false); }

void output_progress_clear(void) { end_text(true); }

void progress_pause(void)
{
    (void)pthread_mutex_lock(&lock);
    hide();
    line.text[0] = '\0';
    line.since_ms = 0;
}

void progress_go_on(void) { (void)pthread_mutex_unlock(&lock); }

bool output_progress_callback(void *user, const char *what, size_t done, size_t total)
{
    (void)user;
    output_progress(what, done, total);
    return !interrupt_seen();
}
