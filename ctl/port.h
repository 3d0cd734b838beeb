/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The listener of the daemon that an app is to be told of, and what it is told.
 */

#include "lib/util.h"

struct call;

/* The variable that a runtime reads. */
#define PORT_VARIABLE "DOTNET_DiagnosticPorts"

/*
 * Asks the daemon for the listener of that name; NULL: for its only one, or the
 * one named "runtime". `*ret_path`, which the caller frees, is its path, and as
 * the value of PORT_VARIABLE means just that socket, suspended. The status,
 * everything said.
 */
int port_find(const struct call *call, const char *name, char **ret_path) MUST_CHECK;
