#!/usr/bin/env bash
# What run_gpu.sh starts on several hosts, in the folder FOLDER that all of them have:
#   mpirun_gpu_cluster.sh FOLDER run COMMAND...                         on every rank: the command
#   mpirun_gpu_cluster.sh FOLDER check DEVICE SHA256 HOST SLOTS           once per host: prints 'error: WHAT|REPAIR', or nothing
# Variables that differ between hosts can be set here, e.g. by the name of the host.
set -euo pipefail
if [ $# -lt 3 ] || { [ "$2" != run ] && { [ "$2" != check ] || [ $# -lt 6 ]; }; }; then
  printf 'mpirun_gpu_cluster.sh: error: it takes a folder, and run or check with what belongs to it\n  help: %s\n' \
    "start bash run_gpu.sh DATA_PATH HOSTFILE, which starts this on every rank; by hand: mpirun -n 8 ... bash mpirun_gpu_cluster.sh \$PWD run msrun net.plan" >&2
  exit 2
fi
folder=$1 task=$2
shift 2

# The interface of this host that lies in NETWORK is also NCCL's, unless NCCL_SOCKET_IFNAME names others.
interfaces=
if [[ ${NETWORK:-} == */* ]]; then
  interfaces=$(ip -o -4 addr show to "$NETWORK" 2> /dev/null | awk '{print $2}' | sort -u | paste -sd ,) || true
else
  interfaces=${NETWORK:-}
fi
[ -n "${NCCL_SOCKET_IFNAME:-}" ] || [ -z "$interfaces" ] || export NCCL_SOCKET_IFNAME="=$interfaces"

if [ "$task" = run ]; then
  cd "$folder"
  exec "$@"
fi

device=$1 sum=$2 host=$3 slots=$4
fail() {
  echo "error: host '$host' $1|$2"
  exit 0 # run_gpu.sh reads it; another code would end the answers of other hosts
}
# exists NAMES: whether the host has one of these interfaces, in NCCL's words: beginnings of names, '=' names, '^' all but these.
exists() {
  local name names=${1#=}
  [[ $1 != ^* ]] || return 0
  for name in ${names//,/ }; do
    case ",$here," in
      *",$name,"*) return 0 ;;
      *",$name"*) [[ $1 == =* ]] || return 0 ;;
    esac
  done
  return 1
}
here=$(sed -nE 's/^ *([^ :]+):.*/\1/p' /proc/net/dev | paste -sd ,)
if [ -n "${NETWORK:-}" ]; then
  if [[ $NETWORK == */* ]]; then
    ! command -v ip > /dev/null || [ -n "$interfaces" ] ||
      fail "has no address in NETWORK=$NETWORK" "ip -o -4 addr shows its addresses"
  else
    exists "=$NETWORK" || fail "has no interface '$NETWORK', which NETWORK names" "it has $here"
  fi
fi
[ -z "${NCCL_SOCKET_IFNAME:-}" ] || exists "$NCCL_SOCKET_IFNAME" ||
  fail "has no interface such as NCCL_SOCKET_IFNAME=$NCCL_SOCKET_IFNAME asks for" "it has $here"
command -v msrun > /dev/null || fail "has no msrun on PATH" "install the project at the same place on every host"
[ -r "$folder/net.plan" ] || fail "has no $folder/net.plan" "start in a folder that all hosts share"
[ "$(sha256sum < "$folder/net.plan")" = "$sum" ] ||
  fail "has another $folder/net.plan than this one" "start in a folder that all hosts share"
if [ "$device" = cuda ]; then
  command -v nvidia-smi > /dev/null ||
    fail "has no nvidia-smi, so no driver of NVIDIA" "install the driver, or train with DEVICE=cpu"
  gpus=$(nvidia-smi -L | grep -c '^GPU' || true)
  if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then # empty: none
    gpus=$(awk -F , '{print NF}' <<< "$CUDA_VISIBLE_DEVICES")
  fi
  [ "$gpus" -gt 0 ] || fail "shows no GPU" "CUDA_VISIBLE_DEVICES says which it shows; or train with DEVICE=cpu"
  [ "$gpus" -ge "$slots" ] || fail "has $gpus GPU$([ "$gpus" = 1 ] || echo s) for $slots slots" \
      "write '$host slots=$gpus' into the file of hosts"
fi
