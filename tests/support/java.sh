#!/usr/bin/env bash
# Sees to Java 17 and Maven, which Kafka needs: installs them where that is possible without asking, else names what is missing.
set -euo pipefail

java_release() { java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }

missing=()
if ! command -v java >/dev/null || [ "$(java_release)" -lt 17 ]; then missing+=(openjdk-17-jre-headless); fi
if ! command -v mvn >/dev/null; then missing+=(maven); fi
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} with apt: Apache Kafka, which the tests start, needs Java 17 and comes through Maven."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Maven brings a Java of its distribution's choice; where there is no 17, the default is newer.
    apt-get install -y -qq --no-install-recommends "${missing[@]}" \
        || apt-get install -y -qq --no-install-recommends "${missing[@]/openjdk-17-jre-headless/default-jre-headless}"
    exit 0
fi
echo "Missing for the tests' Apache Kafka: ${missing[*]} (names of Debian's packages)." >&2
echo "Install a Java runtime, 17 or newer, and Maven, so that 'java' and 'mvn' are on the path; then run make setup again." >&2
exit 1
