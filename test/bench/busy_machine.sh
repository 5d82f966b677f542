#!/usr/bin/env bash
# What a step takes beside programs that keep processors busy: ranks wait for each other many times in a step, and whoever is not woken at
# once loses a turn of the others each time.
#   test/bench/busy_machine.sh [BUILD] [BUSY]    BUSY programs, 2 if it is left out
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build} busy=${2:-2}
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
"$build"/bin/msc compile examples/quickstart/net.mir --devices 8 -o "$folder"/quickstart.plan > "$folder"/log 2>&1
"$build"/bin/msc compile examples/gpt2/net.mir --devices 8 -D wide=2 -D layers=2 -D heads=4 -D width=32 -D length=64 -D vocabulary=61 \
  -D batch=4 -o "$folder"/gpt2.plan > "$folder"/log 2>&1

median() {
  "$@" --no-checkpoint --report "$folder"/run.json > "$folder"/log 2>&1
  python3 -c 'import json, statistics, sys; print(statistics.median(step["ms"] for step in json.load(open(sys.argv[1]))["steps"]))' "$folder"/run.json
}
measure() {
  for plan in quickstart gpt2; do
    echo "$plan threads $(median "$build"/bin/msrun "$folder"/$plan.plan)"
    if command -v mpirun > /dev/null; then
      echo "$plan mpirun $(median mpirun --allow-run-as-root --oversubscribe -n 8 "$build"/bin/msrun "$folder"/$plan.plan)"
    fi
  done
}

measure > "$folder"/quiet
for _ in $(seq "$busy"); do python3 -c 'while True: pass' & done
measure > "$folder"/busy
echo "8 ranks, $(nproc) processors, $busy busy programs; median ms of a step"
paste -d ' ' "$folder"/quiet "$folder"/busy | awk '{printf "%-10s %-8s quiet %8.3f  busy %8.3f  ratio %6.1f\n", $1, $2, $3, $6, $6 / $3}'
