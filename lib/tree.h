/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Red-black trees and queues as macros: libbsd's, with one addition. Its own
 * RB_GENERATE_STATIC needs a macro that libbsd leaves out on Linux.
 */

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* All functions of a tree, private to one file. `compare` must be declared before. */
#define TREE_GENERATE(name, type, link, compare)                                     \
    RB_PROTOTYPE_INTERNAL(name, type, link, compare, __attribute__((unused)) static) \
    RB_GENERATE_INTERNAL(name, type, link, compare, __attribute__((unused)) static)
