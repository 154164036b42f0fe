#!/usr/bin/env python3
"""Makes the corpus of the texts beside OCT tiles: good, odd and broken ones. The same bytes at every run.

    fuzz/make_oct_corpus.py      writes fuzz/corpus/oct_tables
Inputs that fuzzing found are added by hand, named found-*, and are left alone.
"""
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus" / "oct_tables"

INFO = {"nx": 64, "ny": 48, "n_extra": 12, "n_repeat": 1, "width": 640.0, "height": 480.5, "top_z": 10, "bottom_z": 89,
        "focus_z": 40, "stage_x_pos_mm": 1.25, "stage_y_pos_mm": -0.5, "stage_z_pos_mm": 0.2}
TABLE = "file,slice,ix,iy,x_mm,y_mm,z_mm\n"
SHIFTS = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm,reliable\n"


def info(**changes):
    values = {**INFO, **changes}
    return "".join(f"{key}: {value}\n" for key, value in values.items() if value is not None)


FILES = {
    "info": info(),
    "info-crlf": info().replace("\n", "\r\n"),
    "info-without-nx": info(nx=None),
    "info-upside-down": info(top_z=89, bottom_z=10),
    "info-huge": info(nx=2**63, bottom_z="1e300"),
    "info-negative": info(ny=-3, n_repeat=0),
    "info-nan": info(width="nan", stage_x_pos_mm="inf"),
    "table": TABLE + "a.ome.zarr,0,0,0,0.0,0.0,0.0\nb.nii.gz,0,1,0,0.5,0.0,0.0\n",
    "table-other-order": "z_mm,y_mm,x_mm,iy,ix,slice,file\n0,0,1e-3,0,0,2, a b.nii \n",
    "table-short-line": TABLE + "a,0,0\n",
    "table-no-number": TABLE + "a,x,0,0,0,0,0\n",
    "table-empty": TABLE,
    "shifts": SHIFTS + "0,1,3.5,-2,0.035,-0.02,1\n1,2,0,0,0,0,0\n",
    "shifts-doubled": SHIFTS + "0,1,0,0,0,0,1\n0,1,0,0,0,0,1\n",
    "shifts-without-mm": "fixed_id,moving_id\n0,1\n",
    "nothing": "",
}

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (FOLDER / name).write_bytes(text.encode())
