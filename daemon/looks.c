/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/looks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/handle.h"
#include "daemon/workers.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/procfs.h"
#include "lib/seam.h"
#include "lib/tree.h"

enum {
    WORKERS_MAX = 4,
    READ_SIZE = 64 * 1024,
    READS_PER_TURN = 4,
    TRIES_MAX = 2, /* of a look whose worker ended */
};

/* Of a worker that has begun, without a sign of it: then it is looked at, and after as long again
 * that it has not moved since, it hangs. And all in all. Beginning may take longer on a machine
 * that is busy, and says nothing about the process. */
#define SIGN_TIME span_from_ms(125)
#define LOOK_TIME span_from_ms(1000)
/* Who looks that much too late has been stopped, or slept, and gives it the time again. */
#define STALL_TIME span_from_ms(100)
/* For which a user who made a worker hang gets no other. */
#define PENALTY_TIME span_from_s(10)
/* Deadlines and peers wait no longer than that for looks to be begun. */
#define TURN_TIME span_from_ms(5)

/* A place for a worker, and what it does. */
struct place {
    struct looks *looks;
    struct worker *worker; /* NULL: none was needed yet */
    struct look *look;     /* NULL: it waits */
    struct seam_answer answer;
    struct bytes input;
    int n_tries;
    bool has_begun;
    bool was_late;   /* it was given its time again */
    bool is_suspect; /* its worker was looked at since its last sign */
    struct moment sign_end;
    struct moment end;
};

struct penalty {
    TAILQ_ENTRY(penalty) link;
    uint32_t uid;
    struct moment end;
};

struct looks {
    struct looks_options options;
    struct questions *questions;
    TAILQ_HEAD(, questions_entry) unknown; /* those that are answered without a look */
    TAILQ_HEAD(, penalty) penalties;       /* the first one ends first */
    struct place places[WORKERS_MAX];
    bool is_stuck;
};

static void on_answer(void *context);

static struct look *look_of(struct questions_entry *entry)
{
    return container_of(entry, struct look, entry);
}

struct looks *looks_new(const struct looks_options *options)
{
    struct looks *looks = calloc(1, sizeof *looks);

    if (!looks)
        return NULL;
    looks->options = *options;
    TAILQ_INIT(&looks->unknown);
    TAILQ_INIT(&looks->penalties);
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        looks->places[i].looks = looks;
        bytes_init(&looks->places[i].input, SEAM_ANSWER_MAX + READ_SIZE);
    }
    looks->questions = questions_new();
    if (!looks->questions)
        return looks_free(looks);
    /* One is there before anybody needs it; where that fails it is tried again when one is needed.
     */
    looks->places[0].worker =
        worker_new(options->workers, WORKER_LOOKS, -1, on_answer, &looks->places[0]);
    return looks;
}

static void end_penalty(struct looks *looks, struct penalty *penalty)
{
    TAILQ_REMOVE(&looks->penalties, penalty, link);
    free(penalty);
}

static struct look *take_unknown(struct looks *looks)
{
    struct questions_entry *entry = TAILQ_FIRST(&looks->unknown);

    if (!entry)
        return NULL;
    TAILQ_REMOVE(&looks->unknown, entry, link);
    return look_of(entry);
}

struct looks *looks_free(struct looks *looks)
{
    struct questions_entry *entry;
    struct look *look;

    if (!looks)
        return NULL;
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        struct place *place = &looks->places[i];

        if (place->look) {
            seam_answer_deinit(&place->answer);
            place->look->owner->end(place->look);
        }
        bytes_deinit(&place->input);
        worker_free(place->worker);
    }
    while (looks->questions && (entry = questions_take_any(looks->questions)))
        look_of(entry)->owner->end(look_of(entry));
    while ((look = take_unknown(looks)))
        look->owner->end(look);
    while (!TAILQ_EMPTY(&looks->penalties))
        end_penalty(looks, TAILQ_FIRST(&looks->penalties));
    questions_free(looks->questions);
    free(looks);
    return NULL;
}

/* Those who get nothing. */

static bool is_penalized(struct looks *looks, uint32_t uid)
{
    struct moment now = clock_now();
    const struct penalty *penalty;

    while (!TAILQ_EMPTY(&looks->penalties) &&
           moment_is_due(TAILQ_FIRST(&looks->penalties)->end, now))
        end_penalty(looks, TAILQ_FIRST(&looks->penalties));
    TAILQ_FOREACH(penalty, &looks->penalties, link) {
        if (penalty->uid == uid)
            return true;
    }
    return false;
}

/* Each costs a worker that hung for a while, so there are not many. */
static void penalize(struct looks *looks, uint32_t uid)
{
    struct penalty *penalty = malloc(sizeof *penalty);
    struct questions_entry *entry;

    if (penalty) {
        *penalty = (struct penalty){.uid = uid, .end = moment_after(clock_now(), PENALTY_TIME)};
        TAILQ_INSERT_TAIL(&looks->penalties, penalty, link);
    }
    while ((entry = questions_take_of(looks->questions, uid)))
        TAILQ_INSERT_TAIL(&looks->unknown, entry, link);
}

static void judge_stuck(struct looks *looks)
{
    bool is_stuck = workers_abandoned(looks->options.workers) >= WORKERS_ABANDONED_MAX;
    struct questions_entry *entry;

    while (is_stuck && (entry = questions_take_any(looks->questions)))
        TAILQ_INSERT_TAIL(&looks->unknown, entry, link);
    if (is_stuck == looks->is_stuck)
        return;
    looks->is_stuck = is_stuck;
    looks->options.be_stuck(looks->options.context, is_stuck);
}

bool looks_put(struct looks *looks, struct look *look)
{
    if (!looks->is_stuck && !is_penalized(looks, look->entry.uid))
        return questions_put(looks->questions, &look->entry);
    TAILQ_INSERT_TAIL(&looks->unknown, &look->entry, link);
    return true;
}

/* Answers. */

static void answer_unknown(struct look *look)
{
    if (look->owner->begin(look))
        look->owner->answer(look, seam_unknown(look->question));
    look->owner->end(look);
}

/* With what is there; the place is free before anybody hears of it. */
static void finish(struct place *place)
{
    struct look *look = util_take(&place->look);
    struct facts *facts = seam_answer_finish(&place->answer);

    bytes_deinit(&place->input);
    questions_done(place->looks->questions, look->entry.uid);
    look->owner->answer(look, facts);
    look->owner->end(look);
}

/* Begins with a worker that is there, or a new one; false when there can be none. */
static bool ask(struct place *place)
{
    struct bytes question;
    bool is_sent;

    if (!place->worker)
        place->worker =
            worker_new(place->looks->options.workers, WORKER_LOOKS, -1, on_answer, place);
    if (!place->worker)
        return false;
    bytes_init(&question, SEAM_QUESTION_MAX);
    seam_put_question(&question, place->look->question);
    is_sent = bytes_finish(&question) == 0 &&
              send(worker_socket(place->worker), question.data, question.length,
                   MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)question.length;
    bytes_deinit(&question);
    return is_sent;
}

/* The worker is of no use any more. What is there of an answer is forgotten, and another worker
 * tries once, in the same time. */
static void replace(struct place *place)
{
    place->worker = worker_lose(place->worker);
    if (!place->look)
        return;
    bytes_deinit(&place->input);
    place->has_begun = false;
    seam_answer_deinit(&place->answer);
    if (seam_answer_init(&place->answer, place->look->question) != 0) {
        struct look *look = util_take(&place->look);

        questions_done(place->looks->questions, look->entry.uid);
        look->owner->answer(look, NULL);
        look->owner->end(look);
        return;
    }
    if (place->n_tries++ < TRIES_MAX && ask(place))
        return;
    if (place->worker)
        place->worker = worker_lose(place->worker);
    finish(place);
}

/* Takes the whole frames that are there. False for what is no answer to the question. */
static bool take_frames(struct place *place)
{
    size_t at = 0, size;
    int error = 0;

    while (error == 0 && !place->answer.is_whole) {
        const uint8_t *frame = place->input.data + at;

        error = seam_frame(frame, place->input.length - at, SEAM_ANSWER_MAX, &size);
        if (error == 0)
            error = seam_answer_take(&place->answer, frame, size);
        if (error == 0)
            at += size;
    }
    if (error == SEAM_E_MALFORMED || (place->answer.is_whole && at < place->input.length))
        return false;
    bytes_drop(&place->input, at);
    return true;
}

/* False when the worker is gone, or talks nonsense. */
static bool read_some(struct place *place, bool *ret_has_more)
{
    static uint8_t buffer[READ_SIZE];
    ssize_t length;

    *ret_has_more = false;
    do
        length = recv(worker_socket(place->worker), buffer, sizeof buffer, MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return true;
    if (length <= 0 || !place->look)
        return false;
    place->has_begun = true;
    place->is_suspect = false;
    place->sign_end = moment_after(clock_now(), SIGN_TIME);
    bytes_put_run(&place->input, buffer, (size_t)length);
    *ret_has_more = length == sizeof buffer;
    return place->input.error == 0 && take_frames(place);
}

static void read_answer(struct place *place)
{
    bool has_more = true;

    for (int i = 0; i < READS_PER_TURN && has_more; i++) {
        if (!read_some(place, &has_more)) {
            replace(place);
            return;
        }
    }
    if (place->look && place->answer.is_whole)
        finish(place);
}

static void on_answer(void *context)
{
    read_answer(context);
}

/* Turns. */

static struct moment place_next(const struct place *place)
{
    if (!place->look)
        return MOMENT_NEVER;
    return place->has_begun ? moment_earlier(place->sign_end, place->end) : place->end;
}

static void give_time(struct place *place)
{
    struct moment now = clock_now();

    place->is_suspect = false;
    place->sign_end = moment_after(now, SIGN_TIME);
    place->end = moment_after(now, LOOK_TIME);
}

/* A worker that began and moves no more hangs at the process that it looks at. */
static void give_up(struct place *place, bool hangs)
{
    struct looks *looks = place->looks;
    uint32_t uid = place->look->entry.uid;

    place->worker = worker_abandon(place->worker);
    if (hangs)
        penalize(looks, uid);
    judge_stuck(looks);
    finish(place);
}

/* An answer that is there is an answer, however late we look. */
static void judge_place(struct place *place)
{
    struct moment due = place_next(place), now = clock_now();
    bool moves;

    if (!moment_is_due(due, now))
        return;
    read_answer(place);
    if (!place->look || !moment_is_due(place_next(place), now))
        return;
    if (!place->was_late && moment_is_due(moment_after(due, STALL_TIME), now)) {
        place->was_late = true;
        give_time(place);
        return;
    }
    /* On a machine that is too busy it waits for a processor, not for the process. */
    moves = worker_moves(place->worker);
    if (!moment_is_due(place->end, now) && (moves || !place->is_suspect)) {
        place->is_suspect = true;
        place->sign_end = moment_after(now, SIGN_TIME);
        return;
    }
    give_up(place, place->has_begun && !moves);
}

/* One that has a worker before one that needs one. */
static struct place *find_free(struct looks *looks)
{
    struct place *found = NULL;

    for (size_t i = 0; i < WORKERS_MAX; i++) {
        struct place *place = &looks->places[i];

        if (!place->look && (!found || (place->worker && !found->worker)))
            found = place;
    }
    return found;
}

static void begin(struct place *place, struct look *look)
{
    struct looks *looks = place->looks;
    bool is_wanted = look->owner->begin(look);

    if (!is_wanted || seam_answer_init(&place->answer, look->question) != 0) {
        questions_done(looks->questions, look->entry.uid);
        if (is_wanted)
            look->owner->answer(look, NULL);
        look->owner->end(look);
        return;
    }
    place->look = look;
    place->n_tries = 1;
    place->has_begun = false;
    place->was_late = false;
    give_time(place);
    if (ask(place))
        return;
    if (place->worker)
        replace(place);
    else
        finish(place);
}

static bool has_turn(struct looks *looks)
{
    return questions_are_there(looks->questions) && find_free(looks);
}

struct moment looks_next(const struct looks *looks)
{
    bool is_free = false;
    struct moment next = MOMENT_NEVER;

    for (size_t i = 0; i < WORKERS_MAX; i++) {
        is_free |= !looks->places[i].look;
        next = moment_earlier(next, place_next(&looks->places[i]));
    }
    if (!TAILQ_EMPTY(&looks->unknown) || (is_free && questions_are_there(looks->questions)))
        return (struct moment){0};
    return next;
}

void looks_run(struct looks *looks)
{
    struct moment end = moment_after(clock_now(), TURN_TIME);
    struct look *look;

    judge_stuck(looks);
    for (size_t i = 0; i < WORKERS_MAX; i++)
        judge_place(&looks->places[i]);
    while (!moment_is_due(end, clock_now())) {
        if ((look = take_unknown(looks)))
            answer_unknown(look);
        else if (has_turn(looks))
            begin(find_free(looks), look_of(questions_take(looks->questions)));
        else
            break;
    }
}

/* Judging. */

static bool read_stat(const struct facts *facts, struct procfs_stat *ret_stat)
{
    return facts->stat.error == 0 &&
           procfs_read_stat(facts->stat.data, facts->stat.length, ret_stat);
}

static struct span age_of(const struct procfs_stat *stat)
{
    long ticks_per_second = sysconf(_SC_CLK_TCK);

    if (ticks_per_second <= 0 || stat->start_time > INT64_MAX / 1000000)
        return span_from_us(-1);
    return span_from_us(clock_since_boot().us -
                        (int64_t)stat->start_time * 1000000 / ticks_per_second);
}

void looks_judge(struct facts *facts, const struct action_question *question, int pidfd)
{
    struct procfs_stat stat;
    bool has_stat = read_stat(facts, &stat);
    bool is_right =
        has_stat && (question->start_time == 0 || stat.start_time == question->start_time);

    facts->has_handle = pidfd >= 0;
    facts->age = has_stat ? age_of(&stat) : span_from_us(-1);
    facts->is_alive = is_right && (pidfd >= 0 ? handle_is_alive(pidfd) : facts->is_alive);
}
