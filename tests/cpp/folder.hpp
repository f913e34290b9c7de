/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder for files of a test.
 */
#ifndef TESTS_CPP_FOLDER_HPP
#define TESTS_CPP_FOLDER_HPP

#include <filesystem>
#include <string>

#include <unistd.h>

/* A folder that is removed at the end. */
struct scratch_folder {
    std::filesystem::path folder;
    explicit scratch_folder(const char *name)
        : folder(std::filesystem::temp_directory_path() /
                 ("clgraph-cpp-" + std::to_string(getpid()) + "-" + name))
    {
        std::filesystem::create_directories(folder);
    }
    ~scratch_folder() { std::filesystem::remove_all(folder); }
    scratch_folder(const scratch_folder &) = delete;
    scratch_folder &operator=(const scratch_folder &) = delete;
    std::filesystem::path operator/(const char *name) const { return folder / name; }
};

#endif
