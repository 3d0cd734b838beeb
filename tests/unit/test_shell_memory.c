/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rooms of the shell that hold descriptors, while memory runs out: whichever
 * allocation fails, the one operation ends, nothing is left behind, neither
 * memory nor a descriptor, and the next one does as if nothing had been.
 */

#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/handle.h"
#include "daemon/listener.h"
#include "daemon/loop.h"
#include "daemon/notices.h"
#include "daemon/peer.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "lib/broker.h"
#include "lib/facts.h"
#include "lib/notice.h"
#include "lib/policy_read.h"
#include "probe/look.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_memory.h"

static char folder[40], state[60], path[60];
static struct policy *one_port, *two_ports;

static struct policy *read_policy(const char *names)
{
    struct policy_source source = {.name = "test"};
    struct policy_host host = {0};
    struct policy_problems problems;
    struct policy *policy;
    char text[400], *at = text;

    at += sprintf(at, "version: 1\nlisten:\n");
    for (; *names != '\0'; names++)
        at += sprintf(at, "  - { name: %c, path: %s/%c.sock, mode: \"0600\" }\n", *names, folder,
                      *names);
    source.bytes = text;
    source.length = (size_t)(at - text);
    ck_assert_int_eq(policy_read(&source, 1, &host, &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    policy_problems_deinit(&problems);
    return policy;
}

static size_t n_descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(list))
        n++;
    closedir(list);
    return n;
}

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(path, sizeof path, "%s/r.sock", folder);
    one_port = read_policy("a");
    two_ports = read_policy("ab");
}

static void tear_down(void)
{
    policy_unref(one_port);
    policy_unref(two_ports);
    unit_folder_remove();
}

static void exhaust(int (*function)(void *context))
{
    size_t before;

    set_up();
    /* What is opened once and kept is open after that. */
    ck_assert_int_eq(function(NULL), 0);
    before = n_descriptors();
    ck_assert_uint_gt(unit_memory_exhaust(function, NULL, -ENOMEM), 0);
    ck_assert_uint_eq(n_descriptors(), before);
    ck_assert_int_eq(function(NULL), 0);
    tear_down();
}

static struct broker *new_broker(void)
{
    struct broker_options options = {.policy = one_port, .usable_descriptors = 100};

    return broker_new(&options);
}

/* Records. */

static struct policy *find_none(void *context, const uint8_t *id)
{
    (void)context;
    (void)id;
    return NULL;
}

static int remember(void *context)
{
    struct record record = {.phase = RECORD_BEGUN, .sequence = 1, .pid = getpid()};
    static const struct store_policies no_policies = {.find = find_none};
    uint8_t mark[RECORD_MARK_SIZE];
    struct broker *broker = NULL;
    struct store_found found;
    struct store *store;
    int error = 0, result = -ENOMEM;

    (void)context;
    store = store_claim(state, &error);
    if (!store)
        return error;
    error = store_open(store, &found);
    free(found.why);
    if (error != 0 || found.trust == BROKER_HAS_NO_RECORDS) {
        store_close(store);
        return error != 0 ? error : -ENOMEM;
    }
    record_write(&record, mark);
    store_mark(store, 7, mark);
    broker = new_broker();
    if (broker)
        result = store_recall(store, broker, &no_policies);
    broker_free(broker);
    store_close(store);
    return result;
}

START_TEST(the_file_of_records)
{
    exhaust(remember);
}
END_TEST

/* Processes. */

static bool lacks_memory(const struct facts *facts)
{
    const struct facts_text *texts[] = {&facts->stat,      &facts->status,    &facts->exe,
                                        &facts->arguments, &facts->cwd,       &facts->cgroup,
                                        &facts->environ,   &facts->parent_exe};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        if (texts[i]->error == ENOMEM)
            return true;
    }
    for (size_t i = 0; i < facts->n_files; i++) {
        if (facts->files[i].error == ENOMEM)
            return true;
    }
    return false;
}

static int look(void *context)
{
    char *files[] = {folder, path};
    struct action_question question = {
        .pid = getpid(),
        .wanted = FACTS_STAT | FACTS_STATUS | FACTS_EXE | FACTS_ARGUMENTS | FACTS_CWD |
                  FACTS_CGROUP | FACTS_ENVIRON | FACTS_PARENT | FACTS_THREADS | FACTS_FILES,
        .files = files,
        .n_files = ARRAY_LENGTH(files),
    };
    struct facts *facts = look_at(&question, NULL);
    int result = 0;

    (void)context;
    /* What could not be read twice is vouched for by nobody. */
    if (!facts || lacks_memory(facts) || facts->n_files != question.n_files || !facts->is_alive)
        result = -ENOMEM;
    facts_free(facts);
    return result;
}

START_TEST(a_look_at_a_process)
{
    exhaust(look);
}
END_TEST

/* Whether it is frozen only says why it may not answer: without memory it is not. */
START_TEST(a_look_at_the_freezer)
{
    struct action_question question = {.pid = getpid(), .wanted = FACTS_STAT | FACTS_FREEZER};
    size_t n = SIZE_MAX, n_left;

    for (size_t nth = 0; nth <= n; nth++) {
        size_t n_made;

        unit_memory_watch(nth);
        facts_free(look_at(&question, NULL));
        n_made = unit_memory_release(&n_left);
        if (nth == 0)
            n = n_made;
        ck_assert_uint_eq(n_left, 0);
    }
    ck_assert_uint_gt(n, 0);
}
END_TEST

static void be_told(void *context, uint64_t process)
{
    (void)context;
    (void)process;
}

static int hold(void *context)
{
    struct loop *loop = loop_new();
    struct handle_table *table = loop ? handle_table_new(loop, be_told, NULL) : NULL;
    int result = -ENOMEM;

    (void)context;
    if (table && handle_put(table, 1, handle_of_pid(getpid())) &&
        handle_put(table, 2, handle_of_pid(getppid())))
        result = handle_get(table, 1) >= 0 && handle_get(table, 2) >= 0 ? 0 : -EBADF;
    handle_table_free(table);
    loop_free(loop);
    return result;
}

START_TEST(handles_of_processes)
{
    int pidfd = handle_of_pid(getpid());

    /* What the tests run under may not know of handles, as valgrind 3.19 does not. */
    if (pidfd < 0)
        return;
    close(pidfd);
    exhaust(hold);
}
END_TEST

/* Sockets. */

/* Without memory the folder of a socket that is closed cannot be opened, and its files stay for the
 * next start: 0 or -ENOMEM. */
static int remove_left(const char *socket)
{
    char lock[sizeof path + 8];
    const char *name = strrchr(socket, '/') + 1;
    bool is_socket_left = unlink(socket) == 0;

    snprintf(lock, sizeof lock, "%s/.%s.lock", folder, name);
    return unlink(lock) == 0 || is_socket_left ? -ENOMEM : 0;
}

static int make_listener(void *context)
{
    const struct listener_rights rights = {.mode = 0600, .owner = "0"};
    struct listener_socket made;
    char *why;
    int error = listener_make(path, &rights, &made, &why);

    (void)context;
    free(why);
    if (error == 0)
        listener_close(&made);
    return error == 0 ? remove_left(path) : error;
}

START_TEST(a_listener)
{
    exhaust(make_listener);
}
END_TEST

/* Opens one, and changes to two and back, as two reloads do. */
static int change_ports(struct ports *ports)
{
    const struct policy *policies[] = {two_ports, one_port};
    struct service_sockets passed = {0};
    char *why;
    int error = ports_open(ports, one_port, &passed, &why);

    free(why);
    for (size_t i = 0; error == 0 && i < ARRAY_LENGTH(policies); i++) {
        size_t n_before = ports_count(ports);

        error = ports_stage(ports, policies[i], &why);
        free(why);
        if (error == 0)
            ports_commit(ports);
        /* It cannot be watched yet: that is tried again, and is no reason not to change. */
        if (error == 0 && !moment_is_never(ports_retry(ports))) {
            ports_try_again(ports, ports_retry(ports));
            return moment_is_never(ports_retry(ports)) ? -ENOMEM : -EAGAIN;
        }
        if (error != 0 && ports_count(ports) != n_before)
            return -EEXIST;
    }
    return error == 0 && ports_count(ports) != 1 ? -EEXIST : error;
}

static int listen_on_ports(void *context)
{
    struct loop *loop = loop_new();
    struct broker *broker = loop ? new_broker() : NULL;
    struct ports *ports = broker ? ports_new(loop, broker, NULL) : NULL;
    int error = ports ? change_ports(ports) : -ENOMEM;

    (void)context;
    ports_free(ports);
    broker_free(broker);
    loop_free(loop);
    for (size_t i = 0; error == 0 && i < two_ports->n_listens; i++)
        error = remove_left(two_ports->listens[i].path);
    return error;
}

START_TEST(ports_and_their_change)
{
    exhaust(listen_on_ports);
}
END_TEST

static void settle(void *context)
{
    (void)context;
}

static int meet(void *context)
{
    struct loop *loop = loop_new();
    struct broker *broker = loop ? new_broker() : NULL;
    struct peer_owner owner;
    int pair[2], result = -ENOMEM;
    char byte;

    (void)context;
    if (broker && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0) {
        peer_owner_init(&owner, broker, loop, settle, NULL);
        peer_open(&owner, pair[0], 0);
        if (!TAILQ_EMPTY(&owner.all))
            result = 0;
        else if (recv(pair[1], &byte, 1, 0) != 0)
            result = -EISCONN; /* it was to be closed */
        peer_owner_deinit(&owner);
        close(pair[1]);
    }
    broker_free(broker);
    loop_free(loop);
    return result;
}

START_TEST(a_connection)
{
    exhaust(meet);
}
END_TEST

/* What is told. */

static int tell(void *context)
{
    const struct notice content = {.kind = NOTICE_ALARM};
    struct notices *notices = notices_new();
    struct notice *notice = notices ? notice_new(&content, "rule", "name") : NULL;
    int result = -ENOMEM;

    (void)context;
    if (notice) {
        notices_take(notices, notice);
        result = notices_next(notices) == notices_oldest(notices) + 1 ? 0 : -ENOENT;
    }
    notices_free(notices);
    return result;
}

/* A line that cannot be made for the log is lost, and nothing else. */
START_TEST(notices_of_what_happened)
{
    enum { N_OF_NOTICE = 4 };
    size_t n, n_left;

    unit_memory_watch(0);
    ck_assert_int_eq(tell(NULL), 0);
    n = unit_memory_release(&n_left);
    ck_assert_uint_gt(n, N_OF_NOTICE);
    for (size_t nth = 1; nth <= n; nth++) {
        int result;

        unit_memory_watch(nth);
        result = tell(NULL);
        unit_memory_release(&n_left);
        ck_assert_int_eq(result, nth <= N_OF_NOTICE ? -ENOMEM : 0);
        ck_assert_uint_eq(n_left, 0);
    }
}
END_TEST

UNIT_TESTS(the_file_of_records, a_look_at_a_process, a_look_at_the_freezer, handles_of_processes,
           a_listener, ports_and_their_change, a_connection, notices_of_what_happened);
