#!/usr/bin/env bash
# Installs nginx and Caddy, for the tests that run the recipes in deploy/, where they are missing and
# can be installed (Debian or Ubuntu, as root). Nothing is started here. Never fails: without them
# those tests are skipped and say so.
set -u

if command -v nginx >/dev/null && command -v caddy >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "install-proxies: install nginx and caddy for the tests of the recipes" >&2
  exit 0
fi
# The packages would otherwise start their services.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install -y -qq --no-install-recommends nginx-light caddy; }
install >/dev/null 2>&1 || { apt-get update -qq && install >/dev/null; } ||
  echo "install-proxies: they could not be installed; the tests with them will be skipped" >&2
exit 0
