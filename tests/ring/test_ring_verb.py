"""`cingulum ring` as a user meets it: workloads against NumPy and SciPy, top beside a running process, bench as JSON. The
program is in CINGULUM."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
from scipy import sparse

# A shell in the background has SIGINT ignored, and so would every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
CINGULUM = os.environ["CINGULUM"]
LONG = os.environ.get("CINGULUM_TEST_LONG") == "1"


def run(*words, code=0, environment=None):
    done = subprocess.run([CINGULUM, "ring", *map(str, words)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def scalar_graph(nodes, edges_per_node):
    """The graph of the benchmark: scalar draws, seed 42."""
    rng = np.random.default_rng(42)
    wanted = int(nodes * edges_per_node)
    edges = {}
    while len(edges) < wanted:
        source, target = rng.integers(0, nodes), rng.integers(0, nodes)
        if source != target:
            edges[(int(source), int(target))] = None
    return np.array(list(edges), dtype=np.uint32)


def pagerank(edges, nodes, damping=0.85, tolerance=1e-6, most=100):
    """Vectorised: one sparse product an iteration."""
    degree = np.bincount(edges[:, 0], minlength=nodes).astype(np.float64)
    matrix = sparse.csr_matrix((1.0 / degree[edges[:, 0]], (edges[:, 1], edges[:, 0])), shape=(nodes, nodes))
    matrix = damping * matrix
    ranks = np.ones(nodes) / nodes
    teleport = np.ones(nodes) * (1 - damping) / nodes
    for iteration in range(1, most + 1):
        new = teleport + matrix @ ranks
        difference = np.abs(new - ranks).max()
        ranks = new
        if difference < tolerance:
            break
    return ranks, iteration


def benchmark_signal(length, seed=42):
    rng = np.random.default_rng(seed)
    t = np.arange(length, dtype=np.float32)
    signal = (np.sin(2 * np.pi * t / 1000) + 0.5 * np.sin(2 * np.pi * t / 100)
              + 0.1 * rng.standard_normal(length)).astype(np.float32)
    for index in rng.choice(length, int(length * 0.01), replace=False):
        signal[index] += rng.choice([-1, 1]) * rng.uniform(3, 5)
    return signal


def detect(signal, batch, window=10000):
    """The detector by NumPy, with sums in float64. Also the points whose scores lie so near 3 that rounding may decide."""
    mean, variance = np.float32(0), np.float32(1)
    found, scores_of_batches, near = [], [], []
    for begin in range(0, len(signal), batch):
        values = signal[begin:begin + batch]
        alpha = np.float32(len(values) / (window + len(values)))
        mean = (1 - alpha) * mean + alpha * np.float32(np.mean(values, dtype=np.float64))
        variance = (1 - alpha) * variance + alpha * np.float32(np.var(values, dtype=np.float64))
        scores = np.abs(values - mean) / np.sqrt(variance + np.float32(1e-8))
        indices = np.flatnonzero(scores > 3.0)
        near.append(begin + np.flatnonzero(np.abs(scores - 3) < 1e-5))
        found.append(begin + indices)
        scores_of_batches.append(scores)
    assert all(len(one) <= 100 for one in found), "more of one batch than are listed"
    return (np.concatenate(found).tolist(), np.mean([one.mean(dtype=np.float64) for one in scores_of_batches]),
            set(np.concatenate(near).tolist()))


class Workloads(unittest.TestCase):
    def test_extended_answers_are_checked(self):
        report = json.loads(run("run", "extended", "--quick", "--json", "--no-telemetry"))
        self.assertGreater(report["latency"]["p50_us"], 0)
        self.assertEqual([one["actors"] for one in report["concurrency"]], [1, 2])

    def test_pagerank_is_that_of_scipy(self):
        # Iterations of the benchmark's own report for 1000 nodes.
        cases = [(1000, 2, 25), (1000, 10, 7), (100, 10, None)] + ([(1000, 50, 4), (5000, 2, 21)] if LONG else [])
        with tempfile.TemporaryDirectory() as folder:
            for nodes, per_node, iterations in cases:
                edges = scalar_graph(nodes, per_node)
                path, out = pathlib.Path(folder) / "edges", pathlib.Path(folder) / "ranks"
                edges.tofile(path)
                ranks, steps = pagerank(edges, nodes)
                for actors in (1, 3):
                    report = json.loads(run("run", "pagerank", "--nodes", nodes, "--edges", path, "--ranks", out,
                                            "--force", "--actors", actors, "--json", "--no-telemetry"))
                    self.assertTrue(report["converged"])
                    self.assertEqual(report["iterations"], steps)
                    if iterations is not None:
                        self.assertEqual(report["iterations"], iterations)
                    np.testing.assert_allclose(np.fromfile(out), ranks, rtol=1e-13, atol=0)

    def test_a_random_graph_of_many_edges(self):
        nodes, per_node = (2000000, 5) if LONG else (100000, 5)
        report = json.loads(run("run", "pagerank", "--nodes", nodes, "--edges-per-node", per_node, "--json", "--no-telemetry"))
        self.assertEqual(report["edges"], nodes * per_node)
        self.assertTrue(report["converged"])

    def test_anomalies_are_those_of_numpy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "signal"
            for points, batch in [(100000, 100), (100000, 1000)] + ([(1000000, 1000), (500000, 500)] if LONG else []):
                signal = benchmark_signal(points)
                signal.tofile(path)
                report = json.loads(run("run", "anomaly", "--signal", path, "--batch", batch, "--json", "--no-telemetry"))
                expected, mean, near = detect(signal, batch)
                self.assertGreater(len(expected), points // 200)
                found = report["first_indices"]
                self.assertEqual(found, sorted(set(found)))
                self.assertEqual(len(found), report["anomalies"])
                self.assertLessEqual(set(found) ^ set(expected), near)
                self.assertLess(len(near), len(expected) // 100)
                self.assertAlmostEqual(report["mean_score"], mean, delta=1e-6 * mean)

    def test_odd_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x"
            path.write_bytes(b"abc")
            self.assertIn("3 bytes", run("run", "anomaly", "--signal", path, code=1))
            np.array([[0, 7]], dtype=np.uint32).tofile(path)
            self.assertIn("the edge 0 -> 7 leaves", run("run", "pagerank", "--nodes", 5, "--edges", path, code=2))
            run("run", code=2)
            run("top", "pagerank", code=2)


class Top(unittest.TestCase):
    def test_a_running_process_is_seen_and_a_killed_one_is_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {"XDG_RUNTIME_DIR": folder}
            self.assertIn("no process", run("top", "--once", environment=environment))
            # It works until it is killed: each point is a message of its own.
            worker = subprocess.Popen([CINGULUM, "ring", "run", "anomaly", "--device", "cpu", "--points", "10000000", "--batch", "1"],
                                      env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + 60
                actors = []
                while not actors and worker.poll() is None and time.monotonic() < deadline:
                    processes = json.loads(run("top", "--json", environment=environment))["processes"]
                    actors = processes[0]["actors"] if processes else []
                self.assertTrue(actors, "actors of a running process are shown")
                self.assertEqual(processes[0]["process"], worker.pid)
                self.assertEqual(processes[0]["program"], "cingulum ring run anomaly")
                self.assertEqual([one["name"] for one in actors], ["detector"])
                self.assertTrue(processes[0]["alive"])
                self.assertEqual(processes[0]["gpus"][0]["name"] == "N/A", bool(processes[0]["gpus"][0]["note"]))
                table = run("top", "--once", environment=environment)
                self.assertIn(f"process {worker.pid}", table)
                text = run("top", "--prometheus", environment=environment)
                self.assertIn("# TYPE cingulum_ring_received_total counter", text)
                self.assertIsNone(worker.poll(), "it ended before it was killed")
                worker.send_signal(signal.SIGKILL)
                worker.wait()
                processes = json.loads(run("top", "--json", environment=environment))["processes"]
                self.assertEqual([one["alive"] for one in processes], [False])
            finally:
                worker.kill()
                worker.wait()
            # The next process clears the page away, and its own at its end.
            run("run", "extended", "--quick", environment=environment)
            self.assertEqual(list(pathlib.Path(folder).rglob("*.ring")), [])

    def test_live_mode_ends_by_an_interrupt(self):
        with tempfile.TemporaryDirectory() as folder:
            top = subprocess.Popen([CINGULUM, "ring", "top", "--interval", "0.1"], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "XDG_RUNTIME_DIR": folder})
            self.assertIn("no process", top.stdout.readline())
            top.send_signal(signal.SIGINT)
            self.assertEqual(top.wait(timeout=20), 0)
            top.stdout.close()

    def test_a_file_that_is_no_page_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 200)
            file.flush()
            self.assertIn("not a telemetry page", run("top", "--once", "--telemetry", file.name, code=1))


class Bench(unittest.TestCase):
    def test_a_page_that_cannot_be_made_is_told_once(self):
        with tempfile.NamedTemporaryFile() as file:
            done = subprocess.run([CINGULUM, "ring", "bench", "--quick", "--device", "cpu"], capture_output=True, text=True,
                                  timeout=300, env={**os.environ, "XDG_RUNTIME_DIR": file.name})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("will not see this run"), 1, done.stderr)

    def test_rows_stand_beside_their_limits(self):
        rows = json.loads(run("bench", "--quick", "--json", "--no-telemetry"))["rows"]
        limited = [row for row in rows if "limit" in row]
        self.assertGreaterEqual(len(limited), 5)
        for row in rows:
            self.assertGreater(row["median"], 0, row)
        for row in limited:
            self.assertIn(row["limit_name"], [one["scenario"] for one in rows])


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
