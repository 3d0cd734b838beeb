/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/loop.h"

#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/clock.h"

/* A turn is ended after so long, whatever else is ready: deadlines do not wait for those who send
 * without end. What was ready comes first in the next one. */
#define TURN_TIME span_from_ms(5)

/*
 * libevent's own timers are either a millisecond coarse or set anew in every
 * turn. Nearly every deadline here is met by an answer long before, so one timer
 * is set only for a moment before the one it is set for; that it then goes off
 * for nothing costs one turn.
 */
struct loop {
    struct event_base *base;
    int timer;
    struct event *timer_event;
    struct moment timer_end; /* when it goes off */
    struct moment turn_end;  /* MOMENT_NEVER before its first call */
    unsigned long n_calls;
};

struct loop_watch {
    struct loop *loop;
    struct event *event;
    void (*ready)(void *context);
    void *context;
};

struct loop_signal {
    struct loop *loop;
    struct event *event;
    void (*caught)(void *context);
    void *context;
};

/* The timer only ends the wait; what is due is the caller's to know. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
    struct loop *loop = context;
    uint64_t n_times;

    (void)what;
    if (read(fd, &n_times, sizeof n_times) == sizeof n_times)
        loop->timer_end = MOMENT_NEVER;
}

static bool open_timer(struct loop *loop)
{
    loop->timer_end = MOMENT_NEVER;
    loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timer < 0)
        return false;
    loop->timer_event = event_new(loop->base, loop->timer, EV_READ | EV_PERSIST, on_timer, loop);
    return loop->timer_event && event_add(loop->timer_event, NULL) == 0;
}

/* What it has to say is that a call failed: whoever made that call says it better. */
static void say_nothing(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof *loop);
    struct event_config *config = event_config_new();

    event_set_log_callback(say_nothing);
    if (loop)
        loop->timer = -1;
    if (loop && config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        loop->base = event_base_new_with_config(config);
    }
    if (config)
        event_config_free(config);
    if (loop && loop->base && open_timer(loop))
        return loop;
    return loop_free(loop);
}

struct loop *loop_free(struct loop *loop)
{
    if (!loop)
        return NULL;
    if (loop->timer_event)
        event_free(loop->timer_event);
    if (loop->timer >= 0)
        close(loop->timer);
    if (loop->base)
        event_base_free(loop->base);
    free(loop);
    return NULL;
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
    struct loop_watch *watch = context;
    struct loop *loop = watch->loop;

    (void)fd;
    (void)what;
    loop->n_calls++;
    if (moment_is_never(loop->turn_end))
        loop->turn_end = moment_after(clock_now(), TURN_TIME);
    watch->ready(watch->context);
    if (moment_is_due(loop->turn_end, clock_now()))
        event_base_loopbreak(loop->base);
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*ready)(void *context),
                                  void *context)
{
    struct loop_watch *watch = calloc(1, sizeof *watch);

    if (!watch)
        return NULL;
    watch->loop = loop;
    watch->ready = ready;
    watch->context = context;
    watch->event = event_new(loop->base, fd, EV_READ | EV_PERSIST, on_ready, watch);
    if (!watch->event || event_add(watch->event, NULL) != 0)
        return loop_watch_free(watch);
    return watch;
}

void loop_watch_pause(struct loop_watch *watch)
{
    event_del(watch->event);
}

bool loop_watch_go_on(struct loop_watch *watch)
{
    return event_add(watch->event, NULL) == 0;
}

struct loop_watch *loop_watch_free(struct loop_watch *watch)
{
    if (!watch)
        return NULL;
    if (watch->event)
        event_free(watch->event);
    free(watch);
    return NULL;
}

static void on_signal(evutil_socket_t fd, short what, void *context)
{
    struct loop_signal *signal = context;

    (void)fd;
    (void)what;
    signal->loop->n_calls++;
    signal->caught(signal->context);
}

struct loop_signal *loop_signal_new(struct loop *loop, int number, void (*caught)(void *context),
                                    void *context)
{
    struct loop_signal *signal = calloc(1, sizeof *signal);

    if (!signal)
        return NULL;
    signal->loop = loop;
    signal->caught = caught;
    signal->context = context;
    signal->event = evsignal_new(loop->base, number, on_signal, signal);
    if (!signal->event || event_add(signal->event, NULL) != 0)
        return loop_signal_free(signal);
    return signal;
}

struct loop_signal *loop_signal_free(struct loop_signal *signal)
{
    if (!signal)
        return NULL;
    if (signal->event)
        event_free(signal->event);
    free(signal);
    return NULL;
}

static void set_timer(struct loop *loop, struct moment end)
{
    /* All zero would turn it off. */
    int64_t us = end.us > 0 ? end.us : 1;
    struct itimerspec setting = {
        .it_value = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000},
    };

    if (timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &setting, NULL) == 0)
        loop->timer_end = end;
}

bool loop_wait(struct loop *loop, struct moment deadline)
{
    if (moment_is_before(deadline, loop->timer_end))
        set_timer(loop, deadline);
    loop->turn_end = MOMENT_NEVER;
    event_base_loop(loop->base, EVLOOP_ONCE);
    return event_base_got_break(loop->base);
}

bool loop_poll(struct loop *loop)
{
    unsigned long n_calls = loop->n_calls;

    loop->turn_end = MOMENT_NEVER;
    event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    return loop->n_calls != n_calls;
}

void loop_wake(struct loop *loop)
{
    event_active(loop->timer_event, EV_READ, 0);
}
