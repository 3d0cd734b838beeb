/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/ask.h"

#include <stddef.h>

#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"

static int show(const struct call *call, int status, json_t *answer, ask_print *print)
{
    if (status == STATUS_DONE)
        status = call->is_json ? output_json(answer) : print(call, answer);
    json_decref(answer);
    return status;
}

int ask_get(const struct call *call, const char *target, ask_print *print)
{
    struct client *client;
    json_t *answer;
    int status = client_open(call, &client);

    if (status != STATUS_DONE)
        return status;
    status = client_get(client, target, &answer);
    status = show(call, status, answer, print);
    client_free(client);
    return status;
}

int ask_post(const struct call *call, const char *target, const json_t *body, ask_print *print)
{
    struct client *client;
    json_t *answer;
    int status = client_open(call, &client);

    if (status != STATUS_DONE)
        return status;
    status = client_post(client, target, body, &answer);
    status = show(call, status, answer, print);
    client_free(client);
    return status;
}
