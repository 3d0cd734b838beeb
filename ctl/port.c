/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/port.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "lib/bytes.h"
#include "lib/portspec.h"

#define USUAL_NAME "runtime"

static bool has_name(const json_t *listener, const char *name)
{
    char *own = answer_unescape(answer_text_or_empty(listener, "name"));
    const bool has_name = own && strcmp(own, name) == 0;

    free(own);
    return has_name;
}

static const json_t *find_by_name(const json_t *listeners, const char *name)
{
    for (size_t i = 0; i < json_array_size(listeners); i++) {
        const json_t *listener = json_array_get(listeners, i);

        if (has_name(listener, name))
            return listener;
    }
    return NULL;
}

/* The problem, and the names there are. */
static int complain(const json_t *listeners, int status, const char *problem, const char *name)
{
    struct bytes names;

    bytes_init(&names, SIZE_MAX - 1);
    for (size_t i = 0; i < json_array_size(listeners); i++)
        bytes_put_format(&names, "%s%s", i > 0 ? ", " : "",
                         answer_text_or_empty(json_array_get(listeners, i), "name"));
    if (bytes_finish(&names) == 0)
        output_error("%s%s; choose one of %s with --port", problem, name, (const char *)names.data);
    bytes_deinit(&names);
    return status;
}

static int choose(const json_t *listeners, const char *name, const json_t **ret_listener)
{
    *ret_listener = find_by_name(listeners, name ? name : USUAL_NAME);
    if (*ret_listener)
        return STATUS_DONE;
    if (json_array_size(listeners) == 0) {
        output_error("the daemon listens on no port; add one to \"listen\" in its policy");
        return STATUS_NO;
    }
    if (name)
        return complain(listeners, STATUS_NO, "the daemon has no port ", name);
    if (json_array_size(listeners) > 1)
        return complain(listeners, STATUS_USAGE, "the daemon has several ports", "");
    *ret_listener = json_array_get(listeners, 0);
    return STATUS_DONE;
}

/* What the runtime makes of the path must be the path. */
static bool is_plain(const char *path)
{
    struct portspec portspec;
    const struct portspec_entry *entry = &portspec.entries[0];

    if (path[0] != '/')
        return false;
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == '\x7f')
            return false;
    }
    portspec_read(path, &portspec);
    return portspec.n_entries == 1 && entry->path_length == strlen(path) && !entry->is_too_long;
}

static int take_path(const json_t *listener, char **ret_path)
{
    const char *shown = answer_text_or_empty(listener, "path");
    char *path = answer_unescape(shown);

    if (path && is_plain(path) && !json_is_false(answer_member(listener, "in_place"))) {
        *ret_path = path;
        return STATUS_DONE;
    }
    if (path && is_plain(path))
        output_error("the socket %s was removed or replaced, so nobody can be held there; make "
                     "it anew with \"diagportctl reload\"",
                     shown);
    else
        output_error("the socket %s cannot be written into %s; give the listener a path without "
                     "blanks, ',' and ';', of at most %d bytes",
                     shown, PORT_VARIABLE, PORTSPEC_PATH_MAX);
    free(path);
    return STATUS_NO;
}

int port_find(const struct call *call, const char *name, char **ret_path)
{
    const json_t *listener;
    struct client *client;
    json_t *answer;
    int status = client_open(call, &client);

    if (status != STATUS_DONE)
        return status;
    status = client_get(client, "/v1/status", &answer);
    if (status == STATUS_DONE)
        status = choose(answer_member(answer, "listeners"), name, &listener);
    if (status == STATUS_DONE)
        status = take_path(listener, ret_path);
    json_decref(answer);
    client_free(client);
    return status;
}
