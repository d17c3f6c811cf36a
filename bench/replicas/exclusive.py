#!/usr/bin/env python3
"""Clients that create the same object of an S3 store at the same moment with `If-None-Match: *`.

A shared log needs exactly one of them to succeed, and the object to be the one of that client. It takes `boto3`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from stores import STORES

BUCKET = "logs"


def connect(environment: dict[str, str], clients: int):
    return boto3.client(
        "s3", endpoint_url=environment["AWS_ENDPOINT"], region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        # A repeated request would meet the object of its own first attempt.
        config=Config(retries={"max_attempts": 0}, max_pool_connections=clients),
    )


def create(client, key: str, content: bytes) -> int:
    """Returns the status of the answer."""
    try:
        client.put_object(Bucket=BUCKET, Key=key, Body=content, IfNoneMatch="*")
        return 200
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]


def race(client, key: str, clients: int, pool: ThreadPoolExecutor) -> list[int]:
    """Lets all clients create the object at once; returns the statuses of their answers."""
    barrier = threading.Barrier(clients)

    def take_part(number: int) -> int:
        barrier.wait()
        return create(client, key, str(number).encode())

    statuses = list(pool.map(take_part, range(clients)))
    kept = int(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    winners = [number for number, status in enumerate(statuses) if status == 200]
    if winners != [kept]:
        raise RuntimeError(f"{key}: the clients {winners} were told that they created it, and it is that of {kept}")
    return statuses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=["ceph", "moto"], default="ceph")
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    arguments = parser.parse_args()
    statuses: Counter[int] = Counter()
    with tempfile.TemporaryDirectory() as folder, STORES[arguments.store](Path(folder)) as store:
        environment = store.environment(f"127.0.0.1:{store.port}")
        client = connect(environment, arguments.clients)
        began = time.monotonic()
        with ThreadPoolExecutor(arguments.clients) as pool:
            for number in range(arguments.objects):
                statuses.update(race(client, f"race/{number}", arguments.clients, pool))
    print(json.dumps({
        "store": arguments.store, "objects": arguments.objects, "clients": arguments.clients,
        "created": statuses.pop(200), "already_there": statuses.pop(412, 0), "other": sum(statuses.values()),
        "seconds": round(time.monotonic() - began, 1), "processors": os.cpu_count(),
    }))


if __name__ == "__main__":
    main()
