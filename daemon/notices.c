/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/ration.h"
#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/hresult.h"
#include "lib/notice.h"
#include "lib/plan.h"
#include "lib/text.h"

enum { LINE_SIZE = 3500 };

/*
 * Everything is counted and kept, and so much of it is told: nobody may fill a
 * disk with what he does wrong, nor have journald, which takes 10,000 lines in 30 s
 * of a service unless told otherwise, leave out what is said of others.
 */
static const struct ration_bounds many = {.sure = 100, .of_user = 4000, .of_all = 8000};

enum topic { TOPIC_PEERS, TOPIC_RUNTIMES, TOPICS };

static const struct {
    const char *name;
    const struct ration_bounds *bounds;
    int64_t window_s;
} topics[TOPICS] = {
    [TOPIC_PEERS] = {"peers", &ration_few, 1},
    [TOPIC_RUNTIMES] = {"runtimes", &many, 30},
};

struct told {
    struct ration ration;
    struct moment since;
};

struct notices {
    struct notice *kept[NOTICES_KEPT];
    uint64_t next;
    struct told told[TOPICS];
};

struct notices *notices_new(void)
{
    struct notices *notices = calloc(1, sizeof *notices);

    if (notices)
        notices->next = 1;
    return notices;
}

static struct moment window_end(const struct notices *notices, enum topic topic)
{
    return moment_after(notices->told[topic].since, span_from_s(topics[topic].window_s));
}

static void put_text(struct bytes *line, const char *label, const char *text)
{
    if (!text)
        return;
    bytes_put_format(line, " %s=\"", label);
    text_put_escaped(line, text, strlen(text));
    bytes_put_u8(line, '"');
}

static void put_who(struct bytes *line, const struct notice *notice)
{
    char cookie[GUID_TEXT_SIZE];

    if (notice->has_runtime) {
        guid_format(&notice->cookie, cookie);
        bytes_put_format(line, " runtime=%.8s", cookie);
    }
    if (notice->pid != 0)
        bytes_put_format(line, " pid=%" PRId32, notice->pid);
    bytes_put_format(line, " uid=%" PRIu32, notice->uid);
}

static void put_runtime(struct bytes *line, const struct notice *notice)
{
    bytes_put_format(line, "%s", notice->state);
    put_who(line, notice);
    bytes_put_format(line, " was=%s", notice->old_state);
    if (notice->outcome)
        bytes_put_format(line, " outcome=%s", notice->outcome);
    put_text(line, "rule", notice->rule);
    put_text(line, "exe", notice->name);
}

static void put_code(struct bytes *line, uint32_t hresult)
{
    const char *meaning = hresult_meaning(hresult);

    bytes_put_format(line, " code=0x%08" PRIx32 "%s%s%s", hresult, *meaning ? " (" : "", meaning,
                     *meaning ? ")" : "");
}

static void put_step(struct bytes *line, const struct notice *notice)
{
    bytes_put_format(line, "step %s %s", notice->step, notice->result);
    put_who(line, notice);
    put_text(line, "name", notice->name);
    if (notice->attempts > 1)
        bytes_put_format(line, " attempts=%u", notice->attempts);
    if (notice->hresult != 0)
        put_code(line, notice->hresult);
    put_text(line, "rule", notice->rule);
}

static void put_proof(struct bytes *line, const struct notice *notice)
{
    bytes_put_format(line, "proof %s %s", notice->step, notice->result);
    put_who(line, notice);
    put_text(line, "name", notice->name);
    if (notice->hresult != 0)
        put_code(line, notice->hresult);
    put_text(line, "rule", notice->rule);
}

static void put_admin(struct bytes *line, const struct notice *notice)
{
    char cookie[GUID_TEXT_SIZE];

    bytes_put_format(line, "admin %s %s by pid=%" PRId32 " uid=%" PRIu32, notice->what,
                     notice->result, notice->pid, notice->uid);
    if (notice->has_runtime) {
        guid_format(&notice->cookie, cookie);
        bytes_put_format(line, " runtime=%.8s", cookie);
    }
}

/* Also where the runtime took it, and something is wrong all the same. */
static bool is_bad(const struct notice *notice)
{
    return strcmp(notice->result, "refused") == 0 || strcmp(notice->result, "lost") == 0 ||
           (strcmp(notice->result, "ok") == 0 && notice->why);
}

static enum log_level put_notice(struct bytes *line, const struct notice *notice)
{
    enum log_level level = LOG_LEVEL_INFO;

    switch (notice->kind) {
    case NOTICE_RUNTIME:
        put_runtime(line, notice);
        break;
    case NOTICE_STEP:
        put_step(line, notice);
        if (is_bad(notice))
            level = notice->is_required ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE;
        break;
    case NOTICE_PROOF:
        put_proof(line, notice);
        if (strcmp(notice->result, step_proof_name(PROOF_NOT_LOADED)) == 0)
            level = LOG_LEVEL_WARNING;
        break;
    case NOTICE_PEER_ERROR:
        bytes_put_format(line, "peer %s", peer_error_name(notice->peer_error));
        put_who(line, notice);
        level = LOG_LEVEL_NOTICE;
        break;
    case NOTICE_ADMIN:
        put_admin(line, notice);
        level = LOG_LEVEL_NOTICE;
        break;
    case NOTICE_ALARM:
        bytes_put_format(line, "alarm %s %s", alarm_name(notice->alarm),
                         notice->is_on ? "on" : "off");
        level = notice->is_on ? LOG_LEVEL_ERROR : LOG_LEVEL_NOTICE;
        break;
    }
    if (notice->why && *notice->why)
        bytes_put_format(line, ": %s", notice->why);
    return level;
}

static void tell_left_out(struct notices *notices, enum topic topic)
{
    struct ration *ration = &notices->told[topic].ration;
    struct bytes line;

    if (!ration_has_left_out(ration))
        return;
    bytes_init(&line, LINE_SIZE);
    bytes_put_format(&line, "lines about %s were left out: ", topics[topic].name);
    ration_put_left_out(ration, &line);
    if (bytes_finish(&line) == 0)
        log_entry(ENTRY_LEFT_OUT, LOG_LEVEL_NOTICE, NULL, "%s", (const char *)line.data);
    bytes_deinit(&line);
    *ration = (struct ration){0};
}

/* TOPICS for what is told always. */
static enum topic topic_of(const struct notice *notice)
{
    switch (notice->kind) {
    case NOTICE_PEER_ERROR:
        return TOPIC_PEERS;
    case NOTICE_RUNTIME:
    case NOTICE_STEP:
    case NOTICE_PROOF:
        return log_is_journal() ? TOPIC_RUNTIMES : TOPICS;
    case NOTICE_ADMIN:
    case NOTICE_ALARM:
        break;
    }
    return TOPICS;
}

static bool may_tell(struct notices *notices, const struct notice *notice)
{
    enum topic topic = topic_of(notice);
    struct told *told;

    if (topic == TOPICS)
        return true;
    told = &notices->told[topic];
    if (moment_is_due(window_end(notices, topic), notice->at)) {
        tell_left_out(notices, topic);
        *told = (struct told){.since = notice->at};
    }
    return ration_take(&told->ration, topics[topic].bounds, notice->uid);
}

static void tell(struct notices *notices, const struct notice *notice)
{
    struct bytes line;
    enum log_level level;

    if (!may_tell(notices, notice))
        return;
    bytes_init(&line, LINE_SIZE);
    level = put_notice(&line, notice);
    /* A line that is too long is cut, not lost. */
    if (line.error == -EMSGSIZE)
        line.error = 0;
    if (bytes_finish(&line) == 0)
        log_entry(entry_kind_of(notice), level, notice, "%s", (const char *)line.data);
    bytes_deinit(&line);
}

void notices_take(struct notices *notices, struct notice *notice)
{
    struct notice **place = &notices->kept[notices->next % NOTICES_KEPT];

    tell(notices, notice);
    notice_free(*place);
    *place = notice;
    notices->next++;
}

struct moment notices_deadline(const struct notices *notices)
{
    struct moment next = MOMENT_NEVER;

    for (enum topic topic = 0; topic < TOPICS; topic++) {
        if (ration_has_left_out(&notices->told[topic].ration))
            next = moment_earlier(next, window_end(notices, topic));
    }
    return next;
}

void notices_run(struct notices *notices, struct moment now)
{
    for (enum topic topic = 0; topic < TOPICS; topic++) {
        if (moment_is_due(window_end(notices, topic), now))
            tell_left_out(notices, topic);
    }
}

struct notices *notices_free(struct notices *notices)
{
    if (!notices)
        return NULL;
    for (enum topic topic = 0; topic < TOPICS; topic++)
        tell_left_out(notices, topic);
    for (size_t i = 0; i < NOTICES_KEPT; i++)
        notice_free(notices->kept[i]);
    free(notices);
    return NULL;
}

uint64_t notices_next(const struct notices *notices)
{
    return notices->next;
}

uint64_t notices_oldest(const struct notices *notices)
{
    return notices->next > NOTICES_KEPT ? notices->next - NOTICES_KEPT : 1;
}

const struct notice *notices_get(const struct notices *notices, uint64_t number)
{
    if (number < notices_oldest(notices) || number >= notices->next)
        return NULL;
    return notices->kept[number % NOTICES_KEPT];
}
