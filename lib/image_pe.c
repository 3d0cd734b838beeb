/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Assemblies, as a .NET runtime reads them (ECMA-335 part II, sections 22 to
 * 25): is it one, and does it have what a startup hook has to have. Nothing of
 * it is interpreted but the tables of types and methods.
 */

#include <string.h>

#include "lib/bytes.h"
#include "lib/image.h"
#include "lib/util.h"

enum {
    SECTION_SIZE = 40,
    DIRECTORY_CLI = 14,
    CLI_HEADER_SIZE = 72,
    STREAMS_MAX = 32,
    STREAM_NAME_MAX = 32,
    TABLES = 64,
    NESTED_VISIBILITIES = 2, /* from this one on, of the three bits of a type's flags */
    METHOD_STATIC = 0x10,
};

enum table {
    TABLE_MODULE = 0x00,
    TABLE_TYPE_REF = 0x01,
    TABLE_TYPE = 0x02,
    TABLE_FIELD_POINTER = 0x03,
    TABLE_FIELD = 0x04,
    TABLE_METHOD_POINTER = 0x05,
    TABLE_METHOD = 0x06,
    TABLE_PARAMETER = 0x08,
    TABLE_MODULE_REF = 0x1A,
    TABLE_TYPE_SPEC = 0x1B,
    TABLE_ASSEMBLY = 0x20,
    TABLE_ASSEMBLY_REF = 0x23,
    TABLE_EXPORTED_TYPE = 0x27,
};

/* A part of the file. */
struct range {
    const uint8_t *data;
    size_t length;
};

struct metadata {
    struct range strings;
    struct range blobs;
    struct range rows; /* from the first table on */
    uint32_t n_rows[TABLES];
    unsigned string_size; /* of indexes into these heaps */
    unsigned guid_size;
    unsigned blob_size;
};

static bool cut(struct range from, uint64_t offset, uint64_t length, struct range *ret_range)
{
    if (offset > from.length || length > from.length - offset)
        return false;
    *ret_range = (struct range){from.data + offset, (size_t)length};
    return true;
}

static bool rest_from(struct range from, uint64_t offset, struct range *ret_range)
{
    return offset <= from.length && cut(from, offset, from.length - offset, ret_range);
}

static bool u16_at(struct range from, uint64_t offset, uint16_t *ret_value)
{
    struct bytes_reader reader;
    struct range rest;

    if (!rest_from(from, offset, &rest))
        return false;
    reader = bytes_reader_over(rest.data, rest.length);
    return bytes_get_u16(&reader, ret_value);
}

static bool u32_at(struct range from, uint64_t offset, uint32_t *ret_value)
{
    struct bytes_reader reader;
    struct range rest;

    if (!rest_from(from, offset, &rest))
        return false;
    reader = bytes_reader_over(rest.data, rest.length);
    return bytes_get_u32(&reader, ret_value);
}

static bool index_at(struct range from, uint64_t offset, unsigned size, uint32_t *ret_index)
{
    uint16_t small;

    if (size == 4)
        return u32_at(from, offset, ret_index);
    if (!u16_at(from, offset, &small))
        return false;
    *ret_index = small;
    return true;
}

/* Headers. */

struct headers {
    struct range file;
    struct range sections;
    uint16_t n_sections;
    uint32_t cli; /* where the CLI header is in memory; 0 when there is none */
};

static int read_cli_address(struct range optional, uint32_t *ret_address)
{
    uint32_t n_directories;
    uint16_t magic;
    uint64_t at;

    *ret_address = 0;
    if (!u16_at(optional, 0, &magic) || (magic != 0x10B && magic != 0x20B))
        return IMAGE_E_DAMAGED;
    at = magic == 0x20B ? 108 : 92;
    if (!u32_at(optional, at, &n_directories))
        return IMAGE_E_DAMAGED;
    if (n_directories <= DIRECTORY_CLI)
        return 0;
    return u32_at(optional, at + 4 + DIRECTORY_CLI * 8, ret_address) ? 0 : IMAGE_E_DAMAGED;
}

/* Every section has to be there: files that were copied in part are cut at their end. */
static bool has_all_sections(const struct headers *headers)
{
    for (uint64_t i = 0; i < headers->n_sections; i++) {
        uint32_t size, offset;
        struct range content;

        if (!u32_at(headers->sections, i * SECTION_SIZE + 16, &size) ||
            !u32_at(headers->sections, i * SECTION_SIZE + 20, &offset) ||
            !cut(headers->file, offset, size, &content))
            return false;
    }
    return true;
}

static int read_headers(struct range file, struct headers *headers)
{
    uint32_t pe, signature;
    uint16_t optional_size;
    struct range optional;
    int error;

    *headers = (struct headers){.file = file};
    if (file.length < 2 || memcmp(file.data, "MZ", 2) != 0)
        return IMAGE_E_OTHER;
    if (!u32_at(file, 0x3C, &pe) || !u32_at(file, pe, &signature))
        return IMAGE_E_DAMAGED;
    if (signature != 0x4550) /* PE, and two zeros */
        return IMAGE_E_OTHER;
    if (!u16_at(file, (uint64_t)pe + 6, &headers->n_sections) ||
        !u16_at(file, (uint64_t)pe + 20, &optional_size) ||
        !cut(file, (uint64_t)pe + 24, optional_size, &optional) ||
        !cut(file, (uint64_t)pe + 24 + optional_size, (uint64_t)headers->n_sections * SECTION_SIZE,
             &headers->sections))
        return IMAGE_E_DAMAGED;
    error = read_cli_address(optional, &headers->cli);
    if (error != 0)
        return error;
    return has_all_sections(headers) ? 0 : IMAGE_E_DAMAGED;
}

/* `length` bytes that are in memory at an address. */
static bool at_address(const struct headers *headers, uint32_t address, uint32_t length,
                       struct range *ret_range)
{
    for (uint64_t i = 0; i < headers->n_sections; i++) {
        uint32_t start, size, offset;

        if (!u32_at(headers->sections, i * SECTION_SIZE + 12, &start) ||
            !u32_at(headers->sections, i * SECTION_SIZE + 16, &size) ||
            !u32_at(headers->sections, i * SECTION_SIZE + 20, &offset))
            return false;
        if (address < start || address - start >= size || length > size - (address - start))
            continue;
        return cut(headers->file, (uint64_t)offset + (address - start), length, ret_range);
    }
    return false;
}

/* Metadata: its streams. */

static bool read_stream_name(struct range root, uint64_t at, char name[static STREAM_NAME_MAX + 1],
                             size_t *ret_size)
{
    struct range rest;
    size_t length;

    if (!rest_from(root, at, &rest))
        return false;
    length = strnlen((const char *)rest.data,
                     rest.length < STREAM_NAME_MAX ? rest.length : STREAM_NAME_MAX);
    if (length == rest.length || length == STREAM_NAME_MAX)
        return false;
    memcpy(name, rest.data, length);
    name[length] = '\0';
    *ret_size = (length + 4) / 4 * 4;
    return true;
}

static int read_streams(struct range root, struct range *ret_tables, struct metadata *metadata)
{
    uint32_t signature, version_length;
    uint16_t n_streams;
    uint64_t at;

    if (!u32_at(root, 0, &signature) || signature != 0x424A5342 ||
        !u32_at(root, 12, &version_length) ||
        !u16_at(root, 16 + (uint64_t)version_length + 2, &n_streams))
        return IMAGE_E_DAMAGED;
    if (n_streams > STREAMS_MAX)
        return IMAGE_E_UNKNOWN;
    at = 16 + (uint64_t)version_length + 4;
    for (uint16_t i = 0; i < n_streams; i++) {
        char name[STREAM_NAME_MAX + 1];
        struct range content;
        uint32_t offset, size;
        size_t name_size;

        if (!u32_at(root, at, &offset) || !u32_at(root, at + 4, &size) ||
            !read_stream_name(root, at + 8, name, &name_size) || !cut(root, offset, size, &content))
            return IMAGE_E_DAMAGED;
        at += 8 + name_size;
        if (strcmp(name, "#~") == 0)
            *ret_tables = content;
        else if (strcmp(name, "#Strings") == 0)
            metadata->strings = content;
        else if (strcmp(name, "#Blob") == 0)
            metadata->blobs = content;
    }
    return ret_tables->data ? 0 : IMAGE_E_UNKNOWN;
}

static int read_tables(struct range tables, struct metadata *metadata)
{
    uint32_t valid[2], heap_sizes;
    uint64_t at = 24;

    if (!u32_at(tables, 4, &heap_sizes) || !u32_at(tables, 8, &valid[0]) ||
        !u32_at(tables, 12, &valid[1]))
        return IMAGE_E_DAMAGED;
    heap_sizes = heap_sizes >> 16 & 0xFF;
    for (unsigned i = 0; i < TABLES; i++) {
        if (!(valid[i / 32] >> i % 32 & 1))
            continue;
        if (!u32_at(tables, at, &metadata->n_rows[i]))
            return IMAGE_E_DAMAGED;
        at += 4;
    }
    if (heap_sizes & 0x40)
        at += 4;
    metadata->string_size = heap_sizes & 1 ? 4 : 2;
    metadata->guid_size = heap_sizes & 2 ? 4 : 2;
    metadata->blob_size = heap_sizes & 4 ? 4 : 2;
    return rest_from(tables, at, &metadata->rows) ? 0 : IMAGE_E_DAMAGED;
}

/* Tables. */

static unsigned index_size(const struct metadata *metadata, enum table table)
{
    return metadata->n_rows[table] > 0xFFFF ? 4 : 2;
}

/* Of an index into one of several tables, which is told by its lowest two bits. */
static unsigned coded_size(const struct metadata *metadata, const enum table *tables, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (metadata->n_rows[tables[i]] > 0x3FFF)
            return 4;
    }
    return 2;
}

static unsigned type_or_ref_size(const struct metadata *metadata)
{
    static const enum table tables[] = {TABLE_TYPE, TABLE_TYPE_REF, TABLE_TYPE_SPEC};

    return coded_size(metadata, tables, ARRAY_LENGTH(tables));
}

static unsigned scope_size(const struct metadata *metadata)
{
    static const enum table tables[] = {TABLE_MODULE, TABLE_MODULE_REF, TABLE_ASSEMBLY_REF,
                                        TABLE_TYPE_REF};

    return coded_size(metadata, tables, ARRAY_LENGTH(tables));
}

static unsigned row_size(const struct metadata *metadata, enum table table)
{
    unsigned string = metadata->string_size;

    switch (table) {
    case TABLE_MODULE:
        return 2 + string + 3 * metadata->guid_size;
    case TABLE_TYPE_REF:
        return scope_size(metadata) + 2 * string;
    case TABLE_TYPE:
        return 4 + 2 * string + type_or_ref_size(metadata) + index_size(metadata, TABLE_FIELD) +
               index_size(metadata, TABLE_METHOD);
    case TABLE_FIELD:
        return 2 + string + metadata->blob_size;
    case TABLE_METHOD:
        return 8 + string + metadata->blob_size + index_size(metadata, TABLE_PARAMETER);
    default:
        return 0;
    }
}

static int find_table(const struct metadata *metadata, enum table table, struct range *ret_rows)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < table; i++)
        offset += (uint64_t)metadata->n_rows[i] * row_size(metadata, (enum table)i);
    return cut(metadata->rows, offset,
               (uint64_t)metadata->n_rows[table] * row_size(metadata, table), ret_rows)
               ? 0
               : IMAGE_E_DAMAGED;
}

static bool is_string(const struct metadata *metadata, uint32_t index, const char *text)
{
    struct range found;

    return cut(metadata->strings, index, strlen(text) + 1, &found) &&
           memcmp(found.data, text, found.length) == 0;
}

/* Types and methods. */

/* No parameters, no type parameters, and not of an object. */
static bool takes_nothing(const struct metadata *metadata, uint32_t index)
{
    struct range blob;

    return cut(metadata->blobs, index, 3, &blob) && blob.data[0] >= 2 && blob.data[1] == 0 &&
           blob.data[2] == 0;
}

static bool is_initialize(const struct metadata *metadata, struct range row)
{
    uint32_t name, signature;
    uint16_t flags;

    return u16_at(row, 6, &flags) && (flags & METHOD_STATIC) &&
           index_at(row, 8, metadata->string_size, &name) &&
           is_string(metadata, name, "Initialize") &&
           index_at(row, 8 + metadata->string_size, metadata->blob_size, &signature) &&
           takes_nothing(metadata, signature);
}

/* Among the methods from one number up to another. */
static bool has_initialize(const struct metadata *metadata, struct range methods, uint32_t first,
                           uint32_t end)
{
    unsigned size = row_size(metadata, TABLE_METHOD);

    for (uint64_t i = first; i < end; i++) {
        struct range row;

        if (i == 0 || !cut(methods, (i - 1) * size, size, &row))
            return false;
        if (is_initialize(metadata, row))
            return true;
    }
    return false;
}

static bool is_hook(const struct metadata *metadata, struct range row)
{
    uint32_t flags, name, space;

    return u32_at(row, 0, &flags) && (flags & 7) < NESTED_VISIBILITIES &&
           index_at(row, 4, metadata->string_size, &name) &&
           is_string(metadata, name, "StartupHook") &&
           index_at(row, 4 + metadata->string_size, metadata->string_size, &space) &&
           is_string(metadata, space, "");
}

/* The first method of the type of a row; behind the last type, one more than there are. */
static uint32_t first_method(const struct metadata *metadata, struct range types, uint64_t i)
{
    unsigned size = row_size(metadata, TABLE_TYPE), index = index_size(metadata, TABLE_METHOD);
    uint32_t first;

    if (i >= metadata->n_rows[TABLE_TYPE] ||
        !index_at(types, (i + 1) * size - index, index, &first))
        return metadata->n_rows[TABLE_METHOD] + 1;
    return first;
}

static int find_hook(const struct metadata *metadata, struct image_pe *image)
{
    unsigned size = row_size(metadata, TABLE_TYPE);
    struct range types, methods;

    if (find_table(metadata, TABLE_TYPE, &types) != 0 ||
        find_table(metadata, TABLE_METHOD, &methods) != 0)
        return IMAGE_E_DAMAGED;
    for (uint64_t i = 0; i < metadata->n_rows[TABLE_TYPE]; i++) {
        struct range row;

        if (!cut(types, i * size, size, &row) || !is_hook(metadata, row))
            continue;
        image->has_hook = true;
        image->has_initialize = has_initialize(metadata, methods, first_method(metadata, types, i),
                                               first_method(metadata, types, i + 1));
        return 0;
    }
    /* The type may be in an assembly that this one points to. */
    return metadata->n_rows[TABLE_EXPORTED_TYPE] > 0 ? IMAGE_E_UNKNOWN : 0;
}

static int read_metadata(const struct headers *headers, struct metadata *metadata)
{
    struct range cli, root, tables = {0};
    uint32_t address, size;
    int error;

    if (!at_address(headers, headers->cli, CLI_HEADER_SIZE, &cli) || !u32_at(cli, 8, &address) ||
        !u32_at(cli, 12, &size) || !at_address(headers, address, size, &root))
        return IMAGE_E_DAMAGED;
    error = read_streams(root, &tables, metadata);
    if (error == 0)
        error = read_tables(tables, metadata);
    /* Only tables in another order than by type have these. */
    if (error == 0 &&
        (metadata->n_rows[TABLE_FIELD_POINTER] > 0 || metadata->n_rows[TABLE_METHOD_POINTER] > 0))
        error = IMAGE_E_UNKNOWN;
    return error;
}

int image_pe_read(const uint8_t *data, size_t length, struct image_pe *ret_image)
{
    struct metadata metadata = {0};
    struct image_pe image = {0};
    struct headers headers;
    int error = read_headers((struct range){data, length}, &headers);

    if (error != 0)
        return error;
    if (headers.cli != 0) {
        error = read_metadata(&headers, &metadata);
        image.is_assembly = error == 0 && metadata.n_rows[TABLE_ASSEMBLY] > 0;
    }
    if (error == 0 && image.is_assembly)
        error = find_hook(&metadata, &image);
    if (error == 0)
        *ret_image = image;
    return error;
}
