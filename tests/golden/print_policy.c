/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_policy PATH: reads a policy file, or a folder of them, and writes its
 * canonical form to standard output and what is wrong with it to standard
 * error. Exit status 0, or 1 when there is an error. The canonical form is read
 * again and has to give itself.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/golden/golden.h"

static struct policy *read_or_end(const struct golden_sources *sources,
                                  const struct policy_host *host, struct policy_problems *problems)
{
    struct policy *policy;

    if (policy_read(sources->list, sources->n, host, &policy, problems) != 0)
        errx(2, "memory");
    if ((problems->n_errors == 0) != (policy != NULL))
        errx(2, "%zu errors and %s policy", problems->n_errors, policy ? "a" : "no");
    return policy;
}

static char *print_or_end(const struct policy *policy)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    policy_print(policy, &out);
    if (bytes_finish(&out) != 0)
        errx(2, "memory");
    return (char *)bytes_take(&out);
}

static void check_form(const char *form, const struct policy_host *host)
{
    struct policy_source source = {"canonical", form, strlen(form)};
    const struct golden_sources sources = {&source, 1};
    struct policy_problems problems;
    struct policy *policy = read_or_end(&sources, host, &problems);
    char *again;

    if (!policy) {
        golden_print_problems(&problems, stderr);
        errx(2, "the canonical form is no policy:\n%s", form);
    }
    again = print_or_end(policy);
    if (strcmp(form, again) != 0)
        errx(2, "the canonical form of\n%s\nis\n%s", form, again);
    free(again);
    policy_unref(policy);
    policy_problems_deinit(&problems);
}

int main(int argc, char **argv)
{
    struct golden_sources sources;
    struct policy_problems problems;
    struct policy_host host;
    struct policy *policy;
    int status;

    if (argc != 2)
        errx(2, "usage: print_policy PATH");
    golden_read_sources(argv[1], &sources);
    host = golden_host(&sources);
    policy = read_or_end(&sources, &host, &problems);
    golden_print_problems(&problems, stderr);
    status = policy ? EXIT_SUCCESS : EXIT_FAILURE;
    if (policy) {
        char *form = print_or_end(policy);

        fputs(form, stdout);
        check_form(form, &host);
        free(form);
    }
    policy_unref(policy);
    policy_problems_deinit(&problems);
    golden_free_sources(&sources);
    return status;
}
