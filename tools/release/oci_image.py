"""Writes an OCI image from scratch as one archive, and unpacks such archives.

    oci_image.py pack ROOT ARCHITECTURE VERSION ARCHIVE CONTAINERFILE
    oci_image.py unpack ARCHIVE ROOT

ROOT is the file system of the image, ARCHITECTURE the name that OCI gives it (amd64, arm64). The image runs as the
user 65532, to whom the directories `data` and `tmp` belong. What it runs, and in which environment, is read from
the last stage of CONTAINERFILE, so that a built image and this one are the same. `unpack` checks every digest, writes
the files to ROOT, and prints the configuration as JSON. The same files give the same archive.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

USER = 65532
OWNED_BY_USER = ("data", "tmp")
CREATED = "1980-01-01T00:00:00Z"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


def main():
    if sys.argv[1] == "pack":
        root, architecture, version, archive, containerfile = sys.argv[2:]
        pack(Path(root), architecture, version, archive, read_settings(Path(containerfile)))
    else:
        archive, root = sys.argv[2:]
        print(json.dumps(unpack(archive, root)))


def read_settings(containerfile):
    """Returns the settings of the image that the last stage of the file builds."""
    settings = {"User": f"{USER}:{USER}", "Env": ["PATH=/usr/local/bin", "TMPDIR=/tmp"], "WorkingDir": "/"}
    for line in containerfile.read_text(encoding="utf-8").splitlines():
        instruction, _, value = line.strip().partition(" ")
        match instruction:
            case "ENTRYPOINT":
                settings["Entrypoint"] = json.loads(value)
            case "ENV":
                settings["Env"] += value.split()
            case "VOLUME":
                settings["Volumes"] = {value: {}}
            case "EXPOSE":
                settings["ExposedPorts"] = {f"{value}/tcp": {}}
            case "STOPSIGNAL":
                settings["StopSignal"] = value
    return settings


def pack(root, architecture, version, archive, settings):
    layer = make_layer(root)
    compressed = gzip.compress(layer, mtime=0)
    config = {
        "created": CREATED,
        "architecture": architecture,
        "os": "linux",
        "config": settings | {"Labels": {"org.opencontainers.image.version": version}},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": CREATED, "created_by": "lookalike"}],
    }
    blobs = {}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": add_blob(blobs, CONFIG_TYPE, to_json(config)),
        "layers": [add_blob(blobs, LAYER_TYPE, compressed)],
    }
    entry = add_blob(blobs, MANIFEST_TYPE, to_json(manifest))
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    entry["annotations"] = {"org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "manifests": [entry]}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
        add_bytes(out, "oci-layout", to_json({"imageLayoutVersion": "1.0.0"}))
        add_bytes(out, "index.json", to_json(index))
        for name, content in blobs.items():
            add_bytes(out, f"blobs/{name.replace(':', '/')}", content)


def make_layer(root):
    """Returns the files below a directory as a tar archive that does not depend on when and by whom they were made."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for path in sorted(root.rglob("*")):
            entry = layer.gettarinfo(path, arcname=path.relative_to(root).as_posix())
            entry.uid = entry.gid = USER if entry.name in OWNED_BY_USER else 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if entry.isfile():
                with path.open("rb") as content:
                    layer.addfile(entry, content)
            else:
                layer.addfile(entry)
    return out.getvalue()


def add_blob(blobs, media_type, content):
    name = digest(content)
    blobs[name] = content
    return {"mediaType": media_type, "digest": name, "size": len(content)}


def add_bytes(out, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o644
    out.addfile(entry, io.BytesIO(content))


def unpack(archive, root):
    with tarfile.open(archive) as image:

        def read_blob(descriptor):
            content = image.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}").read()
            if digest(content) != descriptor["digest"] or len(content) != descriptor["size"]:
                raise SystemExit(f"{archive}: {descriptor['digest']} has other content than its name says")
            return content

        index = json.load(image.extractfile("index.json"))
        manifest = json.loads(read_blob(index["manifests"][0]))
        config = json.loads(read_blob(manifest["config"]))
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
            content = gzip.decompress(read_blob(layer))
            if digest(content) != diff:
                raise SystemExit(f"{archive}: a layer is not the one that the configuration names")
            with tarfile.open(fileobj=io.BytesIO(content)) as files:
                # The owners count: the service writes to what belongs to its user.
                files.extractall(root, filter="fully_trusted", numeric_owner=True)
    return config["config"]


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def to_json(value):
    return json.dumps(value, sort_keys=True).encode()


if __name__ == "__main__":
    main()
