#!/bin/sh
# mpirun.sh ROOT RANKS COMMAND...: runs a test under mpirun as tools/env.sh wants it; 77 (skipped) where there is none.
root=$1 ranks=$2
shift 2
command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
. "$root/tools/env.sh"
exec mpirun -n "$ranks" "$@"
