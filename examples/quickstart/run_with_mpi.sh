#!/usr/bin/env bash
# Compiles net.mir for 8 devices and trains it under mpirun, in ./device of the current folder:
#   ./device/train.log          what all ranks print
#   ./device/<rank>/            checkpoints of each rank
#   ./saved_graph/rank_<r>/     dumps of the compiler
# Usage: bash run_with_mpi.sh [RANKS]   (default 8)
set -euo pipefail
ranks=${1:-8}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH="$root/build/bin:$PATH"
. "$root/tools/env.sh"

rm -rf device
mkdir device
cd device
msc compile "$here/net.mir" --devices "$ranks" --save-graphs 2 --save-graphs-path ../saved_graph
echo "training on $ranks ranks; the log is device/train.log"
mpirun -n "$ranks" msrun net.plan --log-all-ranks --checkpoint-directory . --checkpoint-per-rank > train.log 2>&1 ||
  { code=$?; tail -n 20 train.log >&2; exit $code; }
grep loss train.log | tail -n 1
