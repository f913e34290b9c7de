#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool predict by several processes that mpirun, a process manager or Slurm starts: the variables
# that they set, the bytes of one process, a rank that dies, --resume. With Debian's openmpi-bin,
# mpirun itself too.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
unset "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
digits digits.onnx heldout.npy images
"$CLTOOL" cache warm digits.onnx -q >/dev/null
any() { sed -E -e 's/ in [0-9.e-]+ s, [0-9.]+ a second/ in N s, N a second/' -e 's/idle [0-9.]+ %/idle N %/' \
  -e 's/\.[0-9a-f]{16}\./.KEY./' -e 's/after [1-3] rows/after N rows/'; }
whole=(predict digits.onnx -i heldout.npy --batch 32)
"$CLTOOL" "${whole[@]}" -o one.npy -q >/dev/null || echo "no reference"

job=first
ompi() { env PMIX_NAMESPACE=$job OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_LOCAL_RANK="$1" "${@:2}"; }
pmi() { env PMI_SIZE=4 PMI_RANK="$1" MPI_LOCALRANKID="$1" "${@:2}"; }
slurm() { env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NTASKS=4 SLURM_PROCID="$1" SLURM_LOCALID="$1" "${@:2}"; }
together() { # LAUNCHER ARGS...: four ranks at once; prints what rank 0 prints, and all exit codes
  local rank pids=()
  for rank in 0 1 2 3; do
    "$1" $rank "$CLTOOL" "${@:2}" >"rank$rank.out" 2>"rank$rank.err" &
    pids+=($!)
  done
  for rank in 0 1 2 3; do
    wait "${pids[$rank]}"
    echo "rank $rank: exit $?"
  done
  normal <rank0.out | any
}

echo "== the bytes of one process"
for launcher in ompi pmi slurm; do
  together $launcher "${whole[@]}" -o $launcher.npy -q
  cmp one.npy $launcher.npy && echo "as one process: $launcher"
done
cat rank[123].out
ls -- *.part* 2>/dev/null
env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "$CLTOOL" "${whole[@]}" -o alone.npy -q >/dev/null
ompi 2 "$CLTOOL" "${whole[@]}" -o none.npy -q --shard none >/dev/null
SLURM_PROCID=0 SLURM_NTASKS=4 "$CLTOOL" "${whole[@]}" -o script.npy -q >/dev/null
for file in alone none script; do cmp one.npy $file.npy && echo "all rows: $file"; done
npy '<f4' '(2, 1, 8, 8)' </dev/null >two.npy
truncate -s $((128 + 2 * 256)) two.npy
together ompi predict digits.onnx -i two.npy --batch 1 -o two-out.npy -q
"$CLTOOL" predict digits.onnx -i two.npy --batch 1 -o two-one.npy -q >/dev/null
cmp two-one.npy two-out.npy && echo "two rows by four ranks"
npy '<f4' '(0, 1, 8, 8)' </dev/null >empty.npy
together ompi predict digits.onnx -i empty.npy --batch 1 -o empty-out.npy -q
"$CLTOOL" predict digits.onnx -i empty.npy --batch 1 -o empty-one.npy -q >/dev/null
cmp empty-one.npy empty-out.npy && echo "no rows by four ranks"

echo "== one device a rank"
for rank in 0 1 2; do
  POCL_DEVICES="pthread pthread" ompi $rank "$CLTOOL" "${whole[@]}" -o devices.npy -d pocl#0,pocl#1 2>&1 >/dev/null |
    sed -nE 's/^cltool: device [0-9]+:([0-9]+), .*/\1/p' | tr '\n' ' '
done
echo

echo "== variables that make no sense"
wrong() { # VARIABLE=VALUE...
  echo "$*"
  env "$@" "$CLTOOL" "${whole[@]}" -o wrong.npy -q 2>&1
  echo "[exit $?]"
}
wrong OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4
wrong OMPI_COMM_WORLD_RANK=one OMPI_COMM_WORLD_SIZE=4
wrong OMPI_COMM_WORLD_RANK=1
wrong PMI_RANK=0 PMI_SIZE=0
wrong PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=-1
wrong SLURM_PROCID=-1 SLURM_NTASKS=4 SLURM_STEP_ID=0
ls wrong.npy* 2>/dev/null

echo "== job arrays: a shard each"
array() { env SLURM_ARRAY_TASK_ID="$1" SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT="$2" "${@:3}"; }
for id in 3 5 7; do
  array $id 3 "$CLTOOL" "${whole[@]}" -o "array$id.npy" --shard array -q >/dev/null
  "$CLTOOL" "${whole[@]}" -o "shard$id.npy" --shard $(((id - 1) / 2))/3 -q >/dev/null
  cmp array$id.npy shard$id.npy && echo "shard $(((id - 1) / 2)) of 3"
done
array 4 3 "$CLTOOL" "${whole[@]}" -o wrong.npy --shard array -q 2>&1
array 5 2 "$CLTOOL" "${whole[@]}" -o wrong.npy --shard array -q 2>&1
"$CLTOOL" "${whole[@]}" -o wrong.npy --shard array -q 2>&1

echo "== a rank that is killed"
# Rank 1 waits for its last image, a pipe that nobody writes, so that the kill finds it in the middle.
mkdir some slow
i=0
for image in images/*.png; do
  [ $((i += 1)) -le 16 ] && cp "$image" "some/$(printf %02d $i).png"
done
slow() { # makes row 7 of the images a pipe
  cp some/*.png slow
  rm slow/08.png && mkfifo slow/08.png
  touch -d 2020-01-01 slow
}
quick() {
  rm slow/08.png && cp some/08.png slow
  touch -d 2020-01-01 slow # the same data, for --resume
}
images=(predict digits.onnx -i image=slow --batch 1)
"$CLTOOL" predict digits.onnx -i image=some --batch 1 -o some.npy -q >/dev/null
wait_for_rows() { # RECORD: until rows are written
  for _ in $(seq 1200); do
    # shellcheck disable=SC2086 # a pattern
    grep -q '"done": [1-9]' $1 2>/dev/null && break
    sleep 0.05
  done
}
others() { # ARGS...: all ranks but 1, one after another
  local rank
  for rank in 0 2 3; do
    ompi $rank "$CLTOOL" "${images[@]}" -o killed.npy -q "$@" >/dev/null 2>&1
    echo "rank $rank: exit $?"
  done
}
slow
ompi 1 "$CLTOOL" "${images[@]}" -o killed.npy -q 2>/dev/null &
wait_for_rows 'killed.npy.*.part.1'
kill -KILL $! # env has become cltool
wait $! 2>/dev/null
echo "rank 1: exit $?"
others
printf '%s\n' killed.npy* | any

echo "== --resume, in another job"
quick
job=next
others --resume
printf '%s\n' killed.npy* | any
ompi 1 "$CLTOOL" "${images[@]}" -o killed.npy --resume 2>&1 | grep -v '^cltool: \(device\|input\|image\)' | any
ls killed.npy*
cmp some.npy killed.npy && echo "as one process"
ompi 1 "$CLTOOL" "${images[@]}" -o killed.npy --resume 2>&1 | grep 'there'

echo "== --resume of one process"
slow
"$CLTOOL" "${images[@]}" -o resumed.npy --resume -q 2>/dev/null &
wait_for_rows 'resumed.npy.*.part.0'
kill -KILL $!
wait $! 2>/dev/null
echo "exit $?"
printf '%s\n' resumed.npy* | any
quick
"$CLTOOL" "${images[@]}" -o resumed.npy --resume 2>&1 | grep -o 'going on after'
cmp some.npy resumed.npy && echo "as one process"
show "${images[@]}" -o resumed.npy -q
ls resumed.npy*

echo "== other data, other options: nothing to resume"
slow
"$CLTOOL" "${images[@]}" -o other.npy --resume -q 2>/dev/null &
wait_for_rows 'other.npy.*.part.0'
kill -KILL $!
wait $! 2>/dev/null
quick
"$CLTOOL" predict digits.onnx -i image=slow --batch 2 -o other.npy --resume 2>&1 | grep 'going on'
touch -d 2021-01-01 slow
"$CLTOOL" "${images[@]}" -o other.npy --resume --force 2>&1 | grep 'going on'
cmp some.npy other.npy && echo "as from the start"

echo "== mpirun"
mpi=(mpirun -n 4 --oversubscribe)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  "${mpi[@]}" "$CLTOOL" "${whole[@]}" -o mpi.npy -q >mpi.out 2>mpi.err || cat mpi.err
  [ "$(wc -l <mpi.out)" -eq 2 ] || cat mpi.out
  slow
  # shellcheck disable=SC2016
  "${mpi[@]}" bash -c 'echo $$ >"pid$OMPI_COMM_WORLD_RANK"; exec "$@"' - "$CLTOOL" "${images[@]}" -o died.npy -q \
    >mpi.out 2>mpi.err &
  wait_for_rows 'died.npy.*.part.1'
  kill -KILL "$(cat pid1)"
  wait $!
  echo "exit $?"
  grep -o 'signal 9' mpi.err | head -n 1
  quick
  "${mpi[@]}" "$CLTOOL" "${images[@]}" -o died.npy -q --resume >mpi.out 2>mpi.err || cat mpi.err
else # the same lines
  cp one.npy mpi.npy
  cp some.npy died.npy
  printf '%s\n' 'exit 137' 'signal 9'
fi
cmp one.npy mpi.npy && echo "as one process"
cmp some.npy died.npy && echo "resumed"
ls died.npy*
finish
