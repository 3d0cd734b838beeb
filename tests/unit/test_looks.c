/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks (daemon/looks.h) with workers that the test plays, and its own clock: what
 * they say, that they end, and that they do not say anything.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/looks.h"
#include "daemon/workers.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/seam.h"

enum { WORKERS_MAX = 64, LOOKS_MAX = 64 };

/* The clock. */

static struct moment now = {1000000};

struct moment clock_now(void)
{
    return now;
}

struct span clock_since_boot(void)
{
    return span_from_s(100);
}

double clock_calendar(struct moment moment)
{
    return (double)moment.us;
}

static void pass(int64_t ms)
{
    now = moment_after(now, span_from_ms(ms));
}

/* Workers, as daemon/workers.h has them. */

struct worker {
    int socket; /* the daemon's end */
    int end;    /* ours; -1 when it has ended */
    void (*ready)(void *context);
    void *context;
    bool is_used;
    bool was_abandoned;
};

static struct worker made[WORKERS_MAX];
static size_t n_made, n_abandoned;
static bool can_be_made = true;

struct worker *worker_new(struct workers *workers, enum worker_kind kind, int pidfd,
                          void (*ready)(void *context), void *context)
{
    struct worker *worker = &made[n_made];
    int pair[2];

    (void)workers;
    (void)kind;
    (void)pidfd;
    if (!can_be_made || n_made == WORKERS_MAX)
        return NULL;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *worker = (struct worker){.socket = pair[0],
                              .end = pair[1],
                              .ready = ready,
                              .context = context,
                              .is_used = true};
    n_made++;
    return worker;
}

int worker_socket(const struct worker *worker)
{
    return worker->socket;
}

static bool moves;

bool worker_moves(struct worker *worker)
{
    (void)worker;
    return moves;
}

static void worker_end(struct worker *worker)
{
    if (worker->end >= 0)
        close(worker->end);
    worker->end = -1;
}

struct worker *worker_free(struct worker *worker)
{
    if (!worker)
        return NULL;
    close(worker->socket);
    worker_end(worker);
    worker->is_used = false;
    return NULL;
}

struct worker *worker_abandon(struct worker *worker)
{
    worker->was_abandoned = true;
    n_abandoned++;
    return worker_free(worker);
}

struct worker *worker_lose(struct worker *worker)
{
    return worker_free(worker);
}

size_t workers_abandoned(const struct workers *workers)
{
    (void)workers;
    return n_abandoned;
}

/* Those who ask. */

struct asked {
    struct look look;
    struct action_question question;
    bool is_unwanted;
    bool has_begun;
    bool has_ended;
    struct facts *facts; /* the answer */
    bool is_answered;
};

static struct asked list_of_asked[LOOKS_MAX];
static size_t n_asked;

static bool begin(struct look *look)
{
    struct asked *asked = container_of(look, struct asked, look);

    ck_assert(!asked->has_begun);
    asked->has_begun = !asked->is_unwanted;
    return asked->has_begun;
}

static void answer(struct look *look, struct facts *facts)
{
    struct asked *asked = container_of(look, struct asked, look);

    ck_assert(asked->has_begun && !asked->is_answered && !asked->has_ended);
    asked->is_answered = true;
    asked->facts = facts;
}

static void end(struct look *look)
{
    struct asked *asked = container_of(look, struct asked, look);

    ck_assert(!asked->has_ended);
    asked->has_ended = true;
}

static const struct look_owner owner = {begin, answer, end};

static bool is_stuck;

static void be_stuck(void *context, bool is_so)
{
    (void)context;
    ck_assert(is_so != is_stuck);
    is_stuck = is_so;
}

static struct looks *start(void)
{
    const struct looks_options options = {.be_stuck = be_stuck};
    struct looks *looks;

    n_made = 0;
    n_abandoned = 0;
    n_asked = 0;
    looks = looks_new(&options);

    ck_assert_ptr_nonnull(looks);
    return looks;
}

static struct asked *ask(struct looks *looks, uint32_t uid)
{
    struct asked *asked = &list_of_asked[n_asked++];

    ck_assert_uint_lt(n_asked, LOOKS_MAX);
    *asked = (struct asked){
        .look = {.entry.uid = uid, .owner = &owner, .question = &asked->question},
        .question = {.pid = 4711, .wanted = FACTS_STAT | FACTS_ARGUMENTS},
    };
    ck_assert(looks_put(looks, &asked->look));
    return asked;
}

static void stop(struct looks *looks)
{
    looks_free(looks);
    for (size_t i = 0; i < n_asked; i++) {
        ck_assert(list_of_asked[i].has_ended);
        facts_free(list_of_asked[i].facts);
    }
    for (size_t i = 0; i < n_made; i++)
        ck_assert(!made[i].is_used);
}

/* What a worker does. */

static size_t read_question(struct worker *worker)
{
    uint8_t frame[256];
    struct action_question question;
    ssize_t length = recv(worker->end, frame, sizeof frame, MSG_DONTWAIT);

    if (length <= 0)
        return 0;
    ck_assert_int_eq(seam_read_question(frame, (size_t)length, &question), 0);
    ck_assert_int_eq(question.pid, 4711);
    free(question.files);
    return (size_t)length;
}

static void say(struct worker *worker, const void *data, size_t length)
{
    ck_assert_int_eq(send(worker->end, data, length, MSG_NOSIGNAL), (ssize_t)length);
    worker->ready(worker->context);
}

/* For what is to be found by itself. */
static void hear_nothing(void *context)
{
    (void)context;
}

enum part { PART_STAT = 1, PART_ARGUMENTS = 2, PART_END = 4, ALL = 7 };

static void say_parts(struct worker *worker, unsigned parts)
{
    struct facts *facts = facts_new(FACTS_STAT | FACTS_ARGUMENTS, ENODATA);
    struct bytes out;

    facts_text_set(&facts->stat, "4711 (a) S 1", 12);
    facts_text_set(&facts->arguments, "a\0b\0", 4);
    bytes_init(&out, SIZE_MAX - 1);
    if (parts & PART_STAT)
        seam_put_fact(&out, facts, FACTS_STAT);
    if (parts & PART_ARGUMENTS)
        seam_put_fact(&out, facts, FACTS_ARGUMENTS);
    if (parts & PART_END)
        seam_put_end(&out, true);
    ck_assert_int_eq(bytes_finish(&out), 0);
    say(worker, out.data, out.length);
    bytes_deinit(&out);
    facts_free(facts);
}

static bool is_unknown(const struct asked *asked)
{
    return asked->is_answered && asked->facts && asked->facts->stat.error == ETIMEDOUT &&
           asked->facts->arguments.error == ETIMEDOUT && !asked->facts->is_alive;
}

static bool is_whole(const struct asked *asked)
{
    return asked->is_answered && asked->facts && asked->facts->stat.error == 0 &&
           asked->facts->arguments.length == 4 && asked->facts->is_alive;
}

START_TEST(a_question_is_answered)
{
    struct looks *looks = start();
    struct asked *first = ask(looks, 1), *second = ask(looks, 1);

    ck_assert_uint_eq(n_made, 1);
    ck_assert_int_eq(looks_next(looks).us, 0);
    looks_run(looks);
    ck_assert(read_question(&made[0]));
    ck_assert(!second->has_begun);
    say_parts(&made[0], ALL);
    ck_assert(is_whole(first) && first->has_ended);
    looks_run(looks);
    ck_assert(read_question(&made[0]));
    say_parts(&made[0], PART_STAT);
    say_parts(&made[0], PART_ARGUMENTS);
    ck_assert(!second->is_answered);
    say_parts(&made[0], PART_END);
    ck_assert(is_whole(second));
    ck_assert(moment_is_never(looks_next(looks)));
    ck_assert_uint_eq(n_made, 1);
    stop(looks);
}
END_TEST

START_TEST(an_answer_comes_byte_by_byte)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);
    struct worker relay = {.ready = hear_nothing};
    uint8_t bytes[256];
    ssize_t length;
    int pair[2];

    looks_run(looks);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    /* What it would say, caught on the way. */
    relay.end = pair[0];
    say_parts(&relay, ALL);
    length = recv(pair[1], bytes, sizeof bytes, 0);
    ck_assert_int_gt(length, 20);
    for (ssize_t i = 0; i < length; i++) {
        ck_assert(!asked->is_answered);
        say(&made[0], bytes + i, 1);
    }
    ck_assert(is_whole(asked));
    close(pair[0]);
    close(pair[1]);
    stop(looks);
}
END_TEST

START_TEST(users_are_looked_at_beside_each_other)
{
    struct looks *looks = start();
    struct asked *asked[6];

    for (uint32_t uid = 0; uid < 6; uid++)
        asked[uid] = ask(looks, uid);
    looks_run(looks);
    ck_assert_uint_eq(n_made, 4);
    for (size_t i = 0; i < 6; i++)
        ck_assert(asked[i]->has_begun == (i < 4));
    say_parts(&made[2], ALL);
    ck_assert(is_whole(asked[2]));
    looks_run(looks);
    ck_assert(asked[4]->has_begun && !asked[5]->has_begun);
    ck_assert_uint_eq(n_made, 4);
    stop(looks);
}
END_TEST

START_TEST(who_hangs_is_unknown_from_there_on)
{
    struct looks *looks = start();
    struct asked *first = ask(looks, 1), *second = ask(looks, 1), *other = ask(looks, 2);

    looks_run(looks);
    say_parts(&made[0], PART_STAT);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(other));
    pass(125);
    looks_run(looks);
    pass(124);
    looks_run(looks);
    ck_assert(!first->is_answered);
    pass(1);
    looks_run(looks);
    ck_assert(first->is_answered && made[0].was_abandoned);
    ck_assert_int_eq(first->facts->stat.error, 0);
    ck_assert_int_eq(first->facts->arguments.error, ETIMEDOUT);
    ck_assert(!first->facts->is_alive);
    /* All that user has is unknown at once, what waited and what comes; nobody else's. */
    ck_assert(is_unknown(second));
    ck_assert_uint_eq(n_made, 2);
    second = ask(looks, 1);
    other = ask(looks, 2);
    looks_run(looks);
    ck_assert(is_unknown(second) && !other->is_answered);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(other));
    pass(10000 - 1);
    second = ask(looks, 1);
    looks_run(looks);
    ck_assert(is_unknown(second));
    pass(1);
    second = ask(looks, 1);
    looks_run(looks);
    ck_assert(!second->is_answered);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(second));
    stop(looks);
}
END_TEST

START_TEST(signs_give_time_but_not_without_end)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);
    const uint8_t one = 4;

    looks_run(looks);
    for (int i = 0; i < 4; i++) {
        pass(200);
        say(&made[0], i == 0 ? (const uint8_t[]){0xFF, 0, 0, 0} : &one, i == 0 ? 4 : 1);
        looks_run(looks);
        ck_assert(!asked->is_answered);
    }
    pass(200);
    looks_run(looks);
    ck_assert(is_unknown(asked));
    stop(looks);
}
END_TEST

START_TEST(who_moved_once_does_not_hang_yet)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);

    looks_run(looks);
    say_parts(&made[0], PART_STAT);
    for (int i = 0; i < 3; i++) {
        moves = i == 1;
        pass(125);
        looks_run(looks);
        ck_assert(asked->is_answered == (i == 2));
    }
    stop(looks);
}
END_TEST

START_TEST(who_gets_no_processor_does_not_hang)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);

    moves = true;
    looks_run(looks);
    say_parts(&made[0], PART_STAT);
    for (int i = 0; i < 7; i++) {
        pass(125);
        looks_run(looks);
        ck_assert(!asked->is_answered);
    }
    pass(125);
    looks_run(looks);
    ck_assert(asked->is_answered && asked->facts->arguments.error == ETIMEDOUT);
    asked = ask(looks, 1);
    looks_run(looks);
    ck_assert(!asked->is_answered);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(asked));
    moves = false;
    stop(looks);
}
END_TEST

START_TEST(who_never_begins_is_nobodys_fault)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);

    looks_run(looks);
    pass(999);
    looks_run(looks);
    ck_assert(!asked->is_answered);
    pass(1);
    looks_run(looks);
    ck_assert(is_unknown(asked) && made[0].was_abandoned);
    asked = ask(looks, 1);
    looks_run(looks);
    ck_assert(!asked->is_answered);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

START_TEST(an_answer_that_is_there_counts_however_late)
{
    struct looks *looks = start();
    struct asked *first = ask(looks, 1), *second;

    looks_run(looks);
    say_parts(&made[0], PART_STAT);
    pass(5000);
    /* It came while we stood, and nobody has read it yet. */
    made[0].ready = hear_nothing;
    say_parts(&made[0], PART_ARGUMENTS | PART_END);
    looks_run(looks);
    ck_assert(is_whole(first));
    /* It has not come, since the worker stood, too: it is given its time again, and once. */
    second = ask(looks, 1);
    looks_run(looks);
    pass(5000);
    looks_run(looks);
    ck_assert(!second->is_answered);
    pass(5000);
    looks_run(looks);
    ck_assert(is_unknown(second));
    stop(looks);
}
END_TEST

START_TEST(a_worker_that_ends_is_replaced)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);

    looks_run(looks);
    say_parts(&made[0], PART_STAT);
    worker_end(&made[0]);
    made[0].ready(made[0].context);
    ck_assert(!asked->is_answered);
    ck_assert_uint_eq(n_made, 2);
    ck_assert(read_question(&made[1]));
    say_parts(&made[1], ALL);
    ck_assert(is_whole(asked));
    /* One that ends twice is enough. */
    asked = ask(looks, 1);
    looks_run(looks);
    for (int i = 1; i < 3; i++) {
        ck_assert(!asked->is_answered);
        worker_end(&made[i]);
        made[i].ready(made[i].context);
    }
    ck_assert(is_unknown(asked));
    /* And one that ends while it has nothing to do is replaced when somebody is needed. */
    asked = ask(looks, 1);
    looks_run(looks);
    say_parts(&made[3], ALL);
    worker_end(&made[3]);
    made[3].ready(made[3].context);
    ck_assert_uint_eq(n_made, 4);
    asked = ask(looks, 1);
    looks_run(looks);
    ck_assert_uint_eq(n_made, 5);
    say_parts(&made[4], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

static void say_nonsense(struct worker *worker, int kind)
{
    static const uint8_t endless[] = {0xFF, 0xFF, 0xFF, 0xFF}, empty[] = {0, 0, 0, 0};

    switch (kind) {
    case 0:
        say(worker, endless, sizeof endless);
        break;
    case 1:
        say(worker, empty, sizeof empty);
        break;
    case 2:
        say_parts(worker, PART_END);
        break;
    case 3:
        say_parts(worker, PART_STAT);
        say_parts(worker, PART_STAT);
        break;
    default:
        break;
    }
}

static void survive_nonsense(int kind)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);

    looks_run(looks);
    say_nonsense(&made[0], kind);
    ck_assert(!made[0].is_used && made[1].is_used);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(asked));
    /* What it says when nobody asked it is nonsense as well. */
    say_parts(&made[1], ALL);
    ck_assert(!made[1].is_used);
    asked = ask(looks, 1);
    looks_run(looks);
    say_parts(&made[2], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}

START_TEST(nonsense_costs_a_worker_and_no_more)
{
    for (int kind = 0; kind < 4; kind++)
        survive_nonsense(kind);
}
END_TEST

START_TEST(more_than_an_answer_is_nonsense)
{
    struct looks *looks = start();
    struct asked *asked = ask(looks, 1);
    void (*ready)(void *context) = made[0].ready;

    looks_run(looks);
    /* Two ends, read at once. */
    made[0].ready = hear_nothing;
    say_parts(&made[0], ALL);
    made[0].ready = ready;
    say_parts(&made[0], PART_END);
    ck_assert(!made[0].is_used && !asked->is_answered);
    say_parts(&made[1], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

START_TEST(too_many_that_hang_end_all_looks)
{
    struct looks *looks = start();
    struct asked *asked;

    for (uint32_t uid = 0; uid < WORKERS_ABANDONED_MAX; uid++) {
        asked = ask(looks, uid);
        looks_run(looks);
        say_parts(&made[n_made - 1], PART_STAT);
        pass(125);
        looks_run(looks);
        pass(125);
        ck_assert(!is_stuck);
        looks_run(looks);
        ck_assert(asked->is_answered);
    }
    ck_assert(is_stuck);
    asked = ask(looks, 1000);
    looks_run(looks);
    ck_assert(is_unknown(asked));
    n_abandoned--;
    looks_run(looks);
    ck_assert(!is_stuck);
    asked = ask(looks, 1000);
    looks_run(looks);
    ck_assert(!asked->is_answered);
    say_parts(&made[n_made - 1], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

START_TEST(without_workers_all_is_unknown)
{
    struct looks *looks;
    struct asked *asked;

    can_be_made = false;
    looks = start();
    asked = ask(looks, 1);
    looks_run(looks);
    ck_assert(is_unknown(asked));
    can_be_made = true;
    asked = ask(looks, 1);
    looks_run(looks);
    say_parts(&made[0], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

START_TEST(nobody_is_asked_for_who_is_gone)
{
    struct looks *looks = start();
    struct asked *gone = ask(looks, 1), *asked = ask(looks, 1);

    gone->is_unwanted = true;
    looks_run(looks);
    ck_assert(gone->has_ended && !gone->is_answered);
    ck_assert(asked->has_begun);
    say_parts(&made[0], ALL);
    ck_assert(is_whole(asked));
    stop(looks);
}
END_TEST

UNIT_TESTS(a_question_is_answered, an_answer_comes_byte_by_byte,
           users_are_looked_at_beside_each_other, who_hangs_is_unknown_from_there_on,
           signs_give_time_but_not_without_end, who_moved_once_does_not_hang_yet,
           who_gets_no_processor_does_not_hang, who_never_begins_is_nobodys_fault,
           an_answer_that_is_there_counts_however_late, a_worker_that_ends_is_replaced,
           nonsense_costs_a_worker_and_no_more, more_than_an_answer_is_nonsense,
           too_many_that_hang_end_all_looks, without_workers_all_is_unknown,
           nobody_is_asked_for_who_is_gone);
