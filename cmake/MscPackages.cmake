# What cpack makes, in the folder from which it is called:
#   msc-runtime-VERSION-x86_64.tar.gz   msrun, its plugins and the libraries that they need: unpack it anywhere
#   msc-runtime_VERSION_amd64.deb       the same as a package
#   msc-compiler_VERSION_amd64.deb      msc, with Debian's MLIR and LLVM as dependencies
# The runtime holds neither MLIR nor LLVM, MPI, NCCL or CUDA. What it expects is the C and C++ library of Debian 12 or later:
# those of the target serve MPI and CUDA as well.
set(MSC_LIBRARIES_OF_TARGET "^ld-linux" "^lib(c|m|dl|rt|pthread|gcc_s|stdc\\+\\+)\\.so" "^libmpi\\." "^lib(cuda|nccl|cublas)")

get_property(plugins GLOBAL PROPERTY MSC_PLUGINS)
set(plugin_files "")
foreach(plugin IN LISTS plugins)
  list(APPEND plugin_files "$<TARGET_FILE:${plugin}>")
endforeach()
install(CODE "
  set(of_target [[${MSC_LIBRARIES_OF_TARGET}]])
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:msrun>\" MODULES ${plugin_files}
    RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing PRE_EXCLUDE_REGEXES \${of_target})
  if(missing)
    message(FATAL_ERROR \"libraries that msrun needs are not here: \${missing}\")
  endif()
  foreach(library IN LISTS libraries)
    file(INSTALL \"\${library}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/msc\" FOLLOW_SYMLINK_CHAIN)
    # Its licence, where it comes from a package of Debian.
    file(REAL_PATH \"\${library}\" real)
    string(REGEX REPLACE \"^/usr\" \"\" unmerged \"\${real}\") # as packages older than the merge say
    execute_process(COMMAND dpkg-query -S \"\${real}\" \"\${unmerged}\" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(owner MATCHES \"^([^:]+):\")
      set(licence \"/usr/share/doc/\${CMAKE_MATCH_1}/copyright\")
      if(EXISTS \"\${licence}\")
        file(INSTALL \"\${licence}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/doc/msc-runtime\"
          RENAME \"\${CMAKE_MATCH_1}.copyright\")
      endif()
    endif()
  endforeach()" COMPONENT runtime)
install(FILES LICENSE DESTINATION share/doc/msc-runtime COMPONENT runtime)
install(PROGRAMS tools/test_cuda.sh tools/cuda_bench.py tools/cuda_networks.py tools/peer_networks.py DESTINATION share/msc COMPONENT runtime)
install(FILES LICENSE DESTINATION share/doc/msc-compiler COMPONENT compiler)

set(CPACK_PACKAGE_NAME msc)
set(CPACK_PACKAGE_VENDOR msc)
set(CPACK_PACKAGE_CONTACT "the authors of msc")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "a graph compiler for distributed training, and its runtime")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_COMPONENTS_ALL runtime)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd) # as Debian 12 reads it, in a tenth of the time of xz
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "runs plans of msc on threads, under mpirun, or on GPUs")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME msc-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12), libgcc-s1")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "openmpi-bin")
set(CPACK_DEBIAN_COMPILER_DESCRIPTION "compiles networks to plans for msrun")
set(CPACK_DEBIAN_COMPILER_PACKAGE_NAME msc-compiler)
set(CPACK_DEBIAN_COMPILER_PACKAGE_SUGGESTS msc-runtime)
# Which packages msc needs, dpkg-shlibdeps knows (apt install dpkg-dev file).
find_program(MSC_SHLIBDEPS dpkg-shlibdeps)
find_program(MSC_FILE_UTILITY file)
if(MSC_BUILD_COMPILER AND MSC_SHLIBDEPS AND MSC_FILE_UTILITY)
  list(APPEND CPACK_COMPONENTS_ALL compiler)
  set(CPACK_DEBIAN_COMPILER_PACKAGE_SHLIBDEPS ON)
else()
  message(STATUS "No compiler, dpkg-shlibdeps or file: cpack packs the runtime alone")
endif()
# The archive is of the runtime alone, one folder that lies anywhere.
set(CPACK_ARCHIVE_RUNTIME_FILE_NAME "msc-runtime-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/CPackGenerator.cmake" @ONLY CONTENT [[
if(CPACK_GENERATOR STREQUAL TGZ)
  set(CPACK_COMPONENTS_ALL runtime)
  set(CPACK_PACKAGING_INSTALL_PREFIX "/@CPACK_ARCHIVE_RUNTIME_FILE_NAME@")
endif()
]])
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_BINARY_DIR}/CPackGenerator.cmake")
include(CPack)
