#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a software bill of materials of the source, SPDX 2.3 as JSON, to standard output:

    tools/sbom.py [--ref COMMIT] [--portable FOLDER]

The package clgraph with every file of the commit (default HEAD), with checksums and the licence
that its SPDX line or the file LICENSE-DATA.md beside it names; and what tools/dependencies.txt
lists. With --portable, the folder of tools/portable.sh, dependencies have the versions that are
linked there. The same commit gives the same bytes: the date is the commit's.
"""

import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time
from typing import Any, Dict, List

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENSE_LINE = re.compile(rb"SPDX-License-Identifier: ([A-Za-z0-9.+ -]+?)\s*(?:\*/|-->)?\r?$", re.M)
# A row of the table in LICENSE-DATA.md that names files under the data's licence.
DATA_ROW = re.compile(r"^\| `([^`]+)` \|", re.M)
# How a dependency is used, and what that is called in SPDX, seen from clgraph.
RELATIONS = {
    "linked": "DEPENDS_ON",
    "compiled": "DEPENDS_ON",
    "declarations": "BUILD_DEPENDENCY_OF",
    "optional": "OPTIONAL_DEPENDENCY_OF",
    "opened": "RUNTIME_DEPENDENCY_OF",
    "toolchain": "BUILD_TOOL_OF",
}


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, stdout=-1).stdout


def tree(ref: str) -> Dict[str, bytes]:
    """Returns the files of a commit, name to content; symbolic links and submodules are refused."""
    names, batch = [], []
    for line in git("ls-tree", "-r", "-z", ref).split(b"\0")[:-1]:
        about, name = line.split(b"\t", 1)
        mode, kind, number = about.split()
        if kind != b"blob" or mode == b"120000":
            sys.exit(f"sbom.py: {name.decode()} is no plain file")
        names.append(name.decode())
        batch.append(number)
    output = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "--batch"],
        input=b"\n".join(batch) + b"\n",
        check=True,
        stdout=-1,
    ).stdout
    files, at = {}, 0
    for name in names:
        end = output.index(b"\n", at)
        size = int(output[at:end].split()[2])
        files[name] = output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return files


def data_licenses(files: Dict[str, bytes]) -> Dict[str, str]:
    """Returns the licence of files that a LICENSE-DATA.md lists, name to identifier."""
    found = {}
    for page, content in files.items():
        if not page.endswith("/LICENSE-DATA.md"):
            continue
        folder, text = page.rsplit("/", 1)[0], content.decode()
        if "CC BY 4.0" not in text:
            sys.exit(f"sbom.py: {page} names a licence that this script does not know")
        for pattern in DATA_ROW.findall(text):
            hits = [f for f in files if pathlib.PurePosixPath(f).match(f"{folder}/{pattern}")]
            if not hits:
                sys.exit(f"sbom.py: {page} lists {pattern}, and there is no such file")
            found.update({f: "CC-BY-4.0" for f in hits})
    return found


def identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def describe_files(files: Dict[str, bytes]) -> List[Dict[str, Any]]:
    data, described = data_licenses(files), []
    for n, (name, content) in enumerate(sorted(files.items())):
        line = LICENSE_LINE.search(content[:1000])
        own = line.group(1).decode() if line else None
        described.append(
            {
                "SPDXID": f"SPDXRef-File-{n}",
                "fileName": f"./{name}",
                "checksums": [
                    {"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()},
                ],
                "licenseConcluded": data.get(name, "Apache-2.0"),
                "licenseInfoInFiles": [own or "NOASSERTION"],
                "copyrightText": "NOASSERTION",
            }
        )
    return described


def verification_code(described: List[Dict[str, Any]]) -> str:
    sums = sorted(f["checksums"][0]["checksumValue"] for f in described)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def linked_versions(folder: str) -> Dict[str, str]:
    """Returns the versions in a folder of tools/portable.sh, as tools/licenses.sh prints them."""
    table = subprocess.run(
        [str(ROOT / "tools/licenses.sh"), folder], check=True, stdout=-1, text=True
    ).stdout
    rows = [re.split(r"\s{2,}", line) for line in table.splitlines()[1:]]
    return {row[0].split()[0]: " ".join(row[0].split()[1:]) or row[1] for row in rows}


def dependencies(text: str, versions: Dict[str, str]):
    """Returns the packages of tools/dependencies.txt and their relations to clgraph."""
    packages, relations = [], []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, debian, license_id, how, part = line.split("|")
        package = {
            "SPDXID": identifier("Package", name),
            "name": name,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": license_id,
            "licenseDeclared": license_id,
            "copyrightText": "NOASSERTION",
            "comment": part,
        }
        if name in versions:
            package["versionInfo"] = versions[name]
        if debian:
            purl = f"pkg:deb/debian/{debian}"
            package["externalRefs"] = [
                {
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": purl,
                }
            ]
        packages.append(package)
        kind, pair = RELATIONS[how], ["SPDXRef-Package-clgraph", package["SPDXID"]]
        if kind.endswith("_OF"):
            pair.reverse()
        relations.append(
            {"spdxElementId": pair[0], "relationshipType": kind, "relatedSpdxElement": pair[1]}
        )
    return packages, relations


def document(ref: str, portable: str) -> Dict[str, Any]:
    commit = git("rev-parse", f"{ref}^{{commit}}").decode().strip()
    seconds = int(git("show", "-s", "--format=%ct", commit))
    files = tree(commit)
    header = files["include/clgraph/base.h"].decode()
    parts = [
        re.search(rf"^#define CLG_VERSION_{part} +(\d+)", header, re.M)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    version = ".".join(part.group(1) for part in parts if part)
    described = describe_files(files)
    versions = linked_versions(portable) if portable else {}
    packages, relations = dependencies(files["tools/dependencies.txt"].decode(), versions)
    source = {
        "SPDXID": "SPDXRef-Package-clgraph",
        "name": "clgraph",
        "versionInfo": version,
        "packageFileName": f"clgraph-{version}.tar.gz",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification_code(described)},
        "licenseConcluded": "Apache-2.0 AND CC-BY-4.0",
        "licenseInfoFromFiles": sorted({i for f in described for i in f["licenseInfoInFiles"]}),
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "hasFiles": [f["SPDXID"] for f in described],
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"clgraph-{version}",
        "dataLicense": "CC0-1.0",
        "documentNamespace": f"https://spdx.org/spdxdocs/clgraph-{version}-{commit}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
            "creators": ["Tool: clgraph-sbom"],
        },
        "documentDescribes": ["SPDXRef-Package-clgraph"],
        "packages": [source, *packages],
        "files": described,
        "relationships": relations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a bill of materials, SPDX 2.3 as JSON.")
    parser.add_argument("--ref", default="HEAD")
    parser.add_argument("--portable", default="", metavar="FOLDER")
    arguments = parser.parse_args()
    json.dump(document(arguments.ref, arguments.portable), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
