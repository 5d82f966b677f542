#!/usr/bin/env bash
# The shortest way from a bare Debian machine to a network that trains on eight ranks: installs what is missing, builds
# msc and msrun, compiles examples/quickstart/net.mir for 8 devices, shows the strategies, trains on 8 ranks in one
# process and again under mpirun.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh
install_packages build
. tools/env.sh

[ -e build/bin/msc ] || echo "a first build takes some 20 to 30 minutes on two cores"
cmake --preset dev -DMSC_BUILD_TESTS=OFF > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
rm -f build-configure.log
cmake --build --preset dev --target msc msrun msc_comm_mpi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
network="$PWD/examples/quickstart/net.mir"
cd "$work"
show() { echo; echo "\$ $*"; "$@"; }

show msc compile "$network" --devices 8 --save-graphs 2 --save-graphs-path saved_graph
echo
echo "strategies (saved_graph/rank_0/step_parallel_begin_*.ir):"
sed -n -E 's/^ +%[0-9]+\(([^)]*)\) = ([A-Za-z]+)\(.* (\{in_strategy: .*\})$/  \1 = \2 \3/p' saved_graph/rank_0/step_parallel_begin_*.ir
show msrun net.plan --no-checkpoint
show mpirun -n 8 msrun net.plan --no-checkpoint
echo
echo "To go on: . tools/env.sh, then msc explain examples/quickstart/net.mir --devices 8; README.md has the rest."
