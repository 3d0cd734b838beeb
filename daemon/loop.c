/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/loop.h"

#include <event2/event.h>
#include <stdlib.h>

#include "daemon/clock.h"

struct loop {
    struct event_base *base;
    struct event *timer;
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
    (void)fd;
    (void)what;
    (void)context;
}

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof *loop);
    struct event_config *config = event_config_new();

    if (loop && config) {
        /* Deadlines are to the millisecond, and the clock is cheap. */
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
        loop->base = event_base_new_with_config(config);
    }
    if (config)
        event_config_free(config);
    if (loop && loop->base)
        loop->timer = evtimer_new(loop->base, on_timer, NULL);
    if (loop && loop->timer)
        return loop;
    return loop_free(loop);
}

struct loop *loop_free(struct loop *loop)
{
    if (!loop)
        return NULL;
    if (loop->timer)
        event_free(loop->timer);
    if (loop->base)
        event_base_free(loop->base);
    free(loop);
    return NULL;
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
    struct loop_watch *watch = context;

    (void)fd;
    (void)what;
    watch->loop->n_calls++;
    watch->ready(watch->context);
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

void loop_wait(struct loop *loop, struct moment deadline)
{
    if (!moment_is_never(deadline)) {
        struct span left = moment_between(clock_now(), deadline);
        struct timeval wait = {0};

        if (left.us > 0) {
            wait.tv_sec = (time_t)(left.us / 1000000);
            wait.tv_usec = (suseconds_t)(left.us % 1000000);
        }
        event_add(loop->timer, &wait);
    }
    event_base_loop(loop->base, EVLOOP_ONCE);
    event_del(loop->timer);
}

bool loop_poll(struct loop *loop)
{
    unsigned long n_calls = loop->n_calls;

    event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    return loop->n_calls != n_calls;
}

void loop_wake(struct loop *loop)
{
    event_active(loop->timer, EV_TIMEOUT, 0);
}
