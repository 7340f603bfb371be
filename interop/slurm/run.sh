#!/usr/bin/env bash
# Runs weft launch --slurm in a Slurm of this machine: one controller and three nodes, which are
# processes with addresses of their own.
#
#   interop/slurm/run.sh WEFT PROGRAM LISTS
#
# WEFT is the program, PROGRAM that of examples/betweengraph, and LISTS the test program of
# cmd/weft/internal/slurm. Needs Debian's packages slurmctld, slurmd, slurm-client and munge.
set -euo pipefail
if [ -z "${WEFT_SLURM_INSIDE:-}" ]; then
	for tool in munged slurmctld slurmd sbatch srun; do
		PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "$tool is missing: apt-get install slurmctld slurmd slurm-client munge"; exit 1; }
	done
	user=(); [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
	# A PID namespace ends the daemons with this script; a mount namespace has its own names of hosts.
	WEFT_SLURM_INSIDE=1 exec unshare "${user[@]}" --mount --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
weft=$(realpath "$1") program=$(realpath "$2") lists=$(realpath "$3")
export PATH=$PATH:/usr/sbin
ip link set lo up
# Slurm resolves names only if the machine has an address beyond loopback.
ip link add node type bridge; ip addr add 10.0.0.1/24 dev node; ip link set node up
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"; cd "$dir"; mkdir state run log
{ echo "127.0.0.1 localhost $(hostname)"; for n in 1 2 3; do echo "127.0.0.1$n node$n"; done; } > hosts
mount --bind hosts /etc/hosts

cat > slurm.conf <<EOF
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$dir/run/munge.socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=30
SlurmdParameters=config_overrides
NodeName=node[1-3] NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=[17001-17003] CPUs=8
PartitionName=main Nodes=ALL Default=YES State=UP
EOF
export SLURM_CONF=$dir/slurm.conf
head -c 1024 /dev/urandom > munge.key; chmod 600 munge.key
munged --force --key-file="$dir/munge.key" --socket="$dir/run/munge.socket" --pid-file="$dir/run/munged.pid" \
	--log-file="$dir/log/munged.log" --seed-file="$dir/run/seed"
slurmctld
for n in 1 2 3; do mkdir "spool-node$n"; slurmd -N node$n; done
for _ in $(seq 100); do
	[ "$(sinfo --noheader --states=idle --format=%D 2>&1)" != 3 ] || break
	sleep 0.2
done
sinfo || { tail log/*.log; exit 1; }
sinfo --version

passed=0
fail() { echo "FAILED: $1"; tail -n 40 "$dir"/*.log "$dir"/log/slurmctld.log; exit 1; }
pass() { passed=$((passed + 1)); echo "ok: $1"; }
# job NAME ARGUMENT...: runs weft launch --slurm in a job of three nodes; prints its status in NAME.status
job() {
	name=$1; shift
	{ printf '#!/bin/bash\n#SBATCH --nodes=3 --ntasks-per-node=2 --output=%s.log\nexec' "$dir/$name"
	  printf ' %q' "$weft" launch --slurm --server-flag=--insecure --server-flag=--file-root=job="$dir" --log-dir="$dir/logs-$name" "$@"; echo; } > "$name.sbatch"
	sbatch --parsable "$name.sbatch"
}
# ended ID: waits for the end of a job and prints its state and exit status
ended() {
	while squeue --noheader --job "$1" 2>/dev/null | grep -q .; do sleep 0.2; done
	scontrol show job "$1" | grep -oE '(JobState|ExitCode)=[A-Z0-9:]+' | tr '\n' ' '
}
hosts=(--ps-hosts='{ps_hosts}' --worker-hosts='{worker_hosts}' --job-name='{job_name}' --task-index='{task_index}')

# Host lists are read as Slurm reads them.
"$lists" -test.run '^(TestExpand|TestScontrol)$' || fail "host lists"
pass "host lists"

# Workers with servers of their own train, and the parameter servers end after them.
id=$(job train --ps=2 --workers=3 -- "$program" "${hosts[@]}" --train-steps=600)
state=$(ended "$id"); cat train.log
[ "$state" = "JobState=COMPLETED ExitCode=0:0 " ] || fail "training: $state"
for host in node1 node2 node3; do grep -q "$host:2222" train.log || fail "no task on $host"; done
[ "$(grep -c 'test accuracy' train.log)" = 3 ] || fail "three workers did not finish"
grep -q 'all programs have succeeded' train.log || fail "no success"
pass "training with servers of the workers"

# Clients of servers on other machines.
id=$(job clients --layout=clients --ps=1 --workers=2 -- "$program" "${hosts[@]}" --target='{target}' --train-steps=400)
state=$(ended "$id")
[ "$state" = "JobState=COMPLETED ExitCode=0:0 " ] || fail "clients: $state"
[ "$(grep -c 'test accuracy' clients.log)" = 2 ] || fail "two clients did not finish"
pass "training with clients"

# The first failure names the root cause, and its status is that of the job.
id=$(job failure --ps=1 --workers=2 -- bash -c 'if [ $0 = 1 ]; then echo broken; exit 41; fi; trap "sleep 2; echo saved; exit 0" TERM; while :; do sleep 0.1; done' '{task_index}')
state=$(ended "$id")
[ "$state" = "JobState=FAILED ExitCode=41:0 " ] || fail "failure: $state"
grep -q 'root cause: worker/1 failed at .* with status 41' failure.log || fail "the root cause is not named"
grep -q '\] saved$' failure.log || fail "the other worker did not receive SIGTERM"
pass "root cause"

# scancel ends the program with SIGTERM.
id=$(job cancelled --ps=1 --workers=2 -- bash -c 'trap "sleep 2; echo saved; exit 0" TERM; echo started; while :; do sleep 0.1; done')
for _ in $(seq 150); do [ "$(grep -c 'started$' cancelled.log 2>/dev/null)" != 2 ] || break; sleep 0.2; done
scancel --batch --signal=TERM "$id"
state=$(ended "$id")
[ "$state" = "JobState=FAILED ExitCode=143:0 " ] || fail "scancel: $state"
[ "$(grep -c '\] saved$' cancelled.log)" = 2 ] || fail "a program was not asked to end"
pass "SIGTERM from Slurm"
echo "$passed passed, 0 failed"
