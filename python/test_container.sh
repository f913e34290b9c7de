#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds examples/serving/Containerfile in a folder, without a container engine, and runs the server
# there as one runs it: a user without name, capabilities and HOME, a root that is read only, a
# quota of one CPU and 512 MiB of memory. Asks it with curl.
#
#   python/test_container.sh FOLDER [WHEEL]
#
# FOLDER keeps the system. WHEEL is a manylinux wheel of this processor, by default that of
# python/dist. Needs root, debootstrap, curl, PyPI and some minutes. Ends with `N passed, N failed,
# N skipped`; the limits are skipped where control groups cannot be made.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || {
  echo "usage: python/test_container.sh FOLDER [WHEEL]" >&2
  exit 2
}
mkdir -p -- "$1" || exit 1
folder=$(cd -- "$1" && pwd)
wheel=$(realpath -- "${2:-$(find "$root/python/dist" -name "clgraph-*manylinux*_$(uname -m).whl" | head -n 1)}")
cd -- "$root" || exit 1
# shellcheck source=/dev/null
. tools/chroot.bash
# shellcheck source=/dev/null
. tools/checks.bash
chroot_check && [ -f "$wheel" ] || exit 77
place=$folder/system
log=$folder/server.log
group=clgraph-container-$$
cpu="" memory="" # folders of the control groups
server=
finish() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null
  wait
  chroot_unmount "$place"
  local path
  for path in $cpu $memory; do rmdir "$path" 2>/dev/null; done
}
trap finish EXIT

variables=() user=0:0 entry=() arguments=()
instruction() { # WORD REST
  local from=("$@") name pip=()
  case $1 in
    FROM)
      name=${2#debian:}
      [ -e "$place.complete" ] || chroot_make "${name%-slim}" "$place" || return
      touch "$place.complete"
      chroot_mount "$place"
      ;;
    RUN)
      mapfile -t pip < <(chroot_pip "$place")
      chroot --userspec="$user" "$place" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "${pip[@]}" "${variables[@]}" sh -c "$2"
      ;;
    ENV | ARG)
      read -ra from <<<"$2"
      variables+=("${from[@]}")
      ;;
    COPY)
      read -ra from < <(env -i "${variables[@]}" sh -c "echo \"$2\"")
      if [ "${from[0]}" = 'python/dist/clgraph-*.whl' ]; then from[0]=$wheel; fi
      name=$place${from[1]}
      case $name in
        */) mkdir -p "$name" ;;
        *) mkdir -p "${name%/*}" ;;
      esac
      cp "${from[0]}" "$name"
      ;;
    USER) user=$2 ;;
    ENTRYPOINT) mapfile -t entry < <(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$2") ;;
    CMD) mapfile -t arguments < <(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$2") ;;
    EXPOSE | STOPSIGNAL) ;;
    *)
      echo "test_container.sh does not know $1"
      return 1
      ;;
  esac
}

build() {
  local word rest
  while read -r word rest; do
    echo "$word $rest"
    instruction "$word" "$rest" </dev/null || return
  done < <(sed -e '/^#/d' -e '/^$/d' examples/serving/Containerfile | sed -e ':a' -e '/\\$/N; s/\\\n//; ta')
}
cache_is_filled() {
  [ -n "$(find "$place/var/cache/clgraph" -type f -uid "${user%:*}")" ]
}

limits() { # of version 1 or 2
  local top=/sys/fs/cgroup
  if mkdir "$top/cpu/$group" 2>/dev/null && mkdir "$top/memory/$group"; then
    cpu=$top/cpu/$group memory=$top/memory/$group
    echo 100000 >"$cpu/cpu.cfs_quota_us"
    echo $((512 << 20)) >"$memory/memory.limit_in_bytes"
  elif [ -e "$top/cgroup.controllers" ] && mkdir "$top/$group" 2>/dev/null; then
    cpu=$top/$group
    echo "100000 100000" >"$cpu/cpu.max" && echo $((512 << 20)) >"$cpu/memory.max"
  else
    echo "no control groups here"
    return 77
  fi
}
start() { # [ASSIGNMENT...]
  : >"$log"
  touch "$folder/started"
  rm -f "$folder/helped"
  # shellcheck disable=SC2016
  unshare --mount bash -c '
    for group in $1; do echo $$ >"$group/cgroup.procs" || exit; done
    mount --make-rprivate / && mount --rbind /sys/fs/cgroup "$2/sys/fs/cgroup" &&
      mount --rbind "$2" "$2" && mount -o remount,bind,ro "$2" &&
      mount -t tmpfs -o mode=1777 tmpfs "$2/tmp" || exit
    exec chroot "$2" setpriv --reuid="${3%:*}" --regid="${3#*:}" --clear-groups --no-new-privs \
      --inh-caps=-all --bounding-set=-all env -i PATH=/usr/bin:/bin "${@:4}"' \
    - "$cpu $memory" "$place" "$user" "${variables[@]}" "$@" "${entry[@]}" "${arguments[@]}" \
    --host=127.0.0.1 --port=0 --grpc-port=0 2>"$log" &
  server=$!
  while ! grep -q 'all models are ready' "$log"; do
    kill -0 "$server" 2>/dev/null || {
      cat "$log"
      return 1
    }
    # Kernels are compiled in a separate process (decision 36).
    if pgrep -P "$server" clgraph-compile >/dev/null; then touch "$folder/helped"; fi
    sleep 0.05
  done
  port=$(grep -oP '"port": \K[0-9]+' "$log")
}
stop() {
  kill "$server"
  wait "$server"
  local code=$?
  server=
  [ "$code" -eq 0 ] || cat "$log"
  return "$code"
}
status() { # EXPECTED CURL-ARGUMENT...
  local found
  found=$(curl -s -o "$folder/answer" -w '%{http_code}' "http://127.0.0.1:$port${2}" "${@:3}")
  echo "$found $(head -c 300 "$folder/answer")"
  [ "$found" = "$1" ]
}
answers() {
  local zeros
  zeros=$(printf '0,%.0s' {1..64})
  status 200 /v2/health/ready && status 404 /v2/models/none &&
    status 400 /v2/models/model/infer -d '{"inputs": [' &&
    status 200 /v2/models/model/infer -d "{\"inputs\": [{\"name\": \"image\", \"datatype\": \"FP32\",
      \"shape\": [1, 1, 8, 8], \"data\": [${zeros%,}]}]}" &&
    python3 -c 'import json, sys; y = json.load(open(sys.argv[1]))["outputs"][0]["data"]
assert len(y) == 10 and abs(sum(y) - 1) < 1e-5, y' "$folder/answer"
}
confined() {
  local of=/proc/$server/status
  grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Threads|VmRSS)' "$of"
  grep -qP "^Uid:\t${user%:*}\t" "$of" && grep -qP '^CapEff:\t0+$' "$of" &&
    ! tr '\0' '\n' <"/proc/$server/environ" | grep -E '^HOME='
}
nothing_written() {
  find "$place" -xdev \( -path "$place/proc" -o -path "$place/sys" -o -path "$place/dev" \) -prune -o \
    -type f -newer "$folder/started" -print | grep . && return 1
  return 0
}
within_limits() {
  [ -n "$cpu" ] || return 77
  grep -o '"message": "the container has a quota of CPUs".*' "$log" | grep '"threads": 1' || return
  if [ -n "$memory" ]; then
    cat "$memory/memory.max_usage_in_bytes"
    grep -x 'oom_kill 0' "$memory/memory.oom_control"
  else
    grep -x 'oom_kill 0' "$cpu/memory.events"
  fi
}

check "the image is built" build || checks_finish
check "kernels are in its cache" cache_is_filled
check "limits of CPU and memory" limits
if check "the server is ready" start; then
  check "it answers curl" answers
  check "it is confined" confined
  check "it keeps the limits" within_limits
  check "it ends with 0" stop
  check "it wrote nothing but to /tmp" nothing_written
fi
if check "ready with an empty cache: kernels are compiled" start CLG_CACHE_DIR=/tmp/cache; then
  check "they are compiled by the helper" test -e "$folder/helped"
  check "it answers curl, compiled" answers
  check "it keeps the limits while it compiles" within_limits
  check "it ends with 0, compiled" stop
fi
checks_finish
