#!/usr/bin/env bash
# Runs the file formats' fuzzers (tests/fuzz_files) under libFuzzer with ASan and UBSan.
#   scripts/fuzz_files.sh [--runs N | --seconds N] [FORMAT ...]
# Built with clang into build/fuzz, from core/, io/, the readers of data/ and what the formats need; findings and the
# corpus stay there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out=build/fuzz
readonly cxx=${CLANGXX:-clang++-14}
# shellcheck disable=SC2054 # the commas are the flag's own
readonly flags=(-std=c++20 -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all
  -fsanitize=fuzzer-no-link,address,undefined -Iinclude -Isrc -I.)
launcher=()
if command -v ccache >/dev/null; then launcher=(ccache); fi

limit=(-max_total_time=60)
formats=()
while (($#)); do
  case $1 in
    --runs) limit=(-runs="$2") && shift 2 ;;
    --seconds) limit=(-max_total_time="$2") && shift 2 ;;
    *) formats+=("$1") && shift ;;
  esac
done
# The file of a format has the format's name.
((${#formats[@]})) || mapfile -t formats < <(grep -l '^const Format k' tests/fuzz_files/*.cpp |
  sed 's|.*/||; s|[.]cpp$||' | grep -v '^test_')

mapfile -t sources < <(printf '%s\n' src/core/*.cpp src/io/*.cpp \
  src/data/{source,idx,csv,pnm,png,image}.cpp src/parallel/interrupt.cpp tests/fuzz_files/*.cpp |
  grep -v -e src/io/profile.cpp -e '/test_' -e fuzz_main.cpp)
mkdir -p "$out/objects"
compile() { # SOURCE OBJECT [FLAGS]
  "${launcher[@]}" "$cxx" "${flags[@]}" "${@:3}" -c "$1" -o "$2"
}
# Compiles the sources of a folder as one: most of the compile time is spent on headers.
objects=()
for folder in $(printf '%s\n' "${sources[@]}" | xargs -n 1 dirname | sort -u); do
  joined=$out/objects/${folder//\//_}.cpp
  object=${joined%.cpp}.o
  objects+=("$object")
  for source in "${sources[@]}"; do
    if [[ $source == "$folder"/* ]]; then echo "#include \"$source\""; fi
  done >"$joined"
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  rm -f "$object"
  compile "$joined" "$object" &
done
wait # a source that failed to compile makes the linker fail

for format in "${formats[@]}"; do
  compile tests/fuzz_files/fuzz_main.cpp "$out/objects/main_$format.o" \
    "-DBAREGRAD_FUZZ_FORMAT=\"$format\""
  "$cxx" -fsanitize=fuzzer,address,undefined "$out/objects/main_$format.o" "${objects[@]}" \
    -lz -lpthread -o "$out/fuzz_$format"
  mkdir -p "$out/corpus/$format" "$out/findings"
  "$out/fuzz_$format" --seeds "$out/corpus/$format"
  echo "fuzz: $format ${limit[*]}" >&2
  log=$out/$format.log
  if ! "$out/fuzz_$format" "${limit[@]}" -max_len=65536 -rss_limit_mb=2048 -print_final_stats=1 \
    -dict="$out/corpus/$format.dict" -artifact_prefix="$out/findings/$format-" \
    "$out/corpus/$format" >"$log" 2>&1; then
    tail -n 50 "$log" >&2
    exit 1
  fi
  grep 'stat::' "$log"
done
