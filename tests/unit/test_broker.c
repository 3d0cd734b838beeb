/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a shell may tell a broker out of turn, and memory that runs out before
 * there is anybody. Everything else about it is in the test_broker_* programs.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker.h"
#include "lib/hresult.h"
#include "lib/notice.h"
#include "lib/policy.h"
#include "lib/record.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"

static const char policy[] =
    HEAD "rules: [ { name: r, match: { exe: /app }, env: { ONE: \"1\", OLD: \"new\" },\n"
         "  startup_hooks: [ { path: /opt/a.dll } ] } ]\n";

static const uint32_t first[] = {0};
static const struct world_file files[] = {{.path = "/opt/a.dll", .mode = 0100644}};

/* A handle may be reported on the way to being released. */
START_TEST(processes_that_nobody_knows_change_nothing)
{
    struct world *world = world_new(policy);

    broker_process_ended(world->broker, 4711, world->now);
    broker_handle_lost(world->broker, 4711, world->now);
    broker_kill_failed(world->broker, 4711, world->now);
    world_settle(world);
    ck_assert_uint_eq(world->n_notices, 0);
    world_free(world);
}
END_TEST

/* Its connection speaks for another user than the process has. */
START_TEST(a_process_that_changed_its_user_gets_no_plan)
{
    struct world *world = world_new(policy);
    struct world_process *process =
        world_process(world, "/app", "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0");
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    world->are_answers_slow = true;
    world_start(runtime);
    process->uid++;
    world->are_answers_slow = false;
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    world_free(world);
}
END_TEST

static enum world_fault refuses_hooks(struct world_runtime *runtime,
                                      const struct world_command *command, uint32_t *ret_hresult)
{
    (void)runtime;
    *ret_hresult = HRESULT_FAIL;
    return command->id == COMMAND_APPLY_STARTUP_HOOK ? WORLD_REFUSES : WORLD_ANSWERS;
}

/* What was there before may be longer than what a message of the protocol can hold. */
START_TEST(a_long_old_value_stays_overwritten)
{
    enum { LENGTH = 40000 };
    static const char ports[] = "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock";
    struct world *world = world_new(policy);
    char *environ = calloc(1, sizeof ports + LENGTH + 6);
    struct world_process *process;
    struct world_runtime *runtime;

    ck_assert_ptr_nonnull(environ);
    memcpy(environ, ports, sizeof ports);
    memset(environ + sizeof ports, 'x', LENGTH);
    memcpy(environ + sizeof ports, "OLD=", 4);
    process = world_process(world, "/app", environ);
    runtime = world_runtime(world, process, "aaaaaaaa", first, 1);
    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    runtime->fault = refuses_hooks;
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, env ONE=1, env OLD=new, hook /opt/a.dll, unset ONE, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_PARTIAL);
    world_free(world);
    free(environ);
}
END_TEST

/* Why it began is no reason for its end, whoever says so. */
START_TEST(an_alarm_that_ends_has_no_reason)
{
    struct world *world = world_new(policy);
    const struct broker_counters *counters = broker_counters(world->broker);

    for (int i = 0; i < ALARM_COUNT; i++) {
        enum alarm alarm = (enum alarm)i;

        for (int is_on = 1; is_on >= 0; is_on--) {
            struct notice *notice;

            broker_alarm(world->broker, alarm, is_on, "it broke", world->now);
            notice = broker_take_notice(world->broker);
            ck_assert_ptr_nonnull(notice);
            ck_assert_int_eq(notice->is_on, is_on);
            ck_assert_pstr_eq(notice->why, is_on ? "it broke" : NULL);
            ck_assert_pstr_eq(counters->alarm_reasons[alarm], is_on ? "it broke" : NULL);
            notice_free(notice);
        }
    }
    world_free(world);
}
END_TEST

/* Memory. */

static int begin(void *context)
{
    const struct broker_options options = {.policy = context, .usable_descriptors = 100};
    const struct record record = {.phase = RECORD_BEGUN, .pid = 1, .start_time = 1};
    struct broker *broker = broker_new(&options);
    int error = broker ? 0 : -ENOMEM;

    if (error == 0)
        error = broker_listener_add(broker, 0, "runtime", "/run/a.sock", 1, 2);
    if (error == 0)
        error = broker_remember(broker, 7, &record);
    broker_free(broker);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct policy *empty = policy_new();

    ck_assert_ptr_nonnull(empty);
    ck_assert_uint_ge(unit_memory_exhaust(begin, empty, -ENOMEM), 6);
    policy_unref(empty);
}
END_TEST

START_TEST(a_record_has_a_slot)
{
    const struct record record = {.phase = RECORD_BEGUN, .pid = 1, .start_time = 1};
    struct world *world = world_new(policy);

    ck_assert_int_eq(broker_remember(world->broker, RECORD_SLOTS, &record), -EINVAL);
    ck_assert_int_eq(broker_remember(world->broker, RECORD_SLOTS - 1, &record), 0);
    world_free(world);
}
END_TEST

UNIT_TESTS(processes_that_nobody_knows_change_nothing, a_process_that_changed_its_user_gets_no_plan,
           a_long_old_value_stays_overwritten, an_alarm_that_ends_has_no_reason,
           every_allocation_may_fail, a_record_has_a_slot);
