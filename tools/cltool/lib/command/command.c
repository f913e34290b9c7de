/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that help and man pages share.
 */
#include "command.h"

#define INPUTS ((unsigned)OPTIONS_INPUT | OPTIONS_SHAPE)
#define DEVICE ((unsigned)OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL)
#define EVERYWHERE ((unsigned)OPTIONS_ALL)

const option_section option_sections[N_OPTION_SECTIONS] = {
    {"options", ~(INPUTS | DEVICE | EVERYWHERE)},
    {"inputs", INPUTS},
    {"device", DEVICE},
    {"everywhere", EVERYWHERE}};

const exit_word exit_words[N_EXIT_WORDS] = {
    {CODE_DONE, "done"},
    {CODE_WORK, "a comparison did not hold, or the work failed in another way"},
    {CODE_USAGE, "wrong usage, or an unsuitable dtype, shape or batch"},
    {CODE_NO_DEVICE, "no device matches, or there is no OpenCL"},
    {CODE_FILE, "a file cannot be read, or a model is not supported"},
    {CODE_DEVICE, "the device failed: out of memory, lost, or a kernel does not build"},
    {CODE_INTERRUPTED, "interrupted"}};
