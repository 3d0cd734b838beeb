/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions about a process and the answers to them, as they cross the seam
 * between the core, which asks, and the shell, which looks.
 *
 * An answer carries what the kernel said, as raw bytes or as an errno; what the
 * bytes mean is worked out in the core (procfs.h, cgroup.h, attributes.h). Only
 * of what is in files, which is too much to carry over, whoever looks says what
 * it means (image.h, needs.h). A fact that was not asked for has the error ENODATA.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/platform.h"
#include "lib/preflight.h"
#include "lib/util.h"

enum facts_wanted {
    FACTS_STAT = 1 << 0,      /* /proc/PID/stat */
    FACTS_STATUS = 1 << 1,    /* /proc/PID/status */
    FACTS_EXE = 1 << 2,       /* where /proc/PID/exe points */
    FACTS_ARGUMENTS = 1 << 3, /* /proc/PID/cmdline */
    FACTS_CWD = 1 << 4,       /* where /proc/PID/cwd points */
    FACTS_CGROUP = 1 << 5,    /* /proc/PID/cgroup */
    FACTS_ENVIRON = 1 << 6,   /* /proc/PID/environ */
    FACTS_PARENT = 1 << 7,    /* where /proc/PPID/exe points */
    FACTS_THREADS = 1 << 8,   /* /proc/PID/task/TID/comm of every thread */
    FACTS_FILES = 1 << 9,     /* files named in the question */
    FACTS_FREEZER = 1 << 10,  /* whether its cgroup is frozen */
    FACTS_IMAGES = 1 << 11,   /* and what is in those files, as far as a runtime loads them */
};

/* What is read of one text at most; the rest is cut off and said to be. */
enum {
    FACTS_TEXT_MAX = 64 * 1024,
    FACTS_ARGUMENTS_MAX = 256 * 1024,
    FACTS_ENVIRON_MAX = 1024 * 1024,
    FACTS_THREADS_MAX = 64,
    FACTS_NODES_MAX = 128, /* on the way to a file; no sane one has more */
    FACTS_ACL_MAX = 2048,  /* bytes of a list of who may do what; longer ones are unknown */
    FACTS_DETAIL_MAX = 256,
};

struct facts_text {
    int error; /* 0, or the errno that reading ended with; the rest is then empty */
    bool is_cut;
    size_t length;
    char *data; /* `length` bytes and a NUL */
};

struct facts_thread {
    int32_t id;
    char name[16];
};

/* Whether the process has a right over the component that goes before its mode bits. */
enum facts_override {
    FACTS_OVERRIDE_UNKNOWN,
    FACTS_OVERRIDE_NO,
    FACTS_OVERRIDE_YES,
};

enum { FACTS_OVERRIDES = FACTS_OVERRIDE_YES + 1 };

/* What one component of a path is; numbers as the daemon's user namespace has them. */
struct facts_node {
    uint32_t mode; /* st_mode */
    uint32_t owner;
    uint32_t group;
    enum facts_override override; /* only known with FACTS_IMAGES, as the next two */
    bool has_unknown_acl;
    uint8_t *acl; /* POSIX access control list, as the extended attribute has it; NULL for none */
    size_t acl_length;
};

enum facts_image_kind {
    FACTS_IMAGE_UNKNOWN, /* not asked for, or could not be read */
    FACTS_IMAGE_OTHER,
    FACTS_IMAGE_ELF,
    FACTS_IMAGE_PE,
};

enum { FACTS_IMAGE_KINDS = FACTS_IMAGE_PE + 1 };

/* What is in a file. */
struct facts_image {
    enum facts_image_kind kind;
    bool is_noexec;         /* nothing on its file system may be run */
    bool reads_environment; /* it takes variables from the C library */
    bool names_info11;      /* it knows how to ask the runtime for variables */
    enum preflight problem; /* as a file of its kind; PREFLIGHT_GOOD when nothing is known */
    char *detail;           /* of the problem, foreign text; NULL when there is none */
};

/* What a file is, of all that there are; one that was written to since is another one, too. */
struct facts_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t modified_ns; /* since 1970, as the next one */
    int64_t changed_ns;
};

/* A file as the process would meet it: looked up below its root and, for a relative path, from its
 * working directory. Patterns of platform.h are only known with FACTS_IMAGES. */
struct facts_file {
    char *path;
    int error; /* errno of the look-up, 0 when something is there */
    struct facts_identity identity;
    /* Every folder on the way, those that links lead through among them, then what the path leads
     * to. When the look-up failed, the folders up to there. */
    struct facts_node *nodes;
    size_t n_nodes;
    struct facts_image image;
    struct platform platform; /* of the process, where the path is a pattern: it was looked up so */
};

struct facts {
    uint32_t wanted; /* the question that this answers */
    bool is_alive;   /* after everything was read, the process that was asked about still lived */
    bool has_handle; /* the shell holds a pidfd of it */
    struct span age; /* since it was started; negative when that is not known */
    struct facts_text stat;
    struct facts_text status;
    struct facts_text exe;
    struct facts_text arguments;
    struct facts_text cwd;
    struct facts_text cgroup;
    struct facts_text environ;
    struct facts_text parent_exe;
    int threads_error;
    size_t n_threads; /* all there were, even when only FACTS_THREADS_MAX are listed */
    struct facts_thread threads[FACTS_THREADS_MAX];
    struct facts_file *files;
    size_t n_files;
    bool is_frozen;
};

/* An answer in which nothing is known: every error is `error`. NULL when memory is out. */
struct facts *facts_new(uint32_t wanted, int error) MUST_CHECK;

/* Returns NULL. */
struct facts *facts_free(struct facts *facts);

bool facts_identity_equal(const struct facts_identity *a, const struct facts_identity *b);

/* Puts a copy of `length` bytes into a text; an answer without them, error ENOMEM, when memory is
 * out. */
void facts_text_set(struct facts_text *text, const void *data, size_t length);
