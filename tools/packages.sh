# Debian packages that the project needs; sourced by the other scripts. `install_packages build|test|long` installs what is
# missing with apt (as root or through sudo) and is silent when nothing is.
MSC_BUILD_PACKAGES="cmake ninja-build clang-19 lld-19 ccache libmlir-19-dev mlir-19-tools llvm-19-dev libprotobuf-dev protobuf-compiler libdnnl-dev libopenmpi-dev openmpi-bin nlohmann-json3-dev libcli11-dev libfmt-dev libssl-dev libxxhash-dev libjemalloc-dev zlib1g-dev libzstd-dev"
MSC_TEST_PACKAGES="$MSC_BUILD_PACKAGES libgtest-dev libgmock-dev libbenchmark-dev llvm-19-tools libclang-rt-19-dev python3 iproute2 dpkg-dev file"
# Other solvers, with which long runs compare.
MSC_LONG_PACKAGES="$MSC_TEST_PACKAGES toulbar2 coinor-cbc"

install_packages() {
  local wanted missing=""
  case "$1" in build) wanted=$MSC_BUILD_PACKAGES ;; long) wanted=$MSC_LONG_PACKAGES ;; *) wanted=$MSC_TEST_PACKAGES ;; esac
  for package in $wanted; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || { echo "error: these packages are missing and there is no sudo:$missing" >&2; return 1; }
    as_root=sudo
  fi
  echo "installing$missing"
  if ! apt-cache show clang-19 > /dev/null 2>&1; then $as_root apt-get update -qq; fi
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing > /dev/null ||
    { $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing > /dev/null; }
}
