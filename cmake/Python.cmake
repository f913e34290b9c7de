# SPDX-License-Identifier: Apache-2.0
#
# What the wheel of pyproject.toml contains besides Python files: the library, the compile
# helper, cltool and, where it is built, the execution provider for ONNX Runtime, all in one folder.
# scikit-build-core sets SKBUILD and installs the component `python`.

# A wheel has no symbolic links, and its library must not be taken for the system's (decision 60).
set_property(TARGET clgraph PROPERTY VERSION)
set_property(TARGET clgraph PROPERTY SOVERSION)

foreach(target IN ITEMS clgraph clgraph-compile cltool clgraph_ort)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${target} COMPONENT python EXCLUDE_FROM_ALL
      LIBRARY DESTINATION . RUNTIME DESTINATION .)
  endif()
endforeach()

# Licences of what is linked statically, where the wheel is built so (python/build_wheel.sh).
if(CLG_PYTHON_LICENSES)
  install(DIRECTORY "${CLG_PYTHON_LICENSES}/" DESTINATION "${SKBUILD_METADATA_DIR}/licenses"
    COMPONENT python EXCLUDE_FROM_ALL)
endif()
