/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/record.h"

#include <assert.h>
#include <string.h>

#include "lib/bytes.h"

enum {
    MAGIC_SIZE = 8,
    SUM_SIZE = 8,
    /* Where the parts of a mark are that come behind the runs, however many of those there are. */
    KEPT_AT = 4 + 4 + 8 + 8 + GUID_SIZE + RECORD_POLICY_SIZE + 16 + 2 * RECORD_RUNS_MAX,
    MARK_END = KEPT_AT + 8,
};

/* One byte of a mark. */
enum { IS_HOLD_WISHED = 1, IS_TANGLED = 2, KNOWS_PRIMER = 4 };

_Static_assert(MARK_END + SUM_SIZE <= RECORD_MARK_SIZE, "a mark has room for all of it");

/*
 * How the versions differ. The next one is a row here, RECORD_VERSION, and, behind
 * MARK_END, what is new: written by record_write, and read by read_half where the
 * form has it. Only when the room is used up the marks get longer.
 */
static const struct form {
    size_t mark_size;
    uint8_t flags; /* that it has */
    bool has_kept;
} forms[] = {
    [2] = {.mark_size = 128, .flags = IS_HOLD_WISHED | IS_TANGLED},
    [3] = {.mark_size = 160, .flags = IS_HOLD_WISHED | IS_TANGLED, .has_kept = true},
    /* The primer, and one more result of a step. */
    [4] = {.mark_size = RECORD_MARK_SIZE,
           .flags = IS_HOLD_WISHED | IS_TANGLED | KNOWS_PRIMER,
           .has_kept = true},
};

_Static_assert(ARRAY_LENGTH(forms) == RECORD_VERSION + 1, "every version has its form");

static const struct form *const own_form = &forms[RECORD_VERSION];

/* NULL when that version cannot be read. */
static const struct form *find_form(uint32_t version)
{
    return version >= RECORD_VERSION_OLDEST && version <= RECORD_VERSION ? &forms[version] : NULL;
}

static const uint8_t magic[MAGIC_SIZE] = {'d', 'i', 'a', 'g', 'p', 'r', 'e', 'c'};

/* FNV-1a: the sum guards against cut and mixed-up writes, not against malice, which would need the
 * daemon's own user. */
static uint64_t checksum(const uint8_t *bytes, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

bool record_is_trace(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, RECORD_NEW_FILE) != 0;
}

bool record_read_boot(const char *text, uint8_t ret_boot[static RECORD_BOOT_SIZE])
{
    char id[GUID_TEXT_SIZE];
    size_t length = strcspn(text, "\n");
    struct guid guid;

    if (length >= sizeof id)
        return false;
    memcpy(id, text, length);
    id[length] = '\0';
    if (!guid_parse(id, &guid))
        return false;
    memcpy(ret_boot, guid.bytes, RECORD_BOOT_SIZE);
    return true;
}

static void put(uint8_t **at, uint64_t value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static bool sum_is_right(const uint8_t *bytes, size_t length)
{
    struct bytes_reader reader = bytes_reader_over(bytes + length - SUM_SIZE, SUM_SIZE);
    uint64_t sum;

    return bytes_get_u64(&reader, &sum) && sum == checksum(bytes, length - SUM_SIZE);
}

void record_write_header(const uint8_t boot[static RECORD_BOOT_SIZE], uint64_t distrusted_until,
                         uint8_t ret_bytes[static RECORD_HEADER_SIZE])
{
    uint8_t *at = ret_bytes + MAGIC_SIZE;

    memset(ret_bytes, 0, RECORD_HEADER_SIZE);
    memcpy(ret_bytes, magic, MAGIC_SIZE);
    put(&at, RECORD_VERSION, 4);
    put(&at, RECORD_SLOT_SIZE, 4);
    put(&at, RECORD_SLOTS, 4);
    memcpy(at, boot, RECORD_BOOT_SIZE);
    at += RECORD_BOOT_SIZE;
    put(&at, distrusted_until, 8);
    at = ret_bytes + RECORD_HEADER_SIZE - SUM_SIZE;
    put(&at, checksum(ret_bytes, RECORD_HEADER_SIZE - SUM_SIZE), SUM_SIZE);
}

/* Of a newer version nothing else is known. */
static bool has_form(uint32_t version, uint32_t slot_size, uint32_t n_slots, size_t length)
{
    const struct form *form = find_form(version);

    if (!form)
        return version > RECORD_VERSION;
    return slot_size == 2 * form->mark_size && n_slots == RECORD_SLOTS &&
           length == RECORD_HEADER_SIZE + (size_t)n_slots * slot_size;
}

enum record_health record_read_header(const uint8_t *bytes, size_t length,
                                      const uint8_t boot[static RECORD_BOOT_SIZE],
                                      struct record_header *ret_header)
{
    struct bytes_reader reader = bytes_reader_over(bytes, RECORD_HEADER_SIZE);
    const uint8_t *found_magic, *found_boot;
    struct record_header header;
    uint32_t slot_size, n_slots;

    if (length < RECORD_HEADER_SIZE || !sum_is_right(bytes, RECORD_HEADER_SIZE) ||
        !bytes_get_run(&reader, MAGIC_SIZE, &found_magic) ||
        !bytes_get_u32(&reader, &header.version) || !bytes_get_u32(&reader, &slot_size) ||
        !bytes_get_u32(&reader, &n_slots) ||
        !bytes_get_run(&reader, RECORD_BOOT_SIZE, &found_boot) ||
        !bytes_get_u64(&reader, &header.distrusted_until))
        return RECORD_DAMAGED;
    if (memcmp(found_magic, magic, MAGIC_SIZE) != 0 ||
        !has_form(header.version, slot_size, n_slots, length))
        return RECORD_DAMAGED;
    if (memcmp(found_boot, boot, RECORD_BOOT_SIZE) != 0)
        return RECORD_OTHER_BOOT;
    *ret_header = header;
    if (header.version > RECORD_VERSION)
        return RECORD_NEWER;
    return header.version < RECORD_VERSION ? RECORD_OLDER : RECORD_WHOLE;
}

void record_add_step(struct record *record, enum record_step step)
{
    struct record_run *last = record->n_runs > 0 ? &record->runs[record->n_runs - 1] : NULL;

    if (last && last->step == step && last->n < RECORD_RUN_MAX)
        last->n++;
    else if (record->n_runs < RECORD_RUNS_MAX)
        record->runs[record->n_runs++] = (struct record_run){.step = step, .n = 1};
    else
        record->is_tangled = true;
}

void record_write(const struct record *record, uint8_t ret_bytes[static RECORD_MARK_SIZE])
{
    uint8_t *at = ret_bytes;

    memset(ret_bytes, 0, RECORD_MARK_SIZE);
    if (record->phase == RECORD_NONE)
        return;
    assert(record->n_runs <= RECORD_RUNS_MAX);
    put(&at, record->sequence, 4);
    put(&at, record->phase, 1);
    put(&at, record->outcome, 1);
    put(&at,
        (record->is_hold_wished ? IS_HOLD_WISHED : 0) | (record->is_tangled ? IS_TANGLED : 0) |
            (record->knows_primer ? KNOWS_PRIMER : 0),
        1);
    put(&at, record->n_runs, 1);
    put(&at, (uint32_t)record->pid, 4);
    put(&at, record->rule, 4);
    put(&at, record->start_time, 8);
    memcpy(at, record->cookie.bytes, GUID_SIZE);
    at += GUID_SIZE;
    memcpy(at, record->policy, RECORD_POLICY_SIZE);
    at += RECORD_POLICY_SIZE;
    put(&at, (uint64_t)record->connected_at, 8);
    put(&at, (uint64_t)record->hold_until, 8);
    for (size_t i = 0; i < record->n_runs; i++)
        put(&at, (uint64_t)record->runs[i].step << 12 | record->runs[i].n, 2);
    at = ret_bytes + KEPT_AT;
    put(&at, record->kept, 8);
    at = ret_bytes + RECORD_MARK_SIZE - SUM_SIZE;
    put(&at, checksum(ret_bytes, RECORD_MARK_SIZE - SUM_SIZE), SUM_SIZE);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

void record_put(uint8_t slot[static RECORD_SLOT_SIZE], const uint8_t mark[static RECORD_MARK_SIZE])
{
    /* The lowest bit of the sequence says whose turn it is. */
    if (is_zero(mark, RECORD_MARK_SIZE))
        memset(slot, 0, RECORD_SLOT_SIZE);
    else
        memcpy(slot + (size_t)(mark[0] & 1) * RECORD_MARK_SIZE, mark, RECORD_MARK_SIZE);
}

static bool read_runs(struct bytes_reader *reader, struct record *record)
{
    for (size_t i = 0; i < record->n_runs; i++) {
        uint16_t run;

        if (!bytes_get_u16(reader, &run) || run >> 12 > RECORD_STEP_LEFT_OUT ||
            (run & RECORD_RUN_MAX) == 0)
            return false;
        record->runs[i] =
            (struct record_run){.step = (enum record_step)(run >> 12), .n = run & RECORD_RUN_MAX};
    }
    return true;
}

static bool read_kept(const uint8_t *bytes, struct record *record)
{
    struct bytes_reader reader = bytes_reader_over(bytes + KEPT_AT, MARK_END - KEPT_AT);

    return bytes_get_u64(&reader, &record->kept);
}

/* False when the half is damaged; RECORD_NONE when it is free. */
static bool read_half(const struct form *form, const uint8_t *bytes, struct record *record)
{
    struct bytes_reader reader = bytes_reader_over(bytes, form->mark_size - SUM_SIZE);
    const uint8_t *cookie, *policy;
    uint8_t phase, flags, n_runs;
    uint32_t pid;
    uint64_t connected_at, hold_until;

    *record = (struct record){.phase = RECORD_NONE};
    if (is_zero(bytes, form->mark_size))
        return true;
    if (!sum_is_right(bytes, form->mark_size) || !bytes_get_u32(&reader, &record->sequence) ||
        !bytes_get_u8(&reader, &phase) || !bytes_get_u8(&reader, &record->outcome) ||
        !bytes_get_u8(&reader, &flags) || !bytes_get_u8(&reader, &n_runs) ||
        !bytes_get_u32(&reader, &pid) || !bytes_get_u32(&reader, &record->rule) ||
        !bytes_get_u64(&reader, &record->start_time) ||
        !bytes_get_run(&reader, GUID_SIZE, &cookie) ||
        !bytes_get_run(&reader, RECORD_POLICY_SIZE, &policy) ||
        !bytes_get_u64(&reader, &connected_at) || !bytes_get_u64(&reader, &hold_until))
        return false;
    if (record->sequence == 0 || phase == RECORD_NONE || phase > RECORD_RESUMED || pid == 0 ||
        pid > INT32_MAX || (flags & ~form->flags) != 0 || n_runs > RECORD_RUNS_MAX)
        return false;
    record->phase = (enum record_phase)phase;
    record->is_hold_wished = flags & IS_HOLD_WISHED;
    record->is_tangled = flags & IS_TANGLED;
    record->knows_primer = flags & KNOWS_PRIMER;
    record->n_runs = n_runs;
    record->pid = (int32_t)pid;
    record->connected_at = (int64_t)connected_at;
    record->hold_until = (int64_t)hold_until;
    memcpy(record->cookie.bytes, cookie, GUID_SIZE);
    memcpy(record->policy, policy, RECORD_POLICY_SIZE);
    return read_runs(&reader, record) && (!form->has_kept || read_kept(bytes, record));
}

static bool read_slot(const struct form *form, const uint8_t *bytes, struct record *ret_record)
{
    struct record halves[2];
    bool are_whole[2];
    size_t newest;

    for (size_t i = 0; i < 2; i++)
        are_whole[i] = read_half(form, bytes + i * form->mark_size, &halves[i]);
    if (!are_whole[0] && !are_whole[1])
        return false;
    if (!are_whole[0] || !are_whole[1])
        newest = are_whole[0] ? 0 : 1;
    else
        newest = halves[1].sequence > halves[0].sequence ? 1 : 0;
    *ret_record = halves[newest];
    ret_record->is_torn = !are_whole[0] || !are_whole[1];
    return true;
}

bool record_read(const uint8_t bytes[static RECORD_SLOT_SIZE], struct record *ret_record)
{
    return read_slot(own_form, bytes, ret_record);
}

size_t record_slot_size(uint32_t version)
{
    const struct form *form = find_form(version);

    assert(form);
    return 2 * form->mark_size;
}

bool record_read_older(uint32_t version, const uint8_t *bytes, struct record *ret_record)
{
    const struct form *form = find_form(version);

    assert(form);
    return read_slot(form, bytes, ret_record);
}

void record_write_slot(const struct record *record, uint8_t ret_slot[static RECORD_SLOT_SIZE])
{
    uint8_t mark[RECORD_MARK_SIZE];

    memset(ret_slot, 0, RECORD_SLOT_SIZE);
    record_write(record, mark);
    if (record->phase == RECORD_NONE)
        return;
    /* No sum is right for it. */
    if (record->is_torn)
        memset(ret_slot, 0xff, RECORD_SLOT_SIZE);
    record_put(ret_slot, mark);
}
