/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports the state of OpenCL on a POSIX system: ICD files and the driver libraries that they name,
 * graphics cards, permissions of device nodes, PoCL's cache folder. No function returns an error:
 * the report says what cannot be read.
 */
#include "ocl/diagnose/diagnose.h"

#include "base/files.h"
#include "base/library/dynlib.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_FILE_BYTES 4096

/* Returns a small file's content as a string; NULL when it cannot be read. */
static char *read_small(const char *folder, const char *name)
{
    char *path = NULL, *data = NULL;
    size_t n = 0;
    if (file_join(folder, name, &path) != CLG_OK) return NULL;
    clg_status status =
        file_exists(path) ? file_read(path, SMALL_FILE_BYTES, &data, &n) : CLG_ERROR_IO;
    memory_free(path);
    if (status != CLG_OK) return NULL;
    char *text = memory_strndup(data, n);
    memory_free(data);
    return text;
}

/* Returns the first non-blank line of a small file, trimmed; NULL when it cannot be read. */
static char *read_line(const char *folder, const char *name)
{
    char *text = read_small(folder, name);
    if (!text) return NULL;
    const char *start = text + strspn(text, " \t\r\n");
    size_t n = strcspn(start, "\n");
    while (n > 0 && strchr(" \t\r\n", start[n - 1])) n--;
    char *line = memory_strndup(start, n);
    memory_free(text);
    return line;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static bool library_loads(const char *name)
{
    char why[DYNLIB_WHY_BYTES];
    void *library = dynlib_open(name, why);
    dynlib_close(library);
    return library != NULL;
}

/* ---- drivers --------------------------------------------------------------------------------- */

/* Reports an .icd file, and whether the library that it names loads. Sets bit i of named where that
 * is the driver of the i-th vendor. */
static void describe_driver(strbuf *report, const char *folder, const char *name, unsigned *named)
{
    char why[DYNLIB_WHY_BYTES];
    char *library_name = read_line(folder, name);
    if (!library_name || library_name[0] == '\0') {
        strbuf_printf(report, "  %s: cannot be read, or is empty\n", name);
        memory_free(library_name);
        return;
    }
    for (size_t i = 0; i < n_card_vendors; i++)
        if (card_vendors[i].driver && ends_with(library_name, card_vendors[i].driver))
            *named |= 1U << i;
    void *library = dynlib_open(library_name, why);
    if (library)
        strbuf_printf(report, "  %s: '%s' loads\n", name, library_name);
    else
        strbuf_printf(report, "  %s: '%s' DOES NOT LOAD: %s\n", name, library_name, why);
    dynlib_close(library);
    memory_free(library_name);
}

/* Reports drivers that no .icd file names though they load: a container's, that the host has passed
 * on without such a file. */
static void describe_unnamed(strbuf *report, const char *folder, unsigned named)
{
    for (size_t i = 0; i < n_card_vendors; i++) {
        const char *driver = card_vendors[i].driver;
        if (!driver || (named >> i & 1) != 0 || !library_loads(driver)) continue;
        strbuf_printf(report,
                      "  %s's driver '%s' loads, and no .icd file names it: write that line into "
                      "'%s/%s.icd'\n",
                      card_vendors[i].name, driver, folder, card_vendors[i].name);
    }
}

void diagnose_drivers(strbuf *report, const char *folder)
{
    file_entry *files = NULL;
    size_t n = 0, n_drivers = 0;
    unsigned named = 0;
    strbuf_printf(report, "Drivers: .icd files in '%s'\n", folder);
    if (file_list(folder, &files, &n) != CLG_OK) {
        strbuf_printf(report, "  the folder cannot be read: %s\n", error_text());
        files = NULL;
        n = 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!files[i].is_folder && ends_with(files[i].name, ".icd")) {
            describe_driver(report, folder, files[i].name, &named);
            n_drivers++;
        }
    if (n_drivers == 0)
        strbuf_append(report,
                      "  none: install a driver's package; in a container the host's driver "
                      "needs such a file "
                      "here too, for NVIDIA one with the line 'libnvidia-opencl.so.1'\n");
    describe_unnamed(report, folder, named);
    file_list_free(files, n);
}

/* ---- cards ----------------------------------------------------------------------------------- */

static bool is_of_card(const device_record *r, unsigned vendor, const char *address)
{
    unsigned domain, bus, device, function;
    const bool is_cpu = (r->type & 2) != 0; /* CL_DEVICE_TYPE_CPU: PoCL reports 0x8086 everywhere */
    if (is_cpu) return false;
    char *end;
    domain = (unsigned)strtoul(address, &end, 16);
    bus = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
    device = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
    function = *end == '.' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
    if (r->has_pci)
        return r->pci_domain == domain && r->pci_bus == bus && r->pci_device == device &&
               r->pci_function == function;
    return r->vendor_id == vendor;
}

/* Reports what to install for a card: the vendor's package, else or also Mesa's. */
static void advise(strbuf *report, const card_vendor *vendor, const distribution *d)
{
    const char *package = advice_package(vendor, d), *mesa = vendor->rusticl ? d->mesa : NULL;
    if (package) strbuf_printf(report, "install '%s'", package);
    if (mesa)
        strbuf_printf(report, "%s'%s' and set RUSTICL_ENABLE=%s", package ? ", or " : "install ",
                      mesa, vendor->rusticl);
    if (!package && !mesa)
        strbuf_printf(report, "%s has no package for it, see its vendor", d->title);
    if (vendor->note) strbuf_printf(report, ", %s", vendor->note);
    strbuf_append(report, "\n");
}

static void describe_card(strbuf *report, const char *address, unsigned vendor, const char *model,
                          const distribution *d, const device_record *records, size_t n)
{
    const card_vendor *row = NULL;
    for (size_t i = 0; i < n_card_vendors; i++)
        if (card_vendors[i].id == vendor) row = &card_vendors[i];
    strbuf_printf(report, "  %s: vendor 0x%04x (%s), model %s: ", address, vendor,
                  row ? row->name : "unknown", model);
    for (size_t i = 0; i < n; i++)
        if (is_of_card(&records[i], vendor, address)) {
            strbuf_printf(report, "device %d:%d '%s'\n", records[i].platform_index,
                          records[i].device_index, records[i].name);
            return;
        }
    strbuf_append(report, "NO OPENCL DEVICE; ");
    if (row)
        advise(report, row, d);
    else
        strbuf_append(report, "see its vendor for a driver\n");
}

void diagnose_gpus(strbuf *report, const char *pci_folder, const distribution *d,
                   const device_record *records, size_t n)
{
    file_entry *cards = NULL;
    size_t n_cards = 0, n_gpus = 0;
    strbuf_append(report, "Graphics cards and accelerators that the system shows\n");
    if (!file_exists(pci_folder) || file_list(pci_folder, &cards, &n_cards) != CLG_OK) {
        cards = NULL;
        n_cards = 0;
    }
    for (size_t i = 0; i < n_cards; i++) {
        char *folder;
        if (file_join(pci_folder, cards[i].name, &folder) != CLG_OK) continue;
        char *class_code = read_line(folder, "class"), *vendor = read_line(folder, "vendor"),
             *model = read_line(folder, "device");
        /* 0x03....: display controllers; 0x1200..: processing accelerators */
        if (class_code && vendor && model &&
            (strncmp(class_code, "0x03", 4) == 0 || strncmp(class_code, "0x1200", 6) == 0)) {
            describe_card(report, cards[i].name, (unsigned)strtoul(vendor, NULL, 16), model, d,
                          records, n);
            n_gpus++;
        }
        memory_free(class_code);
        memory_free(vendor);
        memory_free(model);
        memory_free(folder);
    }
    if (n_gpus == 0) strbuf_append(report, "  none\n");
    file_list_free(cards, n_cards);
}

/* ---- device nodes ---------------------------------------------------------------------------- */

static bool is_gpu_node(const char *name)
{
    return strncmp(name, "renderD", 7) == 0 || strncmp(name, "card", 4) == 0 ||
           strncmp(name, "nvidia", 6) == 0 || strcmp(name, "kfd") == 0;
}

static size_t describe_nodes(strbuf *report, const char *folder)
{
    file_entry *nodes = NULL;
    size_t n = 0, n_found = 0;
    if (!file_exists(folder) || file_list(folder, &nodes, &n) != CLG_OK) return 0;
    for (size_t i = 0; i < n; i++) {
        char *path;
        if (nodes[i].is_folder || !is_gpu_node(nodes[i].name) ||
            file_join(folder, nodes[i].name, &path) != CLG_OK)
            continue;
        const bool allowed = file_is_allowed(path, true, true);
        strbuf_printf(report, "  %s: %s\n", path,
                      allowed
                          ? "may be opened"
                          : "MAY NOT BE OPENED by this user; add the user to the groups 'render' "
                            "and 'video'");
        memory_free(path);
        n_found++;
    }
    file_list_free(nodes, n);
    return n_found;
}

void diagnose_nodes(strbuf *report, const char *dev_folder)
{
    char *dri;
    strbuf_append(report, "Device nodes\n");
    size_t n = describe_nodes(report, dev_folder);
    if (file_join(dev_folder, "dri", &dri) == CLG_OK) {
        n += describe_nodes(report, dri);
        memory_free(dri);
    }
    if (n == 0) strbuf_append(report, "  none: no GPU is passed to this system or container\n");
}

/* ---- PoCL's cache ---------------------------------------------------------------------------- */

/* Returns the folder where PoCL 3.1 caches programs; NULL when it is unknown. */
static char *pocl_cache_folder(void)
{
    char *path = NULL;
    const char *given = env_get("POCL_CACHE_DIR"), *xdg = env_get("XDG_CACHE_HOME"),
               *home = env_get("HOME");
    if (given) return memory_strdup(given);
    if ((xdg && file_join(xdg, "pocl/kcache", &path) == CLG_OK) ||
        (!xdg && home && file_join(home, ".cache/pocl/kcache", &path) == CLG_OK))
        return path;
    return NULL;
}

void diagnose_pocl_cache(strbuf *report)
{
    char *folder = pocl_cache_folder();
    strbuf_append(report, "PoCL's cache\n");
    if (!folder) {
        strbuf_append(report,
                      "  neither POCL_CACHE_DIR, XDG_CACHE_HOME nor HOME is set: PoCL uses a "
                      "temporary folder\n");
        return;
    }
    const char *state = "can be written";
    if (!file_exists(folder))
        state = "is not there; PoCL makes it when it starts: if PoCL is installed, it COULD NOT "
                "and shows no device. "
                "Set POCL_CACHE_DIR to a folder that can be written";
    else if (!file_is_allowed(folder, false, true))
        state =
            "CANNOT BE WRITTEN: PoCL then shows no device; set POCL_CACHE_DIR to a folder that can";
    strbuf_printf(report, "  '%s' %s\n", folder, state);
    memory_free(folder);
}

/* ---- packages, containers -------------------------------------------------------------------- */

const distribution *diagnose_distribution(const char *os_release_folder)
{
    char *text = read_small(os_release_folder, "os-release");
    const distribution *d = advice_distribution(text);
    memory_free(text);
    return d;
}

void diagnose_packages(strbuf *report, const distribution *d)
{
    const struct {
        const char *what, *package;
    } rows[] = {{"loader, libOpenCL", d->loader},
                {"any processor", d->cpu},
                {"NVIDIA", d->nvidia},
                {"AMD", d->amd},
                {"Intel", d->intel},
                {"Mesa, with RUSTICL_ENABLE", d->mesa}};
    strbuf_printf(report, "Packages of %s, by '%s'\n", d->title, d->install);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].package) strbuf_printf(report, "  %-25s  %s\n", rows[i].what, rows[i].package);
}

/* Returns whether a text contains a lower-case part, in any case. */
static bool contains(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && ((unsigned char)text[i] | 0x20) == (unsigned char)part[i]) i++;
        if (i == n) return true;
    }
    return false;
}

static bool is_within(const surrounding *row, const char *root)
{
    char *path;
    if (file_join(root, row->file, &path) != CLG_OK) return false;
    bool found = file_exists(path);
    memory_free(path);
    if (!found || !row->part) return found;
    char *text = read_small(root, row->file);
    found = text && contains(text, row->part);
    memory_free(text);
    return found;
}

void diagnose_surroundings(strbuf *report, const char *root)
{
    bool any = false;
    strbuf_append(report, "Containers and virtual machines\n");
    for (size_t i = 0; i < n_surroundings; i++)
        if (is_within(&surroundings[i], root)) {
            strbuf_printf(report, "  %s: %s\n", surroundings[i].name, surroundings[i].advice);
            any = true;
        }
    if (!any) strbuf_append(report, "  none found\n");
}

/* ---- the whole report ------------------------------------------------------------------------ */

void diagnose_system(strbuf *report, const device_record *records, size_t n)
{
    const char *folder = env_get("OCL_ICD_VENDORS");
    diagnose_drivers(report, folder ? folder : "/etc/OpenCL/vendors");
    const distribution *d = diagnose_distribution("/etc");
    diagnose_gpus(report, "/sys/bus/pci/devices", d, records, n);
    diagnose_nodes(report, "/dev");
    diagnose_surroundings(report, "/");
    diagnose_packages(report, d);
    diagnose_pocl_cache(report);
}
