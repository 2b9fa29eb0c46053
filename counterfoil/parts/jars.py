"""Apache Kafka's jars, fetched once from Maven Central into the cache; never more than the pinned versions below."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from counterfoil.parts.folders import cache, locked
from counterfoil.parts.server import PartFailed, PartMissing

KAFKA_VERSION = "4.4.0"
LOG4J_VERSION = "2.25.3"
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j2-impl", LOG4J_VERSION),
)
ADVICE = "run `make setup`, or install a Java 17 (or newer) runtime and Maven"


def java() -> str:
    """The path of a Java 17 or newer."""
    found = shutil.which("java")
    if found is None:
        raise PartMissing(f"Apache Kafka needs Java 17, and no `java` is on the path: {ADVICE}")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    release = re.search(r'version "(\d+)', said)
    if release is None or int(release[1]) < 17:
        raise PartMissing(f"Apache Kafka needs Java 17, and `java` is older: {ADVICE}")
    return found


def kafka_jars() -> Path:
    """The folder with Kafka's jars; downloads them the first time (54 MB)."""
    folder = cache() / f"kafka-{KAFKA_VERSION}"
    with locked(cache() / "kafka.lock"):
        if not folder.exists():
            _download(folder)
    return folder


def _download(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PartMissing(f"Apache Kafka {KAFKA_VERSION} comes from Maven Central, and no `mvn` is on the path: {ADVICE}")
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in ARTIFACTS
    )
    with tempfile.TemporaryDirectory(dir=cache()) as work:
        pom, jars = Path(work) / "pom.xml", Path(work) / "jars"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>counterfoil</groupId><artifactId>parts</artifactId><version>1</version><packaging>pom</packaging>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not jars.exists():
            raise PartFailed(f"Maven could not fetch Apache Kafka {KAFKA_VERSION}:\n{(done.stdout + done.stderr)[-2000:]}")
        jars.rename(folder)
