# Precompiled headers. A file that names an operator spends eight of its ten seconds in the headers of MLIR and of the operators;
# read once, they cost it two. ccache needs the sloppiness set in CMakePresets.json, and its entries hold for one folder of
# sources only: who shares a cache between several checkouts turns this off.
option(MSC_PRECOMPILED_HEADERS "Read the headers of MLIR and of the operators once for all files" ON)

# msc_links_to(RESULT TARGET WANTED): whether a target links to another, directly or through others.
function(msc_links_to result target wanted)
  get_property(known GLOBAL PROPERTY MSC_LINKS_${target}_${wanted})
  if(NOT "${known}" STREQUAL "")
    set(${result} ${known} PARENT_SCOPE)
    return()
  endif()
  set(found FALSE)
  if(target STREQUAL wanted)
    set(found TRUE)
  elseif(TARGET ${target})
    get_target_property(imported ${target} IMPORTED)
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    get_target_property(type ${target} TYPE)
    if(NOT imported AND NOT type STREQUAL INTERFACE_LIBRARY)
      get_target_property(libraries ${target} LINK_LIBRARIES)
    endif()
    foreach(library IN LISTS libraries)
      if(TARGET "${library}" AND NOT found)
        msc_links_to(found ${library} ${wanted})
      endif()
    endforeach()
  endif()
  set_property(GLOBAL PROPERTY MSC_LINKS_${target}_${wanted} ${found})
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# msc_precompile_net(FOLDER): lets every target of a folder, and of those below, that knows the operators share one precompiled
# header.
function(msc_precompile_net folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|STATIC_LIBRARY|SHARED_LIBRARY|MODULE_LIBRARY)$")
      continue()
    endif()
    msc_links_to(knows_operators ${target} msc_dialect_net)
    if(knows_operators)
      target_precompile_headers(${target} REUSE_FROM msc_net_headers)
      if(type STREQUAL EXECUTABLE)
        target_compile_options(${target} PRIVATE -fPIC) # CMake says -fPIE, which the header of the libraries was not made for
      endif()
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    msc_precompile_net(${below})
  endforeach()
endfunction()

if(MSC_PRECOMPILED_HEADERS AND MSC_BUILD_COMPILER)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/net_headers.cpp" CONTENT "// The precompiled header belongs to this file.\n")
  add_library(msc_net_headers OBJECT "${PROJECT_BINARY_DIR}/net_headers.cpp")
  target_link_libraries(msc_net_headers PRIVATE msc_options msc_mlir msc_plan msc_machine)
  target_precompile_headers(msc_net_headers PRIVATE
    "dialects/net/NetOps.h" <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>)
  add_dependencies(msc_net_headers net_structure_tablegen net_tablegen net_interfaces_tablegen communication_interface_tablegen
    communication_tablegen print_tablegen)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    # The same header makes the same file, or ccache would compile everything again.
    target_compile_options(msc_net_headers PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  msc_precompile_net("${PROJECT_SOURCE_DIR}")
endif()
