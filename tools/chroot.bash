# SPDX-License-Identifier: Apache-2.0
#
# Sourced by scripts that work in fresh systems: Debian and Ubuntu suites in folders, made by
# debootstrap. Needs root.
# shellcheck shell=bash

# shellcheck source=/dev/null
. "$(dirname -- "${BASH_SOURCE[0]}")/apt.bash"

# The suite's name as debootstrap knows it; fails for one that is not supported.
chroot_suite() { # NAME
  case $1 in
    bookworm | trixie | forky | noble) echo "$1" ;;
    testing) echo forky ;;
    *) return 1 ;;
  esac
}

chroot_check() { # fails where chroots cannot be made
  [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null && return
  echo "${0##*/}: needs root and the package debootstrap" >&2
  return 1
}

# Makes a minimal system in a new or empty folder, with this machine's proxy and name servers. The
# output of debootstrap is in FOLDER.log. Packages come from where this machine's apt takes them;
# CLG_MIRROR names another mirror. Another ARCHITECTURE (arm64) needs qemu-user-static.
chroot_make() { # SUITE FOLDER [ARCHITECTURE]
  local suite=$1 folder=$2 architecture=${3:-$(dpkg --print-architecture)} mirror=${CLG_MIRROR:-} proxy='' components=main
  local scripts=/usr/share/debootstrap/scripts arguments
  [ -n "$mirror" ] || [ "$suite" != noble ] || mirror=http://archive.ubuntu.com/ubuntu
  [ -n "$mirror" ] || mirror=$(apt_mirror || true)
  if [ -z "$mirror" ]; then
    echo "${0##*/}: no Debian mirror in this machine's apt sources; CLG_MIRROR names one" >&2
    return 1
  fi
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || export http_proxy=$proxy https_proxy=$proxy
  # debootstrap may be older than the suite: all of Debian's are bootstrapped alike, and all of
  # Ubuntu's.
  arguments=("$suite" "$folder" "$mirror")
  if [ "$suite" = noble ]; then
    components=main,universe # nearly all of what is needed is in universe
    [ -e "$scripts/noble" ] || arguments+=("$scripts/gutsy")
  else
    [ -e "$scripts/$suite" ] || arguments+=("$scripts/sid")
  fi
  echo "$suite into $folder"
  if ! debootstrap --variant=minbase --arch="$architecture" --components="$components" "${arguments[@]}" \
    >"$folder.log" 2>&1; then
    tail -n 20 "$folder.log" >&2
    return 1
  fi
  [ -z "$proxy" ] || echo "Acquire::http::Proxy \"$proxy\";" >"$folder/etc/apt/apt.conf.d/90proxy"
  cp /etc/resolv.conf "$folder/etc/resolv.conf"
}

# Mounts what programs need: /proc, /sys, /dev/shm, terminals. To be undone by chroot_unmount, also by
# a trap.
chroot_mount() { # FOLDER
  mkdir -p "$1/dev/shm" "$1/dev/pts"
  mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
  mountpoint -q "$1/sys" || mount -t sysfs -o ro sysfs "$1/sys"
  mountpoint -q "$1/dev/shm" || mount -t tmpfs tmpfs "$1/dev/shm"
  mountpoint -q "$1/dev/pts" || mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
}

chroot_unmount() { # FOLDER
  local point
  for point in dev/pts dev/shm sys proc; do
    if mountpoint -q "$1/$point"; then umount "$1/$point"; fi
  done
}

# Runs a command there, without this machine's environment variables.
chroot_run() { # FOLDER [ASSIGNMENT...] COMMAND...
  local folder=$1
  shift
  chroot "$folder" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
}

# Prints this machine's settings of pip for chroot_run, one a line, and copies the certificates that
# pip trusts here.
chroot_pip() { # FOLDER
  env | grep -E '^(PIP_|https?_proxy)' | grep -v '^PIP_CERT='
  local trusted=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
  [ ! -f "$trusted" ] || {
    cp "$trusted" "$1/opt/pip.crt" && echo PIP_CERT=/opt/pip.crt
  }
}
