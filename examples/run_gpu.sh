#!/usr/bin/env bash
# Compiles net.mir of the folder in which this script lies (every example has a link to it) and trains it on GPUs under mpirun:
#   ./device/net.plan     the plan
#   ./device/train.log    what all ranks print
# Usage: bash run_gpu.sh [DATA_PATH [HOSTFILE]]
#   DATA_PATH   a folder of .npy files, which are linked into ./device, where a data set of files finds them
#   HOSTFILE    lines 'HOST slots=GPUS': trains on these hosts, one rank per slot; each rank starts in mpirun_gpu_cluster.sh
# Environment:
#   RANKS          how many ranks (default: 8, or all slots of HOSTFILE)
#   DEVICE         cuda (default) or cpu
#   NETWORK        with HOSTFILE: the network between the hosts, as 192.168.0.0/24 or as the name of an interface that all have
#   COMPILE_FLAGS  further flags of msc compile, RUN_FLAGS of msrun, MPIRUN_FLAGS of mpirun
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
fail() {
  printf 'run_gpu.sh: error: %s\n  help: %s\n' "$1" "$2" >&2
  exit 2
}

banner() {
  echo "=============================================================================================================="
  echo "Please run the script as: "
  echo "bash run_gpu.sh DATA_PATH"
  echo "For example: bash run_gpu.sh /path/dataset"
  echo "It is better to use the absolute path."
  echo "=============================================================================================================="
}

case ${1:-} in
-h | --help)
  banner
  sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit
  ;;
esac
[ $# -gt 0 ] || banner
if [ $# -gt 2 ]; then
  banner >&2
  fail "$# arguments" "bash run_gpu.sh DATA_PATH HOSTFILE; flags go into COMPILE_FLAGS, RUN_FLAGS and MPIRUN_FLAGS"
fi
[ -e "$here/net.mir" ] || fail "there is no network beside this script" "start that of an example: bash examples/quickstart/run_gpu.sh"
data=${1:-}
[ -z "$data" ] || [ -d "$data" ] ||
  fail "DATA_PATH is '$data', which is no folder" "give the folder of the .npy files, or '' for none"
[ -z "$data" ] || data=$(cd "$data" && pwd)
export DATA_PATH=$data
device=${DEVICE:-cuda}
case $device in cuda | cpu) ;; *) fail "DEVICE is '$device'" "DEVICE=cuda or DEVICE=cpu" ;; esac
[[ ${RANKS:-8} =~ ^[1-9][0-9]*$ ]] ||
  fail "RANKS is '$RANKS', which is no number of ranks" "RANKS=8"

# The hosts, in the order of the file, and their slots.
hosts=() slots=()
ranks=${RANKS:-8}
if [ $# -eq 2 ]; then
  [ -f "$2" ] && [ -r "$2" ] ||
    fail "the file of hosts '$2' cannot be read" "write one with a line 'HOST slots=GPUS' for each host"
  hostfile=$(readlink -f "$2")
  number=0 all=0
  while read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%%#*}
    read -r host slot rest <<< "$line" || true
    [ -n "$host" ] || continue
    [[ $slot =~ ^slots=([1-9][0-9]{0,4})$ ]] && [ -z "$rest" ] ||
      fail "line $number of '$2' does not say how many ranks '$host' takes" "$host slots=8"
    slot=${BASH_REMATCH[1]}
    for known in ${hosts[@]+"${hosts[@]}"}; do
      [ "$known" != "$host" ] || fail "line $number of '$2' names '$host' again" "give it one line with all of its slots"
    done
    hosts+=("$host") slots+=("$slot")
    all=$((all + slot))
  done < "$hostfile"
  [ ${#hosts[@]} -gt 0 ] || fail "the file of hosts '$2' names none" "write a line 'HOST slots=GPUS' for each host"
  ranks=${RANKS:-$all}
  [ "$ranks" -le "$all" ] || fail "RANKS is $ranks, but '$2' has $all slots" "leave out RANKS, or give the hosts more slots"
elif [ -n "${NETWORK:-}" ]; then
  fail "NETWORK is '$NETWORK', but there are no hosts" "bash run_gpu.sh DATA_PATH HOSTFILE"
fi

[ ! -e "$root/tools/env.sh" ] || . "$root/tools/env.sh"
for tool in msc msrun mpirun; do
  command -v $tool > /dev/null ||
    fail "$tool is not on PATH" "build the project (tools/quickstart.sh), or install it and Open MPI"
done
[ ! -e device ] || [ -e device/.run_gpu ] || { [ -e device/net.plan ] && [ -e device/train.log ]; } || # as earlier versions left it
  fail "there is a '$PWD/device' that this script did not make" "start in another folder, or move it away: what the script made before is replaced"
rm -rf device
mkdir device
cd device
: > .run_gpu
if [ -n "$data" ]; then
  for file in "$data"/*.npy; do
    [ ! -e "$file" ] || ln -s "$file" .
  done
fi
read -ra compile_flags <<< "${COMPILE_FLAGS:-}"
read -ra run_flags <<< "${RUN_FLAGS:-}"
read -ra mpirun_flags <<< "${MPIRUN_FLAGS:-}"
msc compile "$here/net.mir" --devices "$ranks" ${compile_flags[@]+"${compile_flags[@]}"} -o net.plan
if [ -n "$data" ] && msrun --print-plan net.plan | grep -q '^dataset: Random'; then
  echo "note: DATA_PATH is not read: the network draws its data"
fi

over=(${mpirun_flags[@]+"${mpirun_flags[@]}"})
run=(msrun net.plan --device "$device" --log-all-ranks ${run_flags[@]+"${run_flags[@]}"})
if [ ${#hosts[@]} -gt 0 ]; then
  over+=(--hostfile "$hostfile" --mca pml ob1 --mca btl tcp,self -x PATH -x DATA_PATH)
  [ -z "${NETWORK:-}" ] || over+=(--mca btl_tcp_if_include "$NETWORK")
  for name in NETWORK NCCL_SOCKET_IFNAME CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH; do
    [ -z "${!name+set}" ] || over+=(-x "$name")
  done
  on_host=(bash "$here/mpirun_gpu_cluster.sh" "$PWD")
  # Each host is asked once, by its name, whether it can take part, so that all that is missing is one message. mpirun counts the host that it
  # runs on as the first, wherever the file has it: hosts are not told by their rank.
  ask=() sum=$(sha256sum < net.plan)
  for i in "${!hosts[@]}"; do
    ask+=(: -n 1 -H "${hosts[i]}" "${over[@]}" "${on_host[@]}" check "$device" "$sum" "${hosts[i]}" "${slots[i]}")
  done
  timeout -k 5 60 mpirun "${ask[@]:1}" > hosts.log 2>&1 < /dev/null || {
    cat hosts.log >&2
    fail "mpirun does not start on all hosts of '$2' (above, and in device/hosts.log)" \
      "'ssh HOST true' must work without a password, with Open MPI and this folder at the same place on every host"
  }
  if problem=$(grep '^error: ' hosts.log | sort | head -n 1); [ -n "$problem" ]; then
    fail "$(cut -d '|' -f 1 <<< "${problem#error: }")" "$(cut -d '|' -f 2 <<< "$problem")"
  fi
  run=("${on_host[@]}" run "${run[@]}")
fi
echo "start training"
mpirun -n "$ranks" "${over[@]}" "${run[@]}" > train.log 2>&1 < /dev/null || { code=$?; tail -n 20 train.log >&2; exit $code; }
grep 'loss is' train.log | tail -n 1 || echo "the network has no loss; what its ranks print is in device/train.log"
