#!/usr/bin/env bash
# run_gpu_fails.sh SCRIPT MESSAGE REPAIR [HOSTFILE]: SCRIPT, on two hosts, ends with 2, and its one error and repair match these
# expressions. Environment: DATA, its DATA_PATH; DEVICE (default cpu).
script=$1 message=$2 repair=$3
DEVICE=${DEVICE:-cpu} bash "$(dirname "$0")/two_hosts.sh" bash "$script" "${DATA:-}" "${4:-../hosts}" > fails.out 2> fails.err
code=$?
[ $code -eq 2 ] && [ "$(grep -c error: fails.err)" -eq 1 ] && grep -q -- "^run_gpu.sh: error: $message" fails.err &&
  grep -q -- "^  help: $repair" fails.err && ! grep -q '^start training' fails.out && exit
echo "exit code $code; expected $message, $repair"
cat fails.out fails.err
exit 1
