/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A real profiler for the .NET runtime that does nothing but prove that it was
 * loaded, and what environment it saw.
 *
 * The runtime opens this library, asks DllGetClassObject for a factory and the
 * factory for a profiler object, and calls the object's Initialize before any
 * managed code runs. Initialize leaves its proof in the environment of the
 * process, where the probe program reads it with getenv:
 *
 *   DIAGPORT_TEST_PROFILER=COUNT:SEEN_BY_PROFILER_API:SEEN_BY_GETENV
 *
 * COUNT is the number of Initialize calls in this process; the other two are
 * the value of DIAGPORT_TEST_ONE, or "-" where it is absent. They differ on
 * purpose: a variable set through the diagnostic port reaches the runtime's own
 * copy of the environment, which only the profiler API shows.
 *
 * What else the main one does then is in DIAGPORT_TEST_INITIALIZE, which the program
 * has to be started with: "fails", "cancels" (it wants no part in this process),
 * "aborts", "exits", or "hangs", for ten seconds.
 *
 * A runtime that runs calls InitializeForAttach instead, with the data that it
 * was sent: the name of a file, a NUL, and what is left there as the proof. A
 * pipe that nobody reads keeps it waiting. Without a NUL in it the call fails.
 *
 * build-rig builds it twice and gives each build two macros: PROFILER_CLSID,
 * the class identifier it answers to, as text in braces; and
 * PROFILER_NOTIFICATION_ONLY, 1 for the build that may be loaded beside a main
 * profiler. The proof of that one goes to DIAGPORT_TEST_PROFILER_NOTIFY, so that
 * both can be seen in one process.
 *
 * The interfaces are COM's: an object is a pointer to a table of functions, each
 * of which takes the object first. They are spelled out as tables here because
 * no Debian package has the headers that declare them.
 */

/* For asprintf. */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#ifndef PROFILER_CLSID
#error "PROFILER_CLSID must be given, see build-rig"
#endif
#ifndef PROFILER_NOTIFICATION_ONLY
#define PROFILER_NOTIFICATION_ONLY 0
#endif

#define PROOF_NAME \
    (PROFILER_NOTIFICATION_ONLY ? "DIAGPORT_TEST_PROFILER_NOTIFY" : "DIAGPORT_TEST_PROFILER")
#define WATCHED_NAME "DIAGPORT_TEST_ONE"
#define WAY_NAME     "DIAGPORT_TEST_INITIALIZE"
#define ABSENT       "-"

enum { HANG_SECONDS = 10, EXIT_STATUS = 3 };

enum {
    RESULT_OK = 0,
    RESULT_FAIL = (int32_t)0x80004005,
    RESULT_CANCEL = (int32_t)0x80131375,
    RESULT_NO_INTERFACE = (int32_t)0x80004002,
    RESULT_NO_AGGREGATION = (int32_t)0x80040110,
    RESULT_CLASS_NOT_AVAILABLE = (int32_t)0x80040111,
};

/* Longer values do not fit a message of the diagnostics protocol, whose size is a 16-bit number of
 * bytes. */
enum { VALUE_UNITS_MAX = 32768 };

struct guid {
    uint32_t first;
    uint16_t second;
    uint16_t third;
    uint8_t rest[8];
};

/* Entries of a table have different types; each is cast back to its own before it is called. */
typedef void (*method)(void);

struct object {
    const method *methods;
};

typedef int32_t (*query_interface_method)(struct object *self, const struct guid *interface,
                                          void **ret_result);
typedef uint32_t (*release_method)(struct object *self);
typedef int32_t (*get_environment_variable_method)(struct object *self, const uint16_t *name,
                                                   uint32_t capacity, uint32_t *ret_length,
                                                   uint16_t *ret_value);

/* Places in every table. */
enum { QUERY_INTERFACE, ADD_REF, RELEASE, FIRST_OF_INTERFACE };

/* Places in the factory's table. */
enum { CREATE_INSTANCE = FIRST_OF_INTERFACE, LOCK_SERVER, FACTORY_METHODS };

/* Places in the profiler's table. Each callback interface appends to the one before it:
 * ICorProfilerCallback has 69 methods of its own, 2 has 8, 3 has 3, 4 has 6, 5, 6 and 7 have one
 * each, 8 has 2, 9 has 1, 10 has 2 and 11 the last. */
enum {
    INITIALIZE = FIRST_OF_INTERFACE,
    INITIALIZE_FOR_ATTACH = FIRST_OF_INTERFACE + 69 + 8,
    LOAD_AS_NOTIFICATION_ONLY = FIRST_OF_INTERFACE + 69 + 8 + 3 + 6 + 1 + 1 + 1 + 2 + 1 + 2,
    PROFILER_METHODS
};

/* The place of GetEnvironmentVariable in the table of ICorProfilerInfo11, the runtime's side. */
enum { INFO_GET_ENVIRONMENT_VARIABLE = 99 };

static const struct guid unknown = {0x00000000, 0x0000, 0x0000, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
static const struct guid class_factory = {0x00000001,
                                          0x0000,
                                          0x0000,
                                          {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
static const struct guid profiler_info_11 = {0x06398876,
                                             0x8987,
                                             0x4154,
                                             {0xB6, 0x21, 0x40, 0xA0, 0x0D, 0x6E, 0x4D, 0x04}};

/* ICorProfilerCallback, 2, 3 and so on to 11: one object answers to all of them, as each begins
 * like the one before. */
static const struct guid profiler_callbacks[] = {
    {0x176FBED1, 0xA55C, 0x4796, {0x98, 0xCA, 0xA9, 0xDA, 0x0E, 0xF8, 0x83, 0xE7}},
    {0x8A8CC829, 0xCCF2, 0x49FE, {0xBB, 0xAE, 0x0F, 0x02, 0x22, 0x28, 0x07, 0x1A}},
    {0x4FD2ED52, 0x7731, 0x4B8D, {0x94, 0x69, 0x03, 0xD2, 0xCC, 0x30, 0x86, 0xC5}},
    {0x7B63B2E3, 0x107D, 0x4D48, {0xB2, 0xF6, 0xF6, 0x1E, 0x22, 0x94, 0x70, 0xD2}},
    {0x8DFBA405, 0x8C9F, 0x45F8, {0xBF, 0xFA, 0x83, 0xB1, 0x4C, 0xEF, 0x78, 0xB5}},
    {0xFC13DF4B, 0x4448, 0x4F4F, {0x95, 0x0C, 0xBA, 0x8D, 0x19, 0xD0, 0x0C, 0x36}},
    {0xF76A2DBA, 0x1D52, 0x4539, {0x86, 0x6C, 0x2A, 0xA5, 0x18, 0xF9, 0xEF, 0xC3}},
    {0x5BED9B15, 0xC079, 0x4D47, {0xBF, 0xE2, 0x21, 0x5A, 0x14, 0x0C, 0x07, 0xE0}},
    {0x27583EC3, 0xC8F5, 0x482F, {0x80, 0x52, 0x19, 0x4B, 0x8C, 0xE4, 0x70, 0x5A}},
    {0xCEC5B60E, 0xC69C, 0x495F, {0x87, 0xF6, 0x84, 0xD2, 0x8E, 0xE1, 0x6F, 0xFB}},
    {0x42350846, 0xAAED, 0x47F7, {0xB1, 0x28, 0xFD, 0x0C, 0x98, 0x88, 0x1C, 0xDE}},
};

static bool same(const struct guid *left, const struct guid *right)
{
    return memcmp(left, right, sizeof(*left)) == 0;
}

/* The one factory and the one profiler are static and live as long as the process, so nothing
 * counts references. */
static uint32_t keep_reference(struct object *self)
{
    (void)self;
    return 1;
}

/* The profiler asks for no events; whatever the runtime reports all the same is accepted unread. */
static int32_t ignore_event(void)
{
    return RESULT_OK;
}

/* Characters outside ASCII become question marks: the tests compare plain values only. */
static void narrow(const uint16_t *wide, char *text, size_t capacity)
{
    size_t i;

    for (i = 0; wide[i] != 0 && i + 1 < capacity; i++)
        text[i] = wide[i] < 0x80 ? (char)wide[i] : '?';
    text[i] = '\0';
}

static void read_through_profiler_api(struct object *info, char *text, size_t capacity)
{
    static uint16_t value[VALUE_UNITS_MAX];
    query_interface_method query_interface = (query_interface_method)info->methods[QUERY_INTERFACE];
    get_environment_variable_method get_environment_variable;
    release_method release;
    uint16_t name[sizeof(WATCHED_NAME)];
    uint32_t length = 0;
    void *result = NULL;
    struct object *info_11;

    snprintf(text, capacity, "%s", ABSENT);
    if (query_interface(info, &profiler_info_11, &result) < 0)
        return;
    info_11 = result;
    get_environment_variable =
        (get_environment_variable_method)info_11->methods[INFO_GET_ENVIRONMENT_VARIABLE];
    release = (release_method)info_11->methods[RELEASE];

    for (size_t i = 0; i < sizeof(WATCHED_NAME); i++)
        name[i] = (uint16_t)WATCHED_NAME[i];
    if (get_environment_variable(info_11, name, VALUE_UNITS_MAX, &length, value) >= 0)
        narrow(value, text, capacity);
    release(info_11);
}

/* What a profiler may do instead. */
static int32_t end_as_told(void)
{
    const char *way = PROFILER_NOTIFICATION_ONLY ? NULL : getenv(WAY_NAME);

    if (!way)
        return RESULT_OK;
    if (strcmp(way, "aborts") == 0)
        abort();
    if (strcmp(way, "exits") == 0)
        _exit(EXIT_STATUS);
    if (strcmp(way, "hangs") == 0)
        sleep(HANG_SECONDS);
    return strcmp(way, "fails") == 0     ? RESULT_FAIL
           : strcmp(way, "cancels") == 0 ? RESULT_CANCEL
                                         : RESULT_OK;
}

static int32_t initialize(struct object *self, struct object *info)
{
    static char seen_by_api[VALUE_UNITS_MAX];
    static atomic_int calls;
    const char *seen_by_getenv = getenv(WATCHED_NAME);
    char *proof = NULL;
    int error;

    (void)self;
    read_through_profiler_api(info, seen_by_api, sizeof(seen_by_api));
    if (asprintf(&proof, "%d:%s:%s", atomic_fetch_add(&calls, 1) + 1, seen_by_api,
                 seen_by_getenv ? seen_by_getenv : ABSENT) < 0)
        return RESULT_FAIL;

    /* The real environment, not the runtime's copy: managed code does not see it, native code in
     * this process does. */
    error = setenv(PROOF_NAME, proof, 1);
    free(proof);
    return error == 0 ? end_as_told() : RESULT_FAIL;
}

static int32_t initialize_for_attach(struct object *self, struct object *info, const char *data,
                                     uint32_t size)
{
    const char *end = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t length = end ? size - (size_t)(end + 1 - data) : 0;
    bool written;
    int file;

    (void)self;
    (void)info;
    if (!end)
        return RESULT_FAIL;
    file = open(data, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return RESULT_FAIL;
    written = write(file, end + 1, length) == (ssize_t)length;
    close(file);
    return written ? RESULT_OK : RESULT_FAIL;
}

static int32_t load_as_notification_only(struct object *self, int32_t *ret_answer)
{
    (void)self;
    *ret_answer = PROFILER_NOTIFICATION_ONLY;
    return RESULT_OK;
}

static int32_t profiler_query_interface(struct object *self, const struct guid *interface,
                                        void **ret_result)
{
    bool known = same(interface, &unknown);

    for (size_t i = 0; i < sizeof(profiler_callbacks) / sizeof(profiler_callbacks[0]); i++)
        known = known || same(interface, &profiler_callbacks[i]);
    *ret_result = known ? self : NULL;
    return known ? RESULT_OK : RESULT_NO_INTERFACE;
}

static method profiler_methods[PROFILER_METHODS];
static struct object profiler = {profiler_methods};

static int32_t create_instance(struct object *self, struct object *outer,
                               const struct guid *interface, void **ret_result)
{
    (void)self;
    *ret_result = NULL;
    if (outer != NULL)
        return RESULT_NO_AGGREGATION;

    for (size_t i = 0; i < PROFILER_METHODS; i++)
        profiler_methods[i] = (method)ignore_event;
    profiler_methods[QUERY_INTERFACE] = (method)profiler_query_interface;
    profiler_methods[ADD_REF] = (method)keep_reference;
    profiler_methods[RELEASE] = (method)keep_reference;
    profiler_methods[INITIALIZE] = (method)initialize;
    profiler_methods[INITIALIZE_FOR_ATTACH] = (method)initialize_for_attach;
    profiler_methods[LOAD_AS_NOTIFICATION_ONLY] = (method)load_as_notification_only;
    return profiler_query_interface(&profiler, interface, ret_result);
}

static int32_t factory_query_interface(struct object *self, const struct guid *interface,
                                       void **ret_result)
{
    bool known = same(interface, &unknown) || same(interface, &class_factory);

    *ret_result = known ? self : NULL;
    return known ? RESULT_OK : RESULT_NO_INTERFACE;
}

static const method factory_methods[FACTORY_METHODS] = {
    [QUERY_INTERFACE] = (method)factory_query_interface,
    [ADD_REF] = (method)keep_reference,
    [RELEASE] = (method)keep_reference,
    [CREATE_INSTANCE] = (method)create_instance,
    [LOCK_SERVER] = (method)ignore_event,
};
static struct object factory = {factory_methods};

/* Strict about the class, although the runtime is not: a wrong or wrongly encoded identifier must
 * fail the tests. */
static bool is_our_class(const struct guid *class)
{
    char text[sizeof("{00000000-0000-0000-0000-000000000000}")];

    snprintf(text, sizeof(text), "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}",
             (unsigned int)class->first, class->second, class->third, class->rest[0],
             class->rest[1], class->rest[2], class->rest[3], class->rest[4], class->rest[5],
             class->rest[6], class->rest[7]);
    return strcasecmp(text, PROFILER_CLSID) == 0;
}

__attribute__((visibility("default"))) int32_t DllGetClassObject(const struct guid *class,
                                                                 const struct guid *interface,
                                                                 void **ret_result);

int32_t DllGetClassObject(const struct guid *class, const struct guid *interface, void **ret_result)
{
    *ret_result = NULL;
    if (!is_our_class(class))
        return RESULT_CLASS_NOT_AVAILABLE;
    return factory_query_interface(&factory, interface, ret_result);
}
