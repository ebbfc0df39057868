#include <keel/distribute/mpi_process_group_internal.h>

namespace keel::distribute {

std::unique_ptr<ProcessGroup> make_mpi_process_group() {
  throw RuntimeError(
      "processes: this program was started as several MPI processes, and the library was built "
      "without MPI; install an MPI and build it again");
}

}  // namespace keel::distribute
