#!/usr/bin/env bash
# Installs what is missing on Debian 12: apt packages by name, Python packages into .venv; with
# `--bench` also the libraries that the benchmarks compare with, with `--peers` also PyTorch into
# .venv-peers, with `--lab` all of these and what the experiments use. Safe to call any number of times; when nothing is missing it installs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly extra=${1:-}
apt_lists=(scripts/apt-packages.txt)
if [[ $extra =~ ^--(bench|lab)$ ]]; then apt_lists+=(scripts/apt-packages-bench.txt); fi
if [[ $extra == --lab ]]; then apt_lists+=(scripts/apt-packages-lab.txt); fi
readonly pip_list=requirements-dev.txt
readonly bench_pip_list=requirements-bench.txt
readonly peers_pip_list=requirements-peers.txt
readonly venv=.venv
readonly peers_venv=.venv-peers
readonly bench_stamp=$venv/.bench-stamp

die() {
  echo "setup: $*" >&2
  exit 1
}

missing_apt_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null |
    awk '$1 == "installed" { print $2 }' | LC_ALL=C sort -u)
  grep -Ehv '^[[:space:]]*(#|$)' "${apt_lists[@]}" | LC_ALL=C sort -u |
    LC_ALL=C comm -23 - <(printf '%s\n' "$installed")
}

# Prints the prefix of commands that need root (a word or nothing); fails if there is none.
root_prefix() {
  if [[ $(id -u) -eq 0 ]]; then
    return
  elif command -v sudo >/dev/null && { [[ -t 0 && -z ${CI:-} ]] || sudo -n true 2>/dev/null; }; then
    echo sudo
  else
    return 1
  fi
}

install_apt_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system: have your own forms of these installed:" \
      "$(grep -Ehv '^[[:space:]]*(#|$)' "${apt_lists[@]}" | paste -sd' ')" >&2
    return
  fi
  local -a missing root
  mapfile -t missing < <(missing_apt_packages)
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local prefix
  prefix=$(root_prefix) ||
    die "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
  # Through env, since sudo may refuse to pass variables on.
  root=(${prefix:+"$prefix"} env DEBIAN_FRONTEND=noninteractive)
  echo "setup: installing ${missing[*]}" >&2
  local -a options=(-q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  "${root[@]}" apt-get "${options[@]}" update >&2
  "${root[@]}" apt-get "${options[@]}" install --no-install-recommends "${missing[@]}" >&2

  mapfile -t missing < <(missing_apt_packages)
  [[ ${#missing[@]} -eq 0 ]] || die "still missing after the install: ${missing[*]}"
}

# The first interpreter that is new enough and can create environments. Debian's own is tried last:
# a python3 earlier in PATH is the user's choice.
find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
      2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Creates an environment with the packages of a list; creates it again when the list changes.
make_environment() { # FOLDER LIST
  local folder=$1 list=$2 stamp=$1/.setup-stamp key python
  key=$(cat "$list" "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1)
  if [[ -x $folder/bin/python && -f $stamp && $(<"$stamp") == "$key" ]]; then
    return
  fi
  python=$(find_python) || die "no Python 3.11 or newer with venv and ensurepip found"
  echo "setup: creating $folder with $("$python" --version 2>&1)" >&2
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --requirement "$list"
  # Written last and renamed, so that an interrupted run never counts as complete.
  echo "$key" >"$stamp.new"
  mv "$stamp.new" "$stamp"
}

# A gigabyte, and only for x86-64: without it the benchmarks report it as absent and continue.
install_bench_packages() {
  local key
  key=$(sha256sum <"$bench_pip_list")
  [[ ! -f $bench_stamp || $(<"$bench_stamp") != "$key" ]] || return 0
  echo "setup: installing $bench_pip_list into $venv" >&2
  if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --requirement "$bench_pip_list"; then
    echo "$key" >"$bench_stamp"
  else
    echo "setup: $bench_pip_list could not be installed: the benchmarks go without" >&2
  fi
}

[[ $# -eq 0 || ($# -eq 1 && $extra =~ ^--(bench|peers|lab)$) ]] || die "takes nothing, --bench, --peers or --lab"
install_apt_packages
make_environment "$venv" "$pip_list"
case $extra in
  --bench) install_bench_packages ;;
  --peers) make_environment "$peers_venv" "$peers_pip_list" ;;
  --lab)
    install_bench_packages
    make_environment "$peers_venv" "$peers_pip_list"
    ;;
esac
