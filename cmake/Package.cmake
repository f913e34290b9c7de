# SPDX-License-Identifier: Apache-2.0
#
# Archives for other systems than Debian, made by cpack: .tar.gz and .rpm on Linux, .zip on Windows.
# tools/archives.sh builds and tests them. Debian's packages are those of debian/ (decision 72).

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
  "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documents EXCLUDE_FROM_ALL)
set(CLG_LICENSES "" CACHE PATH "Folder with the licences of what is linked statically")
if(CLG_LICENSES)
  install(DIRECTORY "${CLG_LICENSES}/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/licenses"
    COMPONENT documents EXCLUDE_FROM_ALL)
endif()

set(CPACK_PACKAGE_NAME clgraph)
set(CPACK_PACKAGE_VENDOR "clgraph maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_RESOURCE_FILE_README "${PROJECT_SOURCE_DIR}/README.md")
set(CPACK_PACKAGE_DESCRIPTION_FILE "${PROJECT_SOURCE_DIR}/cmake/package_description.txt")
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" package_system)
set(CPACK_PACKAGE_FILE_NAME "clgraph-${PROJECT_VERSION}-${package_system}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/package_folders.cmake")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL Unspecified documents manual)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/package_options.cmake")

if(WIN32)
  set(CPACK_GENERATOR ZIP)
else()
  set(CPACK_GENERATOR TGZ RPM)
endif()
# One package, with the headers: the library, the tools and the Python module are taken apart where
# a distribution does that.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
if(CLG_LICENSES)
  string(APPEND CPACK_RPM_PACKAGE_LICENSE " AND BSD-2-Clause AND BSD-3-Clause AND MIT AND Zlib")
endif()
set(CPACK_RPM_PACKAGE_GROUP "System Environment/Libraries")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELOCATABLE ON)
# What is opened at run time, which is not in the files' own list of needs; the .pc file needs no
# pkg-config where nothing is compiled. SOURCE_DATE_EPOCH, and no name of the machine, make the same
# file of the same commit.
set(CPACK_RPM_SPEC_MORE_DEFINE "Recommends: ocl-icd
Recommends: pocl
Recommends: clblast
%global __requires_exclude ^/usr/bin/pkg-config$
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1")
include(CPack)
