#include <keel/distribute/internal/gather_tensors.h>

#include <cstring>

namespace keel::distribute {
namespace {

// Returns the description that a process sends before the bytes of its tensors: for each tensor the
// dtype, the rank and the dimensions.
std::vector<int64_t> description(std::span<const Tensor> tensors) {
  std::vector<int64_t> out;
  for (const Tensor& t : tensors) {
    out.push_back(static_cast<int64_t>(t.dtype()));
    out.push_back(t.rank());
    for (int axis = 0; axis < t.rank(); ++axis) out.push_back(t.dim(axis));
  }
  return out;
}

void append_tensors(const ProcessGroup::Parts& parts, std::vector<Tensor>& out) {
  const auto* numbers = reinterpret_cast<const int64_t*>(parts.front().data());
  for (const Bytes& bytes : std::span(parts).subspan(1)) {
    const DType dtype = static_cast<DType>(*numbers++);
    const int64_t rank = *numbers++;
    const Shape shape(std::vector<int64_t>(numbers, numbers + rank));
    numbers += rank;
    Tensor tensor = Tensor::uninitialized(shape, dtype);
    if (!bytes.empty()) std::memcpy(tensor.mutable_raw().data(), bytes.data(), bytes.size());
    out.push_back(std::move(tensor));
  }
}

}  // namespace

std::vector<Tensor> gather_tensors(ProcessGroup& group, std::string_view what,
                                   std::span<const Tensor> mine) {
  const std::vector<int64_t> numbers = description(mine);
  ProcessGroup::Parts parts = {std::as_bytes(std::span(numbers))};
  for (const Tensor& t : mine) parts.push_back(t.raw());
  const std::vector<ProcessGroup::Parts> received = all_gather(group, what, parts);
  std::vector<Tensor> out;
  for (int p = 0; p < group.size(); ++p) {
    if (p == group.rank()) {
      out.insert(out.end(), mine.begin(), mine.end());
    } else {
      append_tensors(received[p], out);
    }
  }
  return out;
}

}  // namespace keel::distribute
