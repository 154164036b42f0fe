"""The wire format against Python's msgpack: messages as Python's ring kernels pack them are decoded and encoded to the same
bytes, older forms are read, damage is refused by name. The probe program is in CINGULUM_TEST_WIRE_PROBE."""
import os
import random
import subprocess
import unittest
import uuid

import msgpack
import numpy as np

PROBE = os.environ["CINGULUM_TEST_WIRE_PROBE"]
LONG = os.environ.get("CINGULUM_TEST_LONG") == "1"


def as_map(value):
    return {"__uuid_bin__": value.bytes}


def array(values, dtype):
    values = np.array(values, dtype=dtype)
    return {"__ndarray__": values.tobytes(), "dtype": str(values.dtype), "shape": list(values.shape)}


def envelope(kind, fields, message_id, priority=128, correlation=None):
    return {**fields, "message_id": as_map(message_id), "priority": priority,
            "correlation_id": None if correlation is None else as_map(correlation), "__type__": kind}


def ask(inputs):
    """The probe's answers: bytes, or the text of the error."""
    lines = "".join(content.hex() + "\n" for content in inputs)
    done = subprocess.run([PROBE], input=lines, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"the probe ended with {done.returncode}: {done.stderr}"
    answers = done.stdout.splitlines()
    assert len(answers) == len(inputs)
    return [bytes.fromhex(line[3:]) if line.startswith("ok ") else line[6:] for line in answers]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self, bits, signed):
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        edges = [low, high, 0, 1, -1, 31, 32, 127, 128, 255, 256, 32767, 32768, 65535, 65536, -32, -33, -128, -129]
        value = self.random.choice(edges + [self.random.randint(low, high)] * 8)
        return min(max(value, low), high)

    def real(self):
        return self.random.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1e-310, self.random.gauss(0, 1e10)])

    def message(self):
        kind = self.random.choice(["RingKernelMessage", "Numbers", "Reals", "Texts", "Lists"])
        fields = {}
        if kind == "Numbers":
            for name in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
                fields[name] = self.integer(int(name[1:]), name[0] == "i")
            fields["f32"] = float(np.float32(self.random.gauss(0, 100)))
            fields["flag"] = self.random.random() < 0.5
            fields["phase"] = self.random.randint(0, 255)
        elif kind == "Reals":
            fields = {"f64": self.real(), "row": array([self.random.gauss(0, 1) for _ in range(4)], "f4"),
                      "grid": array([[self.integer(16, True) for _ in range(2)] for _ in range(3)], "i2")}
        elif kind == "Texts":
            text = "".join(self.random.choice("abcäß€🧠 \n\"") for _ in range(self.random.randint(0, 5)))
            fields = {"origin": as_map(self.uuid()), "label": text}
        elif kind == "Lists":
            fields = {"samples": array([self.real() for _ in range(self.random.choice([0, 1, 15, 16, 40, 9000]))], "f8"),
                      "picks": array([self.integer(32, False) for _ in range(self.random.randint(0, 6))], "u4")}
        correlation = self.uuid() if self.random.random() < 0.5 else None
        return envelope(kind, fields, self.uuid(), self.random.randint(0, 255), correlation)

    def uuid(self):
        return uuid.UUID(int=self.random.getrandbits(128), version=4)


class Wire(unittest.TestCase):
    def test_an_empty_base_message_is_98_bytes(self):
        packed = msgpack.packb(envelope("RingKernelMessage", {}, uuid.uuid4()))
        self.assertEqual(len(packed), 98)
        self.assertEqual(ask([packed]), [packed])

    def test_what_python_packs_comes_back_byte_for_byte(self):
        seed = 20261115
        generator = Generator(seed)
        # A process for some at a time: all of the long form are hundreds of megabytes.
        for _ in range(50 if LONG else 1):
            packed = [msgpack.packb(generator.message()) for _ in range(2000)]
            for sent, got in zip(packed, ask(packed)):
                self.assertEqual(got, sent, f"seed {seed}: {sent.hex()}")

    def test_other_orders_and_forms_mean_the_same(self):
        generator = Generator(7)
        sent, expected = [], []
        for _ in range(300):
            message = generator.message()
            keys = list(message)
            generator.random.shuffle(keys)
            shuffled = {key: message[key] for key in keys}
            for name, value in shuffled.items():
                if isinstance(value, dict) and "__uuid_bin__" in value:
                    text = str(uuid.UUID(bytes=value["__uuid_bin__"]))
                    forms = [{"__uuid__": text}]
                    if name in ("message_id", "correlation_id"):
                        forms += [text, value["__uuid_bin__"]]
                    shuffled[name] = generator.random.choice(forms)
                if isinstance(value, dict) and "__ndarray__" in value:
                    plain = np.frombuffer(value["__ndarray__"], value["dtype"]).reshape(value["shape"])
                    forms = [{"shape": value["shape"], "dtype": plain.dtype.newbyteorder(">").str,
                              "__ndarray__": plain.astype(plain.dtype.newbyteorder(">")).tobytes()}]
                    if plain.ndim == 1 and np.isfinite(plain).all():
                        forms.append(plain.tolist())
                    shuffled[name] = generator.random.choice(forms)
            shuffled["from_a_later_version"] = {"any": [1, 2.0, None, b"x"]}
            sent.append(msgpack.packb(shuffled))
            expected.append(msgpack.packb(message))
        self.assertEqual(ask(sent), expected)

    def test_damage_is_refused_and_named(self):
        good = envelope("Numbers", {"u8": 3}, uuid.uuid4())
        cases = {
            "the type 'Nunbers' is not registered; did you mean 'Numbers'?": {**good, "__type__": "Nunbers"},
            "names no type": {key: value for key, value in good.items() if key != "__type__"},
            "field 'u8': byte 4: 256 is outside 0 to 255": {**good, "u8": 256},
            "field 'u8': byte 4: a text where an integer is expected": {**good, "u8": "x"},
            "field 'priority'": {**good, "priority": 256},
            "is not a UUID": {**good, "message_id": "no uuid"},
        }
        for (expected, _), answer in zip(cases.items(), ask([msgpack.packb(case) for case in cases.values()])):
            self.assertIsInstance(answer, str, expected)
            self.assertIn(expected, answer)
        packed = msgpack.packb(good)
        for answer in ask([packed[:size] for size in range(len(packed))] + [packed + b"\x00", b"garbage"]):
            self.assertIsInstance(answer, str)
            self.assertRegex(answer, r"byte \d+")


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
