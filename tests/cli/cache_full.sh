#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program store on a full disk: one warning, the work is done, nothing half-written stays. The
# disk is a small one in memory, which takes a mount namespace: where there is none, the test is
# skipped.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
digits digits.onnx
mkdir small
if ! unshare -rm mount -t tmpfs -o size=64k none small 2>/dev/null; then
  echo "no mount namespaces here" >&3
  exit 77
fi

export CLG_CACHE_DIR=$WORK/small
cat >full.sh <<'END'
mount -t tmpfs -o size=64k,mode=700 none small
"$CLTOOL" run digits.onnx --fill zeros --top 1 >out 2>err
echo "exit $?"
find small -name '*tmp*'
END
unshare -rm bash full.sh
sed -E 's/ +[0-9.e-]+ *$/ N/' out
normal <err | sed -E 's#small/[0-9a-f]+#small/ENTRY#'
finish
