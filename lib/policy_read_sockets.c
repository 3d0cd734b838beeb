/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sockets of the daemon, who may do what over the control socket, and the
 * limits of it all. Nothing is opened here, and nobody's rights are checked.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/policy_parts.h"
#include "lib/policy_reader.h"

enum {
    SOCKET_PATH_MAX = 107, /* bytes: sun_path with its NUL has 108 */
    /* As systemd has it: a runtime may run as anybody, and who may do what with the control socket
     * is asked of the kernel for each request. */
    SOCKET_MODE = 0666,
    PRIVATE_MODE = 0600,
    SOCKET_NAME_MAX = 64, /* bytes */
    OWNER_MAX = 255,
};

/* The keys that both kinds of socket have. */
struct socket_keys {
    enum policy_key_id path, mode, owner, group;
};

struct socket_values {
    char *path;
    bool has_mode;
    uint32_t mode;
    char *owner;
    char *group;
};

/* A number, or a name that the host turns into one. */
static bool find_number(struct reader *reader, bool is_group, const char *name,
                        uint32_t *ret_number)
{
    const struct policy_host *host = reader->host;

    if (value_is_id(name, ret_number))
        return true;
    if (is_group)
        return host->group_number && host->group_number(host->context, name, ret_number);
    return host->user_number && host->user_number(host->context, name, ret_number);
}

/* True when the host can be asked, and does not know the name. */
static bool is_unknown(struct reader *reader, bool is_group, const char *name)
{
    uint32_t number;

    if (is_group ? !reader->host->group_number : !reader->host->user_number)
        return false;
    return !find_number(reader, is_group, name, &number);
}

static void read_owner(struct reader *reader, enum policy_key_id id, bool is_group,
                       const struct yaml_node *node, char **ret_owner)
{
    if (!value_name(reader, id, node, OWNER_MAX, ret_owner))
        return;
    if (is_unknown(reader, is_group, *ret_owner))
        reader_warn(reader, node, "no %s \"%s\" is known on this host: the socket will not open",
                    is_group ? "group" : "user", reader_show(reader, *ret_owner));
}

static void read_socket(struct reader *reader, const struct reader_view *view,
                        const struct socket_keys *keys, struct socket_values *socket)
{
    const struct yaml_node *const *values = view->values;
    const struct yaml_node *path = reader_need(reader, view, keys->path);
    const char *text;

    if (values[keys->mode])
        socket->has_mode = value_file_mode(reader, keys->mode, values[keys->mode], &socket->mode);
    if (values[keys->owner])
        read_owner(reader, keys->owner, false, values[keys->owner], &socket->owner);
    if (values[keys->group])
        read_owner(reader, keys->group, true, values[keys->group], &socket->group);
    if (!path || !value_path(reader, keys->path, path, &text))
        return;
    if (strlen(text) > SOCKET_PATH_MAX)
        reader_error(reader, path,
                     "the path of a socket has at most %d bytes, this one has %zu; shorten it",
                     SOCKET_PATH_MAX, strlen(text));
    else
        socket->path = reader_copy(reader, text);
}

static void read_listen(struct reader *reader, const struct yaml_node *node,
                        struct policy_listen *listen)
{
    static const struct socket_keys keys = {KEY_LISTEN_PATH, KEY_LISTEN_MODE, KEY_LISTEN_OWNER,
                                            KEY_LISTEN_GROUP};
    struct socket_values socket = {.mode = SOCKET_MODE};
    const struct yaml_node *name;
    struct reader_view view;

    *listen = (struct policy_listen){.place = reader_place(reader, node)};
    if (!reader_view(reader, &view, SECTION_LISTEN, NULL, node))
        return;
    name = reader_need(reader, &view, KEY_LISTEN_NAME);
    if (name && value_name(reader, KEY_LISTEN_NAME, name, SOCKET_NAME_MAX, &listen->name) &&
        strchr(listen->name, ':'))
        reader_error(reader, name,
                     "the name of a listener cannot have a colon: systemd separates "
                     "names with it");
    read_socket(reader, &view, &keys, &socket);
    listen->path = socket.path;
    listen->has_mode = socket.has_mode;
    listen->mode = socket.mode;
    listen->owner = socket.owner;
    listen->group = socket.group;
    if (listen->path && strpbrk(listen->path, ";, "))
        reader_error(reader, view.values[KEY_LISTEN_PATH],
                     "the path of a listener cannot have \";\", \",\" or a blank: a runtime could "
                     "not be told of it in DOTNET_DiagnosticPorts");
}

static void check_listens(struct reader *reader)
{
    const struct policy *policy = reader->policy;
    struct reader_name *names = reader_alloc(reader, policy->n_listens, sizeof *names);
    size_t n_names = 0, n_paths = 0;

    if (!names)
        return;
    for (size_t i = 0; i < policy->n_listens; i++) {
        if (policy->listens[i].name)
            names[n_names++] =
                (struct reader_name){policy->listens[i].name, policy->listens[i].place};
    }
    reader_find_repeats(reader, names, n_names, "the listener", "give it another name");
    for (size_t i = 0; i < policy->n_listens; i++) {
        if (policy->listens[i].path)
            names[n_paths++] =
                (struct reader_name){policy->listens[i].path, policy->listens[i].place};
    }
    reader_find_repeats(reader, names, n_paths, "a listener with the path", "give it another path");
    free(names);
}

void policy_read_listens(struct reader *reader, const struct yaml_node *node)
{
    struct policy *policy = reader->policy;

    if (!value_list(reader, KEY_LISTEN, node))
        return;
    policy->listens = reader_alloc(reader, node->n, sizeof *policy->listens);
    if (!policy->listens)
        return;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        read_listen(reader, item, &policy->listens[policy->n_listens++]);
    check_listens(reader);
}

/* A socket that the policy does not name, in the host's usual place; NULL when there is none, or
 * memory is out. */
static char *usual_path(struct reader *reader, const char *name)
{
    const struct policy_place whole = {reader->file, 0, 0};
    const char *folder = reader->host->sockets;
    char path[SOCKET_PATH_MAX + 1];

    if (!folder)
        return NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        reader_error_at(reader, &whole,
                        "the usual folder for sockets, %s, is too long for one: its path has at "
                        "most %d bytes; write \"listen:\" and \"control:\"",
                        reader_show(reader, folder), SOCKET_PATH_MAX);
        return NULL;
    }
    return reader_copy(reader, path);
}

void policy_take_usual_listen(struct reader *reader)
{
    struct policy *policy = reader->policy;
    char *path = usual_path(reader, "runtime.sock");

    policy->listens = path ? reader_alloc(reader, 1, sizeof *policy->listens) : NULL;
    if (!policy->listens) {
        free(path);
        return;
    }
    policy->n_listens = 1;
    policy->listens[0] = (struct policy_listen){
        .name = reader_copy(reader, "runtime"),
        .path = path,
        .has_mode = reader->host->are_sockets_private,
        .mode = reader->host->are_sockets_private ? PRIVATE_MODE : SOCKET_MODE,
        .place = {reader->file, 0, 0},
    };
}

void policy_take_usual_control(struct reader *reader)
{
    struct policy_control *control = &reader->policy->control;

    control->path = usual_path(reader, "control.sock");
    if (!control->path)
        return;
    control->has_mode = reader->host->are_sockets_private;
    control->mode = control->has_mode ? PRIVATE_MODE : SOCKET_MODE;
    control->place = (struct policy_place){reader->file, 0, 0};
}

/* The numbers for a list of names; those that nobody has are said and left out. */
static void find_numbers(struct reader *reader, bool is_group, const struct yaml_node *list,
                         char *const *names, size_t n, uint32_t **ret_numbers, size_t *ret_n)
{
    uint32_t *numbers = reader_alloc(reader, n, sizeof *numbers);
    const struct yaml_node *item = list->first;
    size_t n_found = 0;

    for (size_t i = 0; numbers && i < n; i++, item = item->next) {
        if (find_number(reader, is_group, names[i], &numbers[n_found]))
            n_found++;
        else if (is_unknown(reader, is_group, names[i]))
            reader_warn(reader, item, "no %s \"%s\" is known on this host: nobody gets this right",
                        is_group ? "group" : "user", reader_show(reader, names[i]));
    }
    *ret_numbers = numbers;
    *ret_n = n_found;
}

struct right_names {
    char **users, **groups;
    size_t n_users, n_groups;
};

static void read_right(struct reader *reader, const char *what, const struct yaml_node *node,
                       struct policy_right *right, struct right_names *names)
{
    struct reader_view view;

    if (!reader_view(reader, &view, SECTION_RIGHT, what, node))
        return;
    if (view.values[KEY_USERS] &&
        value_name_list(reader, KEY_USERS, view.values[KEY_USERS], &names->users, &names->n_users))
        find_numbers(reader, false, view.values[KEY_USERS], names->users, names->n_users,
                     &right->users, &right->n_users);
    if (view.values[KEY_GROUPS] && value_name_list(reader, KEY_GROUPS, view.values[KEY_GROUPS],
                                                   &names->groups, &names->n_groups))
        find_numbers(reader, true, view.values[KEY_GROUPS], names->groups, names->n_groups,
                     &right->groups, &right->n_groups);
}

static void read_rights(struct reader *reader, const struct reader_view *view,
                        struct policy_control *control)
{
    struct right_names read = {NULL, NULL, 0, 0}, admin = {NULL, NULL, 0, 0};

    if (view->values[KEY_READ])
        read_right(reader, "\"read\"", view->values[KEY_READ], &control->read, &read);
    if (view->values[KEY_ADMIN])
        read_right(reader, "\"admin\"", view->values[KEY_ADMIN], &control->admin, &admin);
    control->read_users = read.users;
    control->n_read_users = read.n_users;
    control->read_groups = read.groups;
    control->n_read_groups = read.n_groups;
    control->admin_users = admin.users;
    control->n_admin_users = admin.n_users;
    control->admin_groups = admin.groups;
    control->n_admin_groups = admin.n_groups;
}

void policy_read_control(struct reader *reader, const struct yaml_node *node)
{
    static const struct socket_keys keys = {KEY_CONTROL_PATH, KEY_CONTROL_MODE, KEY_CONTROL_OWNER,
                                            KEY_CONTROL_GROUP};
    struct policy_control *control = &reader->policy->control;
    struct socket_values socket = {.mode = SOCKET_MODE};
    struct reader_view view;

    control->place = reader_place(reader, node);
    if (!reader_view(reader, &view, SECTION_CONTROL, NULL, node))
        return;
    read_socket(reader, &view, &keys, &socket);
    control->path = socket.path;
    control->has_mode = socket.has_mode;
    control->mode = socket.mode;
    control->owner = socket.owner;
    control->group = socket.group;
    read_rights(reader, &view, control);
    for (size_t i = 0; control->path && i < reader->policy->n_listens; i++) {
        const struct policy_listen *listen = &reader->policy->listens[i];

        if (listen->path && strcmp(listen->path, control->path) == 0)
            reader_error(reader, view.values[KEY_CONTROL_PATH],
                         "the listener at %s has this path already; give the control socket "
                         "another one",
                         reader_show_place(reader, &listen->place));
    }
}

static void read_history(struct reader *reader, const struct yaml_node *node,
                         struct policy_limits *limits)
{
    struct reader_view view;

    if (!reader_view(reader, &view, SECTION_HISTORY, NULL, node))
        return;
    if (view.values[KEY_RECORDS])
        (void)!value_number(reader, KEY_RECORDS, view.values[KEY_RECORDS],
                            &limits->history_records);
    if (view.values[KEY_AGE])
        (void)!value_span(reader, KEY_AGE, view.values[KEY_AGE], &limits->history_age);
}

void policy_read_limits(struct reader *reader, const struct yaml_node *node)
{
    struct policy_limits *limits = &reader->policy->limits;
    const struct {
        enum policy_key_id id;
        uint32_t *number;
    } numbers[] = {
        {KEY_RUNTIMES, &limits->runtimes},
        {KEY_RUNTIMES_PER_USER, &limits->runtimes_per_user},
        {KEY_SILENT, &limits->silent},
        {KEY_CONNECTIONS_PER_USER, &limits->connections_per_user},
        {KEY_COOKIES_PER_PROCESS, &limits->cookies_per_process},
    };
    struct reader_view view;

    if (!reader_view(reader, &view, SECTION_LIMITS, NULL, node))
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        if (view.values[numbers[i].id])
            (void)!value_number(reader, numbers[i].id, view.values[numbers[i].id],
                                numbers[i].number);
    }
    limits->has_runtimes = view.values[KEY_RUNTIMES];
    if (view.values[KEY_HELLO])
        (void)!value_span(reader, KEY_HELLO, view.values[KEY_HELLO], &limits->hello);
    if (view.values[KEY_LATE_AFTER])
        (void)!value_span(reader, KEY_LATE_AFTER, view.values[KEY_LATE_AFTER], &limits->late_after);
    if (view.values[KEY_ALLOW_PID_IDENTITY])
        (void)!value_bool(reader, KEY_ALLOW_PID_IDENTITY, view.values[KEY_ALLOW_PID_IDENTITY],
                          &limits->allow_pid_identity);
    if (view.values[KEY_HISTORY])
        read_history(reader, view.values[KEY_HISTORY], limits);
}
