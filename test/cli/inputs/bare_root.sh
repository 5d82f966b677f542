#!/usr/bin/env bash
# bare_root.sh FOLDER COMMAND...: runs the command with FOLDER as the root of all files, to which it adds the C and C++ library
# of this machine, /proc and nothing else. Processes end with the command, after 60 s at the latest.
set -euo pipefail
root=$1
shift
mkdir -p "$root"/{lib64,lib/x86_64-linux-gnu,tmp,proc,dev}
for library in /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/lib{c,m,dl,pthread,rt,gcc_s,stdc++}.so.[0-9]; do
  [ ! -e "$library" ] || cp -L "$library" "$root${library}"
done
own=(unshare --mount --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || own+=(--user --map-root-user)
touch "$root/dev/null"
enter='mount -t proc proc "$0/proc"; mount --bind /dev/null "$0/dev/null"; exec chroot "$0" "$@"'
exec timeout -k 5 60 "${own[@]}" bash -euc "$enter" "$root" "$@"
