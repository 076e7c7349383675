"""Many clients at once use `convoy serve` while its engines are killed: each request gets a right answer or an error.

load.py CONVOY MODEL [--clients 200] [--seconds 600] [--kill-every 5] [--engines 2]
Greedy answers must equal the answers of a quiet server. Ends with 1 when a request got anything else. Prints one JSON line.
"""

import argparse
import collections
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

options = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
options.add_argument("convoy"), options.add_argument("model")
for name, default in (("clients", 200), ("seconds", 600), ("kill-every", 5), ("engines", 2)):
    options.add_argument("--" + name, type=int, default=default)
options = options.parse_args()
sys.argv[1:] = [options.convoy, options.model]
from engines_test import JSON, Server, wait_until  # noqa: E402

PROMPTS = [f"Question: {a} + {b} = ?\nAnswer:" for a in range(1, 9) for b in range(10, 14)]
counts, wrong, lock = collections.Counter(), [], threading.Lock()


def stream_of(answer):
    """The text of the events and the end of the stream: "done", "error" or "cut"."""
    text = ""
    for line in answer.read().decode().split("\n\n"):
        data = line.removeprefix("data: ").strip()
        if data == "[DONE]":
            return text, "done"
        if data and "error" in (part := json.loads(data)):
            return text, "error"
        if data:
            text += part["choices"][0]["text"]
    return text, "cut"


def judge(kind, text, wanted):
    with lock:
        counts[kind] += 1
        if (
            kind in ("answer", "stream")
            and text != wanted
            or kind not in ("answer", "stream", "stream error", "503", "429", "left")
        ):
            wrong.append((kind, text, wanted))


def ask(server, choice, texts):
    prompt = choice.choice(PROMPTS)
    streams, leaves = choice.random() < 0.5, choice.random() < 0.05
    connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
    try:
        connection.request(
            "POST",
            "/v1/completions",
            json.dumps(
                {
                    "model": "tally",
                    "prompt": prompt,
                    "temperature": 0,
                    "max_tokens": 60,
                    "stream": streams,
                }
            ),
            JSON,
        )
        if leaves:
            return judge("left", "", "")
        answer = connection.getresponse()
        if answer.status != 200:
            body = json.loads(answer.read())
            return judge(str(answer.status) if "message" in body["error"] else "no error", body, "")
        if not streams:
            return judge("answer", json.loads(answer.read())["choices"][0]["text"], texts[prompt])
        text, end = stream_of(answer)
        judge({"done": "stream", "error": "stream error", "cut": "cut"}[end], text, texts[prompt])
    except Exception as error:
        judge(repr(error), "", "")
    finally:
        connection.close()


def client(server, seed, deadline, texts):
    choice = random.Random(seed)
    while time.monotonic() < deadline:
        ask(server, choice, texts)


def main():
    server = Server("--engines", str(options.engines), "--max-waiting", "128")
    texts = {prompt: server.text(prompt=prompt, max_tokens=60) for prompt in PROMPTS}
    deadline = time.monotonic() + options.seconds
    threads = [
        threading.Thread(target=client, args=(server, seed, deadline, texts))
        for seed in range(options.clients)
    ]
    for thread in threads:
        thread.start()
    kills, choice = 0, random.Random(0)
    while time.monotonic() + options.kill_every < deadline:
        time.sleep(options.kill_every)
        if engines := server.engines():
            os.kill(choice.choice(engines), signal.SIGKILL)
            kills += 1
    for thread in threads:
        thread.join()
    if server.process.poll() is not None:
        print("the server ended:", *server.lines[-5:], file=sys.stderr)
        return 1
    after = server.text(prompt=PROMPTS[0], max_tokens=60) == texts[PROMPTS[0]]
    memory = wait_until(
        lambda: [
            line for line in open(f"/proc/{server.process.pid}/status") if line.startswith("VmHWM")
        ]
    )[0].split()[1]
    server.process.send_signal(signal.SIGTERM)
    ended = server.process.wait(60)
    print(
        json.dumps(
            {
                "clients": options.clients,
                "seconds": options.seconds,
                "kills": kills,
                "requests": sum(counts.values()),
                "counts": counts,
                "wrong": len(wrong),
                "front_peak_kib": int(memory),
                "ended_with": ended,
            }
        )
    )
    for fault in wrong[:5]:
        print("wrong:", *fault, sep="\n  ", file=sys.stderr)
    return bool(wrong) or not after or ended != 0


if __name__ == "__main__":
    sys.exit(main())
