"""Runs one task with TLS, and a proxy at the address that the cluster specification names.

A program that starts tasks by a command, with the flags of "weft server", can use this in its
place. TensorFlow's clients then reach the task through "weft proxy". The tasks talk TLS to each
other, at the same ports of another loopback address.

    python -m interop.behindproxy --weft bin/weft --certs DIR --cluster-spec=SPEC --job-name=worker --task-index=0
"""
import argparse
import ctypes
import fcntl
import os
import signal
import subprocess
import sys

PROXIED = "127.0.0.2"  # where the tasks listen


def parse_spec(text):
    """Returns the addresses of a specification "job|host:port;host:port,job|…" by job."""
    jobs = {}
    for part in text.split(","):
        job, addresses = part.split("|")
        jobs[job] = addresses.split(";")
    return jobs


def behind(address):
    """Returns the address of the task whose proxy has an address."""
    return PROXIED + ":" + address.rsplit(":", 1)[1]


def certificate(weft, certs, kind, name):
    """Returns the flags for a certificate, which it makes if necessary. Tasks start at the same time."""
    base = os.path.join(certs, name.replace("/", "-"))
    os.makedirs(certs, exist_ok=True)
    with open(os.path.join(certs, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(certs, "ca.pem")):
            subprocess.run([weft, "cert", "ca", "--dir", certs], check=True, stdout=subprocess.DEVNULL)
        if not os.path.exists(base + ".pem"):
            subprocess.run([weft, "cert", kind, "--dir", certs, name], check=True, stdout=subprocess.DEVNULL)
    return ["--tls-cert", base + ".pem", "--tls-key", base + ".key", "--tls-ca", os.path.join(certs, "ca.pem")]


def die_with_parent():
    """Makes the kernel kill a child when this process was killed (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True)
    parser.add_argument("--certs", required=True)
    parser.add_argument("--cluster-spec", required=True)
    parser.add_argument("--job-name", required=True)
    parser.add_argument("--task-index", required=True, type=int)
    args, rest = parser.parse_known_args()
    jobs = parse_spec(args.cluster_spec)
    front = jobs[args.job_name][args.task_index]
    spec = ",".join(job + "|" + ";".join(behind(a) for a in addresses) for job, addresses in jobs.items())
    name = f"{args.job_name}/{args.task_index}"
    task = [args.weft, "server", "--cluster-spec", spec, "--job-name", args.job_name, "--task-index", str(args.task_index)]
    task += certificate(args.weft, args.certs, "task", name) + rest
    proxy = [args.weft, "proxy", "--listen", front.replace("localhost", "127.0.0.1"), "--to", behind(front), "--task", name]
    proxy += certificate(args.weft, args.certs, "client", "interop/client")
    children = [
        subprocess.Popen(task, preexec_fn=die_with_parent),
        subprocess.Popen(proxy, stdout=subprocess.DEVNULL, preexec_fn=die_with_parent),
    ]

    def stop(*_):
        for child in children:
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    status = children[0].wait()
    stop()
    children[1].wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
