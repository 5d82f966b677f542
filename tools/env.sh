# To be sourced: finds msc and msrun of this folder's build unless they are on PATH already, and sets what Open MPI 4 wants as
# root and with more ranks than cores, so that `mpirun -n 8 msrun net.plan` works.
if ! command -v msrun > /dev/null; then
  msc_bin="$(cd "$(dirname "${BASH_SOURCE:-tools/env.sh}")/.." && pwd)/build/bin"
  export PATH="$msc_bin:$PATH"
  unset msc_bin
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# More ranks than slots are fine; waiting ranks give their core away, and none is tied to one.
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
# Containers often forbid reading another process's memory; Open MPI warns about it on every start.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
