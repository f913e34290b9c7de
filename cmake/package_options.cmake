# SPDX-License-Identifier: Apache-2.0
#
# Read by cpack for each kind of archive: a .tar.gz or .zip has one folder at its top.
if(CPACK_GENERATOR MATCHES "^(TGZ|ZIP)$")
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
