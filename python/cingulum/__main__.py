"""The program ``cingulum``, verb for verb."""

from __future__ import annotations

import sys


def main() -> int:
    from . import _native

    return int(_native.run_console(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
