#!/usr/bin/env bash
# Runs a command under a title and prints its duration: step.sh TITLE COMMAND...
set -uo pipefail
title=$1
shift
# Otherwise ninja would look for the job server of a parallel make, which only make can use.
unset MAKEFLAGS MFLAGS
echo "== $title"
start=$SECONDS
"$@"
status=$?
if [[ $status -eq 0 ]]; then
  echo "== $title: ok, $((SECONDS - start)) s"
else
  echo "== $title: FAILED with status $status after $((SECONDS - start)) s" >&2
fi
exit "$status"
