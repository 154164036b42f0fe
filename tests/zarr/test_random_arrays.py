"""Random arrays, both ways with zarr-python and tensorstore: type, byte order, order, chunks, shards, codecs, edges,
missing chunks; and random writes of regions against a numpy array.

CINGULUM_TEST_ZARR_PROBE names the program zarr_probe. CINGULUM_TEST_SEED chooses other arrays; CINGULUM_TEST_LONG=1
takes 1000 of each kind instead of 60.
"""
import functools
import os
import pathlib
import random
import shutil
import sys
import tempfile
import unittest
import warnings

import numcodecs
import numpy
import tensorstore
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from probe import Probe  # noqa: E402

SEED = int(os.environ.get("CINGULUM_TEST_SEED", "20261116"))
COUNT = 1000 if os.environ.get("CINGULUM_TEST_LONG") else 60
TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64", "complex64", "complex128"]
warnings.simplefilter("ignore")  # zarr-python warns of every codec of numcodecs


def random_values(rng, dtype, shape):
    """Any bits, NaN and infinity among them; half of the arrays are smooth, so that compressors have something to do."""
    numbers = numpy.random.default_rng(rng.getrandbits(32))
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return numbers.integers(0, 2, shape).astype(bool)
    if rng.random() < 0.5:
        count = int(numpy.prod(shape)) * dtype.itemsize
        return numpy.frombuffer(numbers.bytes(count), dtype=dtype).reshape(shape).copy()
    ramp = numpy.arange(int(numpy.prod(shape))) % 97
    return ramp.astype(dtype).reshape(shape)


def random_shape(rng, rank):
    return tuple(rng.choice([1, 2, 3, 5, 8, 13, 20]) for _ in range(rank))


def random_chunks(rng, shape):
    return tuple(max(1, rng.randint(1, extent + 2)) for extent in shape)


def same_bits(a, b):
    return a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and (
        numpy.ascontiguousarray(a).astype(a.dtype.newbyteorder("=")).tobytes()
        == numpy.ascontiguousarray(b).astype(b.dtype.newbyteorder("=")).tobytes())


def random_region(rng, shape):
    origin, extent = [], []
    for length in shape:
        begin = rng.randint(0, length)
        origin.append(begin)
        extent.append(rng.randint(0, length - begin))
    return origin, extent


def for_random_arrays(test):
    """Runs a test with COUNT generators of random numbers, each with a name for its array."""
    @functools.wraps(test)
    def run(self):
        for number in range(COUNT):
            store = self.folder / f"{number}.zarr"
            with self.subTest(seed=SEED, number=number):
                test(self, random.Random(SEED * 100003 + number), store)
            shutil.rmtree(store, ignore_errors=True)
    return run


class RandomArrays(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.probe = Probe()
        self.addCleanup(self.probe.close)

    def check_ours(self, rng, store, values, path=""):
        """Whole, and a region, on one thread and on several."""
        ours, _ = self.probe.read(store, path, threads=rng.choice([1, 2, 8]))
        self.assertTrue(same_bits(ours, values), self.probe.describe(store, path))
        origin, extent = random_region(rng, values.shape)
        part, _ = self.probe.read(store, path, origin=origin, shape=extent, threads=rng.choice([1, 2]))
        where = tuple(slice(b, b + n) for b, n in zip(origin, extent))
        self.assertTrue(same_bits(part, values[where]), (self.probe.describe(store, path), origin, extent))

    @staticmethod
    def zarr_python_v2(rng, store, values):
        dtype = values.dtype.newbyteorder(rng.choice("<>"))
        item = dtype.itemsize
        compressor = rng.choice([
            None, numcodecs.Zlib(rng.randint(0, 9)), numcodecs.GZip(rng.randint(0, 9)), numcodecs.BZ2(rng.randint(1, 9)),
            numcodecs.Zstd(rng.randint(-3, 9), checksum=rng.random() < 0.5), numcodecs.LZ4(rng.randint(1, 5)),
            numcodecs.Blosc(rng.choice(["lz4", "zstd", "blosclz", "zlib", "lz4hc"]), rng.randint(0, 9), rng.choice([0, 1, 2, -1]))])
        chunks = random_chunks(rng, values.shape)
        filters = []
        if dtype.kind in "iu" and rng.random() < 0.4:
            filters.append(numcodecs.Delta(dtype=dtype.str))
        if rng.random() < 0.3:
            # numcodecs refuses what is no multiple.
            whole = int(numpy.prod(chunks)) * item % 4 == 0
            filters.append(numcodecs.Shuffle(elementsize=rng.choice([item, 4]) if whole else item))
        if rng.random() < 0.2:
            filters.append(numcodecs.Fletcher32())
        fill = None if rng.random() < 0.2 else (values.dtype.type(0) if dtype.kind != "f" else rng.choice([0.0, float("nan"), float("inf"), 1.5]))
        array = zarr.create_array(store, shape=values.shape, chunks=chunks, dtype=dtype, zarr_format=2,
                                  order=rng.choice("CF"), compressors=compressor, filters=filters or None,
                                  fill_value=fill, chunk_key_encoding={"name": "v2", "separator": rng.choice("./")})
        return array

    @staticmethod
    def zarr_python_v3(rng, store, values):
        item = values.dtype.itemsize

        def byte_codecs(checksum=True):
            codecs = []
            if rng.random() < 0.6:
                codecs.append(rng.choice([
                    ZstdCodec(level=rng.randint(-3, 9), checksum=rng.random() < 0.5), GzipCodec(level=rng.randint(0, 9)),
                    BloscCodec(cname=rng.choice(["lz4", "zstd", "blosclz", "zlib", "lz4hc"]), clevel=rng.randint(0, 9),
                               shuffle=rng.choice(["noshuffle", "shuffle", "bitshuffle"]), typesize=item)]))
            if checksum and rng.random() < 0.5:
                codecs.append(Crc32cCodec())
            return codecs

        def array_codecs(rank):
            codecs = []
            if rank and rng.random() < 0.5:
                order = list(range(rank))
                rng.shuffle(order)
                codecs.append(TransposeCodec(order=order))
            codecs.append(BytesCodec(endian=rng.choice(["little", "big"])))
            return codecs

        rank = values.ndim
        chunks = random_chunks(rng, values.shape)
        if rank and rng.random() < 0.6:  # zarr-python cannot write a shard without dimensions
            inner = [*array_codecs(rank), *byte_codecs()]
            shape = tuple(chunk * rng.randint(1, 3) for chunk in chunks)
            location = rng.choice(["start", "end"])
            index = [BytesCodec(endian=rng.choice(["little", "big"])), *([Crc32cCodec()] if rng.random() < 0.8 else [])]
            codecs = [ShardingCodec(chunk_shape=chunks, codecs=inner, index_codecs=index, index_location=location)]
            if rng.random() < 0.25:
                outer = tuple(extent * rng.randint(1, 2) for extent in shape)
                codecs = [ShardingCodec(chunk_shape=shape, codecs=codecs, index_location=rng.choice(["start", "end"]))]
                shape = outer
            if rank and rng.random() < 0.2:
                # A transposed shard: its inner chunks are in its own order of dimensions.
                order = list(range(rank))
                rng.shuffle(order)
                # Its sides are equal: zarr-python compares them with the shard before it is transposed.
                side = rng.randint(1, 5)
                codecs = [TransposeCodec(order=order),
                          ShardingCodec(chunk_shape=(side,) * rank, codecs=inner, index_location="end")]
                shape = tuple(side * rng.randint(1, 3) for _ in chunks)
            chunks = shape
        else:
            codecs = [*array_codecs(rank), *byte_codecs()]
        kind = values.dtype.kind
        fill = {"b": False, "c": 1 + 2j}.get(kind, rng.choice([0.0, float("nan"), -float("inf"), 0.1]) if kind == "f" else 3)
        metadata = zarr.core.metadata.v3.ArrayV3Metadata(
            shape=values.shape, data_type=zarr.dtype.parse_dtype(values.dtype, zarr_format=3),
            chunk_grid=zarr.core.chunk_grids.RegularChunkGrid(chunk_shape=chunks),
            chunk_key_encoding={"name": rng.choice(["default", "v2"]), "configuration": {"separator": rng.choice("./")}},
            fill_value=fill, codecs=codecs, attributes={}, dimension_names=None)
        os.makedirs(store)
        (pathlib.Path(store) / "zarr.json").write_bytes(metadata.to_buffer_dict(zarr.core.buffer.default_buffer_prototype())["zarr.json"].to_bytes())
        return zarr.open_array(store, mode="r+")

    @for_random_arrays
    def test_what_zarr_python_writes_is_read(self, rng, store):
        values = random_values(rng, rng.choice(TYPES), random_shape(rng, rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
        make = rng.choice([self.zarr_python_v2, self.zarr_python_v3])
        array = make(rng, store, values)
        if values.ndim and rng.random() < 0.3:
            # Only a part: the rest is missing, and filled.
            where = tuple(slice(0, max(1, extent // 2)) for extent in values.shape)
            array[where] = values[where]
            values = numpy.asarray(array[...])
        else:
            array[...] = values
        self.check_ours(rng, store, values)

    @staticmethod
    def codec_of(rng):
        return rng.choice(["none", "zstd", "zstd:7", "gzip:1", "blosc-lz4", "blosc-zstd:3", "blosc-zlib:1", "zlib:2", "bz2", "lz4"])

    @for_random_arrays
    def test_what_we_write_is_read_by_zarr_python(self, rng, store):
        values = random_values(rng, rng.choice(TYPES), random_shape(rng, rng.choice([0, 1, 2, 3, 4, 5])))
        chunks = random_chunks(rng, values.shape)
        members = {"chunks": chunks, "format": rng.choice([2, 3]), "codec": self.codec_of(rng),
                   "threads": rng.choice([1, 2, 8]), "separator": rng.choice("./")}
        if values.ndim and rng.random() < 0.7:
            members["shards"] = [chunk * rng.randint(1, 3) for chunk in chunks]
        else:
            members["sharded"] = False
        archive = rng.random() < 0.2
        name = store.with_suffix(".zip") if archive else store
        self.probe.new(name, values, **members)
        if archive:
            with zarr.storage.ZipStore(name, mode="r") as opened:
                theirs = numpy.asarray(zarr.open_array(opened, mode="r")[...])
        else:
            theirs = numpy.asarray(zarr.open_array(name, mode="r")[...])
        self.assertTrue(same_bits(theirs, values), members)
        self.check_ours(rng, name, values)
        if archive:
            os.unlink(name)

    @for_random_arrays
    def test_what_we_write_is_read_by_tensorstore(self, rng, store):
        # It knows no float16 in v2 filters and none of numcodecs' names in v3.
        values = random_values(rng, rng.choice(TYPES), random_shape(rng, rng.choice([1, 2, 3, 4])))
        chunks = random_chunks(rng, values.shape)
        version = rng.choice([2, 3])
        # In v2 it knows no zstd with a checksum.
        codec = rng.choice(["none", "zstd", "gzip:1", "blosc-lz4", "blosc-zstd:3"] if version == 3 else ["none", "zlib", "blosc-lz4"])
        shards = [chunk * rng.randint(1, 3) for chunk in chunks]
        self.probe.new(store, values, chunks=chunks, format=version, codec=codec, shards=shards,
                       threads=rng.choice([1, 2]), sharded=rng.random() < 0.7)
        opened = tensorstore.open({"driver": "zarr3" if version == 3 else "zarr",
                                   "kvstore": {"driver": "file", "path": str(store)}}).result()
        self.assertTrue(same_bits(numpy.asarray(opened.read().result()), values), (version, codec))

    @for_random_arrays
    def test_what_tensorstore_writes_is_read(self, rng, store):
        values = random_values(rng, rng.choice(TYPES[:-2]), random_shape(rng, rng.choice([1, 2, 3, 4])))
        chunks = random_chunks(rng, values.shape)
        inner = [{"name": "bytes", "configuration": {"endian": rng.choice(["little", "big"])}}]
        if rng.random() < 0.5:
            order = list(range(values.ndim))
            rng.shuffle(order)
            inner.insert(0, {"name": "transpose", "configuration": {"order": order}})
        inner += rng.choice([[], [{"name": "gzip", "configuration": {"level": 3}}],
                             [{"name": "zstd", "configuration": {"level": 3}}], [{"name": "crc32c"}],
                             [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle"}}]])
        codecs, outer = inner, chunks
        if rng.random() < 0.6:
            outer = [chunk * rng.randint(1, 3) for chunk in chunks]
            codecs = [{"name": "sharding_indexed", "configuration": {"chunk_shape": chunks, "codecs": inner,
                       "index_location": rng.choice(["start", "end"])}}]
        kind = values.dtype.kind
        opened = tensorstore.open(
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store)},
             "metadata": {"shape": values.shape, "data_type": str(values.dtype), "codecs": codecs,
                          "fill_value": False if kind == "b" else 1,
                          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}}}},
            create=True).result()
        opened.write(values).result()
        self.check_ours(rng, store, values)

    @for_random_arrays
    def test_regions_written_one_after_another_equal_a_numpy_array(self, rng, store):
        model = random_values(rng, rng.choice(TYPES), random_shape(rng, rng.choice([1, 2, 3])))
        if rng.random() < 0.5:
            chunks = random_chunks(rng, model.shape)
            self.probe.new(store, model, chunks=chunks, shards=[chunk * rng.randint(1, 3) for chunk in chunks],
                           codec=self.codec_of(rng), sharded=rng.random() < 0.7, format=rng.choice([2, 3]))
        else:
            # The array has any layout that zarr-python makes, nested and transposed shards among them.
            make = rng.choice([self.zarr_python_v2, self.zarr_python_v3])
            array = make(rng, store, model)
            model = numpy.asarray(array[...])
        for _ in range(6):
            origin, extent = random_region(rng, model.shape)
            values = random_values(rng, model.dtype.newbyteorder("="), extent)
            model = model.astype(model.dtype.newbyteorder("="))
            self.probe.write(store, values, origin, threads=rng.choice([1, 2, 8]))
            model[tuple(slice(b, b + n) for b, n in zip(origin, extent))] = values
            theirs = numpy.asarray(zarr.open_array(store, mode="r")[...])
            self.assertTrue(same_bits(theirs, model), self.probe.describe(store))
        self.check_ours(rng, store, model)

    def test_threads_change_no_byte(self):
        for number in range(12):
            rng = random.Random(SEED + number)
            values = random_values(rng, rng.choice(TYPES), (20, 13, 8))
            name = ".zip" if number % 3 == 0 else ".zarr"
            codec = self.codec_of(rng)
            trees = []
            for threads in (1, 2, 8):
                store = self.folder / f"threads{number}-{threads}{name}"
                self.probe.new(store, values, chunks=(3, 4, 8), shards=(6, 8, 8), codec=codec, threads=threads)
                files = [store] if store.is_file() else sorted(path for path in store.rglob("*") if path.is_file())
                trees.append([(path.relative_to(store), path.read_bytes()) for path in files])
            self.assertEqual(trees[0], trees[1], codec)
            self.assertEqual(trees[0], trees[2], codec)


if __name__ == "__main__":
    suite.main()
