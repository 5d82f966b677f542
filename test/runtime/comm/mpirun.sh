#!/usr/bin/env bash
# mpirun.sh ROOT RANKS COMMAND...: runs a test under mpirun as tools/env.sh wants it; 77 (skipped) where there is none.
root=$1 ranks=$2
shift 2
command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
. "$root/tools/env.sh"
# Open MPI unloads its modules without giving back their memory: no leaks of ours.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
exec mpirun -n "$ranks" "$@"
