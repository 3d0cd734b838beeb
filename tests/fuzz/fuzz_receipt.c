/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a runtime said of profilers and hooks: a stream as it comes; or, behind a
 * byte that is not the first of a stream, the payload of one message.
 */

#include "lib/receipt.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

static const char hook_path[] = "/opt/rig/hooks/HookA.dll";

static void check_message(const struct profiler_message *message)
{
    FUZZ_HOLDS(*profiler_message_kind_name(message->kind) != '\0');
    FUZZ_HOLDS(message->kind != PROFILER_MESSAGE_LOADED || message->has_clsid);
    FUZZ_HOLDS(message->has_clsid || !message->has_hresult);
    if (message->text) {
        FUZZ_HOLDS(strlen(message->text) <= PROFILER_MESSAGE_TEXT_MAX);
        FUZZ_HOLDS(text_is_utf8(message->text, strlen(message->text)));
        FUZZ_HOLDS(!strchr(message->text, '\n') && !strchr(message->text, '\x1b'));
    }
}

static void check_receipt(const struct receipt *receipt)
{
    bool is_older;

    FUZZ_HOLDS(receipt->n_messages <= RECEIPT_MESSAGES_MAX);
    FUZZ_HOLDS(receipt->n_texts <= RECEIPT_TEXTS_MAX);
    FUZZ_HOLDS(!receipt_is_whole(receipt) || receipt_has_ended(receipt));
    FUZZ_HOLDS((receipt->stream == RECEIPT_UNREADABLE) == nettrace_is_error(receipt->why));
    for (size_t i = 0; i < receipt->n_messages; i++) {
        const struct profiler_message *message = &receipt->messages[i];

        check_message(message);
        FUZZ_HOLDS(!message->has_clsid || receipt_profiler(receipt, &message->clsid, &is_older));
    }
}

static void check_stream(const uint8_t *data, size_t size)
{
    struct receipt_hook hooks[2] = {{hook_path, false}, {hook_path, false}};
    struct receipt whole, bytewise;

    receipt_init(&whole, &hooks[0], 1);
    receipt_init(&bytewise, &hooks[1], 1);
    receipt_take(&whole, data, size);
    for (size_t i = 0; i < size; i++)
        receipt_take(&bytewise, data + i, 1);
    receipt_close(&whole);
    receipt_close(&bytewise);
    check_receipt(&whole);
    check_receipt(&bytewise);
    FUZZ_HOLDS(whole.stream == bytewise.stream && whole.why == bytewise.why);
    FUZZ_HOLDS(whole.n_messages == bytewise.n_messages && whole.has_gaps == bytewise.has_gaps);
    FUZZ_HOLDS(receipt_hook(&whole, hook_path) == receipt_hook(&bytewise, hook_path));
    receipt_deinit(&whole);
    receipt_deinit(&bytewise);
}

static void check_payload(const uint8_t *data, size_t size)
{
    uint8_t *payload = fuzz_copy(data, size);
    struct profiler_message message;

    if (profiler_message_read(payload, size, &message) == 0) {
        check_message(&message);
        profiler_message_deinit(&message);
    }
    free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'N')
        check_stream(data, size);
    else
        check_payload(data + 1, size - 1);
    return 0;
}
