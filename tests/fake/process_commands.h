/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of the process set; see commands.h. */

struct call;

void process_run_info(struct call *call);
void process_run_resume(struct call *call);
void process_run_environment(struct call *call);
void process_run_set_environment(struct call *call);
void process_run_enable_perf_map(struct call *call);
void process_run_disable_perf_map(struct call *call);
void process_run_startup_hook(struct call *call);
