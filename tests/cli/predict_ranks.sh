#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool predict by several processes that mpirun, a process manager or Slurm starts: the variables
# that they set, the bytes of one process, rows that fail, --resume and what it refuses. A rank that
# ends early is in predict_killed.sh, mpirun itself in predict_mpirun.sh.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
unset "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}" "${!SLURM_@}"
digits digits.onnx heldout.npy images
"$CLTOOL" cache warm digits.onnx -q >/dev/null
any() {
  predict_figures | sed -E -e 's/\.[0-9a-f]{16}\./.KEY./g' -e 's/[0-9]+ bytes, time [0-9]+/N bytes, time T/g' -e 's/, [0-9a-f]{16}/, HASH/g'
}
notes() { normal | any | sed -E -e '/^cltool: (device|input|image)/d'; }
list() { # FILE...: the names of those that exist
  local file
  for file in "$@"; do [ ! -e "$file" ] || printf '%s\n' "$file" | any; done
}
whole=(predict digits.onnx -i heldout.npy --batch 32)
"$CLTOOL" "${whole[@]}" -o one.npy -q >/dev/null || echo "no reference"

size=4 job=first
ompi() { env PMIX_NAMESPACE=$job OMPI_COMM_WORLD_SIZE=$size OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_LOCAL_RANK="$1" "$CLTOOL" "${@:2}"; }
pmi() { env PMI_SIZE=$size PMI_RANK="$1" MPI_LOCALRANKID="$1" "$CLTOOL" "${@:2}"; }
pmi2() { env PMI_SIZE=$size PMI_RANK="$1" PMI_JOBID=7.0 SLURM_JOB_ID=7 SLURM_LOCALID="$1" "$CLTOOL" "${@:2}"; }
slurm() { env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=$size SLURM_PROCID="$1" SLURM_LOCALID="$1" "$CLTOOL" "${@:2}"; }
slurm_old() { env SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_NTASKS=$size SLURM_PROCID="$1" SLURM_LOCALID="$1" "$CLTOOL" "${@:2}"; }
# A rank of MPICH's mpiexec whose proxy srun started.
nested() { env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 PMI_SIZE=$size PMI_RANK="$1" MPI_LOCALRANKID="$1" "$CLTOOL" "${@:2}"; }
together() { # LAUNCHER ARGS...: all ranks at once; prints what rank 0 prints, and all exit codes
  local rank codes=() pids=()
  for ((rank = 0; rank < size; rank++)); do
    "$1" $rank "${@:2}" >"rank$rank.out" 2>"rank$rank.err" &
    pids+=($!)
  done
  for ((rank = 0; rank < size; rank++)); do
    wait "${pids[$rank]}"
    codes+=($?)
  done
  echo "exit ${codes[*]}"
  normal <rank0.out | any
}
in_turn() { # "RANK..." ARGS...: what each prints, and its exit code
  local rank
  for rank in $1; do
    echo "rank $rank of $size"
    ompi "$rank" "${@:2}" 2>&1 | notes
    echo "[exit ${PIPESTATUS[0]}]"
  done
}

echo "== the bytes of one process"
for launcher in ompi pmi pmi2 slurm slurm_old nested; do
  together $launcher "${whole[@]}" -o $launcher.npy -q
  cmp one.npy $launcher.npy && echo "as one process: $launcher"
done
cat rank[123].out
env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "$CLTOOL" "${whole[@]}" -o alone.npy -q >/dev/null
ompi 2 "${whole[@]}" -o none.npy -q --shard none >/dev/null
SLURM_PROCID=0 SLURM_NTASKS=4 "$CLTOOL" "${whole[@]}" -o script.npy -q >/dev/null
SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 "$CLTOOL" "${whole[@]}" -o shell.npy -q >/dev/null
for file in alone none script shell; do cmp one.npy $file.npy && echo "all rows: $file"; done

echo "== whole batches, in any number"
each_batch() { # BATCH ROWS
  head -c $((128 + 256 * $2)) heldout.npy | tail -c +129 | npy '<f4' "($2, 1, 8, 8)" >rows.npy
  "$CLTOOL" predict digits.onnx -i rows.npy --batch "$1" -o rows-one.npy -q --force >/dev/null
  together ompi predict digits.onnx -i rows.npy --batch "$1" -o rows-out.npy --force
  sed -nE 's/^cltool: rank [0-9] of 4 \(.*\): /  /p' rank?.err
  cmp rows-one.npy rows-out.npy && echo "batch $1, $2 rows: as one process"
}
each_batch 7 50
each_batch 32 96
each_batch 1000 50
each_batch 1 2
each_batch 1 0
list -- *.part*

echo "== one device a rank"
for rank in 0 1 2; do
  POCL_DEVICES="pthread pthread" ompi $rank "${whole[@]}" -o devices.npy -d pocl#0,pocl#1 2>&1 >/dev/null |
    sed -nE 's/^cltool: device [0-9]+:([0-9]+), .*/\1/p' | tr '\n' ' '
done
echo

echo "== a model that is divided: all devices a rank, in whole batches of the default size"
for rank in 1 0; do
  POCL_DEVICES="pthread pthread" ompi $rank predict digits.onnx -i heldout.npy -o layers.npy -d pocl#0,pocl#1 --split layers 2>&1 |
    sed -nE 's/^cltool: (device [0-9]+:[0-9]+), .*/\1/p; s/^cltool: (rank [0-9].*from row.*)/\1/p'
done

echo "== variables that make no sense"
wrong() { # VARIABLE=VALUE... [-- ARGS...]
  local variables=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  echo "${variables[*]} ${*:2}"
  env "${variables[@]}" "$CLTOOL" "${whole[@]}" -o wrong.npy -q "${@:2}" 2>&1
  echo "[exit $?]"
}
wrong OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4
wrong OMPI_COMM_WORLD_RANK=one OMPI_COMM_WORLD_SIZE=4
wrong OMPI_COMM_WORLD_RANK=1
wrong OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4000000000
wrong OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=99999999999999999999
wrong PMI_RANK=0 PMI_SIZE=0
wrong PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=-1
wrong SLURM_PROCID=-1 SLURM_NTASKS=4 SLURM_STEP_ID=0
list wrong.npy*

echo "== job arrays: a shard each"
array() { env SLURM_ARRAY_TASK_ID="$1" SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=3 "${@:2}"; }
for id in 3 5 7; do
  array $id "$CLTOOL" "${whole[@]}" -o "array$id.npy" --shard array -q >/dev/null
  "$CLTOOL" "${whole[@]}" -o "shard$id.npy" --shard $(((id - 1) / 2))/3 -q >/dev/null
  cmp array$id.npy shard$id.npy && echo "shard $(((id - 1) / 2)) of 3"
done
"$CLTOOL" merge array[357].npy -o array.npy --rows 360 -q
cmp one.npy array.npy && echo "merged: as one process"
from_to=(SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2)
wrong SLURM_ARRAY_TASK_ID=4 "${from_to[@]}" SLURM_ARRAY_TASK_COUNT=3 -- --shard array
wrong SLURM_ARRAY_TASK_ID=9 "${from_to[@]}" SLURM_ARRAY_TASK_COUNT=3 -- --shard array
wrong SLURM_ARRAY_TASK_ID=5 "${from_to[@]}" SLURM_ARRAY_TASK_COUNT=2 -- --shard array
wrong SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=3999999999 SLURM_ARRAY_TASK_COUNT=4000000000 -- --shard array
wrong X= -- --shard array
list wrong.npy*

echo "== rows that fail: the exit code is that of the rank that names the file"
mkdir some
i=0
for image in images/*.png; do
  [ $((i += 1)) -le 12 ] && cp "$image" "some/$(printf %02d $i).png"
done
images=(predict digits.onnx -i image=some --batch 2)
"$CLTOOL" "${images[@]}" -o some.npy -q >/dev/null
for i in 06 09; do head -c 60 images/00.png >some/$i.png; done
"$CLTOOL" "${images[@]}" -o failed.npy -q 2>&1 | any
size=2
in_turn "0 1" "${images[@]}" -o ranks.npy
in_turn "1 0" "${images[@]}" -o json.npy --json -q | sed -E '/^\{/,/"failed"/d'
cmp failed.npy ranks.npy && cmp failed.npy json.npy && echo "as one process"
in_turn 0 "${images[@]}" -o later.npy -q >/dev/null
job=later
in_turn "0 1" "${images[@]}" -o later.npy -q --resume
cmp failed.npy later.npy && echo "as one process"
for i in 06 09; do cp some/07.png some/$i.png; done

echo "== a rank that has not finished: no file; --resume in another job"
in_turn 0 "${images[@]}" -o resumed.npy
list resumed.npy*
job=second
in_turn "0" "${images[@]}" -o resumed.npy --resume
list resumed.npy*
in_turn "1 0" "${images[@]}" -o resumed.npy --resume
list resumed.npy*
"$CLTOOL" "${images[@]}" -o some.npy -q --force >/dev/null
cmp some.npy resumed.npy && echo "as one process"

echo "== records of an earlier job do not count without --resume"
in_turn 0 "${images[@]}" -o jobs.npy -q >/dev/null
job=third
in_turn 1 "${images[@]}" -o jobs.npy -q
list jobs.npy*
in_turn 0 "${images[@]}" -o jobs.npy -q
list jobs.npy*
step() { env SLURM_JOB_ID=7 SLURM_STEP_ID="$1" SLURM_STEP_NUM_TASKS=2 SLURM_PROCID="$2" "$CLTOOL" "${images[@]}" -o steps.npy -q; }
step 0 0 >/dev/null && step 1 1
list steps.npy*

echo "== --resume of another run is refused"
"$CLTOOL" "${images[@]}" -o one-some.npy -q >/dev/null
pmi 0 "${images[@]}" -o other.npy -q >/dev/null
refused() { # ARGS...
  pmi 1 "$@" --resume -q 2>&1 | notes
}
cp digits.onnx model.onnx
refused predict model.onnx -i image=some --batch 2 -o other.npy
refused predict digits.onnx -i image=some --batch 3 -o other.npy
refused predict digits.onnx -i image=some --batch 2 --scale 2 -o other.npy
refused predict digits.onnx -i image=some --batch 2 -o probabilities=other.npy
refused predict digits.onnx -i image=some --batch 2 -o other.npy --no-blas
refused predict digits.onnx -i heldout.npy --batch 2 -o other.npy
size=3
refused "${images[@]}" -o other.npy
size=2
"$CLTOOL" "${images[@]}" -o other.npy --resume -q 2>&1 | notes
touch -d 2020-01-01 digits.onnx
refused "${images[@]}" -o other.npy
touch -d 2020-01-01 some/05.png
refused "${images[@]}" -o other.npy
rm other.npy.*
pmi 0 "${images[@]}" -o other.npy -q >/dev/null
touch -d 2020-01-02 some/05.png
refused "${images[@]}" -o other.npy
touch some/not-an-image
touch -d 2020-01-01 some/05.png
pmi 1 "${images[@]}" -o other.npy --resume -q 2>&1 | notes
cmp some.npy other.npy && echo "the same images go on"
echo "--force begins again"
pmi 0 "${images[@]}" -o again.npy -q >/dev/null
pmi 0 predict digits.onnx -i image=some --batch 4 -o again.npy -q --resume --force >/dev/null
pmi 1 predict digits.onnx -i image=some --batch 4 -o again.npy -q --resume --force 2>&1 | notes
list again.npy*

echo "control characters of a record are not printed"
pmi 0 "${images[@]}" -o red.npy -q >/dev/null
sed -i 's/"--batch": "2/"--batch": "\\u001b[31m2/' red.npy.*.part.0
refused predict digits.onnx -i image=some --batch 3 -o red.npy | cat -v

echo "== ranks of one job with other commands"
job=fourth
in_turn 0 "${images[@]}" -o differ.npy -q
in_turn 1 predict digits.onnx -i image=some --batch 3 -o differ.npy -q
list differ.npy*

echo "== --resume of files that are there"
"$CLTOOL" "${images[@]}" -o some.npy --resume 2>&1 | notes
"$CLTOOL" "${whole[@]}" -o some.npy --resume 2>&1 | notes
touch some/03.png
"$CLTOOL" "${images[@]}" -o some.npy --resume 2>&1 | notes
"$CLTOOL" "${images[@]}" -o some.npy --resume --force 2>&1 | notes

echo "== records that outlast the part: another rank has named the file, or the last one ended then"
in_turn 0 "${images[@]}" -o both.npy -q >/dev/null
record=$(echo both.npy.*.part.0)
cp "$record" record
in_turn 1 "${images[@]}" -o both.npy -q
cp record "$record"
cp record "${record%0}1"
in_turn "0 1" "${images[@]}" -o both.npy -q --resume
list both.npy*
cmp some.npy both.npy && echo "as one process"

echo "== links and pipes"
ln -s target.npy link.npy
mkfifo pipe.npy
in_turn 0 "${images[@]}" -o link.npy -q --force
"$CLTOOL" "${images[@]}" -o pipe.npy -q --force --resume
list link.npy.* target.npy pipe.npy.*

echo "== a link or a pipe under the name of a part is not written to"
in_turn 0 "${images[@]}" -o planted.npy -q
part=$(echo planted.npy.*.part)
rm "$part" && ln -s target.npy "$part"
in_turn 1 "${images[@]}" -o planted.npy -q
rm "$part" && mkfifo "$part"
in_turn 1 "${images[@]}" -o planted.npy -q
list target.npy planted.npy

echo "== a part that was removed or shortened"
in_turn 0 "${images[@]}" -o gone.npy -q >/dev/null
rm gone.npy.*.part
in_turn "0 1" "${images[@]}" -o gone.npy -q --resume
cmp some.npy gone.npy && echo "begun again"
in_turn 1 "${images[@]}" -o short.npy -q
truncate -s -4 short.npy.*.part
in_turn 0 "${images[@]}" -o short.npy -q
list short.npy
finish
