#!/usr/bin/env bash
# Installs a build into an empty folder and uses it from outside, as another project would:
# check_install.sh BUILD_DIR. Runs the installed command, the projects in examples/ and the README's
# example.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
cmake=${CMAKE:-cmake}
export CMAKE=$cmake

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

"$cmake" --install "$build" --prefix "$prefix" >"$scratch/install.log"

# An installed copy that still points into the source or build folder would break on other machines.
if leaks=$(grep -rIl --fixed-strings -e "$build" -e "$root/src" "$prefix"); then
  echo "check_install: installed files name the build machine's folders:" >&2
  echo "$leaks" >&2
  exit 1
fi

"$prefix/bin/baregrad" info >"$scratch/info.txt"
test -s "$scratch/info.txt" || {
  echo "check_install: the installed \`baregrad info\` printed nothing" >&2
  exit 1
}

for example in consumer backprop; do
  "$cmake" -S "$root/examples/$example" -B "$scratch/$example" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
  "$cmake" --build "$scratch/$example"
done
"$scratch/consumer/consumer"
"$scratch/backprop/backprop" "$scratch/xor.dot"
dot -Tsvg "$scratch/xor.dot" -o "$scratch/xor.svg"
python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$scratch/xor.svg"

python3 -B "$root/tests/tools/readme_example.py" "$prefix" -G Ninja -DCMAKE_BUILD_TYPE=Release
echo "check_install: the installed copy works"
