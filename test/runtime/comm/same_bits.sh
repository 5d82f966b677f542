#!/bin/sh
# same_bits.sh ROOT DRIVER: the reductions give the same bits on threads, on processes of one host, and over the network.
root=$1 driver=$2
command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
failed=0
for ranks in 2 3 8; do
  threads=$("$driver" $ranks)
  for hosts in 0 2 8; do
    processes=$(MSC_MPI_HOSTS=$hosts "$(dirname "$0")/mpirun.sh" "$root" $ranks "$driver" 2> /dev/null | grep '^bits ')
    echo "$ranks ranks: threads '$threads', processes on $hosts pretended hosts '$processes'"
    { [ -n "$threads" ] && [ "$threads" = "$processes" ]; } || failed=1
  done
done
exit $failed
