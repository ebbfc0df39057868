#include <keel/distribute/mpi_process_group_internal.h>

namespace keel::distribute {

std::unique_ptr<ProcessGroup> make_mpi_process_group() {
  throw RuntimeError(
      "processes: this program was started as several MPI processes, but the library was built "
      "without MPI; install MPI and rebuild the library");
}

}  // namespace keel::distribute
