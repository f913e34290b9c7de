#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of README.md and docs/*.md.

    examples.py SOURCE BUILD WORK [PAGE...]

A fenced block is in the language of its info string: c, cpp, python, sh, or text, json and the
like, which are not code. An indented block is sh. The page's context, contexts/<page>.<language>
(else default.<language>), has the code around a block, which goes where it has @BLOCK@, and for sh
the commands before the page's first block. A page has a folder, which contexts/files.py fills with
models and data; each block runs in a copy of it.

    c, cpp    compiled with all warnings as errors, and run
    python    run
    sh        each command must succeed. A line `$ COMMAND` is a command whose output follows.

shims/ has what stands for some programs: ctest lists, cmake makes a dry run, a GPU is the CPU. An
HTML comment before a block says what else to do with it:

    <!-- norun: REASON -->       nothing
    <!-- check: REASON -->       sh: not run; programs, paths and options must exist
    <!-- starts: REASON -->      sh: each command runs for START_SECONDS, and must not fail in them
    <!-- needs: NAME -->         not run where there is no such program, file, or "module NAME"; a
                                 module may be one of $CLG_ORT_PYTHON, which then runs the block
    <!-- follows: REASON -->     runs in the folder that the block before has left
    <!-- exit: N -->             sh: the exit code of the block
    <!-- quote: FILE... -->      each line is in one of these files, white space aside
    <!-- output: COMMAND -->     the block is what the command prints; `...` stands for any lines,
                                 and times and devices may differ
    <!-- context: NAME -->       another context

At most MAX_NOT_RUN of the blocks of code may be norun or only checked. A block that starts counts
as neither: what fails when it begins is found, what fails later is not.
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

from markdown_it import MarkdownIt

MAX_NOT_RUN = 0.15
START_SECONDS = 2
HERE = pathlib.Path(__file__).resolve().parent
DIRECTIVES = ("norun", "check", "starts", "needs", "follows", "exit", "quote", "output", "context")
CODE = {"c": ".c", "cpp": ".cpp", "python": ".py", "sh": ".sh"}
TEXT = {"text", "json", "xml"}


class Failure(Exception):
    pass


class Block:
    """A code block: page, line, language, text, and the directives before it."""

    def __init__(self, page, line, language, text, directives):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.directives = directives

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks_of(root, page):
    """Returns the blocks of a page, in order."""
    found, directives = [], {}
    for token in MarkdownIt().parse((root / page).read_text()):
        if token.type == "html_block":
            for name, argument in re.findall(r"<!-- (\w+):\s*(.*?)\s*-->", token.content, re.S):
                if name in DIRECTIVES:
                    directives[name] = " ".join(argument.split())
        elif token.type in ("fence", "code_block"):
            language = token.info.split()[0] if token.info.strip() else "sh"
            found.append(Block(page, token.map[0] + 1, language, token.content, directives))
            directives = {}
        elif token.nesting >= 0 and token.type != "inline" and directives:
            raise Failure(f"{page}:{token.map[0] + 1}: a comment for a block, and no block")
    return found


def pages_of(root):
    return ["README.md"] + sorted(str(p.relative_to(root)) for p in (root / "docs").glob("*.md"))


def run(command, folder, environment, what, code=0):
    """Runs a command; returns its standard output, and raises Failure with all output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != code:
        raise Failure(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def kill_session(session):
    """Kills all processes of a session: timeout(1) is in a process group apart."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                os.kill(int(folder.name), signal.SIGKILL)
        except ProcessLookupError:
            continue


def start(command, folder, environment):
    """Runs a command of bash for START_SECONDS, and ends it; raises Failure if it failed before."""
    with subprocess.Popen(
        ["bash", "-eu", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            kill_session(process.pid)
            process.communicate()
            return
    if process.returncode != 0:
        raise Failure(f"{command}: exit code {process.returncode}\n{printed}")


def python_with(module):
    """Returns the first Python that can import a module, or None."""
    for python in (sys.executable, os.environ.get("CLG_ORT_PYTHON")):
        command = [python, "-I", "-c", f"import {module}"]
        if python and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return python
    return None


def python_where(needed, root):
    """Returns the Python of a block that needs a program, a file or "module NAME"; None without."""
    if needed.startswith("module "):
        return python_with(needed.split()[1])
    return sys.executable if shutil.which(needed) or (root / needed).exists() else None


# ---- output --------------------------------------------------------------------------------------


def masked(line):
    """Returns a line of output without what differs between machines and runs."""
    line = re.sub(r"\d+(\.\d+)? (ms|us|s|%)", r"N \2", line)
    return re.sub(r" on \S.*$", " on DEVICE", line.rstrip())


def compare_output(shown, printed):
    """Compares what a page shows with what a command prints: in order, `...` for any lines."""
    wanted = [masked(line) for line in shown.strip("\n").split("\n")]
    given = [masked(line) for line in printed.strip("\n").split("\n")]
    at, anywhere = 0, False
    for line in wanted:
        if line.strip() == "...":
            anywhere = True
            continue
        places = range(at, len(given)) if anywhere else range(at, min(at + 1, len(given)))
        place = next((i for i in places if given[i] == line), None)
        if place is None:
            raise Failure(f"shown: '{line}', printed:\n" + "\n".join(given[at : at + 20]))
        at, anywhere = place + 1, False
    if at != len(given) and not anywhere:
        raise Failure("printed, and not shown:\n" + "\n".join(given[at:]))


# ---- the kinds of blocks -------------------------------------------------------------------------


class Runner:
    def __init__(self, root, build, work):
        self.root, self.build, self.work = root, build, work
        self.environment = dict(
            os.environ,
            PATH=f"{HERE / 'shims'}:{os.environ['PATH']}",
            CLG_SOURCE_DIR=str(root),
            CLG_BUILD_DIR=str(build),
            CLTOOL=str(build / "cltool"),
            PYTHON=sys.executable,
            PYTHONPATH=str(root / "python"),
            CLG_LIBRARY=str(build / "libclgraph.so"),
            LD_LIBRARY_PATH=str(build),
            PYTHONDONTWRITEBYTECODE="1",
            OMPI_MCA_rmaps_base_oversubscribe="1",
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        )
        self.prepared = {}
        self.last = None  # the folder of the block before

    def folder(self, block):
        """Returns the folder of a page, with models and data, and the tree's folders as links."""
        page = pathlib.Path(block.page).stem
        if page not in self.prepared:
            folder = self.work / page
            folder.mkdir()
            for name in ("tools", "tests", "examples", "python", "include"):
                (folder / name).symlink_to(self.root / name)
            (folder / "build").symlink_to(self.build)
            files = [sys.executable, str(HERE / "contexts" / "files.py"), page]
            run(files, folder, self.environment, "contexts/files.py")
            before = HERE / "contexts" / f"{page}.sh"
            if before.exists():
                run(["bash", "-eu", str(before)], folder, self.environment, before.name)
            self.prepared[page] = folder
        return self.prepared[page]

    def copy(self, block):
        """Returns a copy of the page's folder for one block, or what the block before has left."""
        if "follows" not in block.directives:
            self.last = self.work / f"{pathlib.Path(block.page).stem}-{block.line}"
            shutil.copytree(self.folder(block), self.last, symlinks=True)
        return self.last

    def context(self, block):
        """Returns the code around a block, split at @BLOCK@."""
        suffix = CODE[block.language]
        page = pathlib.Path(block.page).stem
        for name in (block.directives.get("context", page), "default"):
            path = HERE / "contexts" / (name + suffix)
            if path.exists():
                before, _, after = path.read_text().partition("@BLOCK@")
                return before, after.partition("\n")[2]
        raise Failure(f"no context for {block.language}")

    def compiled(self, block, compiler, flags):
        before, after = ("", "") if "int main(" in block.text else self.context(block)
        lines = block.text.split("\n")
        includes = [line for line in lines if line.startswith("#include")]
        rest = [line for line in lines if not line.startswith("#include")]
        folder = self.copy(block)
        source = folder / f"block{block.line}{CODE[block.language]}"
        before = before.rpartition("\n")[0]  # the rest of its last line opened a comment
        body = "\n".join(rest).replace("for (...)", "for (int i = 0; i < 3; i++)")
        source.write_text("\n".join(includes) + "\n" + before + "\n" + body + after)
        program = source.with_suffix("")
        command = [compiler, *flags, f"-I{self.root / 'include'}", str(source), "-o", str(program)]
        command += [f"-L{self.build}", "-lclgraph", f"-Wl,-rpath,{self.build}"]
        run(command, folder, self.environment, "compiling")
        run([str(program)], folder, self.environment, "running")

    def run_c(self, block):
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result"]
        flags += ["-Wno-unused-variable", "-Wno-unused-but-set-variable"]
        self.compiled(block, os.environ.get("CC", "gcc"), flags)

    def run_cpp(self, block):
        flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-variable"]
        flags.append("-Wno-misleading-indentation")
        self.compiled(block, os.environ.get("CXX", "g++"), flags)

    def run_python(self, block):
        before, after = self.context(block)
        before = before.rpartition("\n")[0]
        folder = self.copy(block)
        source = folder / f"block{block.line}.py"
        source.write_text(before + "\n" + block.text + after)
        run([self.environment["PYTHON"], str(source)], folder, self.environment, "running")

    def run_sh(self, block):
        folder = self.copy(block)
        if not block.text.startswith("$ "):
            code = int(block.directives.get("exit", "0"))
            run(["bash", "-eu", "-c", block.text], folder, self.environment, "running", code)
            return
        parts = re.split(r"^\$ ", block.text, flags=re.M)[1:]
        for part in parts:
            command, _, shown = part.partition("\n")
            if "error: " in shown:  # such a command fails
                command = f"! {command}"
            whole = ["bash", "-c", f"{{ {command}; }} 2>errors; r=$?; cat errors; exit $r"]
            compare_output(shown, run(whole, folder, self.environment, command))

    def output(self, block, command):
        printed = run(["bash", "-c", command], self.folder(block), self.environment, command)
        compare_output(block.text, printed)

    def quote(self, block, names):
        squeezed = ""
        for name in names.split():
            squeezed += re.sub(r"[\s\\]+", "", (self.root / name).read_text())
        for line in block.text.split("\n"):
            if re.fullmatch(r"\s*/\*.*\*/\s*", line):
                continue
            if re.sub(r"[\s\\]+", "", line) not in squeezed:
                raise Failure(f"not in {names}: {line.strip()}")

    def check(self, block):
        """Checks that programs, paths and options of a shell block exist."""
        run(["bash", "-n", "-c", block.text], self.work, self.environment, "syntax")
        for command in re.sub(r"\\\n", " ", block.text).split("\n"):
            lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words = []
            for word in [*lexer, ";"]:
                if not set(word) <= set("|&;<>"):
                    words.append(word)
                    continue
                while words and (words[0] == "sudo" or re.match(r"[A-Z_]+=", words[0])):
                    words.pop(0)
                if words:
                    self.check_words(words)
                words = []

    def check_words(self, words):
        program = words[0]
        if re.match(r"python3?$|/usr/bin/python3$|VENV/bin/python$", program) and words[1:]:
            if words[1].startswith("-"):
                return
            words = words[1:]
            program = words[0]
        if program == "cltool" and words[1:]:
            shown = run([str(self.build / "cltool"), words[1], "--help"], None, None, words[1])
            for word in words[2:]:
                if word.startswith("--") and word not in shown:
                    raise Failure(f"cltool {words[1]}: no option {word}")
            return
        if "/" not in program or re.match(r"(VENV|FOLDER)/", program):
            return
        path = self.build / program[6:] if program.startswith("build/") else self.root / program
        if not path.exists():
            raise Failure(f"{program}: no program of this name")
        for word in words[1:]:
            if word.startswith("--") and word.partition("=")[0] not in self.texts(path):
                raise Failure(f"{program}: no option {word}")
            if re.match(r"(tests|tools|cl|docs|examples)/[\w/.]+$", word):
                if not (self.root / word).exists():
                    raise Failure(f"{word}: no file of this name")

    def texts(self, path):
        """Returns where a program's options are: its text, and those of files beside it."""
        if path.stat().st_size > 1 << 20 or not re.search(r"\.(py|sh)$", path.name):
            shown = subprocess.run(
                [str(path), "--help"], capture_output=True, text=True, check=False, timeout=60
            )
            return shown.stdout + shown.stderr
        beside = [p for p in path.parent.iterdir() if p.suffix in (".py", ".sh", ".bash")]
        return "".join(p.read_text() for p in beside)

    def block(self, block):
        """Does with a block what its directives say; returns the kind: run, norun, ..."""
        if "norun" in block.directives:
            if len(block.directives["norun"]) < 8:
                raise Failure("norun without a reason")
            return "norun"
        needed = block.directives.get("needs")
        python = python_where(needed, self.root) if needed else sys.executable
        if not python:
            print(f"{block}: {needed} is not installed: not run")
            return "absent"
        self.environment["PYTHON"] = python
        for kind in ("output", "quote"):
            if kind in block.directives:
                getattr(self, kind)(block, block.directives[kind])
                return kind
        if block.language in TEXT:
            return "text"
        if block.language not in CODE:
            raise Failure(f"unknown language '{block.language}'")
        if "check" in block.directives:
            self.check(block)
            return "check"
        if "starts" in block.directives:
            folder = self.copy(block)
            for command in re.sub(r"\\\n", " ", block.text).strip().split("\n"):
                start(command, folder, self.environment)
            return "start"
        getattr(self, "run_" + block.language)(block)
        return "run"


def main():
    root, build, work = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    runner = Runner(root, build, work)
    counts, failed = {}, 0
    for page in sys.argv[4:] or pages_of(root):
        for block in blocks_of(root, page):
            try:
                kind = runner.block(block)
            except (Failure, subprocess.TimeoutExpired) as failure:
                print(f"FAILED: {block}: {failure}\n{block.text}", flush=True)
                failed += 1
                kind = "failed"
            counts[kind] = counts.get(kind, 0) + 1
    code = sum(n for kind, n in counts.items() if kind != "text")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    not_run = counts.get("norun", 0) + counts.get("check", 0)
    if not_run > MAX_NOT_RUN * code and len(sys.argv) == 4:
        print(f"{not_run} of {code} blocks of code are not run: at most {MAX_NOT_RUN:.0%} may be")
        failed += 1
    if len(sys.argv) == 4 and counts.get("run", 0) < 30:
        print("fewer than 30 blocks ran")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
