#!/usr/bin/env bash
# two_hosts.sh COMMAND...: runs the command on a "host" 192.168.77.1 (hosta) that a cable joins with another one,
# 192.168.77.2 (hostb). Hosts are namespaces of network, name and mounts on this machine; programs and files are shared. mpirun
# finds a stand-in for ssh (OMPI_MCA_plm_rsh_agent) that enters the other host. HOSTB_SETUP is run on hostb before. Nothing has a
# name outside, so all is gone when the command ends, however it ends; after 200 s it is ended.
# two_hosts.sh --probe: exit code 0 where this is possible, else 1 and the reason.
set -euo pipefail
if [ "${INSIDE_TWO_HOSTS:-}" != yes ]; then
  for tool in unshare nsenter ip; do
    command -v $tool > /dev/null || { echo "$tool is missing"; exit 1; }
  done
  own=(unshare --net --uts --mount --pid --fork --kill-child --mount-proc)
  [ "$(id -u)" = 0 ] || own+=(--user --map-root-user)
  if [ "$1" = --probe ]; then
    "${own[@]}" sh -c 'ip link set lo up && ip link add cable0 type veth peer name cable1' > /dev/null 2>&1 ||
      { echo "no namespaces can be made here: that takes root, or namespaces for users, and veth"; exit 1; }
    exit 0
  fi
  INSIDE_TWO_HOSTS=yes exec "${own[@]}" bash "${BASH_SOURCE[0]}" "$@"
fi

unshare --net --uts --mount sleep infinity &
other=$!
enter=(nsenter -t $other --net --uts --mount)
for _ in $(seq 100); do # until it has left this one, mounts last
  [ "$(readlink /proc/$other/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ] || break
  sleep 0.05
done
hostname hosta
ip link set lo up
ip link add cable0 type veth peer name cable1 netns $other
ip addr add 192.168.77.1/24 dev cable0
ip link set cable0 up
"${enter[@]}" bash -euc 'hostname hostb; ip link set lo up; ip addr add 192.168.77.2/24 dev cable1; ip link set cable1 up'
[ -z "${HOSTB_SETUP:-}" ] || "${enter[@]}" bash -euc "$HOSTB_SETUP"

agent=$(mktemp)
trap 'rm -f "$agent"' EXIT
cat > "$agent" << AGENT
#!/bin/bash
[ "\$1" = 192.168.77.2 ] || { echo "ssh: connect to host \$1 port 22: No route to host" >&2; exit 255; }
shift
exec ${enter[*]} bash -c "\$*"
AGENT
chmod +x "$agent"
export OMPI_MCA_plm_rsh_agent=$agent
timeout -k 5 200 "$@"
