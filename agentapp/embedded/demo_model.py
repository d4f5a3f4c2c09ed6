"""The demo model: a small model behind llama.cpp's OpenAI-compatible server, in a process of its own.

`python -m agentapp.embedded.demo_model` fetches the weights when they are missing, says in `status.json` how far it is,
and serves on the address and with the key of `var/env`. `DEMO_MODEL=/path/to/model.gguf` serves another model.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .environment import Environment, default_var, ensure, private_folder
from .process import Part, PartFailed
from .weights import SIZE, WeightsFailed, fetch

CONTEXT_SIZE = 8192


def part(environment: Environment) -> Part:
    """This module as a part of the group."""
    return Part(
        name="demo_model",
        argv=[sys.executable, "-m", "agentapp.embedded.demo_model"],
        # Threads that spin while they wait would take a core from web and worker.
        environ={**os.environ, "VAR_DIR": str(environment.var), "OMP_WAIT_POLICY": "passive"},
        cwd=Path(__file__).resolve().parents[2],
    )


def write_status(var: Path, state: str, done: int = 0, total: int = 0, message: str = "") -> None:
    """Replaces `status.json`; `state` is downloading, verifying, ready, failed or off."""
    folder = private_folder(var / "demo_model")
    fresh = folder / "status.json.new"
    fresh.write_text(json.dumps({"state": state, "done_bytes": done, "total_bytes": total, "message": message}))
    fresh.replace(folder / "status.json")


def weights(environment: Environment, wanted: str) -> Path:
    """The model file that `DEMO_MODEL` names, or the default one, downloaded on the way."""
    if wanted:
        path = Path(wanted).expanduser()
        if not path.is_file():
            raise PartFailed(f"DEMO_MODEL names {path}, which is no file.")
        return path

    written = 0.0

    def report(state: str, done: int) -> None:
        nonlocal written
        if state != "downloading" or done == SIZE or time.monotonic() - written > 0.5:
            written = time.monotonic()
            percent = f"{min(done, SIZE) * 100 // SIZE} %"
            message = {"downloading": f"Downloading the demo model: {percent}"}.get(state, "Checking the demo model")
            write_status(environment.var, state, min(done, SIZE), SIZE, message)

    return fetch(private_folder(environment.var / "demo_model"), report)


def serve(model: Path, address: str, key: str) -> Any:
    """Starts the server; it runs on threads of its own while the returned object lives."""
    os.environ["OMP_WAIT_POLICY"] = "passive"  # read when the library is loaded, hence the import down here
    import xllamacpp

    url = urlsplit(address)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem if model.stem != "model" else "demo"}
    params.hostnames, params.port = [url.hostname], url.port
    params.api_keys = [key]
    params.n_ctx, params.n_parallel = CONTEXT_SIZE, 1
    # Measured on two cores: generation is bound by memory, so a second thread only disturbs; reading a prompt is not.
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = 1, 2
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_ram_mib = 256
    params.ui = params.endpoint_slots = False
    params.verbosity = 2
    return xllamacpp.Server(params)


def main() -> int:
    environment = ensure(default_var())
    if not environment.demo_model:
        write_status(environment.var, "off")
        print("The demo model is off: another endpoint is configured, or DEMO_MODEL=none.")
        return os.EX_CONFIG
    stop_signals = {signal.SIGTERM, signal.SIGINT}
    try:
        model = weights(environment, os.environ.get("DEMO_MODEL", ""))
        size = model.stat().st_size
        write_status(environment.var, "verifying", size, size, "Loading the demo model")
        address = environment.values["DEMO_MODEL_URL"]
        signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # inherited by the server's threads
        key = environment.values["DEMO_MODEL_KEY"]
        server = serve(model, address, key)
    except (PartFailed, WeightsFailed, OSError, RuntimeError) as error:
        write_status(environment.var, "failed", 0, SIZE, str(error))
        print(error)
        return os.EX_CONFIG if isinstance(error, PartFailed) else os.EX_UNAVAILABLE
    write_status(environment.var, "ready", size, size, "")
    print(f"The demo model answers at {address}", flush=True)
    signal.sigwait(stop_signals)
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
