#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need and that are missing. Nothing else.
set -euo pipefail

packages=(
  g++-12 clang-19 clang-format-19 clang-tidy-19 lld-19 llvm-19 libclang-rt-19-dev  # compilers and tools
  cmake ninja-build ccache                                                         # build
  nlohmann-json3-dev libcli11-dev libfmt-dev                                       # libraries
  libgtest-dev librapidcheck-dev libsimde-dev                                       # test libraries
  wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32 # WebAssembly
  nodejs python3 python3-mpmath groff-base                                                        # tests of the module, the command, the man page
)
if [ "$(uname -m)" = x86_64 ]; then
  packages+=(g++-aarch64-linux-gnu googletest qemu-user)  # aarch64's kernels, run by an emulator
fi

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] && continue
  # Another source of the same program will do.
  case "$package" in
    nodejs) command -v node >/dev/null && continue ;;
  esac
  missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
# env, because sudo drops what stands before it.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
