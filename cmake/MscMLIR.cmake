# Debian's MLIR 19: the two shared libraries, never the static MLIR archives (mixing them breaks type ids).
find_package(MLIR 19.1 CONFIG REQUIRED HINTS /usr/lib/llvm-19/lib/cmake/mlir)
set(MLIR_BINARY_DIR "${PROJECT_BINARY_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# mlir_tablegen reads only the directory property.
include_directories("${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
separate_arguments(MSC_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

add_library(msc_mlir INTERFACE)
target_link_libraries(msc_mlir INTERFACE MLIR LLVM)
target_include_directories(msc_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(msc_mlir INTERFACE ${MSC_LLVM_DEFINITIONS})

# msc_tablegen(TARGET TD_FILE -gen-x out.inc [-gen-y out2.inc ...] [ARGS common args]): outputs land beside the mirrored source.
function(msc_tablegen target td)
  cmake_parse_arguments(ARG "" "" "OUT;ARGS" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS ${td})
  while(ARG_OUT)
    list(POP_FRONT ARG_OUT gen file)
    mlir_tablegen(${file} ${gen} ${ARG_ARGS})
  endwhile()
  add_public_tablegen_target(${target})
endfunction()
