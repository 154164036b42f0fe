#!/usr/bin/env bash
# Every C++ and CUDA file is as clang-format 14 would write it. `make format` mends what this finds.
set -euo pipefail
cd "$1"
files=$(git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh')
[ -n "$files" ] || { echo "no files found: is this a git checkout?"; exit 1; }
# shellcheck disable=SC2086  # a list of names without blanks
clang-format-14 --dry-run --Werror $files
echo "$(echo "$files" | wc -l) files are formatted"
