#!/usr/bin/env bash
# Installs the PostgreSQL server that the tests of the store start in a folder of their own, where
# it is missing and can be installed (Debian or Ubuntu, as root). No server is started here. Never
# fails: without PostgreSQL those tests are skipped and say so.
set -u

if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "install-postgresql: no initdb; install postgresql for the tests of the store" >&2
  exit 0
fi

# The package would otherwise make a cluster and start it.
config=/etc/postgresql-common/createcluster.conf
if [ ! -e "$config" ]; then
  mkdir -p "$(dirname "$config")" && echo "create_main_cluster = false" >"$config"
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold postgresql; }
install >/dev/null 2>&1 || { apt-get update -qq && install >/dev/null; } ||
  echo "install-postgresql: it could not be installed; the tests with PostgreSQL will be skipped" >&2
exit 0
