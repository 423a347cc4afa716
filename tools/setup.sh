#!/usr/bin/env bash
# setup.sh [command]: installs the Debian packages that the build and the tests need and that are missing, or with
# `command` only those that building the command needs. Nothing else but the crates of rust/Cargo.lock.
set -euo pipefail

packages=(
  g++ g++-12 cmake ninja-build ccache        # g++ is what cmake takes where no compiler is named
  nlohmann-json3-dev libcli11-dev libfmt-dev # libraries
)
[ "${1:-}" = command ] || packages+=(
  clang-19 clang-format-19 clang-tidy-19 lld-19 llvm-19 libclang-rt-19-dev         # compilers and tools
  libcpp-httplib-dev pkgconf                                                        # the server of glasshead view
  libgtest-dev librapidcheck-dev libsimde-dev                                       # test libraries
  wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32 # WebAssembly
  binaryen                                                                         # clang makes modules smaller with it
  nodejs python3 python3-mpmath python3-numpy groff-base                           # tests of the module, the command, the man page
  npm chromium xz-utils                                                            # the workbench's page and its tests
  python3-dev python3-venv                                                         # the Python package
  cmark-gfm                                                                        # the docs as pages
)
if [ "${1:-}" != command ] && [ "$(uname -m)" = x86_64 ]; then
  packages+=(g++-aarch64-linux-gnu googletest qemu-user)  # aarch64's kernels, run by an emulator
fi

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] && continue
  # Another source of the same program will do.
  case "$package" in
    nodejs) command -v node >/dev/null && continue ;;
    npm) command -v npm >/dev/null && continue ;;
  esac
  missing+=("$package")
done
# The tokenizers (rust/): any cargo that is new enough. Debian 12's own is not, its newer one is.
has_cargo() {
  local version
  version=$(cargo --version 2>/dev/null | sed -nE 's/^cargo ([0-9.]+).*/\1/p')
  [ -n "$version" ] && printf '1.85\n%s\n' "$version" | sort -V -C
}
if [ "${1:-}" != command ] && ! has_cargo; then
  if [ "$(sed -nE 's/^VERSION_ID="?([0-9]+).*/\1/p' /etc/os-release)" = 12 ]; then
    missing+=(cargo-web rustc-web)
  else
    missing+=(cargo rustc)
  fi
fi

# The crates that rust/Cargo.lock names, into cargo's own store: the build then needs no network.
fetch_crates() {
  [ "${1:-}" = command ] || cargo fetch --quiet --locked --manifest-path "$(dirname "$0")/../rust/Cargo.toml"
}
if [ ${#missing[@]} -eq 0 ]; then
  fetch_crates "${1:-}"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "as root: apt-get install --no-install-recommends ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
  sed -nE 's/^Need to get (.*) of archives\.$/\1 to download/p; s/^After this operation, (.*) of additional .*/, \1 on disk/p' |
  tr -d '\n') || true
echo "installing${size:+ ($size)}: ${missing[*]}" >&2
# env, because sudo drops what stands before it.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fetch_crates "${1:-}"
