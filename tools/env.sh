# To be sourced: puts msc and msrun of this folder's build in front of all others on PATH (MindSpore has an msrun, too), unless
# those of another build in this folder are there, and sets what Open MPI 4 wants as root and with more ranks than cores, so that
# `mpirun -n 8 msrun net.plan` works.
msc_root=$(CDPATH= cd "$(dirname "${BASH_SOURCE:-${ZSH_VERSION:+$0}}")/.." && pwd)
# dash does not say which file it reads.
[ -n "${BASH_SOURCE:-}${ZSH_VERSION:-}" ] || msc_root=$(pwd)
if ! [ -e "$msc_root/tools/env.sh" ]; then
  echo "tools/env.sh: in this shell, go to the root of the repository first" >&2
  unset msc_root
  return 1
fi
case "$(command -v msrun)" in
  "$msc_root"/build*/bin/msrun) ;;
  *) export PATH="$msc_root/build/bin:$PATH" ;;
esac
unset msc_root
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# More ranks than slots are fine; waiting ranks give their core away, and none is tied to one.
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
# Containers often forbid reading another process's memory; Open MPI warns about it on every start.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
