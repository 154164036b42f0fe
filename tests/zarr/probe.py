"""zarr_probe as Python sees it: regions of arrays read and written by the library, as numpy arrays."""
import json
import os
import subprocess
import tempfile

import numpy

PROGRAM = os.environ["CINGULUM_TEST_ZARR_PROBE"]


class Refused(Exception):
    """What the library answered in place of a result."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.kind = answer["kind"]


class Probe:
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "elements")

    def close(self):
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()
        assert code == 0, f"zarr_probe ended with {code}"

    def ask(self, op, store, **members):
        self.process.stdin.write(json.dumps({"op": op, "store": str(store), **members}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"zarr_probe died of {op} {store} {members}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer)
        return answer

    def describe(self, store, path=""):
        return self.ask("describe", store, path=path)

    def read(self, store, path="", **members):
        """The elements, and what is said about the reading."""
        answer = self.ask("read", store, path=path, to=self.file, **members)
        with open(self.file, "rb") as file:
            data = file.read()
        return numpy.frombuffer(data, dtype=answer["type"]).reshape(answer["shape"]), answer

    def new(self, store, values, op="new", **members):
        values = numpy.asarray(values, order="C")
        with open(self.file, "wb") as file:
            file.write(values.tobytes())
        return self.ask(op, store, type=str(values.dtype), shape=list(values.shape), **{"from": self.file}, **members)

    def write(self, store, values, origin, path="", **members):
        values = numpy.asarray(values, order="C")
        with open(self.file, "wb") as file:
            file.write(values.tobytes())
        return self.ask("write", store, path=path, origin=list(origin), shape=list(values.shape), **{"from": self.file},
                        **members)
