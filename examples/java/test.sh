#!/usr/bin/env bash
# Compiles the example with the packages of Debian 12, and tests it on the server that PGHOST, PGPORT, PGUSER and PGDATABASE
# name.
set -euo pipefail
cd "$(dirname "$0")"
jars=/usr/share/java
classpath=$(printf "$jars/%s.jar:" postgresql hibernate-core hibernate-commons-annotations geronimo-jpa_2.0_spec \
  geronimo-jta-1.2-spec antlr commons-collections3 dom4j javassist slf4j-api slf4j-nop \
  jackson-core jackson-annotations jackson-databind)
javac -Xlint:all,-processing,-classfile,-path -d classes -cp "$classpath" ./*.java
java -cp "classes:$classpath" OrdersTest "$@"
