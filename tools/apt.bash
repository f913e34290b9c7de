# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts that take packages from another Debian suite or architecture than the
# machine's: apt with lists and sources of its own, so that the machine's are not touched.
# shellcheck shell=bash

# Prints the first Debian mirror of this machine's apt sources, one-line or deb822 format; fails
# without one.
apt_mirror() {
  local mirror
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -E '^(deb |URIs:)' | grep -oE 'https?://[^ ]+' | grep -E '/debian/?$' | head -n 1 || true)
  [ -n "$mirror" ] && echo "$mirror"
}

# Sets the array `apt` to apt-get with the packages of a suite, lists in FOLDER, and updates those.
# KIND is deb or deb-src; ARCHITECTURE the machine's when it is not given.
apt_private() { # FOLDER KIND SUITE [ARCHITECTURE]
  local folder=$1 mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
  if ! mirror=$(apt_mirror) || [ ! -f "$key" ]; then
    echo "${0##*/}: no Debian mirror in this machine's apt sources, or no $key" >&2
    return 1
  fi
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  echo "$2 [signed-by=$key] $mirror $3 main" >"$folder/sources.list"
  apt=(apt-get -q -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder" -o "APT::Sandbox::User=$(id -un)"
    -o Acquire::Languages=none)
  if [ -n "${4:-}" ]; then
    touch "$folder/status" # what this machine has installed says nothing about the other
    apt+=(-o "APT::Architecture=$4" -o "APT::Architectures=$4" -o "Dir::State::status=$folder/status")
  fi
  "${apt[@]}" update
}
