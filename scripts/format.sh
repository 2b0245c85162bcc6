#!/usr/bin/env bash
# Formats the C++ sources in place, or with --check only says which ones differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(scripts/list_files.sh | grep -E '^(src|include|python|tests|bench|lab|examples)/.*\.(h|cpp)$')
if [[ ${1:-} == --check ]]; then
  clang-format-14 --dry-run -Werror "${files[@]}"
  echo "${#files[@]} files formatted as .clang-format says"
else
  clang-format-14 -i "${files[@]}"
fi
