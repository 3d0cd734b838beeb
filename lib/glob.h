/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Patterns with `*`, `?`, brackets and backslash, matched against whole texts
 * byte by byte.
 *
 * The language is that of fnmatch without flags in the C locale: `*` crosses
 * `/`, a leading dot is nothing special, case counts. It is not fnmatch itself,
 * because that asks the locale of the process what a character is; a policy has
 * to mean the same in the daemon and in a tool that speaks the user's language.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/util.h"

enum glob_fault {
    GLOB_FINE,
    GLOB_OPEN_BRACKET,   /* "[" without its "]" */
    GLOB_EMPTY_RANGE,    /* "[z-a]" */
    GLOB_UNKNOWN_CLASS,  /* "[[:foo:]]" */
    GLOB_STRAY_ELEMENT,  /* "[[.ab.]]", "[a-[:alpha:]]" */
    GLOB_OPEN_BACKSLASH, /* nothing follows the last "\" */
};

/* The first thing in the pattern that cannot mean what its author had in mind. */
enum glob_fault glob_check(const char *glob);

/* True when it fits one text only, itself: no wildcard, bracket or backslash is in it. */
bool glob_is_literal(const char *glob);

/*
 * True when the whole text fits. Takes at most the product of both lengths in
 * steps and no memory, whatever the text; the pattern has to be GLOB_FINE.
 */
bool glob_match(const char *glob, const char *text) MUST_CHECK;

/* Likewise, with at most `*steps` steps, which are taken off. False with none left when that was
 * not enough to tell. */
bool glob_match_within(const char *glob, const char *text, size_t *steps) MUST_CHECK;
