/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets: left-overs are replaced, the living are never robbed.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/listener.h"
#include "tests/unit/unit_folder.h"

static char folder[40], path[100];
static const struct listener_rights rights = {.mode = 0660};

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/r.sock", folder);
}

static struct listener_socket makes(void)
{
    struct listener_socket socket;
    char *why;

    ck_assert_int_eq(listener_make(path, &rights, &socket, &why), 0);
    ck_assert_ptr_null(why);
    return socket;
}

static void refuses(int error, const char *part_of_why)
{
    struct listener_socket socket;
    char *why;

    ck_assert_int_eq(listener_make(path, &rights, &socket, &why), error);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, part_of_why), "%s", why);
    free(why);
}

static int connects(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), error = 0;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        error = errno;
    close(fd);
    return error;
}

static int listens(int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    return fd;
}

START_TEST(one_is_made_with_its_rights_and_removed)
{
    struct listener_socket socket;
    struct stat status;

    set_up();
    socket = makes();
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert(S_ISSOCK(status.st_mode));
    ck_assert_uint_eq(status.st_mode & 0777, 0660);
    ck_assert_uint_eq(socket.inode, status.st_ino);
    ck_assert(listener_is_in_place(&socket));
    ck_assert_int_eq(connects(), 0);
    listener_close(&socket);
    ck_assert_int_eq(access(path, F_OK), -1);
    unit_folder_remove();
}
END_TEST

START_TEST(a_missing_folder_is_made)
{
    struct listener_socket socket;
    struct stat status;

    set_up();
    snprintf(path, sizeof path, "%s/new/r.sock", folder);
    socket = makes();
    snprintf(path, sizeof path, "%s/new", folder);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0755);
    ck_assert(socket.has_made_folder);
    socket.has_made_folder = false;
    listener_close(&socket);
    ck_assert_int_eq(stat(path, &status), 0);
    /* It was there before. */
    snprintf(path, sizeof path, "%s/new/r.sock", folder);
    socket = makes();
    ck_assert(!socket.has_made_folder);
    listener_close(&socket);
    snprintf(path, sizeof path, "%s/no/new/r.sock", folder);
    refuses(-ENOENT, "cannot be made");
    unit_folder_remove();
}
END_TEST

static bool is_empty(void)
{
    return unit_folder_count() == 0;
}

/* One that is given up, or never came to be, was never there. */
START_TEST(nothing_is_left_behind)
{
    struct listener_rights bad = rights;
    struct listener_socket socket;
    char *why;

    set_up();
    snprintf(path, sizeof path, "%s/new/r.sock", folder);
    socket = makes();
    listener_close(&socket);
    ck_assert(is_empty());
    bad.group = "no such group";
    ck_assert_int_lt(listener_make(path, &bad, &socket, &why), 0);
    free(why);
    ck_assert(is_empty());
    snprintf(path, sizeof path, "%s/r.sock", folder);
    ck_assert_int_lt(listener_make(path, &bad, &socket, &why), 0);
    free(why);
    socket = makes();
    listener_close(&socket);
    ck_assert(is_empty());
    unit_folder_write("r.sock", "precious", 0600);
    refuses(-EEXIST, "is not a socket");
    ck_assert_uint_eq(unit_folder_count(), 1);
    unit_folder_remove();
}
END_TEST

START_TEST(a_left_over_is_replaced)
{
    struct listener_socket socket;

    set_up();
    close(listens(5));
    ck_assert_int_eq(connects(), ECONNREFUSED);
    socket = makes();
    ck_assert_int_eq(connects(), 0);
    listener_close(&socket);
    unit_folder_remove();
}
END_TEST

START_TEST(the_living_keep_theirs)
{
    char pid[32];
    int fd;

    set_up();
    fd = listens(5);
    snprintf(pid, sizeof pid, "process %d listens", getpid());
    refuses(-EADDRINUSE, pid);
    ck_assert_int_eq(connects(), 0);
    close(fd);
    unit_folder_remove();
}
END_TEST

START_TEST(a_full_queue_is_somebody_alive)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, clients[2];

    set_up();
    fd = listens(0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    for (int i = 0; i < 2; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(clients[i], (const struct sockaddr *)&address, sizeof address);
    }
    refuses(-EADDRINUSE, "queue is full");
    close(clients[0]);
    close(clients[1]);
    close(fd);
    unit_folder_remove();
}
END_TEST

START_TEST(a_second_one_of_ours_is_refused_and_removes_nothing)
{
    struct listener_socket socket;

    set_up();
    socket = makes();
    refuses(-EADDRINUSE, "another diagportd owns");
    ck_assert_int_eq(connects(), 0);
    listener_close(&socket);
    socket = makes();
    listener_close(&socket);
    unit_folder_remove();
}
END_TEST

START_TEST(a_file_that_is_no_socket_stays)
{
    set_up();
    unit_folder_write("r.sock", "precious", 0600);
    refuses(-EEXIST, "is not a socket");
    ck_assert_int_eq(access(path, F_OK), 0);
    unit_folder_remove();
}
END_TEST

START_TEST(only_our_own_file_is_removed)
{
    struct listener_socket socket;

    set_up();
    socket = makes();
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!listener_is_in_place(&socket));
    close(listens(5));
    ck_assert(!listener_is_in_place(&socket));
    listener_close(&socket);
    ck_assert_int_eq(access(path, F_OK), 0);
    unit_folder_remove();
}
END_TEST

static void makes_anew(struct listener_socket *socket)
{
    struct stat status;
    char *why;
    int old;

    ck_assert(!listener_is_in_place(socket));
    ck_assert_int_eq(listener_make_anew(socket, &rights, &old, &why), 0);
    ck_assert_ptr_null(why);
    ck_assert_int_ne(old, socket->fd);
    close(old);
    ck_assert(listener_is_in_place(socket));
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0660);
    ck_assert_uint_eq(socket->inode, status.st_ino);
    ck_assert_int_eq(connects(), 0);
    refuses(-EADDRINUSE, "another diagportd owns");
}

static void does_not_make_anew(struct listener_socket *socket, const char *part_of_why)
{
    const struct listener_socket before = *socket;
    char *why;
    int old;

    ck_assert_int_lt(listener_make_anew(socket, &rights, &old, &why), 0);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, part_of_why), "%s", why);
    free(why);
    ck_assert_mem_eq(socket, &before, sizeof before);
}

static void takes_away(const char *name)
{
    char other[200];

    snprintf(other, sizeof other, "%s/%s", folder, name);
    ck_assert_int_eq(unlink(other), 0);
}

START_TEST(one_that_was_removed_is_made_anew)
{
    struct listener_socket socket;

    set_up();
    socket = makes();
    takes_away("r.sock");
    makes_anew(&socket);
    /* With its lock. */
    takes_away("r.sock");
    takes_away(".r.sock.lock");
    makes_anew(&socket);
    /* With the whole folder. */
    takes_away("r.sock");
    takes_away(".r.sock.lock");
    ck_assert_int_eq(rmdir(folder), 0);
    makes_anew(&socket);
    /* Replaced by what nobody listens on. */
    takes_away("r.sock");
    close(listens(5));
    makes_anew(&socket);
    listener_close(&socket);
    ck_assert(is_empty());
    unit_folder_remove();
}
END_TEST

START_TEST(what_is_somebody_elses_now_is_not_taken_back)
{
    struct listener_socket socket, other;
    char pid[32];
    int fd;

    set_up();
    socket = makes();
    takes_away("r.sock");
    fd = listens(5);
    snprintf(pid, sizeof pid, "process %d listens", getpid());
    does_not_make_anew(&socket, pid);
    ck_assert_int_eq(connects(), 0);
    takes_away("r.sock");
    close(fd);
    unit_folder_write("r.sock", "precious", 0600);
    does_not_make_anew(&socket, "is not a socket");
    takes_away("r.sock");
    takes_away(".r.sock.lock");
    other = makes();
    does_not_make_anew(&socket, "another diagportd owns");
    listener_close(&socket);
    ck_assert_int_eq(connects(), 0);
    refuses(-EADDRINUSE, "another diagportd owns");
    listener_close(&other);
    ck_assert(is_empty());
    unit_folder_remove();
}
END_TEST

START_TEST(a_folder_that_everybody_may_write_to_is_refused)
{
    struct listener_socket socket;

    set_up();
    ck_assert_int_eq(chmod(folder, 0777), 0);
    refuses(-EPERM, "everybody may write");
    /* With the sticky bit, as /tmp has it, nobody else can replace the socket. */
    ck_assert_int_eq(chmod(folder, 01777), 0);
    socket = makes();
    listener_close(&socket);
    unit_folder_remove();
}
END_TEST

START_TEST(rights_change_and_unknown_names_are_told)
{
    struct listener_rights others = {.mode = 0600, .owner = "no-such-user-at-all"};
    struct listener_socket socket;
    struct stat status;
    char *why;

    set_up();
    socket = makes();
    ck_assert_int_eq(listener_set_rights(&socket, &others, &why), -EINVAL);
    ck_assert(strstr(why, "there is no user no-such-user-at-all"));
    free(why);
    others.owner = NULL;
    ck_assert_int_eq(listener_set_rights(&socket, &others, &why), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    listener_close(&socket);
    unit_folder_remove();
}
END_TEST

START_TEST(only_listening_unix_sockets_are_adopted)
{
    struct listener_socket adopted;
    int fd, pair[2];
    char *why;

    set_up();
    fd = listens(5);
    ck_assert_int_eq(listener_adopt(fd, path, &adopted, &why), 0);
    ck_assert_int_eq(adopted.fd, fd);
    ck_assert_uint_ne(adopted.inode, 0);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    listener_close(&adopted);
    /* Its file is whoever's who passed it in. */
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_eq(listener_adopt(pair[0], path, &adopted, &why), -EINVAL);
    free(why);
    ck_assert_int_eq(listener_adopt(STDIN_FILENO, path, &adopted, &why), -EINVAL);
    free(why);
    close(pair[0]);
    close(pair[1]);
    unit_folder_remove();
}
END_TEST

static void is_missing(const struct listener_socket *socket, const char *what)
{
    char *why;

    ck_assert(!listener_is_in_place(socket));
    why = listener_explain(socket, "the listener r", "r.socket");
    ck_assert_msg(strstr(why, what) && strstr(why, path), "%s", why);
    free(why);
}

START_TEST(a_file_of_one_that_was_passed_in_may_go_missing)
{
    struct listener_socket adopted, elsewhere;
    char other[120], *why;
    int fd;

    set_up();
    fd = listens(5);
    ck_assert_int_eq(listener_adopt(dup(fd), path, &adopted, &why), 0);
    ck_assert(listener_is_in_place(&adopted));
    snprintf(other, sizeof other, "%s.away", path);
    ck_assert_int_eq(rename(path, other), 0);
    is_missing(&adopted, "was removed, so nobody new comes by it; it was passed in, so restart its "
                         "unit (systemctl restart r.socket)");
    close(listens(5));
    is_missing(&adopted, "was replaced, so");
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert(listener_is_in_place(&adopted));
    listener_close(&adopted);
    /* Nor is it there for the next one, which has never seen it. */
    takes_away("r.sock");
    ck_assert_int_eq(listener_adopt(dup(fd), path, &adopted, &why), 0);
    is_missing(&adopted, "was removed");
    /* Where it is bound elsewhere, it is not known where it is in our sight. */
    ck_assert_int_eq(listener_adopt(fd, other, &elsewhere, &why), 0);
    ck_assert(listener_is_in_place(&elsewhere));
    listener_close(&elsewhere);
    listener_close(&adopted);
    unit_folder_remove();
}
END_TEST

START_TEST(the_queue_is_as_long_as_the_kernel_gives)
{
    struct listener_socket listener;
    char text[32] = {0};
    int fd = open("/proc/sys/net/core/somaxconn", O_RDONLY);
    long longest, n = 0;
    int *clients;

    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    close(fd);
    longest = strtol(text, NULL, 10);
    if (longest > 500)
        longest = 500;
    set_up();
    listener = makes();
    clients = calloc((size_t)longest, sizeof *clients);
    for (; n < longest; n++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        clients[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        ck_assert_int_eq(connect(clients[n], (const struct sockaddr *)&address, sizeof address), 0);
    }
    while (n-- > 0)
        close(clients[n]);
    free(clients);
    listener_close(&listener);
    unit_folder_remove();
}
END_TEST

UNIT_TESTS(one_is_made_with_its_rights_and_removed, a_missing_folder_is_made,
           nothing_is_left_behind, a_left_over_is_replaced, the_living_keep_theirs,
           a_full_queue_is_somebody_alive, a_second_one_of_ours_is_refused_and_removes_nothing,
           a_file_that_is_no_socket_stays, only_our_own_file_is_removed,
           one_that_was_removed_is_made_anew, what_is_somebody_elses_now_is_not_taken_back,
           a_folder_that_everybody_may_write_to_is_refused,
           rights_change_and_unknown_names_are_told, only_listening_unix_sockets_are_adopted,
           a_file_of_one_that_was_passed_in_may_go_missing,
           the_queue_is_as_long_as_the_kernel_gives);
