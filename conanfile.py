# SPDX-License-Identifier: Apache-2.0
"""The recipe for Conan 2: `conan create .` builds library and cltool with the system's libraries.

What is needed is what `tools/packages.sh list build` prints; Conan installs it on Debian and Ubuntu
where `-c tools.system.package_manager:mode=install` lets it. examples/installed is the test.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt


class Clgraph(ConanFile):
    name = "clgraph"
    package_type = "library"
    license = "Apache-2.0"
    description = "Neural-network prediction on any OpenCL device"
    topics = ("onnx", "opencl", "inference", "gpu")
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tools": [True, False]}
    default_options = {"shared": True, "tools": True}
    exports_sources = (
        "CMakeLists.txt CHANGELOG.md LICENSE README.md cl/* cmake/* include/* onnxruntime/* src/* "
        "tools/cltool/* tools/gendoc/*"
    ).split()
    generators = "CMakeToolchain"
    test_package_folder = "examples/installed"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "clgraph", "base.h"))
        parts = re.findall(r"#define CLG_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", header)
        self.version = ".".join(parts)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")  # the sources are C
        self.settings.rm_safe("compiler.libcxx")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(
                "this recipe takes libraries from Debian's packages; docs/windows.md is for Windows"
            )

    def layout(self):
        cmake_layout(self)

    def system_requirements(self):
        packages = "libclblast-dev libjansson-dev libjpeg-dev libopenjp2-7-dev libpcre2-dev "
        packages += "libpng-dev libstb-dev libtiff-dev libutf8proc-dev libwebp-dev libxxhash-dev "
        packages += "opencl-headers pkg-config zlib1g-dev"
        Apt(self).install(packages.split(), check=True)

    def build(self):
        cmake = CMake(self)
        cmake.configure(
            variables={
                "CLG_BUILD_TOOLS": bool(self.options.tools),
                "CLG_BUILD_EXAMPLES": False,
                "CLG_BUILD_ORT": False,
            }
        )
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["clgraph"]
        self.cpp_info.set_property("cmake_file_name", "clgraph")
        self.cpp_info.set_property("cmake_target_name", "clgraph::clgraph")
        self.cpp_info.set_property("pkg_config_name", "clgraph")
        if not self.options.shared:
            self.cpp_info.system_libs = "pcre2-8 jansson utf8proc z pthread dl m".split()
