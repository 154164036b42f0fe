"""The ring workloads side by side: `cingulum ring run` and fair vectorised baselines on the same inputs, in one run.

    bench/peers/ring.py CINGULUM [--device cpu] [--quick | --brief] [--only pagerank|anomaly|extended] [--out FILE.json]
PageRank: SciPy's sparse product, matrix built from arrays. Anomalies: NumPy, a batch at a time. Both by CuPy too, where there
is one: on the GPU, which has the whole signal from the start, while ours gets it batch by batch from the host. Inputs are
drawn by NumPy with the seeds of the benchmark that the workloads come from; results are compared before times are. The
extended workload has no outside baseline: its figures stand beside sums without messages. --brief: few sizes, the graph of 10
million edges among them.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import sparse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "ring"))


def chunked_graph(nodes, edges_per_node, seed=42):
    """Distinct edges without loops; for large graphs."""
    rng = np.random.default_rng(seed)
    wanted = int(nodes * edges_per_node)
    keys = np.empty(0, dtype=np.uint64)
    while len(keys) < wanted:
        missing = wanted - len(keys)
        sources = rng.integers(0, nodes, size=missing, dtype=np.uint64)
        targets = rng.integers(0, nodes, size=missing, dtype=np.uint64)
        fresh = (sources << np.uint64(32) | targets)[sources != targets]
        keys = np.concatenate([keys, fresh])
        keys.sort()  # np.unique takes a table instead, which is slower by far for so many
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


def best_of(count, body):
    times, result = [], None
    for _ in range(count):
        start = time.perf_counter()
        result = body()
        times.append(time.perf_counter() - start)
    return min(times), result


def pagerank_scipy(edges, nodes, numpy=np, sparse_module=sparse, damping=0.85, tolerance=1e-6):
    start = time.perf_counter()
    sources = numpy.asarray(edges[:, 0].astype(np.int32))
    targets = numpy.asarray(edges[:, 1].astype(np.int32))
    degree = numpy.bincount(sources, minlength=nodes).astype(numpy.float64)
    matrix = damping * sparse_module.csr_matrix((1.0 / degree[sources], (targets, sources)), shape=(nodes, nodes))
    build = time.perf_counter() - start
    ranks = numpy.ones(nodes) / nodes
    teleport = numpy.ones(nodes) * (1 - damping) / nodes
    start = time.perf_counter()
    for iteration in range(1, 101):
        new = teleport + matrix @ ranks
        difference = float(numpy.abs(new - ranks).max())
        ranks = new
        if difference < tolerance:
            break
    return build, time.perf_counter() - start, iteration, ranks


def detect_numpy(signal, batch, window=10000, numpy=np):
    # Arrays of `numpy` on the left: CuPy's take NumPy's scalars, not the other way round.
    mean, variance, found = numpy.zeros((), np.float32), numpy.ones((), np.float32), 0
    for begin in range(0, len(signal), batch):
        values = signal[begin:begin + batch]
        alpha = np.float32(len(values) / (window + len(values)))
        mean = mean * (1 - alpha) + values.mean() * alpha
        variance = variance * (1 - alpha) + values.var() * alpha
        scores = numpy.abs(values - mean) / numpy.sqrt(variance + np.float32(1e-8))
        mask = scores > 3.0
        found += int(mask.sum())
        # What the actor answers, on the host.
        numpy.flatnonzero(mask)[:100].tolist(), float(scores.mean()), float(scores.max())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cingulum")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--only", choices=("pagerank", "anomaly", "extended"))
    parser.add_argument("--out")
    options = parser.parse_args()
    import os
    os.environ.setdefault("CINGULUM", options.cingulum)
    from test_ring_verb import benchmark_signal, scalar_graph

    def ring(*words):
        command = [options.cingulum, "ring", "run", *map(str, words), "--device", options.device, "--json", "--no-telemetry"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    try:
        import cupy
        import cupyx.scipy.sparse
    except ImportError:
        cupy = None
    rows = []
    repeats = 1 if options.quick else 2 if options.brief else 3
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print("PageRank: iterate time, ms (build time in brackets)")
        small = [(1000, 10)] if options.quick else [(nodes, per) for nodes in (100, 500, 1000, 5000) for per in (2, 10, 50) if per * 2 < nodes]
        large = [(100000, 5)] if options.quick else [(nodes, 5) for nodes in (10000, 50000, 100000, 500000, 1000000, 2000000)]
        if options.brief:
            small, large = [(1000, 10)], [(100000, 5), (2000000, 5)]
        if options.only not in (None, "pagerank"):
            small, large = [], []
        for nodes, per_node in small + large:
            edges = scalar_graph(nodes, per_node) if (nodes, per_node) in small else chunked_graph(nodes, per_node)
            edges.tofile(folder / "edges")
            ours = min((ring("pagerank", "--nodes", nodes, "--edges", folder / "edges", "--ranks", folder / "ranks", "--force")
                        for _ in range(repeats)), key=lambda report: report["iterate_s"])
            theirs = min((pagerank_scipy(edges, nodes) for _ in range(repeats)), key=lambda times: times[1])
            ranks = np.fromfile(folder / "ranks")
            assert ours["iterations"] == theirs[2], (ours["iterations"], theirs[2])
            np.testing.assert_allclose(ranks, theirs[3], rtol=1e-12)
            row = {"workload": "pagerank", "nodes": nodes, "edges": len(edges), "iterations": theirs[2],
                   "same_bits_as_scipy": bool((ranks == theirs[3]).all()),
                   "cingulum": {key: ours[key] for key in ("place", "workers", "build_s", "keep_s", "iterate_s", "sum_s", "meet_s")},
                   "scipy": {"build_s": theirs[0], "iterate_s": theirs[1]},
                   "iterate_ratio": theirs[1] / ours["iterate_s"]}
            if cupy is not None:
                gpu = min((pagerank_scipy(edges, nodes, cupy, cupyx.scipy.sparse) for _ in range(repeats + 1)), key=lambda times: times[1])
                row["cupy"] = {"build_s": gpu[0], "iterate_s": gpu[1]}
                row["iterate_ratio_cupy"] = gpu[1] / ours["iterate_s"]
            rows.append(row)
            print(f"  {nodes:>8} nodes {len(edges):>9} edges {theirs[2]:>3} iterations: cingulum {1e3 * ours['iterate_s']:9.2f} "
                  f"[sums {1e3 * ours['sum_s']:.2f}, meetings {1e3 * ours['meet_s']:.2f}] "
                  f"({1e3 * ours['build_s']:.1f}), scipy {1e3 * theirs[1]:9.2f} ({1e3 * theirs[0]:.1f}): {row['iterate_ratio']:.2f} x, "
                  f"{'same bits' if row['same_bits_as_scipy'] else 'within 1e-12'}"
                  + (f"; cupy {1e3 * row['cupy']['iterate_s']:.2f}: {row['iterate_ratio_cupy']:.2f} x" if "cupy" in row else ""))
        print("Anomalies: points a second, one batch in flight")
        cases = [(20000, 100)] if options.quick else [(points, batch) for points in (100000, 500000, 1000000) for batch in (100, 500, 1000)]
        if options.brief:
            cases = [(100000, 100), (1000000, 1000)]
        if options.only not in (None, "anomaly"):
            cases = []
        for points, batch in cases:
            signal = benchmark_signal(points)
            signal.tofile(folder / "signal")
            ours = max((ring("anomaly", "--signal", folder / "signal", "--batch", batch) for _ in range(repeats)),
                       key=lambda report: report["points_per_s"])
            seconds, found = best_of(repeats, lambda: detect_numpy(signal, batch))
            rows.append({"workload": "anomaly", "points": points, "batch": batch, "anomalies": ours["anomalies"],
                         "numpy_anomalies": found,
                         "cingulum": {"place": ours["place"], "points_per_s": ours["points_per_s"], "batch_latency": ours["batch_latency"]},
                         "numpy": {"points_per_s": points / seconds}, "ratio": ours["points_per_s"] * seconds / points})
            by_cupy = ""
            if cupy is not None:
                on_gpu = cupy.asarray(signal)
                gpu_seconds, gpu_found = best_of(repeats, lambda: detect_numpy(on_gpu, batch, numpy=cupy))
                rows[-1]["cupy"] = {"points_per_s": points / gpu_seconds, "anomalies": gpu_found}
                rows[-1]["ratio_cupy"] = ours["points_per_s"] * gpu_seconds / points
                by_cupy = f"; cupy {points / gpu_seconds / 1e6:.2f} M/s: {rows[-1]['ratio_cupy']:.1f} x"
            print(f"  {points:>8} points, batch {batch:>4}: cingulum {ours['points_per_s'] / 1e6:7.2f} M/s (batch p50 "
                  f"{ours['batch_latency']['p50_us']:.1f} us), numpy {points / seconds / 1e6:7.2f} M/s: {rows[-1]['ratio']:.1f} x; "
                  f"{ours['anomalies']} and {found} found{by_cupy}")
        if options.only in (None, "extended"):
            extended = ring("extended", *(["--quick"] if options.quick else []))
            rows.append(extended)
            print(f"Extended: round trip p50 {extended['latency']['p50_us']:.2f} us, p99 {extended['latency']['p99_us']:.2f} us")
            for one in extended["streaming"]:
                print(f"  {one['messages']:>6} messages of {one['numbers']:>4} numbers: {one['messages_per_s'] / 1e6:.2f} M/s "
                      f"(sums without messages: {one['direct_per_s'] / 1e6:.2f} M/s)")
            for one in extended["concurrency"]:
                print(f"  {one['actors']} actors: {one['messages_per_s'] / 1e6:.2f} M messages/s")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"device": options.device, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
