/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the runtime reads DOTNET_DiagnosticPorts and the switches beside it: a
 * second opinion, written from the measurements and not from lib/portspec.c,
 * against which the tests hold the daemon's reading.
 */

#include <stdbool.h>
#include <stddef.h>

struct grammar_port {
    char *path;
    bool suspends;
};

struct grammar_ports {
    struct grammar_port *list; /* as listed; ports with the tag "listen" are left out */
    size_t n;
};

/* False when memory is out. */
bool grammar_read(const char *value, struct grammar_ports *ret_ports);
void grammar_deinit(struct grammar_ports *ports);

/* The value of DOTNET_`name`, or with `with_complus` of COMPlus_`name` when that is absent or
 * empty; NULL when both are. */
const char *grammar_setting(const char *name, bool with_complus);

/* A switch is a hexadecimal number: "false" is 0xFA, so it is on. */
bool grammar_switch(const char *name, bool with_complus, bool otherwise);

/* How long the runtime waits before it tries again to connect: the step after `previous`, or the
 * first one after -1, which is no time-out. */
int grammar_back_off(int previous);
