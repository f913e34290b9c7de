#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool predict under the mpirun of Open MPI: four ranks write the bytes of one process; a rank that
# is killed ends the job with a message, and no file; --resume completes it; a row that fails does not
# end the job.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
if ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  echo "skipped: there is no mpirun of Open MPI (tools/packages.sh has it in the group test)" >&3
  exit 77
fi
library=system_faults.so
LD_LIBRARY_PATH=$(libraries)
export LD_LIBRARY_PATH
if grep -qE '^CLG_SANITIZE:[A-Z]+=(ON|thread)$' "$CLG_BUILD_DIR/CMakeCache.txt"; then
  echo "skipped: the sanitizer's library must be loaded first" >&3
  exit 77
fi
unset "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
# Open MPI's own folder for sockets, whose paths must be short.
TMPDIR=$(mktemp -d /tmp/mpirun.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
mpi=(timeout -k 10 120 mpirun -n 4 --oversubscribe)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)
digits digits.onnx heldout.npy images
"$CLTOOL" cache warm digits.onnx -q >/dev/null
any() { predict_figures | sed -E 's/\.[0-9a-f]{16}\./.KEY./g'; }
list() { # FILE...: the names of those that exist
  local file
  for file in "$@"; do [ ! -e "$file" ] || printf '%s\n' "$file" | any; done
}
args=(predict digits.onnx -i heldout.npy --batch 16 -q)
"$CLTOOL" "${args[@]}" -o one.npy >/dev/null

echo "== four ranks"
"${mpi[@]}" "$CLTOOL" "${args[@]}" -o four.npy 2>err | any
echo "exit ${PIPESTATUS[0]}"
cmp one.npy four.npy && echo "as one process"
list four.npy*

echo "== a rank is killed after its first batch"
export library
# shellcheck disable=SC2016 # for the ranks' shells
"${mpi[@]}" bash -c 'if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then
    export CLG_SYSTEM_FAULTS_DEATH=kill CLG_SYSTEM_FAULTS_UNDER=$PWD/killed.npy CLG_SYSTEM_FAULTS=12 LD_PRELOAD=$library
  fi
  exec "$@"' - "$CLTOOL" "${args[@]}" -o "$PWD/killed.npy" >out 2>err
echo "exit $?"
grep -o 'rank 2 .* exited on signal 9' err | sed -E 's/with PID .* on node [^ ]+ //'
list killed.npy
list killed.npy.*.part
"${mpi[@]}" "$CLTOOL" "${args[@]}" -o "$PWD/killed.npy" --resume >out 2>err
echo "exit $?"
cmp one.npy killed.npy && echo "as one process"
list killed.npy*

echo "== a row that fails"
mkdir some && cp images/0*.png some && head -c 60 images/00.png >some/02.png
"$CLTOOL" predict digits.onnx -i image=some --batch 1 -o failed-one.npy -q >/dev/null 2>&1
"${mpi[@]}" "$CLTOOL" predict digits.onnx -i image=some --batch 1 -o failed.npy -q >out 2>err
echo "exit $?"
grep -o '^cltool: .*' err | sort -u
cmp failed-one.npy failed.npy && echo "as one process"
list failed.npy*
finish
