#!/bin/bash
# Tests msrun on the GPUs of this machine, against its CPUs: tools/test_cuda.sh [--dry-run] [FOLDER]
# Takes msc, msrun and mpirun from PATH (tools/env.sh, or an installation) and writes every log, report and the summary into FOLDER
# (default: cuda-results). Ends with 0 if nothing failed. What a machine lacks is skipped and said.
# --dry-run: the same commands on CPUs, which tests this script and nothing else.
# It has never run on a GPU.
set -u
dry=""
[ "${1:-}" = --dry-run ] && { dry=yes; shift; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-cuda-results}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
summary=$out/summary.txt
: > "$summary"
failures=0
limit=120 # seconds of one command

say() { printf '%-8s %s\n' "$1" "$2" | tee -a "$summary"; }
within() { timeout "$limit" "$@"; }
# check NAME COMMAND...: passes if the command does; its output goes to NAME.log.
check() {
  local name=$1 begin=$SECONDS
  shift
  if "$@" > "$out/$name.log" 2>&1; then
    say passed "$name ($((SECONDS - begin)) s)"
  else
    say FAILED "$name: $(grep -m 1 error: "$out/$name.log" || tail -n 1 "$out/$name.log")"
    failures=$((failures + 1))
  fi
}
skip() { say skipped "$1: $2"; }

# on_gpu PLAN REPORT FLAGS...
on_gpu() {
  local plan=$1 report=$2
  shift 2
  if [ -n "$dry" ]; then
    within msrun "$plan" --no-checkpoint --steps 20 --report "$report"
  else
    within msrun "$plan" --no-checkpoint --steps 20 --report "$report" --device cuda "$@"
  fi
}
on_cpu() { within msrun "$1" --no-checkpoint --steps 20 --report "$2" --device cpu; }
# Every rank is a process that says it is on a host of its own, so that NCCL takes several on one GPU.
as_hosts() {
  local ranks=$1 plan=$2 report=$3 gpu="--device cuda --collectives nccl"
  [ -n "$dry" ] && gpu="--device cpu"
  NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MAX_CTAS=1 NCCL_NVLS_ENABLE=0 within mpirun -n "$ranks" bash -c \
    "NCCL_HOSTID=rank\$OMPI_COMM_WORLD_RANK exec msrun $plan --no-checkpoint --steps 20 --report $report $gpu"
}
# same A B TOLERANCE: the losses of two reports, relative; 0: to the bit.
same() {
  python3 - "$@" << 'PYTHON'
import json, sys
a, b = ([step["loss"] for step in json.load(open(path))["steps"]] for path in sys.argv[1:3])
tolerance = float(sys.argv[3])
worst = max((abs(x - y) / max(abs(y), 1e-30) for x, y in zip(a, b)), default=None)
print(f"{len(a)} and {len(b)} steps, largest relative difference {worst}")
sys.exit(not (len(a) == len(b) > 0 and worst <= tolerance))
PYTHON
}
median_ms() {
  python3 -c 'import json, statistics, sys; print("%.3f ms per step" % statistics.median([s["ms"] for s in json.load(open(sys.argv[1]))["steps"]][3:]))' "$1"
}

for tool in msc msrun python3; do
  command -v $tool > /dev/null || { say FAILED "$tool is not on PATH"; exit 1; }
done
gpus=1
if [ -z "$dry" ]; then
  command -v nvidia-smi > /dev/null || { say FAILED "nvidia-smi is missing: no driver of NVIDIA here"; exit 1; }
  nvidia-smi -L | tee "$out/gpus.txt"
  gpus=$(grep -c '^GPU' "$out/gpus.txt")
  [ "$gpus" -gt 0 ] || { say FAILED "the driver shows no GPU"; exit 1; }
fi
say info "$(msrun --version), $gpus GPU(s)${dry:+, dry run on CPUs}"

# Small forms of the examples. Each on CPUs, on one GPU, and there without graphs.
small="-D wide=1 -D layers=1 -D heads=2 -D width=16 -D vocabulary=31 -D batch=4"
compile() { # NAME EXAMPLE DEVICES FLAGS...
  local name=$1 example=$2 devices=$3
  shift 3
  check "compile-$name" within msc compile "$root/examples/$example/net.mir" --devices "$devices" -o "$out/$name.plan" "$@"
}
compile quickstart quickstart 1
compile quickstart-8 quickstart 8
compile gpt2 gpt2 1 $small -D length=12
compile gpt2-2 gpt2 2 $small -D length=12
compile gpt2-4 gpt2 4 $small -D length=12
compile bert bert 1 $small -D hidden=24 -D length=9
for name in quickstart gpt2 bert quickstart-8 gpt2-2 gpt2-4; do
  check "cpu-$name" on_cpu "$out/$name.plan" "$out/cpu-$name.json"
done
for name in quickstart gpt2 bert; do
  check "gpu-$name" on_gpu "$out/$name.plan" "$out/gpu-$name.json"
  check "gpu-$name-as-cpu" same "$out/gpu-$name.json" "$out/cpu-$name.json" 1e-4
  check "gpu-$name-uncaptured" on_gpu "$out/$name.plan" "$out/uncaptured-$name.json" --no-cuda-graph
  check "gpu-$name-captured-as-uncaptured" same "$out/gpu-$name.json" "$out/uncaptured-$name.json" 0
done

# Several ranks on one GPU: threads, by its kernels and through the host.
for name in quickstart-8 gpt2-4; do
  for way in local host; do
    check "$way-$name" on_gpu "$out/$name.plan" "$out/$way-$name.json" --collectives $way
    check "$way-$name-as-cpu" same "$out/$way-$name.json" "$out/cpu-$name.json" 1e-4
  done
done

# NCCL: processes on one GPU (functional only), and ranks with a GPU each.
if command -v mpirun > /dev/null; then
  for ranks in 2 4; do
    check "nccl-hosts-$ranks" as_hosts $ranks "$out/gpt2-$ranks.plan" "$out/nccl-hosts-$ranks.json"
    check "nccl-hosts-$ranks-as-cpu" same "$out/nccl-hosts-$ranks.json" "$out/cpu-gpt2-$ranks.json" 1e-4
  done
else
  skip nccl-hosts "mpirun is missing"
fi
for ranks in 2 4; do
  if [ "$gpus" -ge $ranks ]; then
    check "nccl-$ranks" on_gpu "$out/gpt2-$ranks.plan" "$out/nccl-$ranks.json" --collectives nccl
    check "nccl-$ranks-as-cpu" same "$out/nccl-$ranks.json" "$out/cpu-gpt2-$ranks.json" 1e-4
  else
    skip "nccl-$ranks" "$gpus GPU(s)"
  fi
done

if [ -z "$dry" ] && command -v compute-sanitizer > /dev/null; then
  check sanitizer-quickstart within compute-sanitizer --error-exitcode 9 msrun "$out/quickstart.plan" --no-checkpoint --steps 3 --device cuda
else
  skip sanitizer "compute-sanitizer is missing, or a dry run"
fi
for name in quickstart gpt2 bert; do
  [ -s "$out/gpu-$name.json" ] && say info "$name, median: $(median_ms "$out/gpu-$name.json")"
done
say done "$failures failed; results are in $out"
[ $failures -eq 0 ]
