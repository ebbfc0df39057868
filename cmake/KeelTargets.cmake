# Functions and settings for all targets of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# No contraction: the same line gives the same bits in a vector loop and in its tail, and with any
# compiler. No code reads the floating-point exception flags, so -fno-trapping-math lets the
# compiler vectorize conditional expressions with the same results.
add_compile_options(-Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                    -ffp-contract=off -fno-math-errno -fno-trapping-math)
# At run time, programs use the newest libstdc++ of the system, which Debian's libraries need. An
# older GCC would link its own version, so programs link the newest one explicitly.
set(KEEL_CXX_RUNTIME)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(name so so.6)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.${name}
                    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(REAL_PATH "${path}" libstdcxx_${name})
  endforeach()
  if(EXISTS "${libstdcxx_so.6}" AND NOT libstdcxx_so STREQUAL "${libstdcxx_so.6}")
    set(KEEL_CXX_RUNTIME "${path}")
  endif()
  # GCC 12 at -O3 gives false warnings in its own std::string, std::variant and std::vector.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
                      -Wno-array-bounds -Wno-stringop-overread)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses functions that it declares deprecated.
  add_compile_options(-Wno-deprecated-declarations)
  # Clang 19 warns about its own -march=native on processors with AVX10.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-Winvalid-feature-combination KEEL_HAS_INVALID_FEATURE_COMBINATION)
  if(KEEL_HAS_INVALID_FEATURE_COMBINATION)
    add_compile_options(-Wno-invalid-feature-combination)
  endif()
endif()
if(KEEL_MARCH)
  add_compile_options(-march=${KEEL_MARCH})
endif()
if(CMAKE_CXX_FLAGS MATCHES "sanitize=address")
  add_compile_definitions(KEEL_ADDRESS_SANITIZER)  # GCC and Clang have no common name for it
endif()
if(KEEL_WERROR)
  add_compile_options(-Werror)
endif()

# keel_unity_build(<target> [<source>...]): compiles the target's sources several at a time, which
# saves most of the time that their headers and common templates take. The sources below one folder
# of the target share units, or all sources of the target if it has the property KEEL_JOINED, so
# names in unnamed namespaces must differ there; the listed sources share such a name with another
# and are compiled alone. So are kernels and ops: their speed depends on inlining, and inlining
# depends on what else is in the unit.
set(KEEL_UNITY_BATCH 16)
function(keel_unity_build target)
  if(NOT KEEL_FAST_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(joined ${target} KEEL_JOINED)
  list(JOIN KEEL_FOLDERS "|" folders)  # paths of sources of extensions begin with one
  foreach(source ${sources})
    if(IS_ABSOLUTE ${source} OR source MATCHES "(^|/)(kernels|ops)/" OR source IN_LIST ARGN)
      continue()
    endif()
    string(REGEX MATCH "^((${folders})/)?[^/]+/" folder ${source})
    if(joined)
      set(folder "")
    endif()
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    math(EXPR count_${folder} "${count_${folder}} + 1")
    math(EXPR batch "(${count_${folder}} - 1) / ${KEEL_UNITY_BATCH}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # These warnings arise only because sources are combined; builds without units still check each
  # source.
  target_compile_options(${target} PRIVATE -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# keel_sources(<variable> <pattern> [EXCEPT <prefix>...]): lists the files below the current folder
# that match the pattern, except those whose paths start with a prefix. Builds find new files
# automatically.
function(keel_sources variable pattern)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${pattern})
  foreach(prefix ${ARG_EXCEPT})
    list(FILTER sources EXCLUDE REGEX "^${prefix}")
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# keel_add_library(<name> SOURCES ... [LINK_PUBLIC ...] [LINK_PRIVATE ...] [PRECOMPILE ...] [ALONE ...]
#                  [PRECOMPILED_BY name] [JOINED] [FULL ...])
# makes target keel_<name>. Fast builds compile it at -O1, which takes a third less time, except the
# sources with loops over elements, rows, ids or bytes:
#   FULL: regular expressions with which the paths of these sources begin. They form the object library
#     keel_<name>_full.
#   PRECOMPILE: the project's own headers that most of the other sources include. Builds that are not
#     fast check that each source includes what it uses.
#   PRECOMPILED_BY: the library whose precompiled headers a fast build uses, in place of PRECOMPILE.
#   ALONE: sources that a fast build compiles one by one.
#   JOINED: a fast build compiles sources of different folders together.
function(keel_add_library name)
  cmake_parse_arguments(ARG "JOINED" "PRECOMPILED_BY" "SOURCES;LINK_PUBLIC;LINK_PRIVATE;PRECOMPILE;ALONE;FULL" ${ARGN})
  set(targets keel_${name})
  set(sources ${ARG_SOURCES})
  if(ARG_FULL AND KEEL_FAST_BUILD)
    list(JOIN ARG_FULL "|" full)
    set(full_sources ${sources})
    list(FILTER full_sources INCLUDE REGEX "^(${full})")
    list(FILTER sources EXCLUDE REGEX "^(${full})")
    list(APPEND targets keel_${name}_full)
    add_library(keel_${name}_full OBJECT ${full_sources})
  endif()
  add_library(keel_${name} STATIC ${sources})
  add_library(keel::${name} ALIAS keel_${name})
  target_link_libraries(keel_${name} INTERFACE ${KEEL_CXX_RUNTIME})
  # Compilers cannot use a precompiled header of another optimization level.
  set(standard
    <algorithm> <functional> <map> <memory> <optional> <span> <sstream> <string> <variant> <vector>)
  foreach(target ${targets})
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${ARG_LINK_PUBLIC} PRIVATE ${ARG_LINK_PRIVATE})
    set_target_properties(${target} PROPERTIES KEEL_JOINED ${ARG_JOINED})
    keel_unity_build(${target} ${ARG_ALONE})
    if(KEEL_BUILD_FUZZERS AND name MATCHES "framework|savedmodel|serving")  # what reads files and requests
      # Optimize because fuzzing needs many inputs per second.
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -O1)
    endif()
    set(precompiled_by ${target})
    if(NOT KEEL_BUILD_FUZZERS)  # which compile some libraries with other options
      if(target MATCHES "_full$")
        set(precompiled_by keel_framework_full)
      elseif(KEEL_FAST_BUILD AND ARG_PRECOMPILED_BY)
        set(precompiled_by keel_${ARG_PRECOMPILED_BY})
      endif()
    endif()
    if(NOT precompiled_by STREQUAL target)
      target_precompile_headers(${target} REUSE_FROM ${precompiled_by})
    elseif(NOT target MATCHES "_full$" AND (KEEL_FAST_BUILD OR KEEL_PRECOMPILE_OWN_HEADERS))
      target_precompile_headers(${target} PRIVATE ${standard} ${ARG_PRECOMPILE})
    else()
      target_precompile_headers(${target} PRIVATE ${standard})
    endif()
  endforeach()
  if(KEEL_FAST_BUILD)
    target_compile_options(keel_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    if(ARG_FULL)
      target_sources(keel_${name} PRIVATE $<TARGET_OBJECTS:keel_${name}_full>)
    endif()
  endif()
endfunction()

# keel_library(<folder> [EXCEPT ...] ...) makes target keel_<folder> of the folder's sources but those of
# the extensions (KeelExtensions.cmake). A folder sees the headers of the folders it links and no others:
# its include directory is a tree of links to itself and to the folders before it.
#   EXCEPT: prefixes of sources that do not belong to the library.
# The other arguments are those of keel_add_library.
set(KEEL_FOLDERS framework autodiff distribute optimizers layers savedmodel)
function(keel_library folder)
  cmake_parse_arguments(ARG "JOINED" "PRECOMPILED_BY" "EXCEPT;LINK_PUBLIC;LINK_PRIVATE;PRECOMPILE;ALONE;FULL" ${ARGN})
  set(joined)
  if(ARG_JOINED)
    set(joined JOINED)
  endif()
  keel_sources(sources *.cc EXCEPT ${ARG_EXCEPT})
  keel_extension_regex(extensions ${KEEL_EXTENSIONS})
  list(TRANSFORM sources PREPEND ${folder}/)
  list(FILTER sources EXCLUDE REGEX "${extensions}")
  list(TRANSFORM sources REPLACE "^${folder}/" "")
  keel_add_library(${folder} SOURCES ${sources} LINK_PUBLIC ${ARG_LINK_PUBLIC} LINK_PRIVATE ${ARG_LINK_PRIVATE}
    PRECOMPILE ${ARG_PRECOMPILE} PRECOMPILED_BY ${ARG_PRECOMPILED_BY} ALONE ${ARG_ALONE} ${joined}
    FULL ${ARG_FULL})
  set(tree ${PROJECT_BINARY_DIR}/include/${folder})
  file(MAKE_DIRECTORY ${tree}/keel)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${tree}/keel/${folder} SYMBOLIC)
  foreach(target keel_${folder} keel_${folder}_full)
    if(NOT TARGET ${target})
      continue()
    endif()
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${tree}> $<INSTALL_INTERFACE:include>)
  endforeach()
endfunction()

# keel_protobuf(<folder> <name> [<target>]): compiles the messages of <folder>/<name>.proto for the
# sources of the target only, by default keel_<folder>. Generated code does not follow the project's
# warning flags. The messages must be lite: others register their names in a pool of the process, in
# which those of a second copy of Keel collide. <name>.descriptors.h has the descriptors, for the text
# format (framework/base/internal/proto_text.h).
function(keel_protobuf folder name)
  set(record ${folder}/${name})
  set(target keel_${folder})
  if(ARGC GREATER 2)
    set(target ${ARGV2})
  endif()
  get_filename_component(name ${name} NAME)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${record}.proto lite REGEX "optimize_for = LITE_RUNTIME")
  if(NOT lite)
    message(FATAL_ERROR "${record}.proto needs `option optimize_for = LITE_RUNTIME;`")
  endif()
  set(generated ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${generated}/${record}.pb.cc ${generated}/${record}.pb.h ${generated}/${record}.descriptors.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${generated}
            --descriptor_set_out=${generated}/${record}.desc ${PROJECT_SOURCE_DIR}/${record}.proto
    COMMAND ${CMAKE_COMMAND} -DINPUT=${generated}/${record}.desc
            -DOUTPUT=${generated}/${record}.descriptors.h -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/EmbedDescriptors.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/${record}.proto ${PROJECT_SOURCE_DIR}/cmake/EmbedDescriptors.cmake)
  if(NOT TARGET keel_messages)
    add_custom_target(keel_messages)  # all of them, for tools that read sources without a build
  endif()
  add_custom_target(keel_${name}_messages DEPENDS ${generated}/${record}.pb.h)
  add_dependencies(keel_messages keel_${name}_messages)
  set_source_files_properties(${generated}/${record}.pb.cc PROPERTIES COMPILE_OPTIONS -w)
  target_sources(${target} PRIVATE ${generated}/${record}.pb.cc)
  set(targets ${target})
  if(TARGET ${target}_full)
    list(APPEND targets ${target}_full)
    add_dependencies(${target}_full keel_${name}_messages)
  endif()
  foreach(target ${targets})
    target_include_directories(${target} SYSTEM PRIVATE ${generated})
    target_link_libraries(${target} PRIVATE protobuf::libprotobuf)
  endforeach()
endfunction()

# Programs link the shared library, or all static ones.
if(BUILD_SHARED_LIBS)
  set(KEEL_LIBRARY keel)
else()
  set(KEEL_LIBRARY keel_savedmodel)
  foreach(extension ${KEEL_EXTENSIONS})
    list(APPEND KEEL_LIBRARY keel_${extension})
  endforeach()
endif()

# keel_program(<name> SOURCES ... [LINK ...] [ESSENTIAL]): adds an executable in bin/. ESSENTIAL: it needs
# no extension.
function(keel_program name)
  cmake_parse_arguments(ARG "ESSENTIAL" "" "SOURCES;LINK" ${ARGN})
  set(library ${KEEL_LIBRARY})
  if(ARG_ESSENTIAL AND NOT BUILD_SHARED_LIBS)
    set(library keel_savedmodel)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${library} absl::str_format absl::strings ${ARG_LINK})
endfunction()
