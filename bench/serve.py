#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`convoy serve` at 1, 8 and 32 clients beside its own engine without HTTP and beside another server, in turns on this machine.

bench/serve.py [--bin build/bin] [--peer-python PYTHON] [--peer transformers|llama.cpp] [--rounds 3]: PYTHON has torch and transformers[serving], and
for llama.cpp gguf and llama-cpp-python[server]; prints Markdown. --cost-pairs N: the engine without HTTP and the server alone, N times in turns.
The model has the geometry "small" of the other benchmarks, random weights and the tokenizer of examples/tally-3m; answers are greedy, 64 tokens.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

NEW_TOKENS = 64
CLIENTS = (1, 8, 32)
PEERS = {"transformers": "transformers serve", "llama.cpp": "llama.cpp's server"}
SOURCE = pathlib.Path(__file__).resolve().parent.parent
MAKE_MODEL = """
import json, shutil, sys, torch
from transformers import Qwen2Config, Qwen2ForCausalLM
sys.path.insert(0, sys.argv[3])
from geometry import GEOMETRY
torch.manual_seed(0)
vocab = json.load(open(sys.argv[1] + "/config.json"))["vocab_size"]
config = Qwen2Config(max_position_embeddings=4096, **{**GEOMETRY["small"], "vocab_size": vocab})
config.eos_token_id = None
model = Qwen2ForCausalLM(config).to(torch.bfloat16)
model.generation_config.eos_token_id = None
model.save_pretrained(sys.argv[2])
for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
    try: shutil.copy(sys.argv[1] + "/" + name, sys.argv[2])
    except FileNotFoundError: pass
"""


def prompts(count):
    return [
        f"Question: Tom has {place} apples and buys {place * 7 % 50} more every day for {place % 9 + 2} days. How many has he then?\nAnswer:"
        for place in range(count)
    ]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def running(command, port, log):
    with open(log, "w") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if server.poll() is not None:
                raise SystemExit(pathlib.Path(log).read_text())
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


class Client(threading.local):
    """A client of the server. Each thread has a connection of its own, which it keeps."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def chat(self, model, prompt, streams=False):
        """Returns the number of new tokens and the seconds until the first byte of text."""
        begun = time.perf_counter()
        body = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": NEW_TOKENS,
            "stream": streams,
        }
        self.connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"}
        )
        answer = self.connection.getresponse()
        first = None
        if streams:
            for line in answer:
                if (
                    first is None
                    and line.startswith(b"data: {")
                    and json.loads(line[6:])["choices"][0]["delta"].get("content")
                ):
                    first = time.perf_counter() - begun
            return NEW_TOKENS, first
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(text.decode())
        return json.loads(text)["usage"]["completion_tokens"], None


def rate(port, model, clients, rows):
    client = Client(port)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        begun = time.perf_counter()
        tokens = sum(
            tokens for tokens, _ in pool.map(lambda prompt: client.chat(model, prompt), rows)
        )
        return tokens / (time.perf_counter() - begun)


def first_token_ms(port, model, clients, rows):
    client = Client(port)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return 1000 * statistics.median(
            first for _, first in pool.map(lambda prompt: client.chat(model, prompt, True), rows)
        )


def generate_seconds(convoy, model, clients, rows, folder):
    file, answers = folder / "prompts.jsonl", folder / "answers.jsonl"
    file.write_text(
        "".join(
            json.dumps({"messages": [{"role": "user", "content": prompt}]}) + "\n"
            for prompt in rows
        )
    )
    answers.unlink(missing_ok=True)
    command = [
        convoy,
        "generate",
        "--model",
        model,
        "--prompts",
        file,
        "--output",
        answers,
        "--greedy",
        "--max-new-tokens",
        str(NEW_TOKENS),
        "--batch-size",
        str(clients),
        "--dtype",
        "bf16",
        "-q",
    ]
    begun = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True)
    return time.perf_counter() - begun


def engine_rate(convoy, model, clients, rows, folder):
    """New tokens per second without HTTP. The time of one batch is subtracted from the time of all rows, so that loading does not count."""
    few = rows[:clients]
    seconds = generate_seconds(convoy, model, clients, rows, folder) - generate_seconds(
        convoy, model, clients, few, folder
    )
    return NEW_TOKENS * (len(rows) - len(few)) / seconds


def measure(options, convoy, model, folder):
    rates = {}
    rows_of = {clients: prompts(options.rows * clients) for clients in CLIENTS}
    for turn in range(options.rounds):
        for clients in CLIENTS:
            rates.setdefault(("engine", clients), []).append(
                engine_rate(convoy, model, clients, rows_of[clients], folder)
            )
        for name, command, port, served in servers(options, convoy, model):
            with running(command, port, folder / "server.log"):
                Client(port).chat(served, "Hello")
                for clients in CLIENTS:
                    # The peer gets fewer rows: many rows do not make it faster, and its answers take long.
                    rows = (
                        rows_of[clients]
                        if name == "convoy"
                        else rows_of[clients][: max(4, clients)]
                    )
                    rates.setdefault((name, clients), []).append(rate(port, served, clients, rows))
                    rates.setdefault((name, clients, "first"), []).append(
                        first_token_ms(port, served, clients, rows[: 2 * clients])
                    )
        print(f"round {turn + 1} of {options.rounds} is done", file=sys.stderr)
    middle = {key: statistics.median(values) for key, values in rates.items()}
    peer_name = PEERS[options.peer]
    print(
        f"| clients | engine alone, tokens/s | convoy serve | of the engine | {peer_name} | times as fast | first token, ms | of {peer_name} |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for clients in CLIENTS:
        alone, ours, peer = (middle[name, clients] for name in ("engine", "convoy", options.peer))
        print(
            f"| {clients} | {alone:.0f} | {ours:.0f} | {ours / alone:.1%} | {peer:.0f} | {ours / peer:.1f} | "
            f"{middle['convoy', clients, 'first']:.0f} | {middle[options.peer, clients, 'first']:.0f} |"
        )


def measure_cost(options, convoy, model, folder):
    port = free_port()
    print("| clients | engine alone, tokens/s | convoy serve | HTTP costs, median of pairs |")
    print("|---|---|---|---|")
    with running(our_server(convoy, model, port), port, folder / "server.log"):
        Client(port).chat("m", "Hello")
        for clients in CLIENTS:
            rows = prompts(options.rows * clients)
            pairs = [
                (engine_rate(convoy, model, clients, rows, folder), rate(port, "m", clients, rows))
                for _ in range(options.cost_pairs)
            ]
            alone, ours = (statistics.median(values) for values in zip(*pairs))
            print(
                f"| {clients} | {alone:.0f} | {ours:.0f} | {1 - statistics.median(served / engine for engine, served in pairs):.1%} |",
                flush=True,
            )


def our_server(convoy, model, port):
    return [
        convoy,
        "serve",
        "--model",
        model,
        "--served-name",
        "m",
        "--port",
        str(port),
        "--batch-size",
        "32",
        "--dtype",
        "bf16",
        "-q",
    ]


def servers(options, convoy, model):
    ours, peer = free_port(), free_port()
    yield "convoy", our_server(convoy, model, ours), ours, "m"
    if options.peer == "llama.cpp":
        file = model + ".gguf"
        if not os.path.exists(file):
            subprocess.run(
                [options.peer_python, SOURCE / "bench/peers/llama_cpp_file.py", model, file],
                check=True,
            )
        # Interrupting is off, because with it a new request would end a running stream.
        command = [
            options.peer_python,
            "-m",
            "llama_cpp.server",
            "--model",
            file,
            "--model_alias",
            "m",
            "--port",
            str(peer),
            "--n_ctx",
            "4096",
            "--n_threads",
            "2",
            "--n_threads_batch",
            "2",
            "--interrupt_requests",
            "False",
        ]
        yield options.peer, [*command, *options.peer_flags.split()], peer, "m"
        return
    transformers = os.path.join(os.path.dirname(options.peer_python), "transformers")
    yield (
        options.peer,
        [transformers, "serve", "--port", str(peer), *options.peer_flags.split()],
        peer,
        model,
    )


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--bin", default="build/bin")
    options.add_argument("--peer-python", default=os.environ.get("CONVOY_PEER_PYTHON"))
    options.add_argument("--peer", choices=PEERS, default="transformers")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=12, help="answers of each client in a round")
    options.add_argument(
        "--peer-flags", default="", help="flags for the other server, such as --continuous-batching"
    )
    options.add_argument(
        "--cost-pairs", type=int, default=0, help="measure the cost of HTTP alone, so many times"
    )
    options = options.parse_args()
    if not options.peer_python:
        sys.exit(
            "wanted --peer-python: a Python with torch and transformers[serving], which makes the model too"
        )
    convoy = os.path.join(os.path.abspath(options.bin), "convoy")
    with tempfile.TemporaryDirectory(prefix="convoy-bench-") as work:
        folder = pathlib.Path(work)
        model = str(folder / "model")
        subprocess.run(
            [
                options.peer_python,
                "-c",
                MAKE_MODEL,
                SOURCE / "examples/tally-3m",
                model,
                SOURCE / "bench/peers",
            ],
            check=True,
        )
        (measure_cost if options.cost_pairs else measure)(options, convoy, model, folder)


if __name__ == "__main__":
    main()
