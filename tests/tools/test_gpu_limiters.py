"""tools/gpu-limiters reads what ncu prints and names the limit: tried on text in ncu's format."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu-limiters"
loader = importlib.machinery.SourceFileLoader("gpu_limiters", str(TOOL))
limiters = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_limiters", loader))
loader.exec_module(limiters)


def page(launches):
    """ncu --csv --page raw: chatter, a line of names, a line of units, a line per launch."""
    names = sorted({name for _, values in launches for name in values})
    units = {limiters.OTHER["seconds"]: "us", limiters.OTHER["DRAM bytes/s"]: "Gbyte/s"}

    def line(cells):
        return ",".join(f'"{cell}"' for cell in cells)

    lines = ["==PROF== Connected to process 1", line(["ID", "Kernel Name", *names]),
             line(["", "", *[units.get(name, "%") for name in names]])]
    for i, (kernel, values) in enumerate(launches):
        lines.append(line([i, kernel, *[values.get(name, "n/a") for name in names]]))
    return "\n".join([*lines, "==PROF== Disconnected"])


class Limiters(unittest.TestCase):
    def values(self, busy=None, stalled=None):
        values = {metric: "10.0" for metric in limiters.UNITS.values()}
        values |= {metric: "0.5" for metric in limiters.STALLS.values()}
        values |= {limiters.UNITS[name]: share for name, share in (busy or {}).items()}
        values |= {limiters.STALLS[name]: share for name, share in (stalled or {}).items()}
        return values | {limiters.OTHER["seconds"]: "1,234.5", limiters.OTHER["instructions"]: "6,000,000",
                         limiters.OTHER["DRAM bytes/s"]: "2.5"}

    def row(self, values):
        (kernel, numbers), = limiters.parse(page([("track_halves<Boot, 2>", values)]))
        return limiters.describe("boot", kernel, numbers, 10000)

    def test_the_busiest_unit_is_the_limit(self):
        row = self.row(self.values({"issue": "78.2", "L1/shared": "88.1"}))
        self.assertEqual(row["limiter"], "L1/shared")
        self.assertAlmostEqual(row["fraction_reached"], 0.881)
        self.assertAlmostEqual(row["instructions_per_step"], 600)
        self.assertAlmostEqual(row["seconds"], 1234.5e-6)
        self.assertAlmostEqual(row["DRAM bytes/s"], 2.5e9)

    def test_where_nothing_is_busy_it_is_latency_with_its_reason(self):
        row = self.row(self.values({"L2": "41"}, {"long_scoreboard": "3.5", "not_selected": "9"}))
        self.assertEqual(row["limiter"], "latency (long scoreboard); busiest unit L2")

    def test_metrics_that_the_machine_does_not_have_are_left_out(self):
        row = self.row(self.values({"DRAM": "n/a", "issue": "70"}))
        self.assertNotIn("DRAM", row["percent_of_peak"])
        self.assertEqual(row["limiter"], "issue")

    def test_each_scenario_gets_the_longest_of_its_launches(self):
        launches = [("a", 1), ("a", 5), ("b", 2), ("b", 9), ("b", 8), ("b", 3)]
        launches = [(name, {limiters.OTHER["seconds"]: seconds}) for name, seconds in launches]
        groups = limiters.groups_of(launches, 3)
        self.assertEqual([limiters.longest(group)[1][limiters.OTHER["seconds"]] for group in groups], [5, 9, 8])
        with self.assertRaises(ValueError):
            limiters.groups_of(launches, 4)
        with self.assertRaises(ValueError):
            limiters.groups_of(launches, 2)

    def test_text_without_launches_gives_none(self):
        self.assertEqual(limiters.parse("==ERROR== no permission"), [])


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
