# msc_library, msc_executable, msc_install_plugin, msc_test, msc_benchmark: one call per target.

# Warnings and sanitizers of our own code; third-party headers come in as SYSTEM.
add_library(msc_options INTERFACE)
target_compile_options(msc_options INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -ffp-contract=off)
target_include_directories(msc_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
if(MSC_SANITIZE)
  target_compile_options(msc_options INTERFACE -fsanitize=${MSC_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(msc_options INTERFACE -fsanitize=${MSC_SANITIZE})
endif()

# msc_library(NAME SOURCES a.cpp ... [LIBS x ...] [DEPENDS tablegen ...])
function(msc_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC msc_options ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# msc_executable(NAME SOURCES main.cpp ... [LIBS x ...])
function(msc_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE msc_options ${ARG_LIBS})
endfunction()

# msc_install_plugin(TARGET): what msrun opens at run time lies in lib/msc of the build tree and of an installation.
function(msc_install_plugin target)
  install(TARGETS ${target} LIBRARY DESTINATION lib/msc COMPONENT runtime)
  set_property(GLOBAL APPEND PROPERTY MSC_PLUGINS ${target})
endfunction()

# msc_test(NAME SOURCES a_test.cpp ... [LIBS x ...] [LABELS unit ...] [TIMEOUT seconds]): one gtest binary, one ctest entry.
function(msc_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/bin")
  target_link_libraries(${name} PRIVATE msc_options ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(MSC_TEST_TIMEOUT) # of long campaigns: ctest's own --timeout yields to the property
    set(ARG_TIMEOUT ${MSC_TEST_TIMEOUT})
  elseif(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# msc_benchmark(NAME SOURCES a_bench.cpp ... [LIBS x ...]): built by the target `benchmarks`, never run by ctest; prints
# ratios measured in one run.
function(msc_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_link_libraries(${name} PRIVATE msc_options ${ARG_LIBS})
  add_dependencies(benchmarks ${name})
endfunction()
