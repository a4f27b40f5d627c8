"""Processes of sabal that start at once, to be killed, or to run on a full disk.

A process that has imported everything makes a copy of itself for every start: a tenth of a second
instead of two. The copies are processes like any other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

PARENT = """
import json, os, resource, signal, sys, traceback
{imports}

def work(*given):
{work}

for line in sys.stdin:
    asked = json.loads(line)
    if "reap" in asked:
        code = os.waitstatus_to_exitcode(os.waitpid(asked["reap"], 0)[1])
        print(code, flush=True)
        continue
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        out = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if asked["largest_file"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, 2 * (asked["largest_file"],))
        work(*asked["given"])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""

SERVE = """
    folder, port = given
    app = create_app(Project.open(folder), worker=False)
    uvicorn.run(app, port=port, log_level="warning")
"""
SERVE_IMPORTS = (
    "import uvicorn; from sabal.labeling.project import Project; "
    "from sabal.labeling.web import create_app"
)
COMMAND = """
    sys.argv = ["sabal", *given]
    main()
"""

KILLED_AT = """
    import os, signal
    from importlib import import_module
    step, *words = given
    module, _, name = step.rpartition(".")
    if ".Store" in module:
        owner = import_module(module.removesuffix(".Store")).Store
    else:
        owner = import_module(module)
    setattr(owner, name, lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL))
    sys.argv = ["sabal", *words]
    main()
"""
"""Run the command, and kill it where it would call the function that is named first."""
COMMAND_IMPORTS = (
    "from sabal.cli import main; import sabal.simulate.simulation, sabal.simulate.html_report, "
    "sabal.labeling.exchange, sabal.labeling.project, sabal.pools, sabal.cli.tables, "
    "sklearn.datasets, sklearn.linear_model, matplotlib.figure, pyarrow.parquet"
)


class Forks:
    """Starts processes that run `work`; use it as a context.

    log: a file for what the latest of them says.
    """

    def __init__(self, imports: str, work: str, log) -> None:
        self.log = log
        self._parent = subprocess.Popen(
            [sys.executable, "-c", PARENT.format(imports=imports, work=work.strip("\n"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._running: set[int] = set()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error) -> None:
        for process in list(self._running):
            self.kill(process)
        self._parent.communicate(timeout=300)

    def start(self, *given, largest_file: int | None = None) -> int:
        """Start a process; with `largest_file`, no file can grow above so many bytes."""
        asked = {"given": list(map(str, given)), "log": str(self.log), "largest_file": largest_file}
        process = self._ask(asked)
        self._running.add(process)
        return process

    def wait(self, process: int) -> int:
        """The exit code once it has ended; minus the signal if it was killed."""
        self._running.discard(process)
        return self._ask({"reap": process})

    def kill(self, process: int) -> int:
        """Kill it wherever it is; the exit code is 0 if it had ended by itself before."""
        os.kill(process, signal.SIGKILL)
        return self.wait(process)

    def run(self, *given, **limits) -> int:
        """Start a process and wait for its end."""
        return self.wait(self.start(*given, **limits))

    def _ask(self, asked: dict) -> int:
        self._parent.stdin.write(json.dumps(asked) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())
