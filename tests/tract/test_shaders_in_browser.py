"""The WGSL of every getter is accepted by the compiler of a browser, which asks for more than wgpu does: barriers only
where control flow is the same for all invocations. Part of `make test-web`, which installs Chromium; it has an adapter of
its own, so that one that gives none has failed."""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PAGE = """<script>
(async () => {
  let answer = {};
  try {
    const adapter = navigator.gpu && await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("no adapter");
    const device = await adapter.requestDevice();
    const texts = await (await fetch("/texts")).json();
    for (const name in texts) {
      const module = device.createShaderModule({code: texts[name]});
      const information = await module.getCompilationInfo();
      answer[name] = information.messages.map(m => `${m.type} line ${m.lineNum}: ${m.message}`);
    }
  } catch (error) { answer = {"no adapter": String(error)}; }
  await fetch("/answer", {method: "POST", body: JSON.stringify(answer)});
})();
</script>"""


def ask_chromium(texts, seconds):
    """What the compiler says, by name; None where the browser has not answered."""
    answers = []
    arrived = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = (json.dumps(texts) if self.path == "/texts" else PAGE).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if self.path == "/texts" else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Beside its profile a browser writes into HOME and the folders of XDG: they are temporary here.
    with tempfile.TemporaryDirectory(prefix="cingulum-browser-", ignore_cleanup_errors=True) as profile:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        browser = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan",
             "--remote-debugging-port=0", f"http://localhost:{server.server_port}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**environment, "HOME": profile})
        arrived.wait(seconds)
        browser.terminate()
        browser.wait()
    server.shutdown()
    server.server_close()
    return answers[0] if answers else None


@suite.needs("chromium")
class ShadersInABrowser(unittest.TestCase):
    def test_every_text_is_accepted(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.environ["CINGULUM_TEST_SHADER_DUMP"], folder], check=True)
            texts = {path.name: path.read_text() for path in sorted(pathlib.Path(folder).glob("*.wgsl"))}
        self.assertEqual(len(texts), 25)
        # A text that no browser may accept, so that silence is not taken for consent.
        texts["wrong"] = """var<workgroup> w: u32;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { if (i == 3u) { workgroupBarrier(); } }"""
        answer = ask_chromium(texts, 120)
        self.assertIsNotNone(answer, "the browser has not answered")
        self.assertNotIn("no adapter", answer)
        self.assertIn("uniform control flow", " ".join(answer.pop("wrong")))
        self.assertEqual({name: messages for name, messages in answer.items() if messages}, {})
        self.assertEqual(len(answer), 25)


if __name__ == "__main__":
    suite.main()
