/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/session_commands.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hresult.h"
#include "lib/wire.h"
#include "tests/fake/commands.h"
#include "tests/fake/fields.h"
#include "tests/fake/runtime.h"

enum { REPLY_OK = 0x00 };

/* Which CollectTracing it is; each has more fields than the one before. */
enum { COLLECT_2 = 0x03, COLLECT_3, COLLECT_4, COLLECT_5, COLLECT_6 };

enum { FORMAT_NETTRACE = 1, PROVIDERS_MAX = 1000, LEVEL_MAX = 5 };

static void reply_session(struct call *call, uint64_t session)
{
    wire_message_begin(&call->reply, WIRE_SET_SERVER, REPLY_OK);
    bytes_put_u64(&call->reply, session);
    if (wire_message_end(&call->reply) != 0)
        abort();
}

static bool get_filter(struct call *call)
{
    uint32_t n, id;
    uint8_t enables;

    if (!fields_get_u8(call, "filter_enables", &enables) || !fields_get_u32(call, "filter", &n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!bytes_get_u32(&call->payload, &id))
            return false;
    }
    return true;
}

static bool get_provider(struct call *call, struct session_wish *wish)
{
    char *name = NULL, *arguments = NULL;
    uint64_t keywords;
    uint32_t level;
    bool ok;

    ok = fields_get_u64(call, "keywords", &keywords) && fields_get_u32(call, "level", &level) &&
         fields_get_string(call, "provider", &name) &&
         fields_get_string(call, "provider_arguments", &arguments) &&
         (call->id < COLLECT_5 || get_filter(call)) && level <= LEVEL_MAX && name && *name != '\0';
    if (ok && strcmp(name, "Microsoft-Windows-DotNETRuntime") == 0) {
        wish->keywords |= keywords;
        wish->level = level > wish->level ? level : wish->level;
    }
    free(name);
    free(arguments);
    return ok;
}

/* .NET 8 and 9 do not survive a session that they then refuse. */
static bool refuse(const struct call *call)
{
    if (call->runtime->version->bad_session_kills)
        runtime_die(SIGSEGV, "a session without size, of another format, or of too many providers");
    return false;
}

static bool get_session(struct call *call, struct session_wish *wish)
{
    uint32_t type = 0, megabytes, format, n;
    uint64_t rundown_keywords = 0;
    uint8_t rundown = 1, stacks;

    if (call->id >= COLLECT_5 && (!fields_get_u32(call, "type", &type) || type != 0))
        return false;
    if (!fields_get_u32(call, "megabytes", &megabytes) || !fields_get_u32(call, "format", &format))
        return false;
    if ((call->id == COLLECT_2 || call->id == COLLECT_3) &&
        !fields_get_u8(call, "rundown", &rundown))
        return false;
    if (call->id >= COLLECT_4) {
        if (!fields_get_u64(call, "rundown_keywords", &rundown_keywords))
            return false;
        rundown = rundown_keywords != 0;
    }
    if (call->id >= COLLECT_3 && !fields_get_u8(call, "stacks", &stacks))
        return false;
    if (!fields_get_u32(call, "providers", &n))
        return false;
    if (megabytes == 0 || format != FORMAT_NETTRACE || n > PROVIDERS_MAX)
        return refuse(call);
    wish->rundown = rundown != 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!get_provider(call, wish))
            return false;
    }
    return n > 0;
}

void session_run_collect(struct call *call)
{
    struct session_wish wish = {.level = 0};

    if (!get_session(call, &wish)) {
        call->result = HRESULT_BAD_ENCODING;
        call->leaves_open = call->runtime->version->bad_session_stays;
        return;
    }
    call->session = sessions_open(call->runtime, call->fd, &wish);
    if (call->session == 0)
        call->result = HRESULT_FAIL;
    else
        reply_session(call, call->session);
}

void session_run_stop(struct call *call)
{
    uint64_t session;

    /* This one command checks that there is a payload. */
    if (call->is_empty) {
        call->result = HRESULT_BAD_ENCODING;
        return;
    }
    if (!fields_get_u64(call, "session", &session))
        return;
    sessions_stop(call->runtime, session);
    reply_session(call, session);
}
