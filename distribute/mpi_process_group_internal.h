// The processes that an MPI launcher has started.
#pragma once

#include <memory>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Joins the job; every process does. Initializes MPI unless the program has, and then leaves the
// job when it is destroyed, which has to be at exit. RuntimeError if the library was built without
// MPI. Defined in mpi_process_group.cc or no_mpi_process_group.cc.
std::unique_ptr<ProcessGroup> make_mpi_process_group();

}  // namespace keel::distribute
