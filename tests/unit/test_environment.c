/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

/* Vectors 20 (its payload) and 21 of the protocol. */
static const char head_vector[] = "1A 00 00 00 00 00";
static const char tail_vector[] = "02 00 00 00 04 00 00 00 41 00 3D 00 42 00 00 00 03 00 00 00 "
                                  "43 00 3D 00 00 00";

/* A continuation that is built, and its head. */
struct stream {
    struct bytes bytes;
    uint8_t head[6];
};

static struct stream stream_begin(uint32_t n_strings)
{
    struct stream stream = {.head = {0}};

    bytes_init(&stream.bytes, 4 * 1024 * 1024);
    bytes_put_u32(&stream.bytes, n_strings);
    return stream;
}

static void stream_put(struct stream *stream, const char *text)
{
    size_t units = strlen(text) + 1;

    bytes_put_u32(&stream->bytes, (uint32_t)units);
    for (size_t i = 0; i < units; i++)
        bytes_put_u16(&stream->bytes, (uint8_t)text[i]);
}

static void stream_end(struct stream *stream)
{
    ck_assert_int_eq(bytes_finish(&stream->bytes), 0);
    for (size_t i = 0; i < 4; i++)
        stream->head[i] = (uint8_t)(stream->bytes.length >> (8 * i));
}

static enum environment_result feed(const uint8_t *head, const uint8_t *bytes, size_t length,
                                    size_t step, struct environment_value *values, size_t n_values,
                                    size_t budget, size_t *ret_taken)
{
    enum environment_result result = ENVIRONMENT_MORE;
    struct environment environment;
    size_t total = 0;

    ck_assert(environment_init(&environment, head, 6, values, n_values, budget));
    while (result == ENVIRONMENT_MORE && total < length) {
        size_t piece = length - total < step ? length - total : step, taken;
        uint8_t *copy = unit_copy(bytes + total, piece);

        result = environment_feed(&environment, copy, piece, &taken);
        free(copy);
        ck_assert_uint_le(taken, piece);
        ck_assert(result != ENVIRONMENT_MORE || taken == piece);
        total += taken;
    }
    environment_deinit(&environment);
    *ret_taken = total;
    return result;
}

START_TEST(vector_is_read_in_pieces_of_every_size)
{
    struct unit_bytes head = unit_vector(head_vector), tail = unit_vector(tail_vector);

    /* what follows N is not the reader's: after a failed write the runtime appends an error */
    memcpy(tail.data + tail.length, "DOTNET", 6);
    for (size_t step = 1; step <= tail.length + 6; step++) {
        struct environment_value values[] = {{.name = "C"}, {.name = "A"}, {.name = "B"}};
        size_t taken;

        ck_assert_int_eq(feed(head.data, tail.data, tail.length + 6, step, values, 3, 100, &taken),
                         ENVIRONMENT_WHOLE);
        ck_assert_uint_eq(taken, tail.length);
        ck_assert_str_eq(values[0].value, "");
        ck_assert_str_eq(values[1].value, "B");
        ck_assert_ptr_null(values[2].value);
        ck_assert(!values[2].is_too_long);
        environment_values_clear(values, 3);
        ck_assert_ptr_null(values[1].value);
    }
}
END_TEST

START_TEST(every_cut_wants_more)
{
    struct unit_bytes head = unit_vector(head_vector), tail = unit_vector(tail_vector);

    for (size_t length = 0; length < tail.length; length++) {
        struct environment_value values[] = {{.name = "A"}};
        size_t taken;

        ck_assert_int_eq(feed(head.data, tail.data, length, 64, values, 1, 100, &taken),
                         ENVIRONMENT_MORE);
        environment_values_clear(values, 1);
    }
}
END_TEST

START_TEST(head_is_checked)
{
    struct environment environment;
    struct unit_bytes head = unit_vector(head_vector);

    for (size_t length = 0; length < head.length; length++) {
        uint8_t *copy = unit_copy(head.data, length);

        ck_assert(!environment_init(&environment, copy, length, NULL, 0, 0));
        free(copy);
    }
    head = unit_vector("03 00 00 00 00 00");
    ck_assert(!environment_init(&environment, head.data, head.length, NULL, 0, 0));
    head = unit_vector("04 00 00 00 00 00");
    ck_assert(environment_init(&environment, head.data, head.length, NULL, 0, 0));
    environment_deinit(&environment);
}
END_TEST

/* Early NativeAOT 8 sends a count of 0 and nothing else. */
START_TEST(empty_environment_is_read)
{
    struct unit_bytes head = unit_vector("04 00 00 00 00 00"), tail = unit_vector("00 00 00 00");
    size_t taken;

    ck_assert_int_eq(feed(head.data, tail.data, tail.length, 1, NULL, 0, 0, &taken),
                     ENVIRONMENT_WHOLE);
    ck_assert_uint_eq(taken, 4);
}
END_TEST

START_TEST(what_does_not_add_up_is_refused)
{
    static const struct {
        const char *head, *tail;
    } cases[] = {
        /* N ends before the count of strings is reached */
        {"0C 00 00 00 00 00", "02 00 00 00 02 00 00 00 41 00 00 00"},
        /* N goes on after it */
        {"10 00 00 00 00 00", "01 00 00 00 02 00 00 00 41 00 00 00 01 00 00 00"},
        /* N ends inside a length */
        {"06 00 00 00 00 00", "01 00 00 00 02 00"},
        /* a string longer than what is left of N */
        {"0C 00 00 00 00 00", "01 00 00 00 03 00 00 00 41 00 00 00"},
        {"0C 00 00 00 00 00", "01 00 00 00 FF FF FF FF 41 00 00 00"},
        {"0C 00 00 00 00 00", "01 00 00 00 01 00 00 80 41 00 00 00"},
        /* a string without its NUL, by one byte or both */
        {"0C 00 00 00 00 00", "01 00 00 00 02 00 00 00 41 00 42 00"},
        {"0C 00 00 00 00 00", "01 00 00 00 02 00 00 00 41 00 00 01"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct unit_bytes head = unit_vector(cases[i].head), tail = unit_vector(cases[i].tail);

        for (size_t step = 1; step <= tail.length; step++) {
            struct environment_value values[] = {{.name = "A"}};
            size_t taken;

            ck_assert_int_eq(feed(head.data, tail.data, tail.length, step, values, 1, 100, &taken),
                             ENVIRONMENT_E_ENCODING);
            environment_values_clear(values, 1);
        }
    }
}
END_TEST

START_TEST(first_of_two_wins_and_names_are_exact)
{
    struct stream stream = stream_begin(6);
    struct environment_value values[] = {{.name = "NAME"}, {.name = "NONE"}};
    size_t taken;

    stream_put(&stream, "NAM=no");
    stream_put(&stream, "name=no");
    stream_put(&stream, "NAMES=no");
    stream_put(&stream, "NONE");
    stream_put(&stream, "NAME=a=b");
    stream_put(&stream, "NAME=no");
    stream_end(&stream);
    ck_assert_int_eq(feed(stream.head, stream.bytes.data, stream.bytes.length, 7, values, 2, 100,
                          &taken),
                     ENVIRONMENT_WHOLE);
    ck_assert_str_eq(values[0].value, "a=b");
    ck_assert_ptr_null(values[1].value);
    environment_values_clear(values, 2);
    bytes_deinit(&stream.bytes);
}
END_TEST

/* The budget is for all values together; what does not fit is said to be too long. */
START_TEST(budget_is_kept)
{
    struct stream stream = stream_begin(4);
    struct environment_value values[] = {{.name = "A"}, {.name = "B"}, {.name = "C"}};
    size_t taken;

    stream_put(&stream, "A=12345");
    stream_put(&stream, "B=123456");
    stream_put(&stream, "B=1");
    stream_put(&stream, "C=12345");
    stream_end(&stream);
    ck_assert_int_eq(feed(stream.head, stream.bytes.data, stream.bytes.length, 1, values, 3, 10,
                          &taken),
                     ENVIRONMENT_WHOLE);
    ck_assert_str_eq(values[0].value, "12345");
    ck_assert_ptr_null(values[1].value);
    ck_assert(values[1].is_too_long);
    ck_assert_str_eq(values[2].value, "12345");
    environment_values_clear(values, 3);
    ck_assert(!values[1].is_too_long);
    bytes_deinit(&stream.bytes);
}
END_TEST

/* A string may be longer than what could ever be set: it is read over, not kept, and what follows
 * is read well. */
START_TEST(huge_strings_are_read_over)
{
    struct stream stream = stream_begin(3);
    struct environment_value values[] = {{.name = "BIG"}, {.name = "X"}};
    size_t size = 100 * 1024, taken;
    char *big = malloc(size + 1);

    ck_assert_ptr_nonnull(big);
    memset(big, 'x', size);
    big[size] = '\0';
    stream_put(&stream, big);
    memcpy(big, "BIG=", 4);
    stream_put(&stream, big);
    stream_put(&stream, "X=y");
    stream_end(&stream);
    ck_assert_int_eq(feed(stream.head, stream.bytes.data, stream.bytes.length, 8191, values, 2,
                          1000000, &taken),
                     ENVIRONMENT_WHOLE);
    ck_assert_ptr_null(values[0].value);
    ck_assert(values[0].is_too_long);
    ck_assert_str_eq(values[1].value, "y");
    environment_values_clear(values, 2);
    bytes_deinit(&stream.bytes);
    free(big);
}
END_TEST

/* The longest that is kept has 32768 units, its NUL among them. */
START_TEST(longest_string_is_kept)
{
    for (size_t extra = 0; extra < 2; extra++) {
        struct stream stream = stream_begin(1);
        struct environment_value values[] = {{.name = "A"}};
        char text[32769];
        size_t taken;

        memset(text, 'x', sizeof text);
        memcpy(text, "A=", 2);
        text[32767 + extra] = '\0';
        stream_put(&stream, text);
        stream_end(&stream);
        ck_assert_int_eq(feed(stream.head, stream.bytes.data, stream.bytes.length, 100000, values,
                              1, 100000, &taken),
                         ENVIRONMENT_WHOLE);
        ck_assert(values[0].is_too_long == (extra > 0));
        ck_assert((values[0].value != NULL) == (extra == 0));
        environment_values_clear(values, 1);
        bytes_deinit(&stream.bytes);
    }
}
END_TEST

START_TEST(text_becomes_utf8)
{
    struct unit_bytes head = unit_vector("16 00 00 00 00 00"),
                      tail = unit_vector("01 00 00 00 07 00 00 00 41 00 3D 00 E9 00 3D D8 00 DE "
                                         "3D D8 00 00");
    struct environment_value values[] = {{.name = "A"}};
    size_t taken;

    ck_assert_int_eq(feed(head.data, tail.data, tail.length, 1, values, 1, 100, &taken),
                     ENVIRONMENT_WHOLE);
    ck_assert_str_eq(values[0].value, "\xC3\xA9\xF0\x9F\x98\x80\xED\xA0\xBD");
    environment_values_clear(values, 1);
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
    struct unit_bytes head = unit_vector(head_vector), whole = unit_vector(tail_vector);
    uint64_t state = 21;
    unsigned n_whole = 0;

    for (unsigned round = 0; round < 5000; round++) {
        struct unit_bytes tail = whole;
        struct environment_value values[] = {{.name = "A"}, {.name = "C"}};
        size_t taken;

        for (unsigned i = unit_random(&state) % 4; i > 0; i--)
            tail.data[unit_random(&state) % tail.length] = (uint8_t)unit_random(&state);
        if (feed(head.data, tail.data, tail.length, 1 + unit_random(&state) % 9, values, 2, 3,
                 &taken) == ENVIRONMENT_WHOLE)
            n_whole++;
        environment_values_clear(values, 2);
    }
    ck_assert_uint_gt(n_whole, 500);
}
END_TEST

static int read_vector(void *context)
{
    struct unit_bytes *bytes = context;
    struct environment_value values[] = {{.name = "A"}, {.name = "C"}};
    struct environment environment;
    enum environment_result result;
    size_t taken;

    if (!environment_init(&environment, bytes[0].data, bytes[0].length, values, 2, 100))
        return 1;
    result = environment_feed(&environment, bytes[1].data, bytes[1].length, &taken);
    environment_deinit(&environment);
    environment_values_clear(values, 2);
    return result == ENVIRONMENT_E_MEMORY ? -ENOMEM : result == ENVIRONMENT_WHOLE ? 0 : 1;
}

START_TEST(running_out_of_memory_is_said)
{
    struct unit_bytes bytes[] = {unit_vector(head_vector), unit_vector(tail_vector)};

    ck_assert_uint_gt(unit_memory_exhaust(read_vector, bytes, -ENOMEM), 3);
}
END_TEST

UNIT_TESTS(vector_is_read_in_pieces_of_every_size, every_cut_wants_more, head_is_checked,
           empty_environment_is_read, what_does_not_add_up_is_refused,
           first_of_two_wins_and_names_are_exact, budget_is_kept, huge_strings_are_read_over,
           longest_string_is_kept, text_becomes_utf8, random_bytes_do_no_harm,
           running_out_of_memory_is_said);
