#!/usr/bin/env bash
# Runs shellcheck over every shell script of the repository, found by its first line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts=()
while IFS= read -r file; do
  if head -n1 "$file" | tr -d '\0' | grep -Eq '^#!.*\b(ba)?sh\b'; then scripts+=("$file"); fi
done < <(scripts/list_files.sh)
shellcheck "${scripts[@]}"
echo "${#scripts[@]} scripts clean"
