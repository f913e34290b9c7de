#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX models, computed by clgraph and by ONNX Runtime or ONNX's reference evaluator.

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt
    VENV/bin/python fuzz.py --cltool CLTOOL --folder FOLDER [--per-row N] [--seed S] [OPERATOR...]

Each row of docs/operators.md gets N cases; then come random graphs of 5 to 60 nodes (--graphs). The
cases are written as ONNX's test cases are, in FOLDER, and compared by `cltool verify`. A case that
differs from ONNX Runtime is compared with ONNX's reference: what agrees with one of the two is
right, and counted. Rows of which fewer than --min-per-row cases were executed get more, up to three
times N. Progress is kept in FOLDER/SEED.json, for one state of the tree; a run that was stopped
goes on. Exits 1 when a difference is not explained in explained.py, or nothing passed.

    fuzz.py --replay CASE ...    one case of a seed again; where it differs, its smallest part, in
                                 FOLDER/differences/CASE.smallest
    fuzz.py --plants ...         plants 20 faults in what clgraph gets; exits 1 unless the same
                                 cases find all of them
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import explained  # noqa: E402
import graphs  # noqa: E402
import maker  # noqa: E402
import operators  # noqa: E402
import plants  # noqa: E402
import rivals  # noqa: E402
import shrink  # noqa: E402

TREE = HERE.parents[2]
NEWEST = onnx.defs.onnx_opset_version()
SCHEMALESS = {"com.microsoft"}  # domains that the onnx package does not describe
EXTRA = 10  # cases that a row gets at a time, beyond those that all get
NOT_EXECUTED = ("refused", "no rival", "not made")  # outcomes
DOMAINS = {"ai.onnx, the default domain": ""}


def rows():
    """(domain, operator, first, last version) of each row of docs/operators.md."""
    domain, found = "", []
    for line in (TREE / "docs/operators.md").read_text().splitlines():
        if line.startswith("## "):
            domain = DOMAINS.get(line[3:], line[3:])
        cells = [c.strip() for c in line.split("|")]
        if len(cells) < 6 or cells[1] in ("operator", "---"):
            continue
        words = cells[2].split()
        last = int(words[0]) if words[-1] == words[0] else 10**6
        if "to" in words:
            last = int(words[2])
        found.append((domain, cells[1], int(words[0]), last))
    return found


def opset_for(seed, domain, operator, first, last):
    """A version of the operator set at which a row is what computes OPERATOR: each version of the
    operator as often as the others, and one of the opsets that have it."""
    if domain in SCHEMALESS:
        return 1
    if domain == "" and not onnx.defs.has(operator, domain):
        return 17  # an operator of ONNX Runtime's in ONNX's domain
    r = random.Random(f"{seed}/{operator}/opset")
    newest = {"": NEWEST, "ai.onnx.ml": 5}.get(domain, 1)
    low = max(first, min(last, 7) if domain == "" else 1)
    starts = {low}
    for opset in range(low, min(last, newest) + 1):
        try:
            since = onnx.defs.get_schema(operator, opset, domain).since_version
            starts.add(max(low, since))
        except onnx.defs.SchemaError:
            starts.discard(opset)
    starts = sorted(s for s in starts if s <= newest)
    if not starts:
        return None
    i = r.randrange(len(starts))
    end = starts[i + 1] - 1 if i + 1 < len(starts) else min(last, newest)
    return r.randint(starts[i], end)


def make(seed, index, row):
    """The case number INDEX of ROW; None where no version can be tried."""
    domain, operator, first, last = row
    opset = opset_for(f"{seed}/{index}", domain, operator, first, last)
    if opset is None:
        return None
    label = f"{domain or 'onnx'}.{operator}.{first}"
    m = maker.Maker(f"{seed}/{index}", label, operator, domain, opset)
    return maker.GENERATORS[(domain, operator)](m)


def refer(case):
    """({rival: results}, {rival: reason}) of the rivals that count for CASE."""
    results, reasons = {}, {}
    for name, rival in rivals.RIVALS.items():
        if case.only and name not in case.only:
            continue
        if name == "wide" and results and rivals.is_float64(case):
            continue  # float32 says nothing about the digits of float64
        computed, reason = rival(case)
        if computed is not None:
            computed = rivals.standard(case, computed)
            reason = "a type that is not the standard's"
        if computed is None:
            reasons[name] = reason
        else:
            results[name] = computed
    return results, reasons


def write(folder, case, expected, rival):
    """CASE as a folder that `cltool verify` reads; returns the tolerance of each output."""
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model(expected).SerializeToString())
    for kind, values in (("input", case.inputs), ("output", expected)):
        for i, (name, value) in enumerate(values.items()):
            message = maker.proto(name, value)
            (data / f"{kind}_{i}.pb").write_bytes(message.SerializeToString())
    return {f"{folder.name}/{n}": rivals.tolerance(case, v, rival) for n, v in expected.items()}


def verify(arguments, folder, names):
    """{name: (result, reason)} of the cases NAMES in FOLDER. A process that dies is said of the
    case that killed it: the others are tried again in halves."""
    if not names:
        return {}
    command = [arguments.cltool, "verify", "--json", "-q", "--compare-random"]
    command += ["--tolerance", str(folder / "tolerance.json"), *arguments.option]
    command += [str(folder / n) for n in names]
    environment = dict(os.environ)
    if arguments.fresh:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        environment["CLG_CACHE_DIR"] = str(folder / "cache")
    try:
        run = subprocess.run(command, capture_output=True, timeout=60 + 20 * len(names),
                             env=environment)
        last = run.stderr.decode(errors="replace").strip().splitlines()[-1:]
        ended = f"exit {run.returncode}: {' '.join(last)}"
        report = json.loads(run.stdout)
        found = {c["name"]: (c["result"], c.get("reason", "")) for c in report["cases"]}
        if run.returncode in (0, 1) and set(found) == set(names):
            return found
    except subprocess.TimeoutExpired:
        ended = "no end"
    except (ValueError, KeyError):
        pass
    if len(names) == 1:
        return {names[0]: ("fail", ended)}
    half = len(names) // 2
    found = verify(arguments, folder, names[:half]) | verify(arguments, folder, names[half:])
    if not any(died(reason) for _, reason in found.values()):
        found[names[0]] = ("fail", f"{ended}, in one process with {names[1]} to {names[-1]}")
    return found


def died(reason):
    """Whether the process ended, or did not, in place of a report."""
    return reason.startswith(("exit ", "no end"))


def after(rival):
    """The rivals that are asked after RIVAL."""
    names = list(rivals.RIVALS)
    return names[names.index(rival) + 1 :]


class Batch:
    """Cases that one process of cltool compares."""

    def __init__(self, arguments, outcomes):
        self.arguments = arguments
        self.outcomes = outcomes
        self.cases = {}

    def add(self, name, row, case):
        results, reasons = refer(case)
        if not results:
            self.outcomes.record(row, name, "no rival", str(reasons))
            return
        self.cases[name] = (row, case, results)

    def compare(self, rival):
        """Runs clgraph on the cases that RIVAL computed and that are still open."""
        folder = pathlib.Path(self.arguments.folder) / "cases"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        tolerances, names = {}, []
        for name, (_, case, results) in self.cases.items():
            if rival in results:
                tolerances |= write(folder / name, case, results[rival], rival)
                names.append(name)
        (folder / "tolerance.json").write_text(json.dumps(tolerances))
        verdicts = verify(self.arguments, folder, names)
        for name, (result, reason) in verdicts.items():
            row, case, results = self.cases[name]
            if result == "pass":
                said = getattr(case, "difference", "")
                self.outcomes.record(row, name, "pass, not as the first" if said else "pass", said)
            elif result == "skip":
                self.outcomes.record(row, name, "refused", reason)
            elif any(r in results for r in after(rival)) and not died(reason):
                case.difference = f"{rival}: {reason}"
                continue  # the next one decides
            else:
                self.differ(folder, name, row, case, rival, reason)
            del self.cases[name]

    def differ(self, folder, name, row, case, rival, reason):
        why = None if died(reason) else explained.reason(case, rival)
        if why:
            self.outcomes.record(row, name, "explained", why)
            return
        if self.arguments.replay:
            smallest(self.arguments, folder, name, case, rival)
        kept = pathlib.Path(self.arguments.folder) / "differences" / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder / name, kept)
        if (folder / f"{name}.smallest").exists():
            shutil.rmtree(f"{kept}.smallest", ignore_errors=True)
            shutil.copytree(folder / f"{name}.smallest", f"{kept}.smallest")
        earlier = getattr(case, "difference", "")
        said = f"{rival}: {reason}" + (f" ({earlier})" if earlier else "")
        self.outcomes.record(row, name, "DIFFERS", said)

    def finish(self):
        for rival in rivals.RIVALS:
            self.compare(rival)
        self.cases = {}


def smallest(arguments, folder, name, case, rival):
    """Writes the smallest part of CASE that differs from RIVAL beside it."""
    target = f"{name}.smallest"

    def compute(part):
        return rivals.RIVALS[rival](part)[0]

    def differs(part, results):
        limits = write(folder / target, part, results, rival)
        (folder / "tolerance.json").write_text(json.dumps(limits))
        return verify(arguments, folder, [target])[target][0] == "fail"

    found = shrink.shrink(case, compute, differs)
    differs(found, compute(found))  # the last one tried may be another
    print(f"{name}: {len(found.nodes)} of {len(case.nodes)} nodes: "
          + ", ".join(n.op_type for n in found.nodes) + "; inputs "
          + ", ".join(str(getattr(v, "shape", "sequence")) for v in found.inputs.values()))


def plant_cases(arguments, folder, operator, change):
    """Writes cases of OPERATOR, each as it is (NAME.right) and with the fault (NAME); returns
    ([NAME], the tolerances)."""
    names, tolerances = [], {}
    for row in chosen_rows([operator]):
        for index in range(arguments.per_row if row[0] == "" else 0):
            case = make(arguments.seed, index, row)
            results, _ = refer(case) if case else ({}, {})
            rival = next(iter(results), None)
            planted = rival and plants.plant(change, case, results[rival])
            if not planted:
                continue
            names.append(f"{row[2]}.{index}")
            for name, each in ((names[-1], planted), (f"{names[-1]}.right", case)):
                tolerances |= write(folder / name, each, results[rival], rival)
    return names, tolerances


def find_plants(arguments):
    """Plants each fault in the cases of its operator; returns whether all were found: in cases that
    pass without the fault."""
    folder = pathlib.Path(arguments.folder) / "plants"
    missed = 0
    for what, operator, change in plants.PLANTS:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        names, tolerances = plant_cases(arguments, folder, operator, change)
        (folder / "tolerance.json").write_text(json.dumps(tolerances))
        verdicts = verify(arguments, folder, [n + end for n in names for end in ("", ".right")])
        right = [n for n in names if verdicts[f"{n}.right"][0] == "pass"]
        found = sum(verdicts[n][0] == "fail" for n in right)
        missed += not found
        print(f"{operator}: {what}: {found} of {len(right)} cases", flush=True)
    print(f"{len(plants.PLANTS) - missed} passed, {missed} failed")
    return missed == 0


def tree():
    """The commit, and a hash of what differs from it."""

    def git(*words):
        return subprocess.run(["git", "-C", str(TREE), *words], capture_output=True).stdout

    changes = git("diff", "HEAD")
    return git("rev-parse", "HEAD").decode().strip() + (
        f"-{hashlib.sha256(changes).hexdigest()[:12]}" if changes else "")


def executed(counts):
    """How many cases of a row were executed. COUNTS: {outcome: number of cases}."""
    return sum(n for outcome, n in counts.items() if outcome not in NOT_EXECUTED)


class Outcomes:
    """What became of each case, kept in a file of the seed. OF: what it is true of, the tree and
    cltool's options; what another one left is not read."""

    def __init__(self, path, of):
        self.path = path
        self.state = {"of": of, "cases": {}}
        if path.exists():
            kept = json.loads(path.read_text())
            if kept.get("of") == of:
                self.state = kept

    def __contains__(self, name):
        return name in self.state["cases"]

    def record(self, row, name, result, detail):
        self.state["cases"][name] = [row, result, detail]
        if result == "DIFFERS":
            print(f"DIFFERS {name}: {detail}", flush=True)

    def save(self):
        self.path.write_text(json.dumps(self.state, indent=0))

    def count(self):
        return collections.Counter(result for _, result, _ in self.state["cases"].values())

    def by_row(self):
        """{row: {outcome: number of cases}}."""
        counts = collections.defaultdict(collections.Counter)
        for row, result, _ in self.state["cases"].values():
            counts[row][result] += 1
        return counts

    def rows_below(self, minimum):
        """Rows of which fewer cases were executed."""
        return {row for row, counts in self.by_row().items() if executed(counts) < minimum}

    def report(self):
        """Prints what became of the cases; returns whether nothing is left unexplained."""
        for row, counts in sorted(self.by_row().items()):
            if executed(counts) < 20:
                said = ", ".join(f"{n} {r}" for r, n in counts.items())
                print(f"{row}: {executed(counts)} executed; {said}")
        total = self.count()
        passed = total["pass"] + total["pass, not as the first"]
        cases = max(1, sum(total.values()))
        print(", ".join(f"{n} {r}" for r, n in sorted(total.items())))
        print(f"refused: {100.0 * total['refused'] / cases:.1f} %")
        print(f"{passed} passed, {total['DIFFERS']} failed")
        return passed > 0 and total["DIFFERS"] == 0


def chosen_rows(names):
    return [r for r in rows() if not names or r[1] in names or f"{r[0]}.{r[1]}" in names]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cltool", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--per-row", type=int, default=25)
    parser.add_argument("--min-per-row", type=int, default=0, help="executed cases of each row")
    parser.add_argument("--graphs", type=int, default=0)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--option", action="append", default=[], help="handed to cltool verify")
    parser.add_argument("--fresh", action="store_true", help="each process has an empty cache")
    parser.add_argument("--replay")
    parser.add_argument("--plants", action="store_true")
    parser.add_argument("operators", nargs="*")
    arguments = parser.parse_args()
    pathlib.Path(arguments.folder).mkdir(parents=True, exist_ok=True)
    operators.load()
    if arguments.plants:
        return 0 if find_plants(arguments) else 1
    path = pathlib.Path(arguments.folder) / f"{arguments.seed}.json"
    if arguments.replay:
        path = path.with_name("replay.json")
        path.unlink(missing_ok=True)
    outcomes = Outcomes(path, [tree(), *arguments.option])
    run(arguments, outcomes, planned(arguments, outcomes))
    for first in range(arguments.per_row, 3 * arguments.per_row, EXTRA):
        short = outcomes.rows_below(arguments.min_per_row)
        if short:
            indexes = range(first, first + EXTRA)
            run(arguments, outcomes, planned(arguments, outcomes, indexes, short))
    return 0 if outcomes.report() else 1


def run(arguments, outcomes, cases):
    batch = Batch(arguments, outcomes)
    for name, row, case in cases:
        batch.add(name, row, case)
        if len(batch.cases) >= arguments.batch:
            batch.finish()
            outcomes.save()
    batch.finish()
    outcomes.save()


def planned(arguments, outcomes, indexes=None, only=None):
    """(name, row, case) of what is still to be done: the cases INDEXES of each row, or of those
    ONLY. What cannot be made is recorded."""
    indexes = indexes or range(arguments.per_row)
    numbers = range(arguments.graphs)
    if arguments.replay:
        label, _, index = arguments.replay.rpartition(".")
        indexes, numbers = ([], [int(index)]) if label == "graph" else ([int(index)], [])
    for index in indexes:
        for row in chosen_rows(arguments.operators):
            domain, operator, first, _ = row
            label = f"{domain or 'onnx'}.{operator}.{first}"
            if only is not None and label not in only:
                continue
            name = f"{label}.{index}"
            if name in outcomes or arguments.replay not in (None, name):
                continue
            case = None
            try:
                if (domain, operator) in maker.GENERATORS:
                    case = make(arguments.seed, index, row)
            except Exception as error:
                raise RuntimeError(f"{name} (seed {arguments.seed}) cannot be made") from error
            if case is None:
                why = "no generator, or no version of the onnx package"
                outcomes.record(label, name, "not made", why)
            else:
                yield name, label, case
    for number in numbers:
        name = f"graph.{number}"
        if name not in outcomes:
            yield name, "graph", graphs.make(arguments.seed, number)


if __name__ == "__main__":
    sys.exit(main())
