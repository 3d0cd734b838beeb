/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/summary.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

bool summary_init(struct summary *summary, size_t count,
                  const struct summary_expectation *expectations, size_t n_expectations)
{
    *summary = (struct summary){
        .expectations = expectations,
        .n_expectations = n_expectations,
        .count = count,
        .commands = json_object(),
        .signals = json_object(),
        .ms_to_resume = calloc(count + 1, sizeof(long)),
    };
    return summary->commands && summary->signals && summary->ms_to_resume;
}

void summary_deinit(struct summary *summary)
{
    json_decref(summary->commands);
    json_decref(summary->signals);
    free(summary->ms_to_resume);
    *summary = (struct summary){0};
}

static void count_name(json_t *counts, const char *name)
{
    json_int_t before = json_integer_value(json_object_get(counts, name));

    json_object_set_new(counts, name, json_integer(before + 1));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* How many commands of that name were answered OK. */
static unsigned long applied(const json_t *report, const char *name)
{
    const json_t *commands = json_object_get(report, "commands");
    unsigned long n = 0;

    for (size_t i = 0; i < json_array_size(commands); i++) {
        const json_t *command = json_array_get(commands, i);

        if (strcmp(text_of(command, "name"), name) == 0 &&
            strcmp(text_of(command, "result"), "0x00000000") == 0)
            n++;
    }
    return n;
}

static bool is_met(const struct summary_expectation *expectation, const json_t *report)
{
    const char *value;

    if (!expectation->value)
        return applied(report, expectation->name) == expectation->count;
    value = json_string_value(
        json_object_get(json_object_get(report, "environment"), expectation->name));
    return value && strcmp(value, expectation->value) == 0;
}

/* Resume may come once more than needed, and a session has to be stopped after it. */
static bool may_come_late(const char *name)
{
    return strcmp(name, "ResumeRuntime") == 0 || strcmp(name, "StopTracing") == 0;
}

static void take_late(struct summary *summary, const json_t *report)
{
    const json_t *late = json_object_get(report, "after_resume");

    for (size_t i = 0; i < json_array_size(late); i++) {
        if (!may_come_late(json_string_value(json_array_get(late, i))))
            summary->n_after_resume++;
    }
}

static void take_start(struct summary *summary, const json_t *report)
{
    const json_t *ms = json_object_get(report, "ms_to_resume");

    if (json_is_integer(ms) && summary->n_resumed < summary->count)
        summary->ms_to_resume[summary->n_resumed++] = (long)json_integer_value(ms);
    if (json_is_true(json_object_get(report, "told_pause")))
        summary->n_told_pause++;
    for (size_t i = 0; i < summary->n_expectations; i++) {
        if (!is_met(&summary->expectations[i], report))
            summary->n_unexpected++;
    }
    summary->n_started++;
}

/* Profilers and hooks are paths. */
static void count_twice(struct summary *summary, const json_t *twice)
{
    for (size_t i = 0; i < json_array_size(twice); i++) {
        const char *subject = json_string_value(json_array_get(twice, i));

        summary->n_twice += !summary->may_repeat || (subject && strchr(subject, '/'));
    }
}

void summary_take_line(struct summary *summary, const char *line)
{
    json_t *report = json_loads(line, 0, NULL);
    const json_t *commands = json_object_get(report, "commands");

    if (!json_is_array(commands)) {
        summary->n_unreadable++;
        json_decref(report);
        return;
    }
    for (size_t i = 0; i < json_array_size(commands); i++)
        count_name(summary->commands, text_of(json_array_get(commands, i), "name"));
    if (strcmp(text_of(report, "event"), "start") == 0) {
        take_start(summary, report);
        summary->connections += (size_t)json_integer_value(json_object_get(report, "connections"));
    }
    count_twice(summary, json_object_get(report, "twice"));
    take_late(summary, report);
    json_decref(report);
}

void summary_take_status(struct summary *summary, int status, bool is_ours)
{
    char number[16];

    if (WIFSIGNALED(status)) {
        snprintf(number, sizeof number, "%d", WTERMSIG(status));
        count_name(summary->signals, number);
        if (!is_ours)
            summary->n_died++;
    } else if (WEXITSTATUS(status) != 0 && !is_ours) {
        summary->n_failed++;
    }
}

static int compare(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    return (left > right) - (left < right);
}

static json_t *times(struct summary *summary)
{
    size_t n = summary->n_resumed;
    const long *ms = summary->ms_to_resume;

    if (n == 0)
        return json_null();
    qsort(summary->ms_to_resume, n, sizeof *summary->ms_to_resume, compare);
    return json_pack("{sI sI sI sI}", "min", (json_int_t)ms[0], "median", (json_int_t)ms[n / 2],
                     "p99", (json_int_t)ms[n * 99 / 100], "max", (json_int_t)ms[n - 1]);
}

static json_t *number(size_t n)
{
    return json_integer((json_int_t)n);
}

bool summary_print(struct summary *summary)
{
    size_t n_missing =
        summary->count > summary->n_started ? summary->count - summary->n_started : 0;
    json_t *wrong =
        json_pack("{so so so so so so so so}", "no_report", number(n_missing), "unreadable",
                  number(summary->n_unreadable), "died", number(summary->n_died), "failed",
                  number(summary->n_failed), "unfinished", number(summary->n_unfinished), "twice",
                  number(summary->n_twice), "after_resume", number(summary->n_after_resume),
                  "unexpected", number(summary->n_unexpected));
    json_t *all =
        json_pack("{so so so so so so sO sO so}", "count", number(summary->count), "started",
                  number(summary->n_started), "resumed", number(summary->n_resumed), "told_pause",
                  number(summary->n_told_pause), "connections", number(summary->connections),
                  "ms_to_resume", times(summary), "commands", summary->commands, "signals",
                  summary->signals, "anomalies", wrong);

    json_dumpf(all, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(all);
    return n_missing + summary->n_unreadable + summary->n_died + summary->n_failed +
               summary->n_unfinished + summary->n_twice + summary->n_after_resume +
               summary->n_unexpected ==
           0;
}
