/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policy files: a main file and, after each byte FF, a drop-in. Whatever they
 * say, there is a policy or an error; and the canonical form of a policy is one
 * that has itself as its canonical form.
 */

#include "lib/bytes.h"
#include "lib/policy_read.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

enum { SOURCES_MAX = 3, SOURCE_END = 0xFF };

/* "link" is a link and "nobody" is nobody; everybody else has a number. */
static bool number_of(void *context, const char *name, uint32_t *ret_number)
{
    (void)context;
    *ret_number = (uint32_t)strlen(name);
    return strcmp(name, "nobody") != 0;
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    (void)context;
    *ret_target = strstr(path, "link") ? strdup("/usr/lib/target") : NULL;
    return *ret_target != NULL;
}

static const struct policy_host host = {
    .user_number = number_of,
    .group_number = number_of,
    .link_target = link_target,
};

static char *print(const struct policy *policy)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    policy_print(policy, &out);
    FUZZ_HOLDS(bytes_finish(&out) == 0);
    return (char *)bytes_take(&out);
}

static void show_problems(const struct policy_problems *problems)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    for (size_t i = 0; i < problems->n; i++)
        policy_problem_print(&problems->list[i], &out);
    FUZZ_HOLDS(bytes_finish(&out) == 0);
    FUZZ_HOLDS(text_is_utf8(out.data, out.length));
    for (size_t i = 0, n_lines = 0; i < out.length; i++) {
        FUZZ_HOLDS(out.data[i] >= ' ' || out.data[i] == '\n');
        n_lines += out.data[i] == '\n';
        FUZZ_HOLDS(n_lines <= problems->n);
    }
    bytes_deinit(&out);
}

static struct policy *read_all(const struct policy_source *sources, size_t n)
{
    struct policy_problems problems;
    struct policy *policy;

    FUZZ_HOLDS(policy_read(sources, n, &host, &policy, &problems) == 0);
    FUZZ_HOLDS((policy != NULL) == (problems.n_errors == 0));
    FUZZ_HOLDS(problems.n <= POLICY_PROBLEMS_MAX);
    show_problems(&problems);
    policy_problems_deinit(&problems);
    return policy;
}

static void check_form(const struct policy *policy)
{
    char *form = print(policy), *again;
    struct policy_source source = {.name = "form", .bytes = form, .length = strlen(form)};
    struct policy *same = read_all(&source, 1);

    if (!same)
        fprintf(stderr, "%s\n", form);
    FUZZ_HOLDS(same);
    again = print(same);
    if (strcmp(form, again) != 0)
        fprintf(stderr, "%s\n---\n%s\n", form, again);
    FUZZ_HOLDS(strcmp(form, again) == 0);
    policy_unref(same);
    free(form);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[SOURCES_MAX] = {"main.yaml", "10-a.yaml", "20-b.yaml"};
    struct policy_source sources[SOURCES_MAX];
    struct fuzz_input input = {data, size};
    struct policy *policy, *salvage;
    size_t n = 0;

    do {
        struct fuzz_input part = fuzz_take_until(&input, SOURCE_END);

        sources[n] = (struct policy_source){
            .name = names[n],
            .bytes = (char *)fuzz_copy(part.at, part.left),
            .length = part.left,
        };
        n++;
    } while (input.left > 0 && n < SOURCES_MAX);
    policy = read_all(sources, n);
    if (policy)
        check_form(policy);
    salvage = policy_salvage(&sources[0], &host);
    FUZZ_HOLDS(salvage && salvage->n_rules == 0);
    policy_unref(salvage);
    policy_unref(policy);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)sources[i].bytes);
    return 0;
}
