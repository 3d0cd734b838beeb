/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions about processes and their answers as bytes, as they go from the
 * daemon to a worker of its probe and back. Both ends are the same program, so
 * there are no versions; and neither trusts the other, since a worker reads what
 * hostile processes wrote and the daemon what hostile peers sent.
 *
 * A question is one frame. An answer is a row of them, one for each fact as soon
 * as it is known, and one that ends it: so of a worker that gets stuck at one
 * fact everything before it is there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/action.h"
#include "lib/facts.h"
#include "lib/util.h"

struct bytes;

enum {
    /* What a socket takes at once; more files than fit are not asked about. */
    SEAM_QUESTION_MAX = 64 * 1024,
    SEAM_ANSWER_MAX = FACTS_ENVIRON_MAX + 64, /* of one frame */
};

enum seam_error {
    SEAM_E_MORE = 1,  /* the frame is not all there */
    SEAM_E_MALFORMED, /* it is none, or not one that may come here */
};

/*
 * Looks for a frame at the beginning of `length` bytes: 0 and how many of them
 * it takes, SEAM_E_MORE, or SEAM_E_MALFORMED when it would be longer than `max`.
 */
int seam_frame(const uint8_t *data, size_t length, size_t max, size_t *ret_size) MUST_CHECK;

/* After SEAM_E_MORE: how many bytes have to come before the frame, or at least its length, is
 * there.
 */
size_t seam_frame_lacks(const uint8_t *data, size_t length);

/* How many of the files of a question fit into its frame, the first ones. */
size_t seam_question_files(const struct action_question *question);

/* Appends a question: its pid, start time, what is wanted and the files that fit. The buffer keeps
 * the error. */
void seam_put_question(struct bytes *out, const struct action_question *question);

/*
 * Reads one from a whole frame, in which the names of the files stay. 0,
 * SEAM_E_MALFORMED, or -ENOMEM. The caller frees `files` and nothing in it.
 */
int seam_read_question(const uint8_t *frame, size_t size,
                       struct action_question *ret_question) MUST_CHECK;

/* Appends the frame of one fact (a FACTS_* and not FACTS_FILES). */
void seam_put_fact(struct bytes *out, const struct facts *facts, uint32_t fact);
void seam_put_file(struct bytes *out, const struct facts_file *file);
/* Appends the end. Whether the process was the same all the time, as far as start times tell. */
void seam_put_end(struct bytes *out, bool is_alive);

/* An answer that is being put together. */
struct seam_answer {
    struct facts *facts;
    uint32_t missing; /* FACTS_* of which nothing came yet */
    size_t n_sent;    /* files that were asked about */
    size_t n_files;   /* of them, those that were told */
    bool is_whole;
};

/* 0 or -ENOMEM. */
int seam_answer_init(struct seam_answer *answer, const struct action_question *question) MUST_CHECK;
void seam_answer_deinit(struct seam_answer *answer);

/* Takes a whole frame: 0, or SEAM_E_MALFORMED for what was not asked, is there already, comes after
 * the end, or ends an answer that is not whole. */
int seam_answer_take(struct seam_answer *answer, const uint8_t *frame, size_t size) MUST_CHECK;

/*
 * What is known by now, for the caller to free. Whatever was asked for and is
 * not there is unknown: its error is ETIMEDOUT. `has_handle` and `age` are not
 * a worker's to know.
 */
struct facts *seam_answer_finish(struct seam_answer *answer);

/* An answer to a question that nobody looked at: everything is unknown. NULL when memory is out. */
struct facts *seam_unknown(const struct action_question *question) MUST_CHECK;
