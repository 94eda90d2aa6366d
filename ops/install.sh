#!/bin/sh
# Installs the rejoinder binary on Linux (x86-64 or ARM64, with glibc 2.34 or newer).
#
#   REJOINDER_VERSION      the version to install, such as 0.1.0 (the one that this copy belongs to, or the latest)
#   REJOINDER_INSTALL_DIR  where to put the binary (/usr/local/bin for root, ~/.local/bin for others)
#   REJOINDER_BASE_URL     where the releases are: …/download/v0.1.0/FILE and …/latest/download/FILE
#
# It downloads one archive and its checksum into a temporary folder, and changes nothing but the binary. It asks for no
# other rights than those that it was started with.
set -eu

# A release writes these two into the copy that it publishes.
BASE_URL=""
VERSION="latest"

main() {
    base=${REJOINDER_BASE_URL:-$BASE_URL}
    base=${base%/}
    [ -n "$base" ] || fail "this copy of the script belongs to no release: set REJOINDER_BASE_URL"
    version=${REJOINDER_VERSION:-$VERSION}
    version=${version#v}
    case $version in
        *[!0-9A-Za-z.+-]* | "") fail "REJOINDER_VERSION is \"$version\": write it like 0.1.0, or \"latest\"" ;;
    esac

    for tool in uname mktemp tar xz sha256sum; do
        command -v "$tool" >/dev/null 2>&1 || fail "$tool is missing: install it first (xz is in xz-utils or xz)"
    done
    command -v curl >/dev/null 2>&1 || command -v wget >/dev/null 2>&1 ||
        fail "neither curl nor wget is installed: install one of them"
    target=$(target)
    directory=$(directory)
    check_writable "$directory"

    name=rejoinder-$target
    case $version in
        latest) from=$base/latest/download ;;
        *) from=$base/download/v$version ;;
    esac

    scratch=$(mktemp -d)
    staged=""
    trap 'rm -rf "$scratch"; [ -z "$staged" ] || rm -f "$staged"' EXIT
    trap 'exit 1' HUP INT TERM

    say "downloading $from/$name.tar.xz"
    download "$from/$name.tar.xz" "$scratch/$name.tar.xz"
    download "$from/$name.tar.xz.sha256" "$scratch/$name.tar.xz.sha256"
    check_sum "$scratch/$name.tar.xz"

    tar -xJf "$scratch/$name.tar.xz" -C "$scratch" "$name/rejoinder" ||
        fail "$name.tar.xz is not an archive with $name/rejoinder"

    # Beside its place, so that the last step is a rename: whoever starts it gets the old one or the new one.
    mkdir -p "$directory"
    staged=$directory/.rejoinder.$$
    cp "$scratch/$name/rejoinder" "$staged"
    chmod 755 "$staged"
    installed=$("$staged" --version) ||
        fail "the binary does not run here: it needs glibc 2.34 or newer. Use the container, or build it with cargo"
    mv -f "$staged" "$directory/rejoinder"
    staged=""

    say "installed $installed as $directory/rejoinder"
    next "$directory"
}

say() {
    printf '%s\n' "$*"
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The target of this machine, as Rust names it.
target() {
    system=$(uname -s)
    [ "$system" = Linux ] || fail "there is no binary for $system: use the container, or build it with cargo"
    case $(uname -m) in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "there is no binary for the processor $(uname -m): build it with cargo" ;;
    esac
    # A 64-bit kernel can carry a 32-bit system.
    if command -v getconf >/dev/null 2>&1 && [ "$(getconf LONG_BIT 2>/dev/null)" = 32 ]; then
        fail "this system is a 32-bit one: build it with cargo"
    fi
    for loader in /lib/ld-musl-*; do
        if [ -e "$loader" ] && [ ! -e /lib64/ld-linux-x86-64.so.2 ] && [ ! -e /lib/ld-linux-aarch64.so.1 ]; then
            fail "this system has musl instead of glibc: use the container, or build it with cargo"
        fi
    done
    printf '%s-unknown-linux-gnu\n' "$machine"
}

directory() {
    if [ -n "${REJOINDER_INSTALL_DIR:-}" ]; then
        case $REJOINDER_INSTALL_DIR in
            /*) printf '%s\n' "${REJOINDER_INSTALL_DIR%/}" ;;
            *) printf '%s/%s\n' "$PWD" "${REJOINDER_INSTALL_DIR%/}" ;;
        esac
    elif [ "$(id -u)" = 0 ]; then
        printf '/usr/local/bin\n'
    else
        [ -n "${HOME:-}" ] || fail "HOME is not set: set REJOINDER_INSTALL_DIR"
        printf '%s/.local/bin\n' "$HOME"
    fi
}

# Before anything is downloaded.
check_writable() {
    exists=$1
    while [ ! -e "$exists" ]; do exists=$(dirname "$exists"); done
    [ -d "$exists" ] || fail "$exists is not a folder: set REJOINDER_INSTALL_DIR to another one"
    [ -w "$exists" ] || fail "$1 cannot be written: set REJOINDER_INSTALL_DIR to another folder, or be a user who may"
    [ ! -d "$1/rejoinder" ] || fail "$1/rejoinder is a folder: set REJOINDER_INSTALL_DIR to another one"
}

# From an https address, only https, also after a redirect.
download() {
    case $1 in
        https://*) secure=yes ;;
        *) secure=no ;;
    esac
    if command -v curl >/dev/null 2>&1; then
        if [ "$secure" = yes ]; then set -- "$1" "$2" --proto '=https' --tlsv1.2; fi
        url=$1 file=$2
        shift 2
        curl --fail --silent --show-error --location --retry 3 --connect-timeout 20 "$@" --output "$file" "$url" ||
            fail "cannot download $url: does it exist, and can this machine reach it?"
    else
        url=$1 file=$2
        wget -q -O "$file" "$url" || fail "cannot download $url: does it exist, and can this machine reach it?"
    fi
}

check_sum() {
    read -r expected _ <"$1.sha256" || [ -n "${expected:-}" ] || fail "the checksum of ${1##*/} is empty"
    actual=$(sha256sum <"$1")
    actual=${actual%% *}
    [ "$actual" = "$expected" ] ||
        fail "the checksum of ${1##*/} differs: expected $expected, got $actual. Nothing was installed"
}

next() {
    case :${PATH:-}: in
        *:"$1":*) command=rejoinder ;;
        *)
            command=$1/rejoinder
            say "$1 is not in your PATH. To change that: export PATH=\"$1:\$PATH\""
            ;;
    esac
    say ""
    say "  $command init      connect an agent and bots, and write rejoinder.toml"
    say "  $command doctor    check everything, and say how to fix it"
    say "  $command           run the gateway"
    say ""
    say "A gateway that is running goes on with the old binary until it is restarted."
}

# All of the script is read before any of it runs.
main "$@"
