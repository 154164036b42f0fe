"""The program `cingulum` as its users meet it: exit codes, stdout and stderr, help, JSON, completion, pages, Ctrl-C.

The program is named by the variable CINGULUM. Whatever verbs it has are taken from its own help.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

# A shell in the background has SIGINT ignored, nohup SIGHUP, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
PAGES = Path(__file__).resolve().parents[2] / "docs" / "commands"


def clean_environment(**variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CINGULUM")}
    environment.pop("COLUMNS", None)
    environment.update(variables)
    return environment


def run(*words, **variables):
    return subprocess.run(
        [PROGRAM, *words], capture_output=True, text=True, check=False, env=clean_environment(**variables),
        stdin=subprocess.DEVNULL, timeout=60)


def verbs():
    """The verbs that the overview lists."""
    text = run("--help").stdout
    section = text.split("Verbs:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\S+)", section, re.MULTILINE)


class ExitCodes(unittest.TestCase):
    def expect(self, words, code, message="", **variables):
        result = run(*words, **variables)
        self.assertEqual(result.returncode, code, (words, result.stderr))
        if code == 0:
            self.assertEqual(result.stderr, message, words)
        else:
            self.assertEqual(result.stderr, message + "\n", words)
            self.assertEqual(result.stdout, "", words)

    def test_help_and_version_are_results(self):
        for words in (["--help"], ["-h"], ["help"], ["--version"], ["help", "settings"], ["settings", "--help"]):
            self.expect(words, 0)

    def test_no_words_are_a_misuse_explained_on_stderr(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Usage: cingulum VERB [options]", result.stderr)

    def test_misuse_is_one_line_with_the_nearest_name(self):
        self.expect(["setings"], 2, "cingulum: unknown verb 'setings'; did you mean 'settings'?")
        self.expect(["qqqq"], 2, "cingulum: unknown verb 'qqqq'; 'cingulum help' lists the verbs")
        self.expect(["settings", "--jsno"], 2, "cingulum settings: unknown option '--jsno'; did you mean '--json'?")
        self.expect(["settings", "x"], 2, "cingulum settings: unexpected argument 'x'; see 'cingulum settings --help'")
        self.expect(["completion"], 2, "cingulum completion: SHELL is missing; see 'cingulum completion --help'")
        self.expect(["completion", "fihs"], 2,
                    "cingulum completion: SHELL 'fihs': accepted is bash, zsh or fish; did you mean 'fish'?")
        self.expect(["help", "setings"], 2, "cingulum help: unknown verb 'setings'; did you mean 'settings'?")

    def test_failure_is_one_line_and_exit_code_1(self):
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            result = run("docs", "--check", folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"\Acingulum docs: \S+: README.md is missing, .*; run 'cingulum docs \S+'\n\Z")

    def test_hostile_words_do_no_harm(self):
        for word in ("", "-", "--", "---", "\x1b[2J", "a" * 100000, "--" + "b" * 100000, "\udcff", "%s%n", "--=", "=", "-h=1"):
            for words in ([word], ["settings", word], ["settings", "--json=" + word], ["help", word]):
                result = subprocess.run(
                    [os.fsencode(PROGRAM), *(os.fsencode(w) for w in words)], capture_output=True, check=False,
                    env=clean_environment(), timeout=60)
                # Nothing behind `--` is no word, and nothing behind `=` is no value; all else is refused.
                accepted = words in (["settings", "--"], ["help", "--"], ["settings", "--json="])
                self.assertEqual(result.returncode, 0 if accepted else 2, (words, result.stderr))
                self.assertNotIn(b"\x1b", result.stderr + result.stdout)


class Streams(unittest.TestCase):
    def test_a_result_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([PROGRAM, "settings"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                    env=clean_environment())
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "cingulum settings: writing the result to stdout: no space left on device\n")

    def test_a_reader_that_goes_away_is_not_talked_about(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = subprocess.run([PROGRAM, "settings"], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False,
                                env=clean_environment())
        os.close(write_end)
        self.assertEqual((result.returncode, result.stderr), (1, ""))

    def test_warnings_go_to_stderr_and_quiet_silences_them(self):
        loud = run("settings", "--json", CINGULUM_THREAD="4")
        self.assertEqual(loud.returncode, 0)
        self.assertEqual(loud.stderr, "cingulum settings: warning: CINGULUM_THREAD is not a setting; "
                                      "did you mean 'CINGULUM_THREADS'?\n")
        json.loads(loud.stdout)
        self.assertEqual(run("settings", "--json", "--quiet", CINGULUM_THREAD="4").stderr, "")


class Settings(unittest.TestCase):
    def test_lists_values_for_people_and_for_programs(self):
        text = run("settings", CINGULUM_THREADS="3").stdout
        self.assertIn("CINGULUM_THREADS=3\n", text)
        self.assertIn("CINGULUM_DEVICE is not set\n", text)
        entries = {entry["name"]: entry for entry in json.loads(run("settings", "--json", CINGULUM_THREADS="3").stdout)}
        self.assertEqual(entries["CINGULUM_THREADS"]["value"], "3")
        self.assertIsNone(entries["CINGULUM_DEVICE"]["value"])
        self.assertEqual(entries["CINGULUM_DEVICE"]["default"], "auto")

    def test_names_a_malformed_value_and_what_is_accepted(self):
        result = run("settings", "--json", CINGULUM_LOG="loud")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, "cingulum settings: setting CINGULUM_LOG='loud': accepted is error, warning, info "
                                        "or debug\n")
        invalid = [entry["name"] for entry in json.loads(result.stdout) if not entry["valid"]]
        self.assertEqual(invalid, ["CINGULUM_LOG"])


class Help(unittest.TestCase):
    def test_every_verb_has_help_by_both_ways(self):
        self.assertLessEqual({"settings", "completion", "help"}, set(verbs()))
        for verb in verbs():
            first, second = run(verb, "--help"), run("help", verb)
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            self.assertEqual(first.stdout, second.stdout)
            self.assertIn(f"Usage: cingulum {verb}", first.stdout)

    def test_hidden_verbs_are_not_listed(self):
        self.assertNotIn("docs", verbs())

    def test_text_follows_the_width(self):
        longest = {}
        for columns in (50, 90):
            lines = run("settings", "--help", COLUMNS=str(columns)).stdout.splitlines()
            longest[columns] = max(len(line) for line in lines if "cingulum" not in line)
            self.assertLessEqual(longest[columns], columns)
        self.assertGreater(longest[50], 40)
        self.assertGreater(longest[90], 80)

    def test_answers_within_50_ms(self):
        """Of the processor: how long it waits for one is not its own doing."""
        best = 1.0
        for _ in range(10):
            process = subprocess.Popen([PROGRAM, "--help"], stdout=subprocess.DEVNULL, env=clean_environment())
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            best = min(best, usage.ru_utime + usage.ru_stime)
        self.assertLess(best, 0.05)


class Version(unittest.TestCase):
    def test_names_version_commit_compilers_and_backends(self):
        text = run("--version").stdout
        self.assertRegex(text, r"\Acingulum \d+\.\d+\.\d+\ncommit: .+\nbuild: .+\ncompilers: .+\nbackends: cpu.*\n\Z")
        facts = json.loads(run("--version", "--json").stdout)
        self.assertEqual(sorted(facts), ["backends", "build", "commit", "compilers", "version", "wgpu"])


class Completion(unittest.TestCase):
    def complete(self, line):
        """What bash offers behind a line."""
        words = line.split(" ")
        script = (f"source <({shlex.quote(PROGRAM)} completion bash)\n"
                  f"COMP_WORDS=({' '.join(shlex.quote(word) for word in words)})\n"
                  f"COMP_CWORD={len(words) - 1}\n_cingulum\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n")
        result = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def check_script(self, shell, *words):
        script = run("completion", shell).stdout
        self.assertIn("cingulum", script)
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        result = subprocess.run([shell, *words, "/dev/stdin"], input=script, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_bash_accepts_the_script(self):
        self.check_script("bash", "-n")

    def test_zsh_accepts_the_script(self):
        self.check_script("zsh", "-n")

    def test_fish_accepts_the_script(self):
        self.check_script("fish", "--no-execute")

    def test_bash_completes_verbs_options_choices_and_files(self):
        self.assertEqual(self.complete("cingulum sett"), ["settings"])
        self.assertEqual(self.complete("cingulum settings --js"), ["--json"])
        self.assertEqual(self.complete("cingulum completion z"), ["zsh"])
        self.assertEqual(self.complete("cingulum help comple"), ["completion"])
        self.assertEqual(sorted(self.complete("cingulum ")), sorted([*verbs(), "--help", "--version"]))
        self.assertEqual(self.complete("cingulum nonsense x"), [])

    def test_bash_itself_calls_the_function(self):
        result = subprocess.run(
            ["bash", "--norc", "-c", f"source <({shlex.quote(PROGRAM)} completion bash) && complete -p cingulum"],
            capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout, "complete -F _cingulum cingulum\n")


class Pages(unittest.TestCase):
    def test_docs_commands_is_current(self):
        result = run("docs", "--check", str(PAGES))
        self.assertEqual(result.returncode, 0, result.stderr)

    def expect_complaint(self, folder, words):
        result = run("docs", "--check", folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn(words, result.stderr)

    def test_a_changed_a_missing_and_a_superfluous_page_are_found_and_mended(self):
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            self.assertEqual(run("docs", folder).returncode, 0)
            self.assertEqual(run("docs", "--check", folder).returncode, 0)
            page = Path(folder) / "settings.md"
            text = page.read_text(encoding="utf-8")
            page.write_text(text + "x", encoding="utf-8")
            self.expect_complaint(folder, "settings.md differs")
            page.unlink()
            self.expect_complaint(folder, "settings.md is missing")
            (Path(folder) / "gone.md").write_text(text, encoding="utf-8")
            self.expect_complaint(folder, "gone.md belongs to no verb")
            self.assertEqual(run("docs", folder).returncode, 0)
            self.assertEqual(page.read_text(encoding="utf-8"), text)
            self.assertEqual(run("docs", "--check", folder).returncode, 0)
            self.assertFalse((Path(folder) / "gone.md").exists())

    def test_pages_written_by_hand_are_left_alone(self):
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            for name in ("README.md", "notes.md"):
                (Path(folder) / name).write_text("by hand", encoding="utf-8")
            result = run("docs", folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn("was not made by 'cingulum docs'", result.stderr)
            for name in ("README.md", "notes.md"):
                self.assertEqual((Path(folder) / name).read_text(encoding="utf-8"), "by hand")


class CtrlC(unittest.TestCase):
    def test_ends_a_wait_with_exit_code_130_and_one_line(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
                os.mkfifo(os.path.join(folder, "README.md"))  # nobody writes to it: the program waits
                with subprocess.Popen([PROGRAM, "docs", "--check", folder], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, env=clean_environment()) as process:
                    time.sleep(0.3)
                    self.assertIsNone(process.poll())
                    begin = time.monotonic()
                    process.send_signal(number)
                    out, talk = process.communicate(timeout=10)
                    self.assertLess(time.monotonic() - begin, 1)
                self.assertEqual((process.returncode, out, talk), (130, "", "cingulum docs: interrupted\n"))


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
