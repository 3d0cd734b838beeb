/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Unix sockets by their paths: whether somebody is there. What is said to them
 * then is not known here.
 */

#include "lib/util.h"

/*
 * Tells whether somebody has the socket and we may write to it, without
 * connecting: who listens there is not bothered. 0, or -ENOENT, -ECONNREFUSED
 * for a left-over, -EACCES, -ENAMETOOLONG and what else the kernel says.
 */
int socket_probe(const char *path) MUST_CHECK;
