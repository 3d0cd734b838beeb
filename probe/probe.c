/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/rights.h"
#include "probe/parent.h"

static const char name[] = "diagport-probe";

uint64_t probe_rights_to_look(void)
{
    return RIGHTS_BIT(CAP_SYS_PTRACE) | RIGHTS_BIT(CAP_DAC_READ_SEARCH);
}

uint64_t probe_rights_to_kill(void)
{
    return RIGHTS_BIT(CAP_KILL);
}

/* What ps shows: the arguments lie one after the other, and where they do not suffice it goes on
 * showing the daemon's. */
static void be_called(int n_arguments, char **arguments)
{
    char *end = arguments[0];

    for (int i = 0; i < n_arguments && arguments[i] == end; i++)
        end += strlen(end) + 1;
    if ((size_t)(end - arguments[0]) >= sizeof name) {
        memset(arguments[0], 0, (size_t)(end - arguments[0]));
        memcpy(arguments[0], name, sizeof name);
    }
    (void)prctl(PR_SET_NAME, name);
}

/* What is open is the daemon's: sockets that were passed in, its log. */
static int keep_only(int channel)
{
    enum { CHANNEL = STDERR_FILENO + 1 };
    int nothing;

    if (channel != CHANNEL && dup2(channel, CHANNEL) < 0)
        return -1;
    nothing = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (nothing < 0 || dup2(nothing, fd) < 0)
            close(fd);
    }
    closefrom(CHANNEL + 1);
    return CHANNEL;
}

/* Signals to everybody, of a terminal or of a service manager that stops us, are for the daemon: it
 * goes on asking until it is done, and with it this ends. */
static void ignore_signals(void)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
}

_Noreturn static void be_probe(const struct rights_user *user, int channel, pid_t daemon)
{
    channel = keep_only(channel);
    ignore_signals();
    if (channel < 0 || rights_give_up(user, probe_rights_to_look() | probe_rights_to_kill()) != 0)
        _exit(EXIT_FAILURE);
    /* Only now: becoming somebody else takes it back. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != daemon)
        _exit(EXIT_FAILURE);
    parent_run(channel);
}

int probe_start(const struct rights_user *user, int n_arguments, char **arguments)
{
    pid_t daemon = getpid(), child;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -errno;
    child = fork();
    if (child < 0) {
        int error = -errno;

        close(pair[0]);
        close(pair[1]);
        return error;
    }
    if (child == 0) {
        be_called(n_arguments, arguments);
        be_probe(user, pair[1], daemon);
    }
    close(pair[1]);
    return pair[0];
}
