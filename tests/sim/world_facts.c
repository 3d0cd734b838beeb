/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel says of the processes of a world. */

#include "tests/sim/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/action.h"
#include "lib/bytes.h"
#include "lib/hresult.h"
#include "lib/policy_read.h"
#include "lib/reply.h"
#include "lib/wire.h"

static void set_link(struct facts_text *text, const char *value)
{
    if (value)
        facts_text_set(text, value, strlen(value));
    else
        text->error = EACCES;
}

static size_t block_length(const char *block)
{
    const char *at = block;

    while (*at != '\0')
        at += strlen(at) + 1;
    return (size_t)(at - block);
}

/* Threads take a while to show that a runtime runs. */
static enum world_picture shown_picture(const struct world_process *process, struct moment now)
{
    return process->picture == WORLD_RUNNING && moment_is_before(now, process->shows_at)
               ? process->late_picture
               : process->picture;
}

static void set_threads(struct facts *facts, const struct world_process *process,
                        enum world_picture picture)
{
    static const char *const running[] = {".NET SynchManag", ".NET EventPipe", ".NET Finalizer",
                                          ".NET DebugPipe"};
    size_t n = picture == WORLD_RUNNING ? 4 : picture == WORLD_SUSPENDED ? 2 : 0;

    if (picture == WORLD_UNREADABLE) {
        facts->threads_error = EACCES;
        return;
    }
    facts->threads_error = 0;
    facts->threads[facts->n_threads++] = (struct facts_thread){process->pid, "app"};
    if (picture == WORLD_STRANGE)
        facts->threads[facts->n_threads++] = (struct facts_thread){process->pid + 1, "app"};
    for (size_t i = 0; i < n; i++) {
        struct facts_thread *thread = &facts->threads[facts->n_threads++];

        thread->id = process->pid + 1 + (int32_t)i;
        snprintf(thread->name, sizeof thread->name, "%s", running[i]);
    }
}

static void set_file(struct facts_file *file, const struct world_process *process, const char *path)
{
    char *expanded = NULL;

    file->path = world_need(strdup(path));
    file->platform = (struct platform){PLATFORM_X64, PLATFORM_GLIBC};
    if (platform_expand(path, &file->platform, &expanded) != 0)
        world_fail("memory ran out");
    file->error = ENOENT;
    file->nodes = world_need(calloc(2, sizeof *file->nodes));
    file->nodes[file->n_nodes++] = (struct facts_node){.mode = 040755};
    for (size_t i = 0; i < process->n_files; i++) {
        if (strcmp(process->files[i].path, expanded) != 0)
            continue;
        file->error = process->files[i].error;
        file->identity.inode = process->files[i].inode;
        file->identity.device = 1;
        if (S_ISREG(process->files[i].mode))
            file->identity.changed_ns = process->n_replaced;
        if (file->error == 0)
            file->nodes[file->n_nodes++] = (struct facts_node){.mode = process->files[i].mode,
                                                               .owner = process->files[i].owner};
    }
    free(expanded);
}

struct facts *world_look(const struct world_process *process,
                         const struct action_question *question, struct moment now)
{
    struct facts *facts = world_need(facts_new(question->wanted, ENODATA));
    char text[512];

    if (process->is_dead) {
        facts->stat.error = ENOENT;
        return facts;
    }
    snprintf(text, sizeof text, "%d (app) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 %llu 1 1",
             process->pid, process->state ? process->state : 'S',
             (unsigned long long)process->start_time);
    facts_text_set(&facts->stat, text, strlen(text));
    facts->stat.error = 0;
    if (process->ns_pid == 0)
        snprintf(text, sizeof text,
                 "Uid:\t%u\t%u\t%u\t%u\nGid:\t5\t5\t5\t5\nGroups:\t5 \nNSpid:\t%d\n", process->uid,
                 process->uid, process->uid, process->uid, process->pid);
    else
        snprintf(text, sizeof text,
                 "Uid:\t%u\t%u\t%u\t%u\nGid:\t5\t5\t5\t5\nGroups:\t5 \nNSpid:\t%d\t%llu\n",
                 process->uid, process->uid, process->uid, process->uid, process->pid,
                 (unsigned long long)process->ns_pid);
    if (question->wanted & FACTS_STATUS)
        facts_text_set(&facts->status, text, strlen(text));
    if (question->wanted & FACTS_EXE)
        set_link(&facts->exe, process->exe);
    if (question->wanted & FACTS_CWD)
        set_link(&facts->cwd, process->cwd ? process->cwd : "/");
    if (question->wanted & FACTS_CGROUP)
        set_link(&facts->cgroup, process->cgroup);
    if (question->wanted & FACTS_PARENT)
        set_link(&facts->parent_exe, process->parent_exe ? process->parent_exe : "/bin/sh");
    if (question->wanted & FACTS_ARGUMENTS) {
        if (process->arguments)
            facts_text_set(&facts->arguments, process->arguments, block_length(process->arguments));
        else
            facts->arguments.error = EACCES;
    }
    if (question->wanted & FACTS_ENVIRON) {
        if (process->environ && !process->hides_environ)
            facts_text_set(&facts->environ, process->environ, block_length(process->environ));
        else
            facts->environ.error = EACCES;
    }
    if (question->wanted & FACTS_THREADS)
        set_threads(facts, process, shown_picture(process, now));
    if (question->wanted & FACTS_FILES) {
        facts->files = world_need(calloc(question->n_files, sizeof *facts->files));
        for (; facts->n_files < question->n_files; facts->n_files++)
            set_file(&facts->files[facts->n_files], process, question->files[facts->n_files]);
    }
    facts->is_alive = question->start_time == 0 || question->start_time == process->start_time;
    facts->has_handle = !process->has_no_handle;
    facts->age = span_from_us(process->age.us + moment_between(process->made_at, now).us);
    return facts;
}
