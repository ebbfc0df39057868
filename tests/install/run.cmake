# Installs the build in BUILD into PREFIX, then builds and runs the consumer project against it, by
# CMake and by pkg-config.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${PREFIX} ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
    -DCMAKE_BUILD_TYPE=${TYPE} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK})
run(${WORK}/consumer)
# The same program without CMake.
find_program(PKG_CONFIG pkg-config REQUIRED)
file(GLOB_RECURSE pc ${PREFIX}/keel.pc)
get_filename_component(pc_folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
execute_process(COMMAND ${PKG_CONFIG} --define-variable=prefix=${PREFIX} --cflags --libs keel
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
separate_arguments(own_flags UNIX_COMMAND "${FLAGS}")
get_filename_component(libraries ${pc_folder} DIRECTORY)
file(GLOB_RECURSE shared ${PREFIX}/libkeel.so.?.?)
if(shared)
  get_filename_component(shared_folder ${shared} DIRECTORY)
  set(path -Wl,-rpath,${shared_folder})
endif()
run(${COMPILER} ${own_flags} ${SOURCE}/consumer.cc -o ${WORK}/consumer_pc ${flags} ${path} ${RUNTIME})
run(${WORK}/consumer_pc)
run(${WORK}/consumer_c)
run(${PREFIX}/bin/keel --version)
# Copies of Keel in one process, which are unloaded and loaded again.
file(GLOB_RECURSE c_library ${PREFIX}/libkeel_c.so)
run(${WORK}/host ${WORK}/libplugin.so ${WORK}/libplugin_2.so ${c_library})
