"""Ceph's object gateway, with a monitor and one storage daemon that keeps its objects in memory.

It is an implementation of S3 of its own, with real daemons. Debian has it in the packages `ceph-mon`, `ceph-osd`,
`ceph-common` and `radosgw`; creating the bucket takes the Python package `boto3`.
"""

from __future__ import annotations

import shutil
import subprocess
import uuid
from pathlib import Path

from service import START_SECONDS, wait_for_port

ACCESS_KEY, SECRET_KEY = "lookalike", "lookalike-secret"
PROGRAMS = ["ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin"]

# Nothing is replicated, because there is one disk.
CONFIGURATION = """
[global]
fsid = {cluster}
mon host = [v2:127.0.0.1:{monitor_port}]
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
crash dir = {folder}/crash
keyring = {folder}/keyring
mon allow pool size one = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
rgw thread pool size = 64
rgw enable usage log = false
rgw enable ops log = false
rgw gc obj min wait = 60
"""


class CephCluster:
    """Daemons in a folder, and a bucket."""

    def __init__(self, folder: Path, gateway_port: int, monitor_port: int, bucket: str):
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise RuntimeError(f"{', '.join(missing)} missing: install ceph-mon, ceph-osd, ceph-common and radosgw")
        self.folder, self.daemons = folder, []
        self.configuration = folder / "ceph.conf"
        for name in ("mon", "osd", "crash"):
            (folder / name).mkdir(parents=True)
        identifier = str(uuid.uuid4())
        text = CONFIGURATION.format(cluster=identifier, monitor_port=monitor_port, folder=folder)
        self.configuration.write_text(text)
        try:
            monitors = str(folder / "monitors")
            address = f"[v2:127.0.0.1:{monitor_port}]"
            self.run("monmaptool", "--create", "--clobber", "--fsid", identifier, "--addv", "a", address, monitors)
            self.make_keys()
            self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors, "--keyring", str(folder / "keyring"))
            self.start("ceph-mon", "-i", "a", "-f")
            disk = str(uuid.uuid4())
            self.run("ceph", "osd", "new", disk)
            self.run("ceph-osd", "--mkfs", "-i", "0", "--osd-uuid", disk)
            self.start("ceph-osd", "-i", "0", "-f")
            self.run(
                "radosgw-admin", "user", "create", "--uid", "lookalike", "--display-name", "lookalike",
                "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY,
            )
            frontend = f"--rgw-frontends=beast endpoint=127.0.0.1:{gateway_port}"
            self.start("radosgw", "-n", "client.gateway", "-f", frontend)
            wait_for_port(gateway_port, self.daemons[-1])
            create_bucket(f"http://127.0.0.1:{gateway_port}", bucket)
        except BaseException:
            self.stop()
            raise

    def make_keys(self) -> None:
        """Writes the keys of all daemons into one file."""
        capabilities = ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *"]
        keyring = str(self.folder / "keyring")
        for at, name in enumerate(["mon.", "client.admin", "osd.0", "client.gateway"]):
            create = [] if at else ["--create-keyring"]
            self.run("ceph-authtool", keyring, *create, "--gen-key", "-n", name, *capabilities)

    def run(self, program: str, *arguments: str) -> None:
        command = [program, "-c", str(self.configuration), *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if finished.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {finished.stderr[-600:]}")

    def start(self, program: str, *arguments: str) -> None:
        output = open(self.folder / "daemons.log", "ab")
        command = [program, "-c", str(self.configuration), *arguments]
        self.daemons.append(subprocess.Popen(command, stdout=output, stderr=output))

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()


def create_bucket(endpoint: str, name: str) -> None:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    client.create_bucket(Bucket=name)
