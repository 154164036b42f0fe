"""The workflow of serial OCT: the volume that its commands make by hand, -resume, and a slice that is lost."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite
import pipeline
from pipeline import PROJECT, Case, Run

WORKFLOW = PROJECT / "workflows" / "oct"


def tree_of(folder):
    return {str(path.relative_to(folder)): pipeline.digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}


@suite.needs("nextflow")
class Oct(Case):
    def simulate(self):
        tiles = self.folder / "tiles"
        pipeline.cingulum("oct", "simulate", "--grid", "2,2", "--tile", "26,64,64", "--overlap", "0.25", "--surface", "2", "--curvature",
                          "0", "--tilt", "0,0", "--depth-jitter", "0", "--slices", "3", "--interval", "10", "--slice-shift", "2",
                          "--seed", "7", "--out", tiles)
        return tiles

    def begin(self, tiles, *more):
        return Run(self.folder, "--tiles", tiles, "--cpus", "1", "--slice_gigabytes", "1", *more, command=WORKFLOW)

    def test_its_volume_is_that_of_the_commands_by_hand_and_is_cached_when_resumed(self):
        tiles = self.simulate()
        run = self.begin(tiles).wait()
        self.assertEqual(run.status, 0, run.said())
        hand = self.folder / "hand"
        hand.mkdir()
        pipeline.cingulum("oct", "grid", tiles, "--axial-step", "3.5", "--device", "cpu", "--out", "mosaics", cwd=hand)
        slices = []
        for mosaic in sorted((hand / "mosaics").glob("mosaic_grid_3d_z*.ome.zarr")):
            slices.append(f"slice_{mosaic.name[15:]}")
            pipeline.cingulum("oct", "stitch", mosaic, "--device", "cpu", "--out", slices[-1], cwd=hand)
        self.assertEqual(len(slices), 3)
        pipeline.cingulum("oct", "register", *slices, "--device", "cpu", "--out", "transforms", cwd=hand)
        pipeline.cingulum("oct", "stack", *slices, "--transforms-dir", "transforms", "--pyramid", "auto", "--device", "cpu", "--out",
                          "volume.ome.zarr", cwd=hand)
        expected, found = (tree_of(folder / "volume.ome.zarr") for folder in (hand, self.folder / "results"))
        self.assertGreater(len(expected), 2)
        self.assertEqual(found, expected)
        again = self.begin(tiles, "-resume").wait()
        self.assertEqual((again.counts()["cached"], again.counts()["succeeded"]), (4, 0), again.said())

    def test_a_slice_that_is_lost_ends_the_run_with_a_failure_and_no_volume(self):
        tiles = self.simulate()
        (next(iter(sorted(tiles.glob("tile_x*_y*_z01")))) / "info.txt").unlink()
        run = self.begin(tiles).wait()
        self.assertNotEqual(run.status, 0, run.said())
        self.assertIn("SLICE (z01)", run.said())
        self.assertEqual(run.counts()["retries"], 0)
        self.assertFalse((self.folder / "results" / "volume.ome.zarr").exists())


if __name__ == "__main__":
    suite.main()
