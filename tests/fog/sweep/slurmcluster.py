"""A real Slurm cluster of one node, this one, for tests: munged, slurmctld and slurmd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "squeue", "scancel", "scontrol")

_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A requeued job waits until its old credential has expired, two minutes by default.
AuthInfo=socket={home}/munge.sock,cred_expire=5
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
# No control groups: they belong to whoever runs the tests.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=5,sched_min_interval=100000
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def absent() -> list[str]:
    """What must be installed before a cluster can be started; empty if all is there."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in (*DAEMONS, *COMMANDS) if shutil.which(name, path=path) is None]


@contextmanager
def cluster(home: Path) -> Iterator[dict[str, str]]:
    """Start the daemons below `home`; gives the environment in which Slurm's commands find them."""
    import getpass

    for name in ("state", "spool"):
        (home / name).mkdir(parents=True)
    key = home / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    conf = home / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    conf.write_text(
        _CONF.format(host=host, user=getpass.getuser(), home=home, ports=_free_ports(2))
    )
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {**os.environ, "SLURM_CONF": str(conf), "PATH": path}
    files = {"key-file": key, "socket": home / "munge.sock", "pid-file": home / "munged.pid"}
    files |= {"log-file": home / "munged.log", "seed-file": home / "munge.seed"}
    commands = [
        ["munged", "--foreground", "--force", *(f"--{name}={at}" for name, at in files.items())],
        ["slurmctld", "-D", "-f", str(conf)],
        ["slurmd", "-D", "-f", str(conf)],
    ]
    with ExitStack() as stack:
        for command in commands:
            log = stack.enter_context((home / f"{command[0]}.out").open("wb"))
            daemon = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            stack.callback(_end, daemon)
            time.sleep(1.0)
        _wait_until_idle(environment, home)
        yield environment


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_idle(environment: dict[str, str], home: Path) -> None:
    for _ in range(60):
        shown = subprocess.run(
            ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env=environment
        )
        if shown.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    logs = "\n".join(path.read_text()[-2000:] for path in home.glob("*.log"))
    raise AssertionError(f"the cluster does not come up: {shown.stdout}{shown.stderr}\n{logs}")


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
