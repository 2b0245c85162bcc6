#!/usr/bin/env bash
# Lists the repository's files: tracked ones and new ones that are not ignored. In a copy without
# git (a source archive, a container) every file outside the generated folders.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $(git rev-parse --show-toplevel 2>/dev/null) -ef . ]]; then
  git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
    # A file that is deleted but not yet committed is still listed by git.
    if [[ -f $file ]]; then printf '%s\n' "$file"; fi
  done
else
  find . \( -name .git -o -name '.venv*' -o -path ./build -o -name __pycache__ \) -prune -o -type f -print |
    sed 's|^\./||'
fi | LC_ALL=C sort -u
