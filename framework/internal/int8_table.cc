#include <keel/framework/internal/int8_table.h>

#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/int8_rows.h>

namespace keel {
namespace {

constexpr int64_t kRowsPerBlock = 1024;

}  // namespace

Int8Table::Int8Table(const Tensor& table, const std::string& caller) {
  if (!table || table.dtype() != DType::kFloat32 || table.rank() != 2) {
    throw ValueError(caller,
                     ": only float32 tables of shape [rows, dim] can be quantized to int8; keep "
                     "other weights in float32");
  }
  dim_ = table.dim(1);
  const int64_t row_bytes = kernels::Int8Row::bytes(dim_);
  Tensor bytes = Tensor::zeros({table.dim(0), row_bytes}, DType::kUint8);
  auto* const to = reinterpret_cast<char*>(bytes.mutable_data<uint8_t>().data());
  const float* const from = table.data<float>().data();
  // The first invalid row of each block, or -1. The lowest one is reported, whatever the number of
  // workers.
  std::vector<int64_t> invalid_rows((table.dim(0) + kRowsPerBlock - 1) / kRowsPerBlock, -1);
  parallel_for(table.dim(0), kRowsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (kernels::quantize_row_int8(from + r * dim_, dim_, to + r * row_bytes)) continue;
      invalid_rows[begin / kRowsPerBlock] = r;
      return;
    }
  });
  for (const int64_t r : invalid_rows) {
    if (r < 0) continue;
    throw ValueError(caller, ": row ", r,
                     " cannot be quantized to int8: it is not finite or its range exceeds float32; "
                     "check the weights");
  }
  bytes_ = std::move(bytes);
}

Tensor Int8Table::to_floats() const {
  Tensor out = Tensor::uninitialized({rows(), dim_}, DType::kFloat32);
  float* const to = out.mutable_data<float>().data();
  for (int64_t r = 0; r < rows(); ++r) {
    kernels::to_floats(kernels::Int8Row(data() + r * row_bytes()), dim_, to + r * dim_);
  }
  return out;
}

}  // namespace keel
