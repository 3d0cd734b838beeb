# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts in dev/: installs what is missing on Debian and Ubuntu,
# and says what it does.

# The packages that build the programs, and those that only test them.
build_packages="autoconf automake gcc git libbsd-dev libc6-dev libcurl4-gnutls-dev libelf-dev libevent-dev
    libjansson-dev libmd-dev libmicrohttpd-dev libsmartcols-dev libsystemd-dev libyaml-dev make
    pkg-config"
test_packages="check clang clang-format debootstrap libxml2 llvm mandoc musl-tools patch procps python3 python3-pytest
    python3-pytest-xdist systemd-container util-linux valgrind xz-utils zlib1g-dev"

say() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# The head comment of the script that sources this.
print_help() {
    sed -n '4,/^$/s/^# \{0,1\}//p' "$top/dev/$(basename "$0")"
}

# misuse SENTENCE: what was called wrongly.
misuse() {
    printf '%s: %s; see dev/%s --help\n' "$(basename "$0")" "$*" "$(basename "$0")" >&2
    exit 2
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# clang's sanitizers and fuzzer are a package of their own on Debian, named after its version; on
# some releases they come with clang itself.
clang_runtime() {
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
    if [ -n "$version" ] && apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1; then
        echo "libclang-rt-$version-dev"
    fi
}

# install PACKAGE...: those that are missing, as root or through sudo.
install() {
    command -v dpkg-query >/dev/null || {
        say "this is no Debian or Ubuntu; these packages have to be there under the names they have here: $*"
        return 0
    }
    missing=
    for package in "$@"; do
        is_installed "$package" || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    command="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then
        say "installing$missing"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        say "installing with sudo:$missing"
        command="sudo env DEBIAN_FRONTEND=noninteractive $command"
    else
        fail "these packages are missing; as root, run: $command"
    fi
    # The lists may be older than the packages they name, or not be there at all.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $command >/dev/null 2>&1 || {
        if [ "$(id -u)" = 0 ]; then apt-get update -q; else sudo apt-get update -q; fi
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive $command
    } || fail "the packages could not be installed: $command"
}

# configure_in FOLDER ARGUMENT...: once per set of arguments.
configure_in() {
    folder=$1
    shift
    [ -x "$top/configure" ] && [ "$top/configure" -nt "$top/configure.ac" ] || "$top/dev/bootstrap" >/dev/null 2>&1 ||
        fail "autoreconf failed; run dev/bootstrap to see why"
    mkdir -p "$folder"
    if [ "$(cat "$folder/.arguments" 2>/dev/null)" != "$*" ] || [ ! -e "$folder/Makefile" ]; then
        (cd "$folder" && "$top/configure" -q "$@") || fail "configure failed in $folder"
        printf '%s' "$*" >"$folder/.arguments"
    fi
}
