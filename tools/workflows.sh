#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the workflows of .github/workflows: the schema (check-jsonschema), their security (zizmor),
# and the scripts in them (shellcheck); with actionlint too where it is installed. The first two come
# from PyPI, into a virtual environment in FOLDER, so this runs on demand:
#
#   tools/workflows.sh FOLDER
set -euo pipefail
[ $# -eq 1 ] || {
  echo "usage: tools/workflows.sh FOLDER" >&2
  exit 2
}
mkdir -p -- "$1"
folder=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
[ -e "$folder/complete" ] || {
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install -q check-jsonschema zizmor
  touch "$folder/complete"
}
"$folder/venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$folder/venv/bin/zizmor" --offline --no-progress --min-severity medium .github/workflows
# ruamel.yaml comes with check-jsonschema.
"$folder/venv/bin/python" - .github/workflows/*.yml <<'END'
import subprocess
import sys

from ruamel.yaml import YAML

bad = False
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        jobs = YAML(typ="safe").load(file)["jobs"]
    for job in jobs.values():
        for step in job.get("steps", ()):
            if "run" in step:
                command = ["shellcheck", "-s", "bash", "-"]
                if subprocess.run(command, input=step["run"], text=True).returncode:
                    print(f"{name}: in the script above")
                    bad = True
sys.exit(bad)
END
if command -v actionlint >/dev/null; then
  actionlint
else
  echo "workflows.sh: actionlint is not installed"
fi
