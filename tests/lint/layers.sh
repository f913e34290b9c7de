#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The include edges of the tree against the drawing in docs/ARCHITECTURE.md: a file includes its own
# folder and the layers below it. Layers on one line of `order` do not see each other. Nor does a
# file below src/api call a function of the public interface, which is defined there.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

order='base
images text
tensor
caps
graph step
ocl
helper onnx ops
passes
plan
session
train generate
api'

edges() { # FOLDER...: "file:line:include" for every include directive
  grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include' "$@" 2>/dev/null || true
}

edges src | awk -v order="$order" '
  BEGIN {
    n = split(order, rows, "\n")
    for (i = 1; i <= n; i++) {
      m = split(rows[i], names, " ")
      for (j = 1; j <= m; j++) level[names[j]] = i
    }
    # ops, onnx, passes and plan describe work; only the layers above may run it.
    forbidden["ops ocl"] = forbidden["onnx ocl"] = forbidden["passes ocl"] = forbidden["plan ocl"] = 1
    # ocl runs steps (a kernel reference is plain data of step/); of graphs it knows nothing.
    forbidden["ocl graph"] = 1
  }
  function complain(why) { print $0 ": " why; bad = 1 }
  {
    split($0, part, ":")
    split(part[1], path, "/")
    from = path[2]
    if (!(from in level)) { complain("src/" from " is no layer"); next }
    if (match($0, /["<](CL\/[^">]*|clblast[^">]*)[">]/) && from != "ocl")
      complain("OpenCL and CLBlast headers belong in src/ocl and clgraph/opencl.h")
    if (match($0, /"[^"]*"/)) {
      target = substr($0, RSTART + 1, RLENGTH - 2)
      slash = index(target, "/")
      to = slash ? substr(target, 1, slash - 1) : ""
      if (target ~ /\.\./ || !(to in level)) complain("not of the form \"layer/file.h\"")
      else if (to != from && level[to] >= level[from]) complain(from " does not see " to)
      else if ((from " " to) in forbidden) complain(from " does not see " to)
    }
  }
  END { exit bad }
' || status=1

# clg_...( in code; lines of comments begin with "/*" or " *".
{ grep -rnE --include='*.[ch]' --exclude-dir=api '\<clg_[a-z0-9_]+\(' src || true; } | awk '
  { code = $0; sub(/^[^:]*:[0-9]+:/, "", code) }
  code ~ /^[[:space:]]*(\/\*|\*)/ { next }
  { print $0 ": public functions are for users; call what src/api wraps"; bad = 1 }
  END { exit bad }
' || status=1

edges tools/cltool examples | awk '
  # A header beside the file, or a public one; nothing with a path into the library.
  match($0, /"[^"]*\/[^"]*"/) { print $0 ": tools and examples see public headers only"; bad = 1 }
  /^tools.*<CL\// { print $0 ": tools do not call OpenCL"; bad = 1 }
  END { exit bad }
' || status=1

# The provider for ONNX Runtime sees its own folder, src/base, field numbers and public headers.
edges onnxruntime | awk '
  match($0, /"[^"]*\/[^"]*"/) && !/"(base\/|.*_fields\.h")/ { print $0 ": onnxruntime sees src/base and public headers only"; bad = 1 }
  /<CL\// { print $0 ": onnxruntime does not call OpenCL"; bad = 1 }
  END { exit bad }
' || status=1

# The public headers include no others, and only opencl.h mentions OpenCL.
edges include | awk '
  /"/ { print $0 ": public headers include <clgraph/...> and the standard library"; bad = 1 }
  /<CL\// && !/clgraph\/opencl\.h:/ { print $0 ": OpenCL headers belong in clgraph/opencl.h"; bad = 1 }
  END { exit bad }
' || status=1

exit "${status:-0}"
