"""`cingulum view` as tests see it: the program in a process of its own, a plain HTTP client over a socket, and a WebSocket
client that can also break the rules. Only the standard library is used."""
import base64
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

PROGRAM = os.environ["CINGULUM"]
LONG = os.environ.get("CINGULUM_TEST_LONG") == "1"
MAGIC = b"CGV1"
TRACK, CANCEL, BATCH, END, ERROR, LINES, PLACES = 1, 2, 16, 17, 18, 19, 20

# A shell has its background jobs ignore Ctrl-C, and so would the viewers, which end by it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def read_answer(stream, head_only=False):
    """One answer from a file object; None where the connection ended."""
    line = stream.readline()
    if not line:
        return None
    status = int(line.split()[1])
    headers = []
    while True:
        line = stream.readline().rstrip(b"\r\n")
        if not line:
            break
        name, _, value = line.partition(b":")
        headers.append((name.decode().lower(), value.strip().decode("latin-1")))
    length = int(dict(headers).get("content-length", 0))
    body = b"" if head_only or status in (101, 204, 304) else stream.read(length)
    return Answer(status, headers, body)


class Viewer:
    """The program, running; `opened` has followed its link and has the cookie."""

    def __init__(self, *words, opened=True, environment=None):
        self.process = subprocess.Popen([PROGRAM, "view", "--no-open", "--json", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the viewer ended: {self.process.stderr.read().decode()}")
            text += line
        facts = json.loads(text)
        self.link, self.port = facts["link"], facts["port"]
        self.key = self.link.rsplit("/", 1)[1]
        self.host = f"127.0.0.1:{self.port}"
        self.origin = f"http://{self.host}"
        self.cookie = None
        if opened:
            self.open()

    def open(self):
        answer = self.request("GET", "/open/" + self.key, cookie=False)
        assert answer.status == 200, answer.status
        self.cookie = dict(answer.headers)["set-cookie"].split(";")[0]
        return answer

    def connect(self, timeout=10, host="127.0.0.1"):
        return socket.create_connection((host, self.port), timeout=timeout)

    def head(self, method, target, *more, cookie=True, host=None, origin=None):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.host}"]
        if cookie and self.cookie:
            lines.append(f"Cookie: {self.cookie}")
        if origin is not False and (origin or method == "POST"):
            lines.append(f"Origin: {origin or self.origin}")
        return ("\r\n".join([*lines, *more]) + "\r\n").encode("latin-1")

    def request(self, method, target, *more, body=None, timeout=120, **rules):
        with self.connect(timeout) as connection:
            head = self.head(method, target, *more, **rules)
            if body is not None:
                head += f"Content-Length: {len(body)}\r\n".encode()
            connection.sendall(head + b"\r\n" + (body or b""))
            with connection.makefile("rb") as stream:
                return read_answer(stream, method == "HEAD")

    def raw(self, data, timeout=10):
        with self.connect(timeout) as connection:
            connection.sendall(data)
            with connection.makefile("rb") as stream:
                return read_answer(stream)

    def state(self):
        return self.request("GET", "/api/state").json()

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while True:
            state = self.state()
            if condition(state):
                return state
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds} s the state is {state}")
            time.sleep(0.02)

    def socket(self, **rules):
        return LiveSocket(self, **rules)

    def resident_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024

    def close(self, number=signal.SIGINT):
        """Ends it as Ctrl-C does; the exit code, the seconds that it took, and what it said."""
        begin = time.monotonic()
        self.process.send_signal(number)
        try:
            out, said = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, time.monotonic() - begin, out.decode() + said.decode()


class LiveSocket:
    """The page's side of /live."""

    def __init__(self, viewer, protocol="cingulum-view-1", accept=True, **rules):
        self.connection = viewer.connect(timeout=240)  # a software adapter compiles shaders for long
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        if protocol:
            lines.append(f"Sec-WebSocket-Protocol: {protocol}")
        rules.setdefault("origin", viewer.origin)
        self.connection.sendall(viewer.head("GET", "/live", *lines, **rules) + b"\r\n")
        self.stream = self.connection.makefile("rb")
        self.answer = read_answer(self.stream)
        if accept and (self.answer is None or self.answer.status != 101):
            self.close()
            raise AssertionError(f"the socket was refused: {self.answer and (self.answer.status, self.answer.body)}")

    def close(self):
        self.stream.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def frame(self, payload, opcode=2, final=True, masked=True):
        head = bytes([(0x80 if final else 0) | opcode])
        bit = 0x80 if masked else 0
        if len(payload) < 126:
            head += bytes([bit | len(payload)])
        elif len(payload) < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", len(payload))
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", len(payload))
        if not masked:
            return head + payload
        mask = os.urandom(4)
        whole = (mask * (len(payload) // 4 + 1))[:len(payload)]
        # As one number: byte by byte Python takes seconds for a megabyte.
        mixed = (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(payload), "big")
        return head + mask + mixed

    def send(self, payload, **how):
        self.connection.sendall(self.frame(payload, **how))

    def track(self, number, **wish):
        text = json.dumps({name.replace("_", "-"): value for name, value in wish.items()})
        self.send(MAGIC + struct.pack("<HHI", TRACK, 0, number) + text.encode())

    def cancel(self, number):
        self.send(MAGIC + struct.pack("<HHI", CANCEL, 0, number))

    def read_frame(self):
        head = self.stream.read(2)
        if len(head) < 2:
            return None, b""
        opcode, size = head[0] & 15, head[1] & 127
        if size == 126:
            size = struct.unpack(">H", self.stream.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.stream.read(8))[0]
        return opcode, self.stream.read(size)

    def receive(self):
        """Kind, request and body of the next message; answers pings. ("close", code, reason) at the end."""
        while True:
            opcode, payload = self.read_frame()
            if opcode is None:
                return "close", None, ""
            if opcode == 8:
                code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else None
                return "close", code, payload[2:].decode()
            if opcode == 9:
                self.send(payload, opcode=10)
                continue
            if opcode == 10:
                continue
            assert opcode == 2 and payload[:4] == MAGIC, (opcode, payload[:16])
            kind, zero, number = struct.unpack("<HHI", payload[4:12])
            assert zero == 0
            return kind, number, payload[12:]

    def answer_to(self, number):
        """All messages of a request up to its end: batches and the end's JSON. Fails where another request's come."""
        batches = []
        while True:
            kind, request, body = self.receive()
            assert request == number, f"a message of kind {kind} of request {request}, {number} was asked: {body[:200]}"
            if kind == BATCH:
                batches.append(read_batch(body))
            elif kind == END:
                return batches, json.loads(body)
            else:
                raise AssertionError(f"kind {kind}: {body.decode()}")


def read_batch(body):
    """Offsets, bytes of positions, seeds and end reasons; the layout is checked to the last byte."""
    lines, points = struct.unpack("<II", body[:8])
    at = 8
    offsets = struct.unpack(f"<{lines + 1}I", body[at:at + 4 * (lines + 1)])
    at += 4 * (lines + 1)
    positions = body[at:at + 12 * points]
    at += 12 * points
    seeds = struct.unpack(f"<{lines}I", body[at:at + 4 * lines])
    at += 4 * lines
    reasons = body[at:at + 2 * lines]
    at += 2 * lines
    assert offsets[0] == 0 and offsets[-1] == points and len(positions) == 12 * points and lines > 0
    assert body[at:] == b"\0" * (-at % 4), "padding"
    return {"offsets": offsets, "positions": positions, "seeds": seeds, "reasons": reasons}


def read_lines(body):
    """Streamlines of a file, quantised: corner and unit, offsets, places in the file and numbers; checked to the last byte."""
    lines, points = struct.unpack("<II", body[:8])
    box = struct.unpack("<4f", body[8:24])
    at = 24
    offsets = struct.unpack(f"<{lines + 1}I", body[at:at + 4 * (lines + 1)])
    at += 4 * (lines + 1)
    places = struct.unpack(f"<{lines}I", body[at:at + 4 * lines])
    at += 4 * lines
    numbers = body[at:at + 6 * points]
    at += 6 * points
    assert offsets[0] == 0 and offsets[-1] == points and len(numbers) == 6 * points and lines > 0
    assert body[at:] == b"\0" * (-at % 4), "padding"
    return {"corner": box[:3], "unit": box[3], "offsets": offsets, "places": places, "numbers": numbers}


def messages_of_file(get):
    """The messages of a file's streamlines, of its sample and of the others, and the boxes of the latter, as a page asks
    for them; `get` answers the body of one by its number."""
    def body(number, *kinds):
        answer = get(number)
        kind, zero, request = struct.unpack("<HHI", answer[4:12])
        assert answer[:4] == b"CGV1" and kind in kinds and (zero, request) == (0, 0), (kind, zero, request)
        return kind, answer[12:]

    sample = []
    while (found := body(len(sample), LINES, PLACES))[0] == LINES:
        sample.append(read_lines(found[1]))
    count, = struct.unpack("<I", found[1][:4])
    assert len(found[1]) == 4 + 24 * count
    boxes = [struct.unpack("<6f", found[1][4 + 24 * i:28 + 24 * i]) for i in range(count)]
    rest = [read_lines(body(len(sample) + 1 + i, LINES)[1]) for i in range(count)]
    return sample, rest, boxes


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
