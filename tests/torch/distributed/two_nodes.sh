# two_nodes.sh FOLDER COMMAND...: runs the command on two nodes, which are network namespaces with one link between them.
#
# To be run in a network namespace of its own, by a user who may administer it. Each node has NODE_RANK, and MASTER_ADDR of
# the first; what it prints goes to FOLDER/node-0 and FOLDER/node-1.
set -eu
folder=$1; shift
unshare --net sleep infinity &
other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add link0 type veth peer name link0 netns $other
up() { ip link set lo up; ip address add "10.0.0.$1/24" dev link0; ip link set link0 up; }
up 1
nsenter --target $other --net sh -euc "$(declare -f up); up 2"
export MASTER_ADDR=10.0.0.1 GLOO_SOCKET_IFNAME=link0
NODE_RANK=1 nsenter --target $other --net "$@" >"$folder/node-1" 2>&1 &
node=$!
NODE_RANK=0 "$@" >"$folder/node-0" 2>&1 || code=$?
wait $node || code=$?
exit ${code:-0}
