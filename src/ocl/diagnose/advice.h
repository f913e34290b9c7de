/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user may have to install or pass on for an OpenCL device to show, as tables: packages by
 * distribution, containers and virtual machines, platforms that hide their devices.
 */
#ifndef CLG_OCL_ADVICE_H
#define CLG_OCL_ADVICE_H

#include <stddef.h>
#include <stdint.h>

/* Packages of a distribution. NULL: it has none. */
typedef struct distribution {
    const char *title; /* "Debian and Ubuntu" */
    const char *ids;   /* values of ID and ID_LIKE in os-release, between blanks: " debian " */
    const char *install;
    const char *loader; /* libOpenCL */
    const char *cpu;    /* any processor */
    const char *nvidia, *amd, *intel;
    const char *mesa; /* GPUs that Mesa has a driver for */
} distribution;

extern const distribution distributions[];
extern const size_t n_distributions;

/* Returns the row of an os-release file's text, by its ID, else by its ID_LIKE; the first row where
 * none fits or text is NULL. */
const distribution *advice_distribution(const char *os_release);

/* A vendor of graphics cards. */
typedef struct card_vendor {
    uint32_t id; /* of PCI */
    const char *name;
    size_t package;      /* offset of the vendor's package in a distribution */
    const char *rusticl; /* the name of Mesa's driver in RUSTICL_ENABLE; NULL: none */
    const char *note;    /* more to do, or NULL */
    const char *driver;  /* a library that may be here without an .icd file, or NULL */
} card_vendor;

extern const card_vendor card_vendors[];
extern const size_t n_card_vendors;
/* Returns a vendor's package in a distribution; NULL where there is none. */
const char *advice_package(const card_vendor *vendor, const distribution *d);

/* Something that stands between the system and the GPU. */
typedef struct surrounding {
    const char *name; /* "WSL 2" */
    const char *file; /* below the root folder: it exists there, */
    const char *part; /* and contains this, in any case; NULL: anything */
    const char *advice;
} surrounding;

extern const surrounding surroundings[];
extern const size_t n_surroundings;

typedef struct platform_advice {
    const char *part; /* of the platform's name; "" fits all, in the last row */
    const char *advice;
} platform_advice;

/* Returns why a platform of this name may show no device, and what to do. */
const char *advice_platform(const char *platform_name);

#endif
