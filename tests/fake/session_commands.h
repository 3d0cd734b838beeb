/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of the EventPipe set; see commands.h. */

struct call;

void session_run_collect(struct call *call);
void session_run_stop(struct call *call);
