"""From a bare clone to the first page: time of set-up, time of `manage.py up`, idle memory of web and worker.

    python benchmarks/startup.py

Clones the checkout's last commit into a temporary folder and works there, without the demo model. What pip and npm have
cached on this machine stays cached: the figures are those of a second installation on the same machine. Needs `make`.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
IDLE_SECONDS = 10
GOALS = {"bare clone to first page": "120 s", "up, after set-up": "6 s", "web + worker, idle": "280 MB"}
OURS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "VAR_DIR", "OPENAI_BASE_URL", "OPENAI_API_KEY")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start(clone: Path, environ: dict[str, str]) -> tuple[subprocess.Popen[str], float]:
    """Starts `up`; returns it with the seconds that it says it took."""
    command = [".venv/bin/python", "manage.py", "up"]
    process = subprocess.Popen(command, cwd=clone, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if ready := re.search(r"Ready in ([\d.]+) s: (\S+)", line):
            with urllib.request.urlopen(f"{ready[2]}account/login/", timeout=30) as page:  # noqa: S310 - loopback
                assert page.status == 200
            return process, float(ready[1])
    raise SystemExit("`manage.py up` ended before it was ready.")


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    process.wait(60)


def memory_of_children(parent: int) -> dict[str, float]:
    """Proportional set size in MB of the parts that `up` started."""
    sizes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            owner = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (folder / "cmdline").read_text()
            rollup = (folder / "smaps_rollup").read_text() if owner == parent else ""
        except OSError:
            continue
        for name, mark in {"web": "agentapp.web", "worker": "agentapp.worker"}.items():
            if rollup and mark in command:
                pss = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
                sizes[name] = int(pss[1]) / 1024 if pss else 0.0
    return sizes


def measure(clone: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    environ |= {"PORT": str(free_port()), "DEMO_MODEL": "none"}
    began = time.monotonic()
    subprocess.run(["make", "setup"], cwd=clone, env=environ, check=True)
    set_up = time.monotonic() - began
    process, first = start(clone, environ)
    first_page = time.monotonic() - began
    stop(process)
    process, second = start(clone, environ)
    time.sleep(IDLE_SECONDS)
    memory = memory_of_children(process.pid)
    stop(process)
    rows = [
        ("make setup", f"{set_up:.1f} s"),
        ("up, first start (new database)", f"{first:.1f} s"),
        ("up, after set-up", f"{second:.1f} s"),
        ("bare clone to first page", f"{first_page:.1f} s"),
        *((f"{name}, idle", f"{size:.0f} MB") for name, size in sorted(memory.items())),
        ("web + worker, idle", f"{sum(memory.values()):.0f} MB"),
    ]
    for name, value in rows:
        print(f"{name:32} {value:>9}   {f'goal: at most {GOALS[name]}' if name in GOALS else ''}")


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="startup-"))
    clone = folder / "clone"
    try:
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
        measure(clone)
    finally:
        kept = clone / "var" / "env"
        home = re.search(r"^POSTGRES_HOME=(.+)$", kept.read_text(), re.MULTILINE) if kept.exists() else None
        if home:
            shutil.rmtree(home[1])
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
