/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon and the primer (shim/) have to agree on. It includes nothing,
 * since the primer is built without any library.
 */

/* The class that the primer answers to: the daemon's StartupProfiler command names it, and so do
 * the runtime's messages about it. As text, as its fields, and as the bytes of a message. */
#define PRIMER_CLSID "b5f70952-7fad-4d0e-8874-52a47210fb43"
#define PRIMER_CLSID_FIELDS                                \
    {                                                      \
        0xB5F70952, 0x7FAD, 0x4D0E,                        \
        {                                                  \
            0x88, 0x74, 0x52, 0xA4, 0x72, 0x10, 0xFB, 0x43 \
        }                                                  \
    }
#define PRIMER_CLSID_BYTES \
    0x52, 0x09, 0xF7, 0xB5, 0xAD, 0x7F, 0x0E, 0x4D, 0x88, 0x74, 0x52, 0xA4, 0x72, 0x10, 0xFB, 0x43

/* To the primer: names of variables, and paths of libraries to open, with a line feed between them.
 * It takes both variables away. */
#define PRIMER_NAMES     "DIAGPORT_PRIMER_NAMES"
#define PRIMER_LIBRARIES "DIAGPORT_PRIMER_PROBE"
#define PRIMER_SEPARATOR '\n'

/* From the primer; primer.h reads it. */
#define PRIMER_RESULT "DIAGPORT_PRIMER_RESULT"

/* The first line of a result. */
#define PRIMER_VERSION "diagport-primer 1"
/* Its last one: a result without it was cut. */
#define PRIMER_END "end"

/* UTF-16 units of a result at most, with its NUL, and bytes of what it shows of a foreign text. */
#define PRIMER_RESULT_MAX 12288
#define PRIMER_WORDS_MAX  512
/* Libraries that are opened at most. */
#define PRIMER_LIBRARIES_MAX 16
