#!/bin/bash
# Tests msrun on the GPUs of this machine, against its CPUs.
#   test_cuda.sh [--dry-run] [--plans PLANS] [FOLDER]   runs it all; every log, report and the summary is in FOLDER (cuda-results)
#   test_cuda.sh --prepare PLANS [--networks NETWORKS]  only compiles the plans, for a machine without msc; and those of NETWORKS/*.mir, whose first
#                                                       line says for how many devices. Without NETWORKS it makes some, where there is a build with
#                                                       tests: by differential_test --write
# Takes msrun (and msc, without --plans) from PATH, or msrun from the archive in which this script lies; and mpirun, if there is one.
# Ends with 0 if nothing failed, with 1 if something did, after MSC_TEST_SECONDS (570) at the latest: what no time is left for has failed, but for
# the comparison with other frameworks, which takes what is left. What a machine lacks is skipped and said.
# --dry-run: the same commands on CPUs, which tests this script and nothing else.
# An earlier form of it ran on one H200 (driver 580, CUDA 13.0, NCCL 2.28), this one never on a GPU, and none on several.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wrong() { echo "test_cuda.sh: $1; test_cuda.sh [--dry-run] [--plans PLANS] [FOLDER], or test_cuda.sh --prepare PLANS [--networks NETWORKS]" >&2; exit 2; }
dry="" plans="" prepare="" networks="" out=""
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=yes ;;
    --plans | --prepare | --networks)
      [ -n "${2:-}" ] || wrong "$1 needs a folder"
      case $1 in --plans) plans=$2 ;; --prepare) prepare=$2 ;; *) networks=$2 ;; esac
      shift ;;
    -*) wrong "unknown argument '$1'" ;;
    *) [ -z "$out" ] || wrong "two folders, '$out' and '$1'"; out=$1 ;;
  esac
  shift
done
[ -z "$networks" ] || [ -n "$prepare" ] || wrong "--networks goes with --prepare"
[ -z "$networks" ] || [ -d "$networks" ] || wrong "there is no folder '$networks'"
[ -z "$prepare" ] || [ -z "$plans$out$dry" ] || wrong "--prepare is given with something else"
[ -z "$plans" ] || [ -d "$plans" ] || wrong "there is no folder '$plans'"
[ -z "$plans" ] || plans=$(cd "$plans" && pwd)
out=${prepare:-${out:-cuda-results}}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
# Unpacked, this script lies in share/msc and msrun in bin.
[ ! -x "$here/../../bin/msrun" ] || PATH=$(cd "$here/../../bin" && pwd):$PATH
bench=$here/cuda_bench.py
# Where the machine has no libraries of NVIDIA, those that Python's packages brought; compute-sanitizer lies with the toolkit.
ldconfig -p 2> /dev/null | grep -q libcublasLt || for folder in $(python3 -c 'import glob, sysconfig; print(*glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/*/lib"), sep="\n")' 2> /dev/null); do
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
PATH=$PATH:/usr/local/cuda/bin
# What mpirun wants as root, with more ranks than cores, and in containers, as in tools/env.sh, which the archive lacks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
# For NCCL between processes that say they are on hosts of their own (as_processes, lost).
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1
summary=$out/summary.txt
: > "$summary"
failures=0
limit=120 # seconds of one command
all=${MSC_TEST_SECONDS:-570} # and of all together
[ -z "$prepare" ] || all=100000

say() { printf '%-8s %s\n' "$1" "$2" | tee -a "$summary"; }
# Seconds that the next command may take.
seconds() {
  local left=$((all - SECONDS))
  echo $((left < 1 ? 1 : left < limit ? left : limit))
}
within() { timeout -k 5 "$(seconds)" "$@"; } # not with '&': a signal would reach this shell instead
# check NAME COMMAND...: passes if the command does; its output goes to NAME.log. Where what it lacks is a library, it is skipped.
check() {
  local name=$1 begin=$SECONDS
  shift
  if [ "$SECONDS" -ge "$all" ]; then
    say FAILED "$name: the $all s of MSC_TEST_SECONDS are over"
    failures=$((failures + 1))
  elif "$@" > "$out/$name.log" 2>&1; then
    say passed "$name ($((SECONDS - begin)) s)"
  elif grep -q -e 'error: NCCL is missing' -e 'sanitizer.*Device not supported' "$out/$name.log"; then
    skip "$name" "$(grep -m 1 -e 'NCCL is missing' -e 'not supported' "$out/$name.log")"
  else
    say FAILED "$name: $(grep -m 1 error: "$out/$name.log" || tail -n 1 "$out/$name.log")"
    failures=$((failures + 1))
  fi
}
# refused NAME CODE PATTERN COMMAND...: passes if the command ends with CODE and exactly one error, which matches.
refused() {
  local name=$1 code=$2 pattern=$3
  shift 3
  check "$name" says_no "$code" "$pattern" "$out/$name.out" "$@"
}
says_no() {
  local code=$1 pattern=$2 said=$3 found
  shift 3
  within "$@" > "$said" 2>&1
  found=$?
  cat "$said"
  echo "exit code $found, expected $code and one error with '$pattern'"
  [ $found = "$code" ] && [ "$(grep -c error: "$said")" = 1 ] && grep -q "error: .*$pattern" "$said"
}
skip() { say skipped "$1: $2"; }

# on_gpu PLAN REPORT FLAGS...
on_gpu() {
  local plan=$1 report=$2
  shift 2
  rm -f "$report" # of an earlier run
  if [ -n "$dry" ]; then
    within msrun "$plan" --no-checkpoint --steps 20 --report "$report"
  else
    within msrun "$plan" --no-checkpoint --steps 20 --report "$report" --device cuda "$@"
  fi
}
on_cpu() {
  rm -f "$2"
  within msrun "$1" --no-checkpoint --steps 20 --report "$2" --device cpu
}
# Every rank is a process: for NCCL it says that it is on a host of its own, so that several are taken on one GPU; by kernels of the GPU they read each
# other's memory.
by_nccl=(--device cuda --collectives nccl) by_kernels=(--device cuda --collectives local) uncaptured=(--no-cuda-graph)
[ -z "$dry" ] || by_nccl=(--device cpu) by_kernels=(--device cpu) uncaptured=()
by=("${by_nccl[@]}")
# as_processes RANKS PLAN REPORT FLAGS...: that communicate as `by` says.
as_processes() {
  local ranks=$1 plan=$2 report=$3
  shift 3
  rm -f "$report"
  NCCL_MAX_CTAS=1 NCCL_NVLS_ENABLE=0 within mpirun -n "$ranks" bash -c 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec msrun "$@"' rank \
    "$plan" --no-checkpoint --steps 20 --report "$report" "${by[@]}" "$@"
}
# gone PROCESS: waits until it has ended, for 10 s at most.
gone() {
  local i
  for ((i = 0; i < 100; i++)); do
    [ -e "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2> /dev/null || return 0
    sleep 0.1
  done
  return 1
}
# lost SIGNAL CODE TEXT PLAN RANKS FOLDER: an endless run of as many processes, of which rank 1 is sent the signal; passes if mpirun ends within 40 s
# with the code, all are gone, and a line of the log matches the text. In FOLDER a file per rank says its process.
lost() {
  local signal=$1 expected=$2 text=$3 plan=$4 ranks=$5 folder=$6 job victim code begin i
  rm -rf "$folder" && mkdir "$folder"
  NCCL_MAX_CTAS=1 NCCL_NVLS_ENABLE=0 timeout -k 5 "$(seconds)" mpirun -n "$ranks" bash -c \
    'echo $$ > "$0/pid.$OMPI_COMM_WORLD_RANK"; NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec msrun "$@"' "$folder" \
    "$plan" --no-checkpoint --epochs 100000000 --log-every 10 --timeout 10 "${by[@]}" > "$folder/run.log" 2>&1 < /dev/null &
  job=$!
  for ((i = 0; i < 60; i++)); do # seconds until it trains
    grep -qs 'loss is' "$folder/run.log" && break
    kill -0 $job 2> /dev/null || break
    sleep 1
  done
  victim=$(cat "$folder/pid.1" 2> /dev/null)
  if ! grep -qs 'loss is' "$folder/run.log" || ! kill -"$signal" "$victim"; then
    kill $job
    wait $job
    echo "it did not train"
    cat "$folder/run.log"
    return 1
  fi
  begin=$SECONDS
  wait $job
  code=$?
  echo "mpirun ended with $code, $((SECONDS - begin)) s after SIG$signal"
  grep -v 'loss is' "$folder/run.log"
  for process in "$folder"/pid.*; do
    gone "$(cat "$process")" || { echo "process $(cat "$process") is still there"; kill -KILL "$(cat "$process")"; code=there; }
  done
  [ $code = "$expected" ] && [ $((SECONDS - begin)) -lt 40 ] && grep -qE "$text" "$folder/run.log"
}
# stopped PLAN LOG FLAGS...: SIGTERM ends a run of threads within 30 s, with 143.
stopped() {
  local plan=$1 log=$2 job code begin i
  shift 2
  local gpu=(--device cuda "$@")
  [ -n "$dry" ] && gpu=(--device cpu)
  rm -f "$log" # of an earlier run: the shell behind '&' may not have begun when it is first read
  timeout -k 5 "$(seconds)" msrun "$plan" --no-checkpoint --epochs 100000000 --log-every 100 "${gpu[@]}" > "$log" 2>&1 < /dev/null &
  job=$!
  for ((i = 0; i < 60; i++)); do
    grep -qs 'loss is' "$log" && break
    kill -0 $job 2> /dev/null || break
    sleep 1
  done
  grep -qs 'loss is' "$log" || { kill $job; wait $job; echo "it did not train, and ended with $?"; cat "$log"; return 1; }
  begin=$SECONDS
  kill -TERM $job # timeout hands it on
  wait $job
  code=$?
  echo "msrun ended with $code, $((SECONDS - begin)) s after SIGTERM"
  grep -v 'loss is' "$log"
  [ $code = 143 ] && [ $((SECONDS - begin)) -lt 30 ]
}
# same A B TOLERANCE [first]: the losses of two reports, relative; 0: to the bit. "first": relative to the first loss, for narrow types, where a
# rounding that goes the other way is carried on by the momentum for some steps.
same() {
  python3 - "$@" << 'PYTHON'
import json, sys
a, b = ([step["loss"] for step in json.load(open(path))["steps"]] for path in sys.argv[1:3])
tolerance = float(sys.argv[3])
differences = [abs(x - y) / max(abs(b[0] if sys.argv[4:] else y), 1e-30) for x, y in zip(a, b)]
print(f"{len(a)} and {len(b)} steps, relative differences {differences}")
sys.exit(not (len(a) == len(b) == 20 and all(d <= tolerance for d in differences)))  # not a number is no agreement
PYTHON
}
# printed PLAN FLAGS...: what it prints on GPUs is what it prints on CPUs.
printed() {
  local plan=$1
  shift
  local gpu=(--device cuda "$@")
  [ -z "$dry" ] || gpu=(--device cpu)
  within msrun "$plan" --device cpu > "$out/printed-cpu.txt" && within msrun "$plan" "${gpu[@]}" > "$out/printed-gpu.txt" &&
    [ -s "$out/printed-cpu.txt" ] || return 1
  cat "$out/printed-gpu.txt"
  [ "$(cat "$out/printed-cpu.txt")" = "$(cat "$out/printed-gpu.txt")" ]
}
# asks_for_cuda SUITE: without a GPU to be seen its first test ends with what is missing.
asks_for_cuda() {
  CUDA_VISIBLE_DEVICES= MSC_COLLECTIVES=local within "$1" --gtest_brief=1 --gtest_filter='*WorldKnows*/0' > "$out/conformance.txt" 2>&1 && return 1
  cat "$out/conformance.txt"
  grep -q -e 'error: a library of CUDA is missing' -e 'error: no GPU: ' -e 'error: .*it is too old' -e 'error: .*this build needs CUDA' "$out/conformance.txt"
}
# MiB that all processes take on all GPUs.
used() { nvidia-smi ${CUDA_VISIBLE_DEVICES:+-i "$CUDA_VISIBLE_DEVICES"} --query-gpu=memory.used --format=csv,noheader,nounits | awk '{all += $1} END {if (NR) print all; else exit 1}'; }
# given_back BEFORE: nearly as much is free as before.
given_back() {
  sleep 2
  local now
  now=$(used) && echo "$1 MiB before, $now MiB now" && [ "$now" -lt $(($1 + 256)) ]
}
median_ms() {
  python3 -c 'import json, statistics, sys; print("%.3f ms per step" % statistics.median([s["ms"] for s in json.load(open(sys.argv[1]))["steps"]][3:]))' "$1"
}

needs="msrun python3"
[ -n "$plans" ] || needs="$needs msc"
[ -z "$prepare" ] || needs=msc
for tool in $needs; do
  command -v $tool > /dev/null || { say FAILED "$tool is not on PATH$([ $tool != msc ] || echo ", and there is no --plans PLANS")"; exit 1; }
done

[ -n "$plans" ] || [ -d "$here/../examples" ] ||
  { say FAILED "no examples lie beside '$here': give plans that 'test_cuda.sh --prepare PLANS' compiled elsewhere, --plans PLANS"; exit 1; }

# Plans of small forms of the examples, and of one that is large enough to be measured.
one="quickstart mlp gpt2 heads batches"
tried="$one quickstart-8 gpt2-2 gpt2-4 gpt2-split heads-2 bf16 heads-bf16 heads-bf16-2 allgather nan" # of which a dry run tries each kind
[ -n "$dry" ] || one="$one gpt3 llama bert wide_and_deep vgg16 resnet50 transformer moe"
copied() { [ "$1" -ef "$2" ] || cp "$1" "$2"; }
compile() { # NAME EXAMPLE DEVICES FLAGS...; or a network in the place of EXAMPLE
  local name=$1 network=$2 devices=$3
  shift 3
  [ -z "$dry" ] || [[ " $tried " == *" $name "* ]] || return 0
  [ "${network%.mir}" != "$network" ] || network=$here/../examples/$network/net.mir
  if [ -n "$plans" ]; then
    check "plan-$name" copied "$plans/$name.plan" "$out/$name.plan"
  else
    check "compile-$name" within msc compile "$network" --devices "$devices" -o "$out/$name.plan" "$@"
  fi
}
# bench NAME EXAMPLE|FILE CHANGE FLAGS...: a plan for cuda_bench.py of a text that sed changes.
bench() {
  local name=$1 example=$2 change=$3
  shift 3
  if [ -n "$plans" ]; then
    [ ! -e "$plans/$name.plan" ] || copied "$plans/$name.plan" "$out/$name.plan"
  else
    [ -e "$example" ] || example=$here/../examples/$example/net.mir
    sed "$change" "$example" > "$out/$name.mir"
    check "compile-$name" within msc compile "$out/$name.mir" --devices 1 -o "$out/$name.plan" --device-target cuda "$@"
  fi
}
narrow='s/^train {/train {amp_level: O2, amp_dtype: bf16, /' same='s/steps: 8}/steps: 8, same_batch: true}/'
bench_all() {
  bench bench-gpt2-f32 gpt2 '' -D wide=1
  bench bench-gpt2-bf16 gpt2 "$narrow" -D wide=1
  bench bench-bert-bf16 bert "$narrow" -D wide=1 -D layers=24 -D heads=16 -D width=1024 -D hidden=4096 -D length=512 -D batch=8
  bench bench-resnet50-f32 resnet50 "$same" -D batch=256
  bench bench-resnet50-bf16 resnet50 "$same;$narrow" -D batch=256
  [ -n "$plans" ] || cat > "$out/product.mir" << 'MIR'
network product(%x: f32[4096, 4096]) {
  param %w: f32[4096, 4096] = Normal(0.01)
  param %v: f32[4096, 4096] = Normal(0.01)
  %a = MatMul(%x, %w)
  %r = ReLU(%a)
  %y = MatMul(%r, %v)
  %s = Square(%y)
  %loss = ReduceMean(%s)
  return loss: %loss
}
dataset {source: Random(seed: 1), columns: {x: uniform}, steps: 20, same_batch: true}
train {optimizer: SGD(learning_rate: 0.001), minimize: loss, epochs: 1}
MIR
  [ -n "$plans" ] || cat > "$out/rows.mir" << 'MIR'
network rows(%x: f32[8192, 8192]) {
  param %w: f32[8192, 8192] = Normal(1.0)
  param %g: f32[8192] = Ones()
  param %b: f32[8192] = Zeros()
  %a = Mul(%w, %x)
  %s = GeLU(%a)
  %n, %n_1, %n_2 = LayerNorm(%s, %g, %b)
  %p = Softmax(%n)
  %q = Mul(%p, %x)
  %t = Transpose(%q, (1, 0))
  %u = Tanh(%t)
  %c = ReduceSum(%u, 0)
  %d = Square(%c)
  %loss = ReduceSum(%d)
  return loss: %loss
}
dataset {source: Random(seed: 1), columns: {x: uniform}, steps: 20, same_batch: true}
train {optimizer: AdamW(0.001), minimize: loss, epochs: 1}
MIR
  bench bench-rows "$out/rows.mir" ''
  bench bench-matmul-f32 "$out/product.mir" ''
  bench bench-matmul-bf16 "$out/product.mir" "$narrow"
}
small="-D wide=1 -D layers=1 -D heads=2 -D width=16 -D vocabulary=31 -D batch=4"
compile_all() {
  compile quickstart quickstart 1
  compile quickstart-8 quickstart 8
  compile gpt2 gpt2 1 $small -D length=12
  compile gpt2-2 gpt2 2 $small -D length=12
  compile gpt2-4 gpt2 4 $small -D length=12
  # Three groups, and all collectives: AllReduce, AllGather, ReduceScatter, AlltoAll.
  compile gpt2-split gpt2 4 ${small/wide=1/wide=2} -D length=12
  compile gpt3 gpt3 1 $small -D length=10
  compile llama llama 1 $small -D kv_heads=1 -D hidden=24 -D length=10
  compile bert bert 1 $small -D hidden=24 -D length=9
  compile mlp mlp 1 -D width=64
  compile wide_and_deep wide_and_deep 1 -D wide=1 -D fields=5 -D vocabulary=101 -D size=6 -D batch=32
  compile vgg16 vgg16 1 -D size=32 -D classes=10 -D batch=8 -D width=4 -D hidden=32
  # All four stages, small steps: with more blocks, or sizes, two orders of a sum end in other losses after 20 steps, on CPUs, too.
  [ -n "$plans" ] || sed 's/learning_rate: 0.01/learning_rate: 0.0001/' "$here/../examples/resnet50/net.mir" > "$out/resnet50.mir"
  compile resnet50 "$out/resnet50.mir" 1 -D size=64 -D classes=10 -D batch=16 -D width=8 -D blocks1=1 -D blocks2=1 -D blocks3=1 -D blocks4=1
  compile transformer transformer 1 -D wide=1
  compile moe moe 1 -D wide=1 -D layers=2 -D heads=4 -D kv_heads=2 -D width=32 -D hidden=48 -D length=16 -D vocabulary=61 -D batch=4
  compile allgather allgather 4
  compile nan "$here/../test/cuda/nan.mir" 1
  compile batches "$here/../test/cuda/batches.mir" 1
  compile heads "$here/../test/cuda/heads.mir" 1
  compile heads-2 "$here/../test/cuda/heads.mir" 2
  [ -n "$plans" ] || sed "$narrow" "$here/../test/cuda/heads.mir" > "$out/heads-bf16.mir"
  compile heads-bf16 "$out/heads-bf16.mir" 1
  compile heads-bf16-2 "$out/heads-bf16.mir" 2
  [ -n "$plans" ] || sed 's/^train {/&amp_level: O2, amp_dtype: bf16, /' "$here/../examples/gpt2/net.mir" > "$out/bf16.mir"
  compile bf16 "$out/bf16.mir" 1 $small -D length=12
  [ -z "$dry" ] || return 0
  local large="-D wide=1 -D layers=4 -D vocabulary=4096 -D length=256 -D batch=4"
  compile bf16-gpus "$out/bf16.mir" 1 $small -D length=12 --device-target cuda
  [ -n "$plans" ] || sed "$narrow" "$here/../test/cuda/images.mir" > "$out/images-bf16.mir"
  compile images-bf16 "$out/images-bf16.mir" 1
  compile measured gpt2 1 $large
  compile measured-bf16 "$out/bf16.mir" 1 $large --device-target cuda
}
# compile_networks CASES: plans of all operators, many in a network, and of so many random networks, in the folder networks.
compile_networks() {
  local generator network
  generator=$(dirname "$(command -v msc)")/../test/bin/differential_test
  rm -rf "$out/networks" && mkdir "$out/networks"
  if [ -z "$networks" ] && [ -x "$generator" ]; then
    networks=$out/made
    rm -rf "$networks" && mkdir "$networks"
    check made-networks within "$generator" --cases "$1" --write "$networks"
  fi
  for network in ${networks:+"$networks"/*.mir}; do
    check "compile-$(basename "$network" .mir)" within msc compile "$network" --devices "$(sed -n '1s/^# \([0-9]*\) devices.*/\1/p' "$network")" \
      -o "$out/networks/$(basename "$network" .mir).plan"
  done
}
if [ -n "$prepare" ]; then
  compile_all
  bench_all
  compile_networks 120
  say done "$failures failed; the plans are in $out"
  [ $failures -eq 0 ]
  exit
fi
gpus=1
if [ -z "$dry" ]; then
  command -v nvidia-smi > /dev/null || { say FAILED "nvidia-smi is missing: no driver of NVIDIA here"; exit 1; }
  nvidia-smi -L | tee "$out/gpus.txt"
  gpus=$(grep -c '^GPU' "$out/gpus.txt")
  # nvidia-smi shows all, msrun uses those.
  [ -z "${CUDA_VISIBLE_DEVICES+set}" ] || gpus=$(tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | grep -c .)
  [ "$gpus" -gt 0 ] || { say FAILED "no GPU is shown"; exit 1; }
  before=$(used) || { say FAILED "nvidia-smi does not say how much memory is taken"; exit 1; }
fi
say info "$(msrun --version), $gpus GPU(s)${dry:+, dry run on CPUs}"

# Each on CPUs, on one GPU, and there without graphs.
compile_all
for name in $one quickstart-8 gpt2-2 gpt2-4 gpt2-split heads-2; do
  check "cpu-$name" on_cpu "$out/$name.plan" "$out/cpu-$name.json"
done
for name in $one; do
  check "gpu-$name" on_gpu "$out/$name.plan" "$out/gpu-$name.json"
  check "gpu-$name-as-cpu" same "$out/gpu-$name.json" "$out/cpu-$name.json" 1e-4
  check "gpu-$name-uncaptured" on_gpu "$out/$name.plan" "$out/uncaptured-$name.json" --no-cuda-graph
  check "gpu-$name-captured-as-uncaptured" same "$out/gpu-$name.json" "$out/uncaptured-$name.json" 0
done

# In bf16, whose losses are less exact: cast to f32 as on CPUs, and multiplied as it is.
for name in bf16 heads-bf16 heads-bf16-2 images-bf16; do
  [ -z "$dry" ] || [ $name != images-bf16 ] || continue
  check "cpu-$name" on_cpu "$out/$name.plan" "$out/cpu-$name.json"
  ways=()
  [ "${name%-2}" = "$name" ] || ways=(--collectives local)
  check "gpu-$name" on_gpu "$out/$name.plan" "$out/gpu-$name.json" "${ways[@]}"
  check "gpu-$name-as-cpu" same "$out/gpu-$name.json" "$out/cpu-$name.json" 2e-2 first
done
if [ -z "$dry" ]; then
  check gpu-bf16-gpus on_gpu "$out/bf16-gpus.plan" "$out/gpu-bf16-gpus.json"
  check gpu-bf16-gpus-as-cpu same "$out/gpu-bf16-gpus.json" "$out/cpu-bf16.json" 2e-2 first
fi

# Several ranks on one GPU: threads, by its kernels and through the host. They train as one rank does.
for name in quickstart-8 gpt2-4 gpt2-split heads-2; do
  for way in local host; do
    check "$way-$name" on_gpu "$out/$name.plan" "$out/$way-$name.json" --collectives $way
    check "$way-$name-as-cpu" same "$out/$way-$name.json" "$out/cpu-$name.json" 1e-4
    check "$way-$name-as-one" same "$out/$way-$name.json" "$out/gpu-${name%-*}.json" 1e-4
  done
  check "local-$name-uncaptured" on_gpu "$out/$name.plan" "$out/uncaptured-$name.json" --collectives local --no-cuda-graph
  check "local-$name-captured-as-uncaptured" same "$out/local-$name.json" "$out/uncaptured-$name.json" 0
done
check printed-allgather printed "$out/allgather.plan" --collectives local
check printed-nan printed "$out/nan.plan"

# NCCL: one rank, which starts and ends it and takes its memory; processes on one GPU (functional only), also with one that is
# killed; ranks with a GPU each.
check nccl-1 on_gpu "$out/quickstart.plan" "$out/nccl-1.json" --collectives nccl
check nccl-1-as-gpu same "$out/nccl-1.json" "$out/gpu-quickstart.json" 0
few=(msrun "$out/gpt2-4.plan" --no-checkpoint --collectives nccl --device)
if [ -n "$dry" ]; then
  refused nccl-too-few-gpus 2 "no effect: the run is on CPUs" "${few[@]}" cpu
elif [ "$gpus" -lt 4 ]; then
  refused nccl-too-few-gpus 4 "see only $gpus GPU.*NCCL needs one for each" "${few[@]}" cuda
else
  skip nccl-too-few-gpus "$gpus GPUs"
fi
# The suite that communicators of hosts pass, on those of GPUs; in a dry run it only has to say what is missing.
suite=$(dirname "$(command -v msrun)")/../lib/msc/gpu_conformance
if [ ! -x "$suite" ]; then
  skip conformance "it comes with a build that has tests, and a CUDA toolkit"
elif [ -n "$dry" ]; then
  check conformance-missing asks_for_cuda "$suite"
else
  check conformance-local within env MSC_COLLECTIVES=local "$suite" --gtest_brief=1 --gtest_filter=-OneRank.*
  # Start, split, memory, a graph of collectives, end and abort, by one process on one GPU.
  check nccl-one-rank within "$suite" --gtest_brief=1 --gtest_filter='OneRank.*'
fi
if command -v mpirun > /dev/null; then
  for ranks in 2 4; do # what NCCL makes of NaN in minima and maxima, it does not promise
    [ -z "$dry" ] && [ -x "$suite" ] || continue
    check "conformance-nccl-$ranks" within env NCCL_MAX_CTAS=1 NCCL_NVLS_ENABLE=0 mpirun -n $ranks bash -c \
      'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK MSC_COLLECTIVES=nccl exec "$0" --gtest_brief=1 --gtest_filter=-*NaNWins*:OneRank.*' "$suite"
  done
  for name in gpt2-2 gpt2-4 gpt2-split; do
    ranks=${name#gpt2-}
    check "nccl-hosts-$name" as_processes "${ranks/split/4}" "$out/$name.plan" "$out/nccl-hosts-$name.json"
    check "nccl-hosts-$name-as-cpu" same "$out/nccl-hosts-$name.json" "$out/cpu-$name.json" 1e-4
  done
  check nccl-hosts-uncaptured as_processes 4 "$out/gpt2-split.plan" "$out/nccl-hosts-uncaptured.json" "${uncaptured[@]}"
  check nccl-hosts-captured-as-uncaptured same "$out/nccl-hosts-gpt2-split.json" "$out/nccl-hosts-uncaptured.json" 0
  # As mpirun ends with a killed process; it may end the others first. One that hangs is named by those that waited for it.
  check nccl-killed lost KILL 137 'error: rank 1 died|process rank 1 .*signal 9' "$out/gpt2-2.plan" 2 "$out/killed"
  check nccl-stopped lost STOP 6 'error: .*(made no progress|waited for its GPU)' "$out/gpt2-2.plan" 2 "$out/stopped-rank"
  # Processes on one GPU that open each other's memory (CUDA IPC).
  for ranks in 2 4; do
    [ -z "$dry" ] && [ -x "$suite" ] || continue
    check "conformance-processes-$ranks" within env MSC_COLLECTIVES=local mpirun -n $ranks "$suite" --gtest_brief=1 --gtest_filter=-OneRank.*
  done
  by=("${by_kernels[@]}")
  check processes-gpt2-split as_processes 4 "$out/gpt2-split.plan" "$out/processes-gpt2-split.json"
  check processes-as-threads same "$out/processes-gpt2-split.json" "$out/local-gpt2-split.json" 0
  check processes-killed lost KILL 137 'error: rank 1 died|process rank 1 .*signal 9' "$out/gpt2-2.plan" 2 "$out/killed-process"
  by=("${by_nccl[@]}")
else
  skip nccl-hosts "mpirun is missing"
  skip processes "mpirun is missing"
fi
for name in gpt2-2 gpt2-4 gpt2-split; do
  ranks=${name#gpt2-}
  if [ "$gpus" -ge "${ranks/split/4}" ]; then
    check "nccl-$name" on_gpu "$out/$name.plan" "$out/nccl-$name.json" --collectives nccl
    check "nccl-$name-as-cpu" same "$out/nccl-$name.json" "$out/cpu-$name.json" 1e-4
  else
    skip "nccl-$name" "$gpus GPU(s)"
  fi
done

check stopped stopped "$out/quickstart-8.plan" "$out/stopped.txt" --collectives local
[ -n "$dry" ] || check nothing-left given_back "$before"

if [ -z "$dry" ] && command -v compute-sanitizer > /dev/null; then
  checked=(compute-sanitizer --error-exitcode 9 msrun --no-checkpoint --steps 3 --device cuda)
  for name in quickstart gpt2 resnet50; do
    check "sanitizer-$name" within "${checked[@]}" "$out/$name.plan"
  done
  check sanitizer-gpt2-split within "${checked[@]}" --collectives local "$out/gpt2-split.plan"
  for tool in racecheck synccheck; do # shared memory and barriers of kernels
    check "sanitizer-$tool" within "${checked[0]}" --tool $tool "${checked[@]:1}" "$out/gpt2.plan"
  done
else
  skip sanitizer "compute-sanitizer is missing, or a dry run"
fi
# The operators, several in a network, and random networks, on CPUs and on GPUs.
[ -n "$dry$plans" ] || compile_networks 20 # there is less time
made=${plans:-$out}/networks
if [ -z "$dry" ] && ls "$made"/*.plan > /dev/null 2>&1; then
  limit=$all
  check networks within python3 "$here/cuda_networks.py" "$made" "$out/networks.txt"
  tail -n 1 "$out/networks.log" | tee -a "$summary"
  limit=120
elif [ -n "$dry" ]; then # some plans, by the script that would run them all
  rm -rf "$out/few" && mkdir "$out/few"
  for name in gpt2 batches heads-2; do copied "$out/$name.plan" "$out/few/$name.plan"; done
  check networks within python3 "$here/cuda_networks.py" --dry-run "$out/few" "$out/networks.txt"
else
  skip networks "none among the plans, or no build with tests beside this script"
fi
# Times: steps of ours, and those of other frameworks where they are.
for name in measured measured-bf16; do
  rm -f "$out/gpu-$name.json"
  [ -n "$dry" ] || check "gpu-$name" within msrun "$out/$name.plan" --no-checkpoint --steps 200 --report "$out/gpu-$name.json" --device cuda
done
for name in $one measured measured-bf16; do
  [ -s "$out/gpu-$name.json" ] && say info "$name, median: $(median_ms "$out/gpu-$name.json")"
done
left=$((all - SECONDS - 10))
if [ -n "$dry" ]; then
  skip bench "a dry run"
elif [ $left -lt 30 ]; then
  skip bench "$left s are left"
else
  bench_all
  limit=$all
  left=$((all - SECONDS - 10))
  if [ $left -lt 30 ]; then
    skip bench "$left s are left"
  else
    check bench within python3 -u "$bench" "$out" --peers eager,compiled,jax --seconds $left
    grep -E '^PyTorch|copy|ours| x$' "$out/bench.log" | tee -a "$summary"
  fi
fi
say done "$failures failed; results are in $out"
[ $failures -eq 0 ]
