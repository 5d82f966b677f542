#!/usr/bin/env bash
# Compiles net.mir and trains it under mpirun, in ./device of the current folder:
#   ./device/train.log          what all ranks print
#   ./device/<rank>/            checkpoints of each rank
#   ./device/saved_graph/       dumps of the compiler, a folder for each rank
# Usage: bash run_with_mpi.sh [RANKS]   (default 8)
# The strategy of net.mir cuts a matrix product into 2 x 4 pieces, so it needs a multiple of 8 ranks. Any other number trains
# the same network data_parallel, which sets that strategy aside; the losses are the same up to rounding.
set -euo pipefail
ranks=${1:-8}
if ! [[ $ranks =~ ^[1-9][0-9]*$ ]] || [ $# -gt 1 ]; then
  echo "usage: bash run_with_mpi.sh [RANKS]: '$*' is no number of ranks" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tools/env.sh"

mode=()
if ((ranks % 8)); then
  mode=(--parallel-mode data_parallel)
  echo "$ranks is no multiple of 8, which the strategy in net.mir needs: training data_parallel without it"
fi
rm -rf device
mkdir device
cd device
msc compile "$here/net.mir" --devices "$ranks" ${mode[@]+"${mode[@]}"} --save-graphs 2 --save-graphs-path saved_graph
echo "training on $ranks ranks; the log is device/train.log"
mpirun -n "$ranks" msrun net.plan --log-all-ranks --checkpoint-directory . --checkpoint-per-rank > train.log 2>&1 ||
  { code=$?; tail -n 20 train.log >&2; exit $code; }
grep loss train.log | tail -n 1
