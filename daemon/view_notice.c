/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events.
 */

#include <string.h>

#include "daemon/view.h"
#include "lib/notice.h"
#include "lib/plan.h"

static void put_runtime(json_t **view, const struct notice *notice)
{
    view_put(view, "state", view_text(notice->state));
    view_put(view, "old_state", view_text(notice->old_state));
    view_put(view, "outcome", view_text(notice->outcome));
    view_put(view, "rule", view_text(notice->rule));
    view_put(view, "exe", view_text(notice->name));
}

static void put_step(json_t **view, const struct notice *notice)
{
    bool is_lost = strcmp(notice->result, step_result_name(STEP_LOST)) == 0;
    bool was_answered = notice->attempts > 0 && !is_lost;

    view_put(view, "step", view_text(notice->step));
    view_put(view, "name", view_text(notice->name));
    view_put(view, "result", view_text(notice->result));
    view_put(view, "required", json_boolean(notice->is_required));
    view_put(view, "hresult", was_answered ? view_code(notice->hresult) : json_null());
    view_put(view, "attempts", json_integer(notice->attempts));
    view_put(view, "state", view_text(notice->state));
    view_put(view, "rule", view_text(notice->rule));
}

static void put_proof(json_t **view, const struct notice *notice)
{
    view_put(view, "step", view_text(notice->step));
    view_put(view, "name", view_text(notice->name));
    view_put(view, "proof", view_text(notice->result));
    view_put(view, "hresult", notice->hresult != 0 ? view_code(notice->hresult) : json_null());
    view_put(view, "required", json_boolean(notice->is_required));
    view_put(view, "state", view_text(notice->state));
    view_put(view, "rule", view_text(notice->rule));
}

static void put_kind(json_t **view, const struct notice *notice)
{
    switch (notice->kind) {
    case NOTICE_RUNTIME:
        put_runtime(view, notice);
        break;
    case NOTICE_STEP:
        put_step(view, notice);
        break;
    case NOTICE_PROOF:
        put_proof(view, notice);
        break;
    case NOTICE_PEER_ERROR:
        view_put(view, "error", json_string(peer_error_name(notice->peer_error)));
        break;
    case NOTICE_ALARM:
        view_put(view, "alarm", json_string(alarm_name(notice->alarm)));
        view_put(view, "on", json_boolean(notice->is_on));
        break;
    case NOTICE_ADMIN:
        view_put(view, "what", view_text(notice->what));
        view_put(view, "result", view_text(notice->result));
        break;
    }
}

json_t *view_notice(uint64_t number, const struct notice *notice)
{
    bool has_peer = notice->kind != NOTICE_ALARM;
    json_t *view = json_object();

    view_put(&view, "seq", json_integer((json_int_t)number));
    view_put(&view, "at", view_time(notice->at));
    view_put(&view, "kind", json_string(notice_kind_name(notice->kind)));
    view_put(&view, "id", notice->has_runtime ? view_short_cookie(&notice->cookie) : json_null());
    view_put(&view, "cookie", notice->has_runtime ? view_cookie(&notice->cookie) : json_null());
    view_put(&view, "pid", has_peer ? json_integer(notice->pid) : json_null());
    view_put(&view, "uid", has_peer ? json_integer(notice->uid) : json_null());
    view_put(&view, "why", view_text(notice->why));
    put_kind(&view, notice);
    return view;
}
