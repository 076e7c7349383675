# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL server on one of two hosts, for tests of programs that meet in its database."""

import os
import pathlib
import shutil
import subprocess

from two_hosts import V4, run, skip

PASSWORD = "s3cret"


BINARIES = ""


def skip_without_server():
    """Finds the server or installs it. If neither is possible, ends the test as skipped, with the reason."""
    global BINARIES
    packages = pathlib.Path(__file__).parent.parent / "files/packages.sh"
    done = subprocess.run(
        ["bash", "-c", 'source "$0" && require_postgres && echo "$POSTGRES_BINARIES"', packages],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        skip(done.stdout.strip().removeprefix("skipped: "))
    BINARIES = done.stdout.strip()


class Server:
    """PostgreSQL on host a, for both hosts, with a password."""

    def __init__(self, hosts, folder):
        self.hosts, self.binaries, self.folder = hosts, BINARIES, folder
        self.data = os.path.join(folder, "data")
        with open(os.path.join(folder, "password"), "w") as file:
            file.write(PASSWORD)
        shutil.chown(folder, "postgres")
        shutil.chown(os.path.join(folder, "password"), "postgres")
        self.as_postgres(
            "initdb",
            "-D",
            self.data,
            "-A",
            "scram-sha-256",
            "-U",
            "ann",
            "-N",
            f"--pwfile={folder}/password",
        )
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write(
                f"listen_addresses = '*'\nunix_socket_directories = '{folder}'\nfsync = off\n"
                "max_connections = 40\nshared_buffers = 32MB\n"
            )
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as file:
            file.write("host all all 10.77.0.0/24 scram-sha-256\n")
        self.control("start")

    def as_postgres(self, program, *arguments):
        run(
            *self.hosts.inside(
                "a", ["runuser", "-u", "postgres", "--", f"{self.binaries}/{program}", *arguments]
            )
        )

    def control(self, action):
        arguments = ["-D", self.data, "-w", "-t", "60", "-m", "fast"]
        if action == "start":
            arguments += ["-l", os.path.join(self.folder, "server.log")]
        self.as_postgres("pg_ctl", *arguments, action)

    def url(self, database, password=PASSWORD, port=5432):
        return f"postgresql://ann:{password}@{V4['a']}:{port}/{database}"

    def make(self, database):
        run(
            *self.hosts.inside(
                "a",
                [
                    "env",
                    f"PGPASSWORD={PASSWORD}",
                    f"{self.binaries}/createdb",
                    "-h",
                    V4["a"],
                    "-U",
                    "ann",
                    database,
                ],
            )
        )
        return self.url(database)
