# Compiles for 64-bit ARM with Debian's cross compiler and its arm64 libraries, which are installed
# next to those of this machine (dpkg --add-architecture arm64). Programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(KEEL_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(KEEL_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${KEEL_QEMU})
endif()

# Search for libraries of arm64 only; protoc and Python are those of this machine.
set(libraries /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(CMAKE_IGNORE_PREFIX_PATH /usr/lib/x86_64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:/usr/share/pkgconfig)
# The h5cc in PATH describes this machine's HDF5.
set(HDF5_ROOT ${libraries}/hdf5/serial)
set(HDF5_C_COMPILER_EXECUTABLE "" CACHE FILEPATH "No compiler wrapper")
# The MPI compiler wrappers and mpirun also belong to this machine.
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
