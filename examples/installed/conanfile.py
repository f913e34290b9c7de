# SPDX-License-Identifier: Apache-2.0
"""The same with Conan: what a project that requires clgraph has, and the recipe's own test."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Predict(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain", "VirtualRunEnv"

    def requirements(self):
        # A project of its own says: self.requires("clgraph/0.1.0")
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            program = os.path.join(self.cpp.build.bindir, "predict")
            model = os.path.join(self.source_folder, "..", "digits", "digits.onnx")
            self.run(f'"{program}" "{model}"', env="conanrun")
