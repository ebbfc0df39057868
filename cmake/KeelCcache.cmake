# Compiles through ccache where it is installed, so that another build folder, or another clone, of
# the same sources takes a fraction of the time. Set KEEL_CCACHE to OFF to compile without it.
option(KEEL_CCACHE "Compile through ccache if it is installed" ON)
if(NOT KEEL_CCACHE OR NOT PROJECT_IS_TOP_LEVEL OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
# The first configuration of a build folder decides: another compiler launcher would compile every
# source again when ccache is installed later.
if(NOT DEFINED KEEL_CCACHE_PROGRAM)
  find_program(program_of_ccache ccache NO_CACHE)
  if(NOT program_of_ccache)
    set(program_of_ccache "")
  endif()
  set(KEEL_CCACHE_PROGRAM "${program_of_ccache}" CACHE INTERNAL "ccache, or empty")
endif()
if(KEEL_CCACHE_PROGRAM)
  # The paths of a clone must not change the result. Precompiled headers need the two kinds of
  # sloppiness. Others are unsafe: a header that is edited while it is compiled would be cached with
  # the result of its old text.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${KEEL_CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
