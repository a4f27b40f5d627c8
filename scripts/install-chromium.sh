#!/usr/bin/env bash
# Installs the browser that the browser tests drive, where it is missing and can be installed
# (Debian or Ubuntu, as root). Never fails: without a browser those tests are skipped and say so.
set -u

if [ -x /usr/bin/chromium ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "install-chromium: no /usr/bin/chromium; install chromium and chromium-driver for the browser tests" >&2
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends chromium chromium-driver; }
install >/dev/null 2>&1 || { apt-get update -qq && install >/dev/null; } ||
  echo "install-chromium: chromium could not be installed; the browser tests will be skipped" >&2
exit 0
