# SPDX-License-Identifier: Apache-2.0
"""Measures the processor seconds of loading a tokenizer of Llama 3's size, with the `tokenizers` package and with Convoy in turn.

usage: python tokenizer.py [--convoy PROGRAM] [--rounds N]     (needs tokenizers; Convoy's figure is the whole command)
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent


def seconds_of_python(file):
    start = time.process_time()
    Tokenizer.from_file(file)
    return time.process_time() - start


def seconds_of_command(command):
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (
        after.children_user - before.children_user + after.children_system - before.children_system
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--convoy", default=str(HERE.parent / "build/bin/convoy"))
    parser.add_argument("--rounds", type=int, default=7)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "peers/make_large_tokenizer.py", folder], check=True)
        peer, own = [], []
        for _ in range(flags.rounds):
            peer.append(seconds_of_python(folder + "/tokenizer.json"))
            own.append(
                seconds_of_command([flags.convoy, "tokens", "--model", folder, "--text", "a"])
            )
    peer_s, own_s = statistics.median(peer), statistics.median(own)
    print(
        json.dumps(
            {
                "peer": "tokenizers.Tokenizer.from_file",
                "peer_s": round(peer_s, 3),
                "convoy_tokens_s": round(own_s, 3),
                "ratio": round(peer_s / own_s, 2),
            }
        )
    )


main()
