#!/bin/sh
# tools/setup.sh [--debs FOLDER]  -  real BVLC Caffe 1.0 with pycaffe for this project, one command.
#
# Unpacks Debian 11's own packages (tools/packages.txt and what they need) into
# .caffe/ beside this folder. Needs no root, installs nothing on the machine and
# leaves its package database alone. Where Python already has Caffe (the Docker
# image, conda) it says so and does nothing. Afterwards:
#     .caffe/bin/python    Python 3.9 with caffe, numpy, scipy, pandas, lmdb ..., and `import bcnn`
#     .caffe/bin/caffe     the caffe command (and the other caffe tools)
# Needs apt-get and dpkg-deb (any Debian or Ubuntu), x86-64, glibc 2.31 or newer,
# and a Debian mirror that still serves bullseye.
#
# --debs FOLDER takes Caffe with CUDA from packages that were built elsewhere, by
#     docker build --target gpu-debs --output FOLDER .
# and CUDA's libraries from the mirror (non-free); the driver is the machine's own.
#
# Settings (environment):
#     CAFFE_PREFIX          where to put it (default: .caffe)
#     CAFFE_DEBIAN_MIRROR   base URI of the mirror (default: the one that this
#                           machine's apt uses for Debian; on Ubuntu the one that
#                           python-apt-common knows)
#     CAFFE_DEBIAN_KEYRING  keyring that signs it (default: the machine's
#                           debian-archive-keyring, or that of its own archive)
#     CAFFE_DEB_CACHE       where downloads are kept, so that a later set-up needs
#                           no network (default: ~/.cache/bcnn/debs)
# For shellcheck: "a && b || die" is meant (SC2015); $ORIGIN and $(REPO_URI) are not the shell's (SC2016)
# shellcheck disable=SC2015,SC2016
set -eu
umask 022

SUITE=bullseye
MULTIARCH=x86_64-linux-gnu
NEEDED_MB=1200          # unpacked, plus downloads, plus room to work
NEEDED_MB_CUDA=2000
BUILT="libcaffe1 caffe python3-caffe"   # what --debs brings
# Never unpacked. The C library: the host's own is used, two cannot be mixed. The
# rest only serves package maintenance, or HTML reports of Snakemake's.
UNWANTED="libc6 coreutils tar sed dpkg perl perl-base perl-modules-5.32 libperl5.32
    liberror-perl debconf ucf sensible-utils mailcap mime-support media-types tzdata
    gcc-10-base proj-data mysql-common mariadb-common node-* nodejs libnode72 mocha
    libjs-* fonts-* coinor-* git git-man libnotify* libgdk-pixbuf* shared-mime-info
    docutils-common sgml-base xml-core sphinx-rtd-theme-common openssl ca-certificates"
TOOLS="python3.9 caffe caffe-gtest compute_image_mean convert_cifar_data convert_imageset
    convert_mnist_data extract_features upgrade_net_proto_binary upgrade_net_proto_text
    upgrade_solver_proto_text"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

MACHINE=${CAFFE_TEST_MACHINE:-}         # for tests: in the place of / for the files that this machine may or may not have
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
PACKAGES=$HERE/packages.txt
PREFIX=${CAFFE_PREFIX:-$(dirname -- "$HERE")/.caffe}
case $PREFIX in /*) ;; *) PREFIX=$PWD/$PREFIX ;; esac
CACHE=${CAFFE_DEB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/bcnn/debs}
STAMP=$PREFIX/.bcnn-caffe                            # holds the ID of what was installed
CUDA_STAMP=$PREFIX/.bcnn-debs                        # of --debs, where they were given: their checksum
ID=$(cat "$0" "$PACKAGES" | cksum | cut -d' ' -f1)   # changes when this script or the list does

wanted() { sed 's/#.*//' "$PACKAGES" | awk 'NF {print $1}'; }
is_current() {          # what is asked for; without --debs either Caffe will do
    [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$ID" ] && { [ -z "$GIVEN" ] || [ "$(cat "$CUDA_STAMP" 2>/dev/null)" = "$GIVEN_ID" ]; }
}

main() {
    read_options "$@"
    [ -z "$GIVEN" ] || check_debs
    if is_current; then say "ready: $PREFIX"; exit 0; fi
    if [ -z "$GIVEN" ] && [ ! -e "$PREFIX" ] && found=$(installed_caffe); then say "nothing to do, found $found"; exit 0; fi
    check_prefix_can_go
    check_machine
    open_work_folder
    if is_current; then say "ready: $PREFIX"; exit 0; fi     # another set-up was faster
    download
    unpack
    link
    say "testing"
    check_prefix
    install
    say "ready: $PREFIX ($(du -sh "$PREFIX" | cut -f1)), downloads kept in $CACHE"
}

read_options() {
    GIVEN='' GIVEN_DEBS='' GIVEN_ID=''
    while [ $# -gt 0 ]; do
        case $1 in
            --debs) [ -n "${2:-}" ] || die "--debs needs a folder with the packages of Caffe with CUDA"; GIVEN=$2; shift 2 ;;
            -h | --help) sed -n '2,/^# For shellcheck/{/^# For shellcheck/d; s/^# \{0,1\}//; p;}' "$0"; exit 0 ;;
            *) die "$1: no such option; there is --debs FOLDER, and --help" ;;
        esac
    done
}

check_debs() {          # sets GIVEN_DEBS, a path a line, and GIVEN_ID
    command -v dpkg-deb >/dev/null 2>&1 || die "no dpkg-deb: --debs needs Debian or Ubuntu"
    version=$(sed -n '/^+caffe (/{s/^+caffe (//; s/).*//; p;}' "$HERE/../caffe-cuda.patch")
    [ -d "$GIVEN" ] || die "--debs $GIVEN: no such folder"
    GIVEN=$(CDPATH='' cd -- "$GIVEN" && pwd)
    for name in $BUILT; do
        set -- "$GIVEN/${name}_"*.deb
        [ -f "$1" ] || die "$GIVEN has no package $name: 'docker build --target gpu-debs --output FOLDER .' makes all that is needed"
        [ $# -eq 1 ] || die "$GIVEN has $# packages $name: leave the one of version $version"
        dpkg-deb --contents "$1" >/dev/null 2>&1 || die "$1: not a Debian package, or damaged"
        found=$(dpkg-deb -f "$1" Architecture)
        [ "$found" = amd64 ] || die "$1 is for $found, and amd64 (x86-64) is needed"
        found=$(dpkg-deb -f "$1" Version)
        [ "$found" = "$version" ] || die "$1 has version $found, and $version is needed: build it with this Dockerfile"
        GIVEN_DEBS="$GIVEN_DEBS$1
"
    done
    GIVEN_ID=$(printf %s "$GIVEN_DEBS" | tr '\n' '\0' | xargs -0 cat | sha256sum | cut -d' ' -f1)
}

check_prefix_can_go() { # a prefix is replaced by its own kind only
    [ -e "$PREFIX" ] || return 0
    [ -f "$STAMP" ] || die "$PREFIX exists and was not made by this script: move it away, or set CAFFE_PREFIX"
    if [ -n "$GIVEN" ] && [ ! -f "$CUDA_STAMP" ]; then
        die "$PREFIX holds the CPU build: move it away, or set CAFFE_PREFIX to another place for the one with CUDA"
    elif [ -z "$GIVEN" ] && [ -f "$CUDA_STAMP" ]; then
        die "$PREFIX holds the build with CUDA of another version of this script: run again with --debs, or move it away for the CPU build"
    fi
}

installed_caffe() {     # prints which Caffe Python finds without us, if any
    GLOG_minloglevel=2 "$HERE/python" -c \
        'import sys, caffe; print("Caffe", caffe.__version__, "at", caffe.__path__[0], "for", sys.executable)' 2>/dev/null
}

check_machine() {
    for tool in apt-get apt-config dpkg dpkg-deb; do
        command -v "$tool" >/dev/null 2>&1 ||
            die "no $tool: this way needs Debian or Ubuntu; elsewhere use Docker (Dockerfile) or conda (environment.yml)"
    done
    arch=$(dpkg --print-architecture)
    [ "$arch" = amd64 ] || die "Debian 11's Caffe is used for amd64 (x86-64) only, this machine is $arch"
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || glibc=
    if [ -z "$glibc" ] || ! dpkg --compare-versions "$glibc" ge 2.31; then
        die "needs glibc 2.31 or newer (Debian 11, Ubuntu 20.04), this machine has ${glibc:-none}: use Docker or conda"
    fi
    [ -z "${CAFFE_DEBIAN_KEYRING:-}" ] || [ -r "$CAFFE_DEBIAN_KEYRING" ] ||
        die "no keyring $CAFFE_DEBIAN_KEYRING to check Debian's signature: that of debian-archive-keyring is meant by CAFFE_DEBIAN_KEYRING"
}

open_work_folder() {    # sets WORK and DEBS, holds the lock, clears what a killed set-up left
    mkdir -p "$(dirname -- "$PREFIX")" "$CACHE" 2>/dev/null ||
        die "cannot create $CACHE or the folder of $PREFIX: set CAFFE_DEB_CACHE and CAFFE_PREFIX to places you can write"
    DEBS=$(CDPATH='' cd -- "$CACHE" && pwd)
    # true, not `:`, on which a shell that cannot write ends without a word
    { true >>"$PREFIX.lock"; } 2>/dev/null && { true >>"$DEBS/lock"; } 2>/dev/null ||
        die "cannot write beside $PREFIX or in $DEBS: set CAFFE_PREFIX and CAFFE_DEB_CACHE to places you can write"
    exec 8>"$PREFIX.lock" 9>"$DEBS/lock"
    flock -n 8 || { say "waiting for another set-up of $PREFIX"; flock 8; }
    flock -n 9 || { say "waiting for another set-up that uses $DEBS"; flock 9; }
    rm -rf "$PREFIX".tmp.*
    free=$(($(df -Pk "$(dirname -- "$PREFIX")" | awk 'NR == 2 {print $4}') / 1024))
    needed=$NEEDED_MB
    [ -z "$GIVEN" ] || needed=$NEEDED_MB_CUDA
    [ "$free" -ge "$needed" ] ||
        die "no space: $(dirname -- "$PREFIX") has $free MB free, $needed MB are needed (CAFFE_PREFIX names another place)"
    WORK=$(mktemp -d "$PREFIX.tmp.XXXXXX") || die "cannot write beside $PREFIX"
    chmod 755 "$WORK"
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
    NEW=$WORK/prefix
    mkdir "$NEW"
}

# What checks Debian's signature, and where Debian's packages are. Ubuntu has neither by default, but
# carries both in its own signed archive: no root is needed to take them from there.
find_keyring() {        # sets keyring
    keyring=${CAFFE_DEBIAN_KEYRING:-$MACHINE/usr/share/keyrings/debian-archive-keyring.gpg}
    if [ ! -r "$keyring" ]; then
        from_own_archive debian-archive-keyring ||
            die "no keyring to check Debian's signature: install debian-archive-keyring, or set CAFFE_DEBIAN_KEYRING ($reason)"
        keyring=$WORK/debian-archive-keyring/usr/share/keyrings/debian-archive-keyring.gpg
        [ -r "$keyring" ] || die "debian-archive-keyring has no keyring where it should be: set CAFFE_DEBIAN_KEYRING"
        say "keyring: of $taken"
    fi
}

find_mirror() {         # sets mirror
    mirror=${CAFFE_DEBIAN_MIRROR:-$(mirror_of_apt)}
    [ -z "$mirror" ] || return 0
    templates=$MACHINE/usr/share/python-apt/templates taken="python-apt-common, which is installed"
    if [ ! -r "$templates/Debian.info" ]; then
        from_own_archive python-apt-common ||
            die "this machine's apt names no Debian mirror: set CAFFE_DEBIAN_MIRROR ($reason)"
        templates=$WORK/python-apt-common/usr/share/python-apt/templates
    fi
    mirror=$(mirror_of_template "$templates/Debian.info")
    [ -n "$mirror" ] || die "$templates/Debian.info names no Debian mirror: set CAFFE_DEBIAN_MIRROR"
    say "mirror: $mirror, of $taken"
}

mirror_of_apt() {       # prints the mirror of Debian that this machine's apt uses, if any
    uri() { apt-get indextargets "$@" 'Created-By: Packages' 2>/dev/null; }
    found=$(uri --format '$(ORIGIN)/$(LABEL) $(REPO_URI)' | sed -n 's|^Debian/Debian ||p' | head -n 1)
    # Before the first update apt knows no origins; on Ubuntu a URI of that name is somebody else's
    if [ -z "$found" ] && ! grep -qsE '^(ID|ID_LIKE)=.*ubuntu' "$MACHINE/etc/os-release"; then
        found=$(uri --no-release-info --format '$(REPO_URI)' | grep -E '/debian/?$' | head -n 1)
    fi
    printf %s "$found"
}

mirror_of_template() {  # prints the mirror in a file of python-apt-common
    sed -n 's|^BaseURI: *\(.*/debian\)/*$|\1|p' "$1" 2>/dev/null | head -n 1
}

from_own_archive() {    # unpacks a package of this machine's own archive into WORK/PACKAGE; sets taken, or reason
    mkdir -p "$WORK/$1"
    if (cd "$WORK/$1" && apt-get -qq -o APT::Sandbox::User= download "$1" && dpkg-deb -x "$1"_*.deb .) >"$WORK/log" 2>&1; then
        taken="$(basename "$WORK/$1/$1"_*.deb), from this machine's own signed archive"
    else
        reason="$1 is not in this machine's archive: $(grep -m 1 '^E:' "$WORK/log" || echo 'no message')"
        return 1
    fi
}

# A private apt: its own sources and an empty package database. Of the host's
# settings only how to reach the network (proxy, timeouts ...).
private_apt() {
    find_keyring
    find_mirror
    APT=$WORK/apt
    mkdir -p "$APT/state/lists/partial" "$APT/cache/archives/partial" "$APT/keys"
    : >"$APT/status"
    # the only keys that are trusted; by a folder, for signed-by takes no path with a space in it
    case $keyring in *.asc) cp "$keyring" "$APT/keys/debian.asc" ;; *) cp "$keyring" "$APT/keys/debian.gpg" ;; esac
    printf 'deb [arch=amd64] %s %s main %s\n' "$mirror" "$SUITE" "${GIVEN:+non-free}" >"$APT/sources.list"
    {
        apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' || :
        cat <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$APT/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "$APT/keys";
Dir::State "$APT/state";
Dir::State::status "$APT/status";
Dir::Cache "$APT/cache";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
END
    } >"$APT/apt.conf"
}
apt() { APT_CONFIG=$APT/apt.conf DEBIAN_FRONTEND=noninteractive LC_ALL=C xargs -0 apt-get "$@"; }     # reads further words

read_package_list() {   # dies with the cause in one line
    apt update -qq </dev/null >"$WORK/log" 2>&1 && return
    case $(cat "$WORK/log") in
        *"No space left"*) die "no space left for the package list" ;;
        *ertificate*)
            die "this machine does not trust the certificate of the mirror $mirror: install ca-certificates, or set CAFFE_DEBIAN_MIRROR to another; http:// will do, for packages are checked by Debian's signature" ;;
        *"Could not resolve"* | *"Could not connect"* | *"Connection"* | *"imed out"* | *"unreachable"*)
            die "no network: cannot reach the mirror $mirror (CAFFE_DEBIAN_MIRROR names another)" ;;
        *) die "the mirror $mirror has no usable $SUITE: set CAFFE_DEBIAN_MIRROR to one that has; Debian moves old releases to its archive of distributions, and mirrors of that have it for good ($(grep -m 1 '^[EW]:' "$WORK/log"))" ;;
    esac
}

download() {            # fills DEBS with what LIST names, "package version" a line
    LIST=$DEBS/list.$({ cat "$PACKAGES"; echo "$SUITE" "$UNWANTED" ${GIVEN:+"$GIVEN_ID"}; } | cksum | cut -d' ' -f1)
    if [ -f "$LIST" ] && [ -f "$LIST.sha256" ]; then
        (cd "$DEBS" && sha256sum --check --status "$LIST.sha256") && { say "using the downloads in $DEBS"; return; }
        say "damaged downloads in $DEBS: fetching them again"
        rm -f "$LIST" "$LIST.sha256"
    fi
    private_apt
    say "reading the package list of $SUITE"
    read_package_list
    { wanted; echo patchelf; printf %s "$GIVEN_DEBS"; } | tr '\n' '\0' | apt install -s >"$WORK/plan" 2>"$WORK/log" ||
        die "$SUITE cannot satisfy $PACKAGES ($(grep -m 1 '^E:' "$WORK/log"))"
    while read -r action name version _; do
        [ "$action" = Inst ] || continue
        is_unwanted "$name" || printf '%s %s\n' "$name" "${version#(}"
    done <"$WORK/plan" >"$WORK/list"
    printf %s "$GIVEN_DEBS" | tr '\n' '\0' | xargs -0 -r cp -t "$DEBS" || die "cannot copy $GIVEN to $DEBS"
    say "fetching $(to_fetch | grep -c .) packages"
    # apt checks each file against the signed list, and keeps what is there and right
    to_fetch | tr ' \n' '=\0' | (cd "$DEBS" && apt -qq download) >"$WORK/log" 2>&1 ||
        die "download failed, run again to go on ($(grep -m 1 '^E:' "$WORK/log"))"
    deb_files <"$WORK/list" >"$WORK/files"
    (cd "$DEBS" && xargs sha256sum) <"$WORK/files" >"$LIST.sha256"
    mv "$WORK/list" "$LIST"
}

to_fetch() { if [ -n "$GIVEN" ]; then grep -v '+cuda[0-9.]*$' "$WORK/list"; else cat "$WORK/list"; fi; }

is_unwanted() {
    set -f
    for pattern in $UNWANTED; do
        # shellcheck disable=SC2254
        case $1 in $pattern) set +f; return 0 ;; esac
    done
    set +f
    return 1
}

deb_files() {           # reads "package version" lines, prints the names of their .deb files
    while read -r name version; do
        stem=${name}_$(printf %s "$version" | sed 's/:/%3a/')_
        if [ -f "$DEBS/${stem}amd64.deb" ]; then echo "${stem}amd64.deb"
        elif [ -f "$DEBS/${stem}all.deb" ]; then echo "${stem}all.deb"
        else die "missing from $DEBS: $name $version; empty that folder and run again"; fi
    done
}

unpack() {
    say "unpacking"
    deb_files <"$LIST" >"$WORK/files"
    said=$(cd "$DEBS" && xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh -c 'dpkg-deb -x "$1" "$0"' "$NEW" \
        <"$WORK/files" 2>&1) ||
        case $said in
            *"No space left"*) die "no space left for $NEW (CAFFE_PREFIX names another place)" ;;
            *) die "cannot unpack into $NEW: $(printf '%s\n' "$said" | head -n 1)" ;;
        esac
    cp "$LIST" "$NEW/packages.txt"
    (cd "$NEW" && rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/lintian usr/share/info var)
}

# The programs find the prefix's libraries by a path relative to themselves: no
# LD_LIBRARY_PATH that would leak into other programs, and the prefix can be moved.
# openblas-pthread comes first, as update-alternatives would have chosen.
link() {
    up='$ORIGIN/..'
    rpath="$up/lib/$MULTIARCH/openblas-pthread:$up/lib/$MULTIARCH:$up/lib:$up/../lib/$MULTIARCH:$up/../lib"
    cp "$NEW/usr/bin/patchelf" "$WORK/patchelf"
    mkdir -p "$WORK/bin"
    for tool in $TOOLS; do
        [ -f "$NEW/usr/bin/$tool" ] || continue
        "$WORK/patchelf" --force-rpath --set-rpath "$rpath" "$NEW/usr/bin/$tool"
        wrapper "$tool" >"$WORK/bin/${tool%3.9}"
    done
    for library in libblas.so.3 liblapack.so.3; do  # their own RUNPATH would switch the above off
        "$WORK/patchelf" --force-rpath --set-rpath '$ORIGIN:$ORIGIN/..' "$NEW/usr/lib/$MULTIARCH/openblas-pthread/$library"
    done
    # Debian's matplotlib has its data folder and its settings written in absolutely
    sed -i -e "s#'/usr/share/matplotlib/mpl-data'#os.path.join(sys.base_prefix, 'share/matplotlib/mpl-data')#" \
        -e "s#yield '/etc/matplotlibrc'#yield os.path.join(get_data_path(), 'matplotlibrc')#" \
        "$NEW/usr/lib/python3/dist-packages/matplotlib/__init__.py"
    project_path >"$NEW/usr/lib/python3/dist-packages/bcnn.pth"
    chmod 755 "$WORK/bin"/*
    rm -rf "${NEW:?}/bin"
    mv "$WORK/bin" "$NEW/bin"
}

project_path() {        # prints where bcnn is, for `import bcnn` from any folder: relative where both can move together
    project=$(dirname -- "$HERE")
    if [ "$PREFIX" = "$project/.caffe" ]; then echo ../../../../..; else printf '%s\n' "$project"; fi
}

wrapper() {             # prints bin/TOOL: the prefix is closed to Python settings of the host
    cat <<END
#!/bin/sh
# made by tools/setup.sh
here=\$(dirname -- "\$(dirname -- "\$(readlink -f -- "\$0")")")
export BCNN_PYTHONPATH="\${PYTHONPATH:-\${BCNN_PYTHONPATH:-}}"    # for modules of a net's Python layers
unset PYTHONHOME PYTHONPATH
export GLOG_logtostderr="\${GLOG_logtostderr:-1}"    # no log files with foreseeable names in /tmp
PYTHONNOUSERSITE=1 exec "\$here/usr/bin/$1" "\$@"
END
}

check_prefix() {        # also leaves the compiled .pyc files of what the tools import
    "$NEW/bin/caffe" --version >"$WORK/log" 2>&1 &&
        PYTHONDONTWRITEBYTECODE='' MPLCONFIGDIR=$WORK/mpl "$NEW/bin/python" "$HERE/check_caffe.py" --blas openblas >"$WORK/log" 2>&1 ||
        die "the unpacked Caffe does not work here: $(tail -n 1 "$WORK/log")"
    say "$(tail -n 1 "$WORK/log")"
}

install() {             # two renames: at any moment the old prefix, none, or the new one
    [ -z "$GIVEN" ] || echo "$GIVEN_ID" >"$NEW/.bcnn-debs"
    echo "$ID" >"$NEW/.bcnn-caffe"
    sync -f "$NEW" 2>/dev/null || :
    [ ! -e "$PREFIX" ] || mv "$PREFIX" "$WORK/old"
    mv "$NEW" "$PREFIX"
}

main "$@"
