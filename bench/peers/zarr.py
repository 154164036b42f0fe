#!/usr/bin/env python3
"""Reads an array with another program, as the bench of Zarr does with Cingulum: seconds of each repetition as JSON, a line
for each scenario.

    zarr.py ARRAY zarr-python|tensorstore|"zarr-python gpu"|kvikio REPETITIONS SMALL_REGIONS THREADS
The whole array, the files warm in the page cache; then SMALL_REGIONS regions of 64 KiB (zarr-python, tensorstore).
"""
import json
import pathlib
import sys
import time

import numpy as np

path, peer, repetitions, small, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])


def tell(name, scenario, seconds, each=None):
    line = {"peer": name, "scenario": scenario, "seconds": seconds}
    if each:
        line["each"] = each
    print(json.dumps(line), flush=True)


def measured(body, count):
    body()
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        body()
        seconds.append(time.perf_counter() - begin)
    return seconds


def small_regions(shape, itemsize, chunks):
    """The same places as small_region in src/measure/zarr_rows.cpp."""
    whole_chunks = int(np.prod(chunks)) * itemsize == 65536
    for n in range(small):
        left = max(1, 65536 // itemsize)
        state = n * 2654435761 % 4294967296
        region = []
        for d, extent in enumerate(shape):
            edge = chunks[d] if whole_chunks else int(left ** (1 / (len(shape) - d)) + 0.5)
            edge = min(max(edge, 1), extent)
            left = max(1, left // edge)
            state = (state * 1664525 + 1013904223) % 4294967296
            first = state % (extent - edge + 1)
            if whole_chunks:
                first = first // edge * edge
            region.append(slice(first, first + edge))
        yield tuple(region)


def host(name, array, chunks, read):
    tell(name, "to host, warm", measured(lambda: read(tuple(slice(None) for _ in array.shape)), repetitions))
    if small:
        regions = list(small_regions(array.shape, np.dtype(array.dtype.name).itemsize, chunks))
        tell(name, "a region of 64 KiB, warm", measured(lambda: [read(region) for region in regions], 3), small)


if peer == "zarr-python":
    import zarr

    zarr.config.set({"threading.max_workers": threads, "async.concurrency": max(10, 2 * threads)})
    opened = zarr.open_array(path, mode="r")
    host(f"zarr-python {zarr.__version__}", opened, opened.chunks, lambda region: opened[region])
elif peer == "tensorstore":
    import importlib.metadata

    import tensorstore as ts

    driver = "zarr3" if (pathlib.Path(path) / "zarr.json").exists() else "zarr"
    opened = ts.open({"driver": driver, "kvstore": {"driver": "file", "path": path}, "open": True,
                      "context": {"data_copy_concurrency": {"limit": threads}, "file_io_concurrency": {"limit": threads}}}).result()
    host(f"tensorstore {importlib.metadata.version('tensorstore')}", opened, opened.chunk_layout.read_chunk.shape,
         lambda region: opened[region].read().result())
elif peer == "zarr-python gpu":
    import cupy
    import zarr

    # Its GPU buffers do not shard: bench_zarr gives it an unsharded copy.
    with zarr.config.enable_gpu():
        opened = zarr.open_array(path, mode="r")

        def read():
            data = opened[...]
            cupy.cuda.Device().synchronize()
            assert isinstance(data, cupy.ndarray)

        tell(f"zarr-python {zarr.__version__} enable_gpu", "to the device, warm", measured(read, repetitions))
elif peer == "kvikio":
    import cupy
    import kvikio
    import kvikio.defaults
    import zarr

    kvikio.defaults.set("num_threads", threads)
    opened = zarr.open_array(path, mode="r")
    assert not opened.shards and not opened.compressors, "kvikio's reader takes plain unsharded chunks"
    chunk_bytes = int(np.prod(opened.chunks)) * opened.dtype.itemsize
    files = sorted(file for file in pathlib.Path(path).rglob("*") if file.is_file() and file.stat().st_size == chunk_bytes)
    assert files, "no plain chunks"
    scratch = cupy.empty((len(files), chunk_bytes), dtype=cupy.uint8)

    def read():
        # Every chunk into its own place, without the copies that make one array of them: a bound from above.
        handles = [kvikio.CuFile(file, "r") for file in files]
        futures = [handle.pread(scratch[i]) for i, handle in enumerate(handles)]
        assert all(future.get() == chunk_bytes for future in futures)
        for handle in handles:
            handle.close()
        cupy.cuda.Device().synchronize()

    tell(f"kvikio {kvikio.__version__}, chunks not put together", "to the device, warm", measured(read, repetitions))
