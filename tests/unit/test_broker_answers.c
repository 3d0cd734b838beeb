/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers to the broker's questions that no real runtime gives: whoever gives
 * them gets no plan for it, and is resumed.
 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/bytes.h"
#include "lib/hresult.h"
#include "lib/notice.h"
#include "lib/wire.h"
#include "tests/sim/world.h"

static const char policy[] =
    "version: 1\n"
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
    "control: { path: /run/diagport/control.sock }\n"
    "rules: [ { name: r, match: all, env: { ONE: \"1\", OLD: \"new\" } } ]\n";

/* One that advertised, whose answers a test gives. */
struct peer {
    struct world *world;
    struct world_connection *connection;
};

static void connect_and_advertise(struct peer *peer, struct world_process *process)
{
    struct guid cookie = world_cookie("aaaaaaaa");

    peer->connection = world_connect(peer->world, process, 0);
    world_advertise(peer->connection, &cookie, (uint64_t)process->pid);
}

static struct peer begin(void)
{
    struct peer peer = {.world = world_new(policy)};
    struct world_process *process = world_process(peer.world, "/app", NULL);

    process->hides_environ = true;
    connect_and_advertise(&peer, process);
    return peer;
}

/* As runtimes do after every answer. */
static void come_back(struct peer *peer)
{
    world_end(peer->connection);
    connect_and_advertise(peer, peer->connection->process);
}

static void must_take(struct peer *peer, enum command_id id)
{
    struct world_command command;

    ck_assert_msg(world_take_command(peer->connection, &command), "command %d", (int)id);
    ck_assert_int_eq(command.id, id);
}

static void send_info(struct peer *peer, const char *cookie, uint64_t pid, const char *version)
{
    struct guid guid = world_cookie(cookie);
    struct bytes payload;

    bytes_init(&payload, WIRE_PAYLOAD_MAX);
    bytes_put_u32(&payload, 1);
    bytes_put_u64(&payload, pid);
    wire_put_guid(&payload, &guid);
    for (int i = 0; i < 4; i++)
        wire_put_string(&payload, "App");
    wire_put_string(&payload, version);
    wire_put_string(&payload, "linux-x64");
    world_send_reply(peer->connection, true, payload.data, payload.length);
    bytes_deinit(&payload);
}

static struct peer begin_and_tell_kind(void)
{
    struct peer peer = begin();

    must_take(&peer, COMMAND_ASK_KIND);
    world_send_status(peer.connection, false, HRESULT_UNKNOWN_COMMAND);
    come_back(&peer);
    must_take(&peer, COMMAND_PROCESS_INFO_3);
    return peer;
}

static struct peer begin_and_tell_version(void)
{
    struct peer peer = begin_and_tell_kind();

    send_info(&peer, "aaaaaaaa", (uint64_t)peer.connection->process->pid, "10.0.0");
    come_back(&peer);
    must_take(&peer, COMMAND_PROCESS_ENVIRONMENT);
    return peer;
}

static uint64_t n_errors(const struct peer *peer, enum notice_peer_error error)
{
    return broker_counters(peer->world->broker)->peer_errors[error];
}

START_TEST(what_it_says_of_itself_is_what_it_advertised)
{
    static const struct {
        const char *cookie;
        uint64_t pid_more;
    } cases[] = {{"bbbbbbbb", 0}, {"aaaaaaaa", 1}};

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct peer peer = begin_and_tell_kind();
        const struct runtime *seen;

        send_info(&peer, cases[i].cookie,
                  (uint64_t)peer.connection->process->pid + cases[i].pid_more, "10.0.0");
        come_back(&peer);
        must_take(&peer, COMMAND_RESUME);
        seen = world_find(peer.world, "aaaaaaaa");
        ck_assert_int_eq(seen->outcome, OUTCOME_UNKNOWN);
        ck_assert_str_eq(seen->plan.steps[0].why, "the runtime contradicts its advertise");
        ck_assert_uint_eq(n_errors(&peer, PEER_CLAIMED_WRONG), 1);
        world_free(peer.world);
    }
}
END_TEST

START_TEST(what_it_says_of_itself_is_kept_within_bounds)
{
    struct peer peer = begin_and_tell_kind();
    char *version = calloc(1, 10001);

    ck_assert_ptr_nonnull(version);
    memset(version, 'x', 10000);
    memcpy(version, "10.", 3);
    send_info(&peer, "aaaaaaaa", (uint64_t)peer.connection->process->pid, version);
    free(version);
    come_back(&peer);
    must_take(&peer, COMMAND_PROCESS_ENVIRONMENT);
    ck_assert_uint_eq(strlen(world_find(peer.world, "aaaaaaaa")->version), BROKER_TEXT_MAX);
    ck_assert_uint_eq(world_find(peer.world, "aaaaaaaa")->target.major, 10);
    world_free(peer.world);
}
END_TEST

START_TEST(an_environment_has_a_size)
{
    static const uint8_t payload[] = {3, 0, 0, 0, 0, 0};

    for (size_t length = 0; length <= sizeof payload; length++) {
        struct peer peer = begin_and_tell_version();

        world_send_reply(peer.connection, true, payload, length);
        ck_assert(peer.connection->is_closed);
        ck_assert_uint_eq(n_errors(&peer, PEER_SENT_BAD_REPLY), 1);
        world_free(peer.world);
    }
}
END_TEST

/* Four bytes are announced, which say that one text follows. */
START_TEST(an_environment_adds_up)
{
    static const uint8_t payload[] = {4, 0, 0, 0, 0, 0}, continuation[] = {1, 0, 0, 0};

    for (size_t piece = 1; piece <= sizeof continuation; piece++) {
        struct peer peer = begin_and_tell_version();

        world_send_reply(peer.connection, true, payload, sizeof payload);
        for (size_t i = 0; i < sizeof continuation; i += piece) {
            ck_assert(!peer.connection->is_closed);
            world_send(peer.connection, continuation + i,
                       i + piece < sizeof continuation ? piece : sizeof continuation - i);
        }
        ck_assert(peer.connection->is_closed);
        ck_assert_uint_eq(n_errors(&peer, PEER_SENT_BAD_REPLY), 1);
        world_free(peer.world);
    }
}
END_TEST

/* While its process is looked at, nothing was asked yet. */
START_TEST(nothing_may_be_said_before_it_is_asked_for)
{
    struct peer peer = {.world = world_new(policy)};

    peer.world->are_answers_slow = true;
    connect_and_advertise(&peer, world_process(peer.world, "/app", NULL));
    ck_assert(!peer.connection->is_closed);
    world_send(peer.connection, "x", 1);
    ck_assert(peer.connection->is_closed);
    ck_assert_uint_eq(n_errors(&peer, PEER_SENT_GARBAGE), 1);
    world_free(peer.world);
}
END_TEST

UNIT_TESTS(what_it_says_of_itself_is_what_it_advertised,
           what_it_says_of_itself_is_kept_within_bounds, an_environment_has_a_size,
           an_environment_adds_up, nothing_may_be_said_before_it_is_asked_for);
