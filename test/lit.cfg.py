# Command-line tests: `RUN:` lines in *.test and *.mir files under test/.
import importlib.util
import os
import shutil
import subprocess
import sys
import lit.formats

config.name = "msc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".test", ".mlir"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.msc_build, "test", "lit")
path = os.pathsep.join([os.path.join(config.msc_build, "bin"), config.llvm_tools, os.environ["PATH"]])
config.environment["PATH"] = path
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"
for name in list(os.environ):
    if name.startswith(("OMPI_", "PRTE_", "PMIX_", "MSC_", "ASAN_", "UBSAN_", "LD_")) or name == "HOME":
        config.environment[name] = os.environ[name]
config.environment.update({
    "LC_ALL": "C",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
})
config.substitutions.append(("%examples", os.path.join(config.msc_source, "examples")))
config.substitutions.append(("%root", config.msc_source))
config.substitutions.append(("%build", config.msc_build))
config.substitutions.append(("%refuses", os.path.join(config.msc_source, "test", "cli", "inputs", "refuses.sh")))
inputs = os.path.join(config.msc_source, "test", "cli", "inputs")
config.substitutions.append(("%two_hosts", os.path.join(inputs, "two_hosts.sh")))
config.substitutions.append(("%bare_root", os.path.join(inputs, "bare_root.sh")))
config.substitutions.append(("%fails", "{} {}".format(os.path.join(inputs, "run_gpu_fails.sh"),
                                                      os.path.join(config.msc_source, "examples", "quickstart", "run_gpu.sh"))))
config.substitutions.append(("%python", sys.executable))
# `%sample FILE`: the lines of FILE in a long run, and else the first that begins with each word, and some others.
isLong = os.environ.get("MSC_LONG", "0") not in ("", "0")
config.substitutions.append(("%sample", "cat" if isLong else "awk '!seen[$1]++ || NR % 5 == 0'"))
if isLong:
    config.available_features.add("long")
if os.path.exists(os.path.join(config.msc_build, "lib", "msc", "libmsc_comm_mpi.so")):
    config.available_features.add("mpi")
if os.path.exists(os.path.join(config.msc_build, "lib", "msc", "libmsc_device_cuda.so")):
    config.available_features.add("cuda")
    # The driver of cuda_stub.test is not built for sanitizers, nor for other processors.
    if os.path.exists(os.path.join(config.msc_build, "test", "bin", "cuda_stub.so")):
        config.available_features.add("cuda-stub")
else:
    lit_config.note("tests of CUDA's plugin are skipped: the CUDA toolkit is not installed")
if not (os.environ.get("MSC_PYTHON_WITH_TORCH") or importlib.util.find_spec("torch")):
    lit_config.note("pytorch.test of cli compares nothing: PyTorch is not installed")
probe = subprocess.run(["bash", os.path.join(inputs, "two_hosts.sh"), "--probe"], capture_output=True, text=True)
if probe.returncode == 0:
    config.available_features.add("namespaces")
else:
    lit_config.note("several_hosts.test and packages.test of cli are skipped: " + probe.stdout.strip())
if shutil.which("node"):
    config.available_features.add("node")
if shutil.which("chromium"):
    config.available_features.add("chromium")
if config.msc_sanitize:
    config.available_features.add("sanitizers")
