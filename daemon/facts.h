/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks at processes: answers the questions of the core with what the kernel
 * says. It reads and parses nothing but a start time; and it is asked through
 * one function, so that another process can take it over.
 */

#include <stdint.h>

#include "lib/action.h"
#include "lib/util.h"

struct facts;

/*
 * Answers a question. `pidfd` is the handle of the process, or -1: then the
 * start time in the question has to do. The caller frees the answer; NULL when
 * memory is out.
 */
struct facts *facts_look(const struct action_question *question, int pidfd) MUST_CHECK;
