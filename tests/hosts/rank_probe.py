# SPDX-License-Identifier: Apache-2.0
"""A rank without torch. The ranks meet at MASTER_ADDR:MASTER_PORT like clients of a store, then pass a number around
every 0.1 s for PROBE_SECONDS. On a silent network they wait for ever. Rank 0 ignores connections that do not begin
with the greeting of a rank."""

import os
import socket
import sys
import time


def connect(address, port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((address, port), timeout=None)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def greeting(rank):
    return b"probe %04d" % rank


def accept_ranks(server, world):
    peers = {}
    while len(peers) < world - 1:
        peer = server.accept()[0]
        peer.settimeout(5)
        try:
            said = peer.recv(len(greeting(0)), socket.MSG_WAITALL)
        except OSError:
            continue
        rank = next((rank for rank in range(1, world) if said == greeting(rank)), None)
        if rank is not None:
            peer.settimeout(None)
            peers[rank] = peer
    for peer in peers.values():
        peer.sendall(b"m")
    return list(peers.values())


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    rounds = int(float(os.environ.get("PROBE_SECONDS", "1")) * 10)
    if rank == 0:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server = socket.create_server((address, port), family=family)
        peers = accept_ranks(server, world)
    else:
        peers = [connect(address, port)]
        peers[0].sendall(greeting(rank))
        if peers[0].recv(1) != b"m":
            sys.exit(f"rank {rank} lost rank 0 before all had met")
    print(f"met {world} ranks at {address}", flush=True)
    for turn in range(rounds):
        if rank == 0:
            time.sleep(0.1)
            for peer in peers:
                peer.sendall(b"x")
            for peer in peers:
                if not peer.recv(1):
                    sys.exit(f"rank 0 lost a peer in round {turn}")
        else:
            if not peers[0].recv(1):
                sys.exit(f"rank {rank} lost rank 0 in round {turn}")
            peers[0].sendall(b"x")
    print(f"done {rounds} rounds", flush=True)


main()
