/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/sessions.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/link.h"
#include "tests/fake/nettrace.h"
#include "tests/fake/picture.h"
#include "tests/fake/runtime.h"
#include "tests/fake/utf8.h"

#define KEYWORD_LOADER   UINT64_C(0x8)
#define KEYWORD_PROFILER UINT64_C(0x20000000000)

enum { LEVEL_INFORMATION = 4, RUNDOWN_EVENT_MAX = 60000 };

struct session {
    struct runtime *runtime;
    uint64_t number;
    int fd;
    struct session_wish wish;
    struct nettrace stream;
    pthread_cond_t changed;
    bool is_streaming; /* its thread runs */
    bool is_stopping;
    bool is_over;
};

/* Writes what there is, without the lock. */
static void flush(struct session *session)
{
    pthread_mutex_t *lock = &session->runtime->lock;
    struct bytes bytes;

    nettrace_take(&session->stream, &bytes);
    pthread_mutex_unlock(lock);
    link_write(session->fd, bytes.data, bytes.length, 0);
    bytes_deinit(&bytes);
    pthread_mutex_lock(lock);
}

static void put_rundown(struct session *session)
{
    size_t left = session->wish.rundown ? session->runtime->behaviour->rundown_bytes : 0;

    while (left > 0) {
        size_t length = left < RUNDOWN_EVENT_MAX ? left : RUNDOWN_EVENT_MAX;
        struct bytes payload;

        bytes_init(&payload, SIZE_MAX - 1);
        for (size_t i = 0; i < length; i++)
            bytes_put_u8(&payload, 'r');
        nettrace_put(&session->stream, NETTRACE_RUNDOWN_METHOD, &payload);
        bytes_deinit(&payload);
        left -= length;
    }
}

static void put_process_info(struct session *session)
{
    struct bytes payload;
    char *program = utf8_repair(session->runtime->program);

    bytes_init(&payload, SIZE_MAX - 1);
    nettrace_put_text(&payload, program ? program : "");
    nettrace_put_text(&payload, "Linux");
    nettrace_put_text(&payload, FAKE_ARCHITECTURE);
    nettrace_put(&session->stream, NETTRACE_PROCESS_INFO, &payload);
    bytes_deinit(&payload);
    free(program);
}

static void *stream(void *argument)
{
    struct session *session = argument;
    pthread_mutex_t *lock = &session->runtime->lock;

    pthread_mutex_lock(lock);
    while (!session->is_stopping) {
        if (session->stream.out.length > 0)
            flush(session);
        else
            pthread_cond_wait(&session->changed, lock);
    }
    put_rundown(session);
    put_process_info(session);
    nettrace_end(&session->stream);
    flush(session);
    close(session->fd);
    session->is_over = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* The thread has the name of whoever starts it: that is how the runtime's looks too. */
static void start_streaming(struct session *session)
{
    session->is_streaming = picture_start_thread(NULL, stream, session);
}

static void put_runtime_start(struct session *session)
{
    struct bytes payload;
    char *program = utf8_repair(session->runtime->program);
    unsigned fix = 0;

    sscanf(session->runtime->version->text, "%*u.%*u.%u", &fix);
    bytes_init(&payload, SIZE_MAX - 1);
    bytes_put_u16(&payload, 0); /* instance */
    bytes_put_u16(&payload, 2); /* CoreCLR */
    for (unsigned times = 0; times < 2; times++) {
        bytes_put_u16(&payload, (uint16_t)session->runtime->version->major);
        bytes_put_u16(&payload, 0);
        bytes_put_u16(&payload, (uint16_t)fix);
        bytes_put_u16(&payload, 0);
    }
    bytes_put_u32(&payload, 0);
    bytes_put_u8(&payload, 0);
    nettrace_put_text(&payload, "");
    for (unsigned i = 0; i < GUID_SIZE; i++)
        bytes_put_u8(&payload, 0);
    nettrace_put_text(&payload, program ? program : "");
    nettrace_put(&session->stream, NETTRACE_RUNTIME_START, &payload);
    bytes_deinit(&payload);
    free(program);
}

uint64_t sessions_open(struct runtime *runtime, int fd, const struct session_wish *wish)
{
    struct sessions *sessions = &runtime->sessions;
    struct session **list = realloc(sessions->list, (sessions->n + 1) * sizeof *list);
    struct session *session = calloc(1, sizeof *session);

    if (list)
        sessions->list = list;
    if (!list || !session) {
        free(session);
        return 0;
    }
    session->runtime = runtime;
    session->number = (uint64_t)(uintptr_t)session;
    session->fd = fd;
    session->wish = *wish;
    nettrace_init(&session->stream);
    pthread_cond_init(&session->changed, NULL);
    list[sessions->n++] = session;
    return session->number;
}

static bool streams_now(const struct runtime *runtime)
{
    return runtime->is_started || runtime->version->streams_at_once;
}

void sessions_begin(struct runtime *runtime, uint64_t number)
{
    for (size_t i = 0; i < runtime->sessions.n; i++) {
        struct session *session = runtime->sessions.list[i];

        if (session->number == number && !session->is_streaming && streams_now(runtime))
            start_streaming(session);
    }
}

static bool wants(const struct session *session, uint64_t keyword)
{
    return (session->wish.keywords & keyword) != 0 && session->wish.level >= LEVEL_INFORMATION &&
           !session->is_over;
}

void sessions_start(struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->sessions.n; i++) {
        struct session *session = runtime->sessions.list[i];

        if (session->wish.level >= LEVEL_INFORMATION)
            put_runtime_start(session);
        if (!session->is_streaming)
            start_streaming(session);
        pthread_cond_broadcast(&session->changed);
    }
}

static void put_everywhere(struct runtime *runtime, uint64_t keyword, enum nettrace_event event,
                           const struct bytes *payload)
{
    for (size_t i = 0; i < runtime->sessions.n; i++) {
        struct session *session = runtime->sessions.list[i];

        if (!wants(session, keyword))
            continue;
        nettrace_put(&session->stream, event, payload);
        pthread_cond_broadcast(&session->changed);
    }
}

void sessions_profiler_message(struct runtime *runtime, const char *text, unsigned message)
{
    struct bytes payload;
    char whole[1024];

    snprintf(whole, sizeof whole, "%s\n  Process ID (decimal): %d.  Message ID: [0x%04x].\n", text,
             (int)getpid(), message);
    bytes_init(&payload, SIZE_MAX - 1);
    bytes_put_u16(&payload, 0);
    nettrace_put_text(&payload, whole);
    put_everywhere(runtime, KEYWORD_PROFILER, NETTRACE_PROFILER_MESSAGE, &payload);
    bytes_deinit(&payload);
}

void sessions_module_loaded(struct runtime *runtime, const char *path)
{
    struct bytes payload;

    bytes_init(&payload, SIZE_MAX - 1);
    bytes_put_u64(&payload, 1); /* module, assembly, flags, reserved */
    bytes_put_u64(&payload, 1);
    bytes_put_u32(&payload, 8);
    bytes_put_u32(&payload, 0);
    nettrace_put_text(&payload, path);
    nettrace_put_text(&payload, "");
    bytes_put_u16(&payload, 0);
    for (unsigned times = 0; times < 2; times++) {
        for (unsigned i = 0; i < GUID_SIZE; i++)
            bytes_put_u8(&payload, 0);
        bytes_put_u32(&payload, 0);
        nettrace_put_text(&payload, "");
    }
    put_everywhere(runtime, KEYWORD_LOADER, NETTRACE_MODULE_LOAD, &payload);
    bytes_deinit(&payload);
}

static void finish(struct session *session)
{
    session->is_stopping = true;
    pthread_cond_broadcast(&session->changed);
    while (session->is_streaming && !session->is_over)
        pthread_cond_wait(&session->changed, &session->runtime->lock);
}

void sessions_stop(struct runtime *runtime, uint64_t number)
{
    for (size_t i = 0; i < runtime->sessions.n; i++) {
        if (runtime->sessions.list[i]->number == number)
            finish(runtime->sessions.list[i]);
    }
}

void sessions_finish(struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->sessions.n; i++)
        finish(runtime->sessions.list[i]);
}
