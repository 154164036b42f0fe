"""Programs that run under file_calls.cpp: what they asked of the system, and their end right before a chosen step.

CINGULUM_TEST_FILE_CALLS names the library. Without it (builds with sanitizers, which will not be preloaded after another
library) nothing here can be used.
"""

import collections
import os
import signal
import subprocess
import tempfile
from pathlib import Path

LIBRARY = os.environ.get("CINGULUM_TEST_FILE_CALLS", "")

Call = collections.namedtuple("Call", "name path other result")


def run(command, folder, **variables):
    """Ends as the program does; its calls on what is in `folder` are seen by the library."""
    environment = dict(os.environ, LD_PRELOAD=os.path.abspath(LIBRARY), CINGULUM_TEST_CALLS_UNDER=os.path.realpath(folder),
                       **variables)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run_until(command, folder, step):
    """True when the program was killed right before that step (counted from 1), False when it ended before."""
    result = run(command, folder, CINGULUM_TEST_KILL_AT=str(step))
    if result.returncode == -signal.SIGKILL:
        return True
    if result.returncode != 0:
        raise AssertionError(f"{command}: exit code {result.returncode}: {result.stderr}")
    return False


def record(command, folder):
    """The calls of a run that succeeds."""
    with tempfile.TemporaryDirectory(prefix="cingulum-test-") as temporary:
        log = Path(temporary) / "log"
        result = run(command, folder, CINGULUM_TEST_CALLS_LOG=str(log))
        if result.returncode != 0:
            raise AssertionError(f"{command}: exit code {result.returncode}: {result.stderr}")
        calls = [line.split("\t") for line in log.read_text().splitlines()]
    return [Call(name, path, other, int(result)) for name, path, other, result in calls]
