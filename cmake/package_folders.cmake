# SPDX-License-Identifier: Apache-2.0
#
# Runs in CPack before it packs: all users can read the folders, whatever the umask of who packs.
# CMake makes them with that umask.
file(CHMOD_RECURSE "${CPACK_TEMPORARY_INSTALL_DIRECTORY}"
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
