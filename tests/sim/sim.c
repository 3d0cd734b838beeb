/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lives through histories that nobody thought of. A seed is a history; one that
 * breaks a promise is made as short as it gets and shown, so that it can be
 * kept and lived through again.
 *
 *   sim [SEEDS [FIRST]]   that many seeds, from 1; when not said, as many as
 *                         $DIAGPORT_SEEDS says, or 300
 *   sim --find SEEDS      which of them is the first to break a promise, and how
 *   sim --replay FILE...  histories as they are shown
 *   sim --tell FILE...    the same, saying after each event how everybody is
 *
 * Exit status 0, 1 for a broken promise, 2 for a wrong command line.
 */

#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/dice.h"
#include "tests/sim/history.h"

/* No history takes a hundredth of that. */
enum { SECONDS_MAX = 60 };

struct plot {
    uint32_t salt;
    struct happening events[HISTORY_EVENTS_MAX];
    size_t n_events;
};

static bool is_told;

/* Where the worker is, for when it ends. */
static volatile uint64_t *present_seed;

static void live(const struct plot *plot)
{
    struct history *history = history_new(plot->salt);

    history->is_told = is_told;

    for (size_t i = 0; i < plot->n_events; i++)
        history_happen(history, &plot->events[i]);
    history_end(history);
}

static void make_plot(struct plot *plot, uint64_t seed)
{
    struct dice dice = dice_new(seed);

    plot->salt = dice_throw(&dice, UINT32_MAX);
    plot->n_events = dice_throw(&dice, HISTORY_EVENTS_MAX);
    for (size_t i = 0; i < plot->n_events; i++) {
        plot->events[i].kind = history_draw_kind(dice_throw(&dice, UINT32_MAX));
        plot->events[i].salt = dice_throw(&dice, UINT32_MAX);
    }
}

/* How a history ended: empty when no promise was broken, else the first line of what was said. */
struct ending {
    char text[256];
};

static void tell_end(const struct plot *plot, int said)
{
    dup2(said, STDERR_FILENO);
    close(said);
    alarm(SECONDS_MAX);
    live(plot);
    _exit(0);
}

/* Lives through it in a process of its own. */
static struct ending ending_of(const struct plot *plot, bool is_shown)
{
    struct ending ending = {""};
    size_t length = 0;
    ssize_t n;
    int said[2], status;
    char rest[4096];
    pid_t pid;

    if (pipe(said) != 0 || (pid = fork()) < 0)
        err(2, "a process for a history");
    if (pid == 0) {
        close(said[0]);
        tell_end(plot, said[1]);
    }
    close(said[1]);
    while ((n = read(said[0], rest, sizeof rest)) > 0) {
        size_t kept = sizeof ending.text - 1 - length;

        if (is_shown && write(STDERR_FILENO, rest, (size_t)n) < 0)
            err(2, "standard error");
        kept = (size_t)n < kept ? (size_t)n : kept;
        memcpy(ending.text + length, rest, kept);
        length += kept;
    }
    close(said[0]);
    if (waitpid(pid, &status, 0) != pid)
        err(2, "waitpid");
    ending.text[strcspn(ending.text, "\n")] = '\0';
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        ending.text[0] = '\0';
    else if (length == 0)
        snprintf(ending.text, sizeof ending.text, "it ended with signal %d", WTERMSIG(status));
    return ending;
}

/* Leaves out ever smaller runs of events for as long as it ends in the same way. */
static void shorten(struct plot *plot, const struct ending *ending)
{
    for (size_t run = plot->n_events / 2; run > 0; run = run / 2) {
        for (size_t start = 0; start + run <= plot->n_events;) {
            static struct plot shorter;

            shorter.salt = plot->salt;
            shorter.n_events = plot->n_events - run;
            memcpy(shorter.events, plot->events, start * sizeof *plot->events);
            memcpy(shorter.events + start, plot->events + start + run,
                   (plot->n_events - start - run) * sizeof *plot->events);
            if (strcmp(ending_of(&shorter, false).text, ending->text) == 0)
                *plot = shorter;
            else
                start += run;
        }
    }
}

static void show(const struct plot *plot)
{
    printf("salt %u\n", plot->salt);
    for (size_t i = 0; i < plot->n_events; i++)
        printf("%s %u\n", history_kind_name(plot->events[i].kind), plot->events[i].salt);
}

static int replay(const char *name)
{
    FILE *file = fopen(name, "r");
    struct plot plot = {0};
    char kind[64];
    uint32_t salt;

    if (!file)
        err(2, "%s", name);
    while (fscanf(file, " #%*[^\n]") != EOF && fscanf(file, "%63s %u", kind, &salt) == 2) {
        struct happening *event = &plot.events[plot.n_events];

        if (strcmp(kind, "salt") == 0)
            plot.salt = salt;
        else if (plot.n_events == HISTORY_EVENTS_MAX || !history_find_kind(kind, &event->kind))
            errx(2, "%s: %s is no event, or one too many", name, kind);
        else
            plot.events[plot.n_events++].salt = salt;
    }
    fclose(file);
    if (ending_of(&plot, true).text[0] == '\0')
        return 0;
    fprintf(stderr, "%s ends badly\n", name);
    return 1;
}

/* Forks once for all seeds, since most break nothing; the seed that does is found where the worker
 * left it. */
static bool survives_all(uint64_t first, uint64_t n)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        err(2, "fork");
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(nowhere, STDERR_FILENO);
        for (uint64_t seed = first; seed < first + n; seed++) {
            static struct plot plot;

            *present_seed = seed;
            alarm(SECONDS_MAX);
            make_plot(&plot, seed);
            live(&plot);
        }
        exit(0);
    }
    if (waitpid(pid, &status, 0) != pid)
        err(2, "waitpid");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run_seeds(uint64_t n, uint64_t first, bool is_shortened)
{
    static struct plot plot;
    struct ending ending;

    present_seed =
        mmap(NULL, sizeof *present_seed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (present_seed == MAP_FAILED)
        err(2, "mmap");
    *present_seed = first;
    if (survives_all(first, n)) {
        printf("%llu histories from seed %llu\n", (unsigned long long)n, (unsigned long long)first);
        return 0;
    }
    fflush(stdout);
    make_plot(&plot, *present_seed);
    ending = ending_of(&plot, false);
    if (ending.text[0] == '\0') {
        printf("seed %llu ends badly only after those before it\n",
               (unsigned long long)*present_seed);
        return 1;
    }
    if (!is_shortened) {
        printf("seed %llu: %s\n", (unsigned long long)*present_seed, ending.text);
        return 1;
    }
    shorten(&plot, &ending);
    printf("# seed %llu, history %llu of this run, shortened:\n", (unsigned long long)*present_seed,
           (unsigned long long)(*present_seed - first + 1));
    show(&plot);
    fflush(stdout);
    ending_of(&plot, true);
    return 1;
}

int main(int argc, char **argv)
{
    bool is_search = argc == 3 && strcmp(argv[1], "--find") == 0;
    const char *wished = getenv("DIAGPORT_SEEDS"), *usual = wished ? wished : "300";
    const char *count = is_search ? argv[2] : argc > 1 ? argv[1] : usual;
    uint64_t n = strtoull(count, NULL, 10);
    uint64_t first = argc > 2 && !is_search ? strtoull(argv[2], NULL, 10) : 1;
    int status = 0;

    is_told = argc > 2 && strcmp(argv[1], "--tell") == 0;
    if (is_told || (argc > 2 && strcmp(argv[1], "--replay") == 0)) {
        for (int i = 2; i < argc; i++)
            status |= replay(argv[i]);
        return status;
    }
    if (n == 0 || argc > 3) {
        fprintf(stderr,
                "usage: sim [SEEDS [FIRST]] | sim --find SEEDS | sim --replay|--tell FILE...\n");
        return 2;
    }
    return run_seeds(n, first, !is_search);
}
