// The process group of a job started by an MPI launcher.
#pragma once

#include <memory>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// Joins the job; every process must call it. Initializes MPI unless the program has done so, and
// in that case finalizes it when the group is destroyed, which must be at exit. Throws RuntimeError
// if the library was built without MPI. Defined in mpi_process_group.cc or no_mpi_process_group.cc.
std::unique_ptr<ProcessGroup> make_mpi_process_group();

}  // namespace keel::distribute
