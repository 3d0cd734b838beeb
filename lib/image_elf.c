/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ELF files, as a dynamic loader reads them. libelf, which nobody else uses,
 * knows classes and byte orders; where tables are and how long they may be is
 * checked here.
 */

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image.h"
#include "lib/util.h"

enum {
    SEGMENTS_MAX = 64,
    SYMBOLS_MAX = 1024 * 1024,
    SCAN_MAX = 32 * 1024 * 1024,
    VERSION_NEED_SIZE = 16,
    VERSION_NAME_SIZE = 16,
    VERSION_DEFINITION_SIZE = 20,
};

/* A part of the file that is in memory when it is loaded. */
struct segment {
    uint64_t address;
    uint64_t offset;
    uint64_t size;
};

struct image_elf_tables {
    const uint8_t *data;
    size_t length;
    Elf *elf;
    bool is_big_endian;
    struct segment segments[SEGMENTS_MAX];
    size_t n_segments;
    size_t strings; /* offset in the file */
    size_t strings_size;
    Elf_Data *symbols;
    size_t n_symbols;
    size_t hash; /* offset in the file, 0 when there is none, as the next two */
    size_t gnu_hash;
    size_t definitions;
    size_t n_definitions;
    size_t needs;
    size_t n_needs;
};

/* What the dynamic section says; addresses are as in memory. */
struct dynamic {
    uint64_t strings, strings_size, symbols, hash, gnu_hash;
    uint64_t needs, n_needs, definitions, n_definitions;
    uint64_t soname, rpath, runpath;
    uint64_t flags, flags_1;
    bool has_soname, has_rpath, has_runpath, binds_now;
    uint64_t needed[IMAGE_NEEDED_MAX];
    size_t n_needed;
    bool is_cut;
};

/* Bytes. */

static bool is_within(const struct image_elf_tables *tables, uint64_t offset, uint64_t size)
{
    return offset <= tables->length && size <= tables->length - offset;
}

static bool get_u16(const struct image_elf_tables *tables, uint64_t offset, uint16_t *ret_value)
{
    const uint8_t *at = tables->data + offset;

    if (!is_within(tables, offset, 2))
        return false;
    *ret_value = (uint16_t)(tables->is_big_endian ? at[0] << 8 | at[1] : at[1] << 8 | at[0]);
    return true;
}

static bool get_u32(const struct image_elf_tables *tables, uint64_t offset, uint32_t *ret_value)
{
    uint16_t first, second;

    if (!get_u16(tables, offset, &first) || !get_u16(tables, offset + 2, &second))
        return false;
    *ret_value =
        tables->is_big_endian ? (uint32_t)first << 16 | second : (uint32_t)second << 16 | first;
    return true;
}

/* A text of the file, which has to end in it. */
static const char *text_at(const struct image_elf_tables *tables, uint64_t offset, uint64_t max)
{
    if (!is_within(tables, offset, max) || max == 0 ||
        !memchr(tables->data + offset, '\0', (size_t)max))
        return NULL;
    return (const char *)tables->data + offset;
}

static const char *string_at(const struct image_elf_tables *tables, uint64_t index)
{
    if (index >= tables->strings_size)
        return NULL;
    return text_at(tables, tables->strings + index, tables->strings_size - index);
}

/* Where `size` bytes that are in memory at an address come from. */
static bool offset_of(const struct image_elf_tables *tables, uint64_t address, uint64_t size,
                      size_t *ret_offset)
{
    for (size_t i = 0; i < tables->n_segments; i++) {
        const struct segment *segment = &tables->segments[i];

        if (address < segment->address || address - segment->address > segment->size ||
            size > segment->size - (address - segment->address))
            continue;
        *ret_offset = (size_t)(segment->offset + (address - segment->address));
        return true;
    }
    return false;
}

/* Header and segments. */

static int read_segment(struct image_elf *image, const GElf_Phdr *segment)
{
    struct image_elf_tables *tables = image->tables;

    if (segment->p_type == PT_INTERP)
        image->interpreter = text_at(tables, segment->p_offset, segment->p_filesz);
    if (segment->p_type != PT_LOAD)
        return 0;
    /* What is behind the end of the file can be mapped, and kills who touches it. */
    if (!is_within(tables, segment->p_offset, segment->p_filesz))
        return IMAGE_E_DAMAGED;
    if (tables->n_segments == SEGMENTS_MAX)
        return IMAGE_E_UNKNOWN;
    tables->segments[tables->n_segments++] = (struct segment){
        .address = segment->p_vaddr,
        .offset = segment->p_offset,
        .size = segment->p_filesz,
    };
    return 0;
}

static int read_segments(struct image_elf *image, GElf_Phdr *ret_dynamic)
{
    Elf *elf = image->tables->elf;
    bool has_dynamic = false;
    size_t n;

    if (elf_getphdrnum(elf, &n) != 0)
        return IMAGE_E_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr segment;
        int error;

        if (!gelf_getphdr(elf, (int)i, &segment))
            return IMAGE_E_DAMAGED;
        error = read_segment(image, &segment);
        if (error != 0)
            return error;
        if (segment.p_type == PT_DYNAMIC) {
            *ret_dynamic = segment;
            has_dynamic = true;
        }
    }
    return has_dynamic ? 0 : IMAGE_E_DAMAGED;
}

/* The dynamic section. */

static void take_entry(struct dynamic *dynamic, const GElf_Dyn *entry)
{
    switch (entry->d_tag) {
    case DT_NEEDED:
        if (dynamic->n_needed < IMAGE_NEEDED_MAX)
            dynamic->needed[dynamic->n_needed++] = entry->d_un.d_val;
        else
            dynamic->is_cut = true;
        break;
    case DT_STRTAB:
        dynamic->strings = entry->d_un.d_ptr;
        break;
    case DT_STRSZ:
        dynamic->strings_size = entry->d_un.d_val;
        break;
    case DT_SYMTAB:
        dynamic->symbols = entry->d_un.d_ptr;
        break;
    case DT_HASH:
        dynamic->hash = entry->d_un.d_ptr;
        break;
    case DT_GNU_HASH:
        dynamic->gnu_hash = entry->d_un.d_ptr;
        break;
    case DT_VERNEED:
        dynamic->needs = entry->d_un.d_ptr;
        break;
    case DT_VERNEEDNUM:
        dynamic->n_needs = entry->d_un.d_val;
        break;
    case DT_VERDEF:
        dynamic->definitions = entry->d_un.d_ptr;
        break;
    case DT_VERDEFNUM:
        dynamic->n_definitions = entry->d_un.d_val;
        break;
    case DT_SONAME:
        dynamic->soname = entry->d_un.d_val;
        dynamic->has_soname = true;
        break;
    case DT_RPATH:
        dynamic->rpath = entry->d_un.d_val;
        dynamic->has_rpath = true;
        break;
    case DT_RUNPATH:
        dynamic->runpath = entry->d_un.d_val;
        dynamic->has_runpath = true;
        break;
    case DT_BIND_NOW:
        dynamic->binds_now = true;
        break;
    case DT_FLAGS:
        dynamic->flags = entry->d_un.d_val;
        break;
    case DT_FLAGS_1:
        dynamic->flags_1 = entry->d_un.d_val;
        break;
    default:
        break;
    }
}

/* Of `size` bytes at an offset, in the form of the file. NULL when memory is out. */
static Elf_Data *table_at(const struct image_elf_tables *tables, uint64_t offset, uint64_t size,
                          Elf_Type type)
{
    return elf_getdata_rawchunk(tables->elf, (int64_t)offset, (size_t)size, type);
}

static int read_dynamic(const struct image_elf_tables *tables, const GElf_Phdr *segment,
                        struct dynamic *dynamic)
{
    size_t entry_size = gelf_fsize(tables->elf, ELF_T_DYN, 1, EV_CURRENT);
    uint64_t n = segment->p_filesz / entry_size;
    Elf_Data *table;

    if (!is_within(tables, segment->p_offset, segment->p_filesz) || n == 0)
        return IMAGE_E_DAMAGED;
    table = table_at(tables, segment->p_offset, n * entry_size, ELF_T_DYN);
    if (!table)
        return -ENOMEM;
    for (uint64_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Dyn entry;

        if (!gelf_getdyn(table, (int)i, &entry) || entry.d_tag == DT_NULL)
            break;
        take_entry(dynamic, &entry);
    }
    return 0;
}

/* Symbols. */

/* That table has no end of its own: it is told by the last chain of the hash table. */
static int count_by_gnu_hash(const struct image_elf_tables *tables, uint32_t *ret_n)
{
    uint32_t n_buckets, first, bloom_size, last = 0, value;
    size_t word = gelf_getclass(tables->elf) == ELFCLASS64 ? 8 : 4;
    uint64_t buckets, chains;

    if (!get_u32(tables, tables->gnu_hash, &n_buckets) ||
        !get_u32(tables, tables->gnu_hash + 4, &first) ||
        !get_u32(tables, tables->gnu_hash + 8, &bloom_size))
        return IMAGE_E_DAMAGED;
    buckets = tables->gnu_hash + 16 + (uint64_t)bloom_size * word;
    chains = buckets + (uint64_t)n_buckets * 4;
    if (!is_within(tables, buckets, (uint64_t)n_buckets * 4))
        return IMAGE_E_DAMAGED;
    if (n_buckets > SYMBOLS_MAX)
        return IMAGE_E_UNKNOWN;
    for (uint32_t i = 0; i < n_buckets; i++) {
        if (get_u32(tables, buckets + (uint64_t)i * 4, &value) && value > last)
            last = value;
    }
    if (last < first) {
        *ret_n = first;
        return 0;
    }
    for (; last <= SYMBOLS_MAX; last++) {
        if (!get_u32(tables, chains + (uint64_t)(last - first) * 4, &value))
            return IMAGE_E_DAMAGED;
        if (value & 1) {
            *ret_n = last + 1;
            return 0;
        }
    }
    return IMAGE_E_UNKNOWN;
}

static int count_symbols(const struct image_elf_tables *tables, uint32_t *ret_n)
{
    *ret_n = 0;
    if (tables->hash != 0)
        return get_u32(tables, tables->hash + 4, ret_n) ? 0 : IMAGE_E_DAMAGED;
    return tables->gnu_hash != 0 ? count_by_gnu_hash(tables, ret_n) : 0;
}

static int find_symbols(struct image_elf_tables *tables, const struct dynamic *dynamic)
{
    size_t entry_size = gelf_fsize(tables->elf, ELF_T_SYM, 1, EV_CURRENT), offset;
    uint32_t n;
    int error = count_symbols(tables, &n);

    if (error != 0)
        return error;
    if (n > SYMBOLS_MAX)
        return IMAGE_E_UNKNOWN;
    if (n == 0)
        return 0;
    if (!offset_of(tables, dynamic->symbols, n * entry_size, &offset))
        return IMAGE_E_DAMAGED;
    tables->symbols = table_at(tables, offset, n * entry_size, ELF_T_SYM);
    tables->n_symbols = n;
    return tables->symbols ? 0 : -ENOMEM;
}

/* Hash tables of two machines have words of another size. */
static bool has_usual_hash(uint16_t machine, bool is_64)
{
    return !is_64 || (machine != EM_S390 && machine != EM_ALPHA);
}

static int find_tables(struct image_elf *image, const struct dynamic *dynamic)
{
    struct image_elf_tables *tables = image->tables;

    if (!offset_of(tables, dynamic->strings, dynamic->strings_size, &tables->strings))
        return IMAGE_E_DAMAGED;
    tables->strings_size = (size_t)dynamic->strings_size;
    if (dynamic->hash != 0 && has_usual_hash(image->machine, image->is_64) &&
        !offset_of(tables, dynamic->hash, 8, &tables->hash))
        return IMAGE_E_DAMAGED;
    if (dynamic->gnu_hash != 0 && !offset_of(tables, dynamic->gnu_hash, 16, &tables->gnu_hash))
        return IMAGE_E_DAMAGED;
    if (dynamic->definitions != 0 &&
        !offset_of(tables, dynamic->definitions, VERSION_DEFINITION_SIZE, &tables->definitions))
        return IMAGE_E_DAMAGED;
    if (dynamic->needs != 0 &&
        !offset_of(tables, dynamic->needs, VERSION_NEED_SIZE, &tables->needs))
        return IMAGE_E_DAMAGED;
    tables->n_definitions = (size_t)dynamic->n_definitions;
    tables->n_needs = (size_t)dynamic->n_needs;
    image->defines_versions = tables->definitions != 0;
    return find_symbols(tables, dynamic);
}

static int read_names(struct image_elf *image, const struct dynamic *dynamic)
{
    const struct image_elf_tables *tables = image->tables;

    for (size_t i = 0; i < dynamic->n_needed; i++) {
        image->needed[i] = string_at(tables, dynamic->needed[i]);
        if (!image->needed[i])
            return IMAGE_E_DAMAGED;
        image->n_needed++;
    }
    image->soname = dynamic->has_soname ? string_at(tables, dynamic->soname) : NULL;
    image->rpath = dynamic->has_rpath ? string_at(tables, dynamic->rpath) : NULL;
    image->runpath = dynamic->has_runpath ? string_at(tables, dynamic->runpath) : NULL;
    return dynamic->is_cut ? IMAGE_E_UNKNOWN : 0;
}

/* Versions. */

static int read_version(struct image_elf *image, const char *library, uint64_t at)
{
    const struct image_elf_tables *tables = image->tables;
    struct image_version version = {.library = library};
    uint16_t flags;
    uint32_t name;

    if (!get_u16(tables, at + 4, &flags) || !get_u32(tables, at + 8, &name))
        return IMAGE_E_DAMAGED;
    version.name = string_at(tables, name);
    version.is_weak = flags & VER_FLG_WEAK;
    if (!version.name)
        return IMAGE_E_DAMAGED;
    if (image->n_versions == IMAGE_VERSIONS_MAX)
        return IMAGE_E_UNKNOWN;
    image->versions[image->n_versions++] = version;
    return 0;
}

/* Those of one library. */
static int read_versions_of(struct image_elf *image, uint64_t at)
{
    const struct image_elf_tables *tables = image->tables;
    uint32_t file, aside, next;
    const char *library;
    uint16_t n;

    if (!get_u16(tables, at + 2, &n) || !get_u32(tables, at + 4, &file) ||
        !get_u32(tables, at + 8, &aside))
        return IMAGE_E_DAMAGED;
    library = string_at(tables, file);
    if (!library)
        return IMAGE_E_DAMAGED;
    at += aside;
    for (uint16_t i = 0; i < n; i++, at += next) {
        int error = read_version(image, library, at);

        if (error != 0)
            return error;
        if (!get_u32(tables, at + 12, &next))
            return IMAGE_E_DAMAGED;
        if (next == 0)
            break;
    }
    return 0;
}

static int read_versions(struct image_elf *image)
{
    const struct image_elf_tables *tables = image->tables;
    uint64_t at = tables->needs;
    uint32_t next;

    for (size_t i = 0; at != 0 && i < tables->n_needs; i++, at += next) {
        int error = read_versions_of(image, at);

        if (error != 0)
            return error;
        if (!get_u32(tables, at + 12, &next))
            return IMAGE_E_DAMAGED;
        if (next == 0)
            break;
    }
    return 0;
}

bool image_elf_defines_version(const struct image_elf *image, const char *name)
{
    const struct image_elf_tables *tables = image->tables;
    uint64_t at = tables->definitions;
    uint32_t aside, index, next;

    for (size_t i = 0; at != 0 && i < tables->n_definitions && i < SYMBOLS_MAX; i++, at += next) {
        const char *defined;

        if (!get_u32(tables, at + 12, &aside) || !get_u32(tables, at + aside, &index) ||
            !get_u32(tables, at + 16, &next))
            return false;
        defined = string_at(tables, index);
        if (defined && strcmp(defined, name) == 0)
            return true;
        if (next == 0)
            return false;
    }
    return false;
}

/* All of it. */

static int read_header(struct image_elf *image)
{
    GElf_Ehdr header;

    if (!gelf_getehdr(image->tables->elf, &header))
        return IMAGE_E_DAMAGED;
    image->is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
    image->machine = header.e_machine;
    image->is_library = header.e_type == ET_DYN;
    return is_within(image->tables, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize)
               ? 0
               : IMAGE_E_DAMAGED;
}

/* The first bytes are enough to know whether it is for this machine, so they count for what cannot
 * be read to its end. */
static int read_identity(struct image_elf *image, const uint8_t *data, size_t length)
{
    if (length < SELFMAG || memcmp(data, ELFMAG, SELFMAG) != 0)
        return IMAGE_E_OTHER;
    if (length < EI_NIDENT || (data[EI_CLASS] != ELFCLASS32 && data[EI_CLASS] != ELFCLASS64) ||
        (data[EI_DATA] != ELFDATA2LSB && data[EI_DATA] != ELFDATA2MSB))
        return IMAGE_E_DAMAGED;
    if (length < (data[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
        return IMAGE_E_DAMAGED;
    image->is_big_endian = data[EI_DATA] == ELFDATA2MSB;
    return 0;
}

static int open_tables(struct image_elf *image, const uint8_t *data, size_t length)
{
    image->tables = calloc(1, sizeof *image->tables);
    if (!image->tables)
        return -ENOMEM;
    image->tables->data = data;
    image->tables->length = length;
    image->tables->is_big_endian = image->is_big_endian;
    elf_version(EV_CURRENT);
    /* It is only read. */
    image->tables->elf = elf_memory((char *)(uintptr_t)data, length);
    return image->tables->elf && elf_kind(image->tables->elf) == ELF_K_ELF ? 0 : IMAGE_E_UNKNOWN;
}

static int read_whole(struct image_elf *image)
{
    struct dynamic dynamic = {0};
    GElf_Phdr segment = {0};
    int error = read_header(image);

    if (error == 0)
        error = read_segments(image, &segment);
    if (error == 0)
        error = read_dynamic(image->tables, &segment, &dynamic);
    if (error != 0)
        return error;
    image->binds_now =
        dynamic.binds_now || (dynamic.flags & DF_BIND_NOW) || (dynamic.flags_1 & DF_1_NOW);
    if (dynamic.flags_1 & DF_1_PIE)
        image->is_library = false;
    error = find_tables(image, &dynamic);
    if (error == 0)
        error = read_names(image, &dynamic);
    return error == 0 ? read_versions(image) : error;
}

int image_elf_init(struct image_elf *image, const uint8_t *data, size_t length)
{
    int error;

    *image = (struct image_elf){0};
    error = read_identity(image, data, length);
    if (error == 0)
        error = open_tables(image, data, length);
    if (error == 0)
        error = read_whole(image);
    if (error != 0)
        image_elf_deinit(image);
    return error;
}

void image_elf_deinit(struct image_elf *image)
{
    if (image->tables)
        elf_end(image->tables->elf);
    free(image->tables);
    *image = (struct image_elf){0};
}

/* Looking names up. */

static bool is_defined_as(const struct image_elf_tables *tables, uint64_t index, const char *name)
{
    const char *symbol_name;
    GElf_Sym symbol;

    if (index >= tables->n_symbols || !gelf_getsym(tables->symbols, (int)index, &symbol))
        return false;
    symbol_name = string_at(tables, symbol.st_name);
    if (!symbol_name || strcmp(symbol_name, name) != 0)
        return false;
    /* Loaders take one without a value for one that is not there. */
    if (symbol.st_value == 0 && symbol.st_shndx != SHN_ABS &&
        GELF_ST_TYPE(symbol.st_info) != STT_TLS)
        return false;
    return symbol.st_shndx != SHN_UNDEF && GELF_ST_BIND(symbol.st_info) != STB_LOCAL &&
           GELF_ST_VISIBILITY(symbol.st_other) != STV_HIDDEN &&
           GELF_ST_VISIBILITY(symbol.st_other) != STV_INTERNAL;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;

    for (; *name != '\0'; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static bool is_in_gnu_hash(const struct image_elf_tables *tables, const char *name)
{
    size_t word = gelf_getclass(tables->elf) == ELFCLASS64 ? 8 : 4;
    uint32_t n_buckets, first, bloom_size, index, value, hash = gnu_hash(name);
    uint64_t buckets;

    if (!get_u32(tables, tables->gnu_hash, &n_buckets) || n_buckets == 0 ||
        !get_u32(tables, tables->gnu_hash + 4, &first) ||
        !get_u32(tables, tables->gnu_hash + 8, &bloom_size))
        return false;
    buckets = tables->gnu_hash + 16 + (uint64_t)bloom_size * word;
    if (!get_u32(tables, buckets + (uint64_t)(hash % n_buckets) * 4, &index) || index < first)
        return false;
    for (; index < tables->n_symbols; index++) {
        if (!get_u32(tables, buckets + (uint64_t)n_buckets * 4 + (uint64_t)(index - first) * 4,
                     &value))
            return false;
        if ((value | 1) == (hash | 1) && is_defined_as(tables, index, name))
            return true;
        if (value & 1)
            return false;
    }
    return false;
}

static bool is_in_hash(const struct image_elf_tables *tables, const char *name)
{
    uint32_t n_buckets, n_chains, index;

    if (!get_u32(tables, tables->hash, &n_buckets) || n_buckets == 0 ||
        !get_u32(tables, tables->hash + 4, &n_chains) ||
        !get_u32(tables, tables->hash + 8 + (uint64_t)(elf_hash(name) % n_buckets) * 4, &index))
        return false;
    /* A chain that bites its tail ends with as many steps as there are symbols. */
    for (uint32_t i = 0; i < tables->n_symbols && index != STN_UNDEF; i++) {
        if (is_defined_as(tables, index, name))
            return true;
        if (!get_u32(tables, tables->hash + 8 + ((uint64_t)n_buckets + index) * 4, &index))
            return false;
    }
    return false;
}

bool image_elf_exports(const struct image_elf *image, const char *name)
{
    const struct image_elf_tables *tables = image->tables;

    return tables->gnu_hash != 0 ? is_in_gnu_hash(tables, name)
                                 : tables->hash != 0 && is_in_hash(tables, name);
}

const char *image_elf_next_undefined(const struct image_elf *image, size_t *at, bool *ret_is_weak)
{
    const struct image_elf_tables *tables = image->tables;

    /* The first symbol is none. */
    while (++*at < tables->n_symbols) {
        const char *name;
        GElf_Sym symbol;

        if (!gelf_getsym(tables->symbols, (int)*at, &symbol) || symbol.st_shndx != SHN_UNDEF ||
            GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
            continue;
        name = string_at(tables, symbol.st_name);
        if (!name || *name == '\0')
            continue;
        *ret_is_weak = GELF_ST_BIND(symbol.st_info) == STB_WEAK;
        return name;
    }
    return NULL;
}

bool image_elf_reads_environment(const struct image_elf *image)
{
    static const char *const names[] = {"getenv", "secure_getenv", "environ", "__environ"};
    const char *name;
    bool is_weak;
    size_t at = 0;

    while ((name = image_elf_next_undefined(image, &at, &is_weak))) {
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
            if (strcmp(name, names[i]) == 0)
                return true;
        }
    }
    return false;
}

bool image_names_info11(const uint8_t *data, size_t length)
{
    /* {06398876-8987-4154-B621-40A00D6E4D04}, as in memory. */
    static const uint8_t id[] = {0x76, 0x88, 0x39, 0x06, 0x87, 0x89, 0x54, 0x41,
                                 0xB6, 0x21, 0x40, 0xA0, 0x0D, 0x6E, 0x4D, 0x04};

    return length > 0 && memmem(data, length < SCAN_MAX ? length : SCAN_MAX, id, sizeof id);
}
