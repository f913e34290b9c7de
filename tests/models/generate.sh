#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# generate.sh FOLDER: models of well-known architectures, made by PyTorch, with the outputs they
# must have. Does nothing when the folder holds what this make_models.py writes. Exit code 77
# without PyTorch.
set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?the folder to write to}

# shellcheck source=/dev/null
source "$here/torch.bash"
python=$(torch_python) || exit

stamp=$(cat "$here/make_models.py" <("$python" -c 'import torch; print(torch.__version__)') | sha256sum)
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; then
  echo "up to date: $folder"
  exit 0
fi
mkdir -p "$folder" && rm -f "$folder/stamp"
"$python" "$here/make_models.py" "$folder" && echo "$stamp" >"$folder/stamp"
