#include <keel/framework/internal/quantizers.h>

#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/abs_max_rows.h>

namespace keel {

QuantizedTable abs_max_quantize(const Tensor& table, const std::string& caller) {
  constexpr int64_t kRowsPerBlock = 1024;
  if (!table || table.dtype() != DType::kFloat32 || table.rank() != 2) {
    throw ValueError(caller,
                     ": only float32 tables of shape [rows, dim] can be quantized to int8; keep "
                     "other weights in float32");
  }
  const int64_t rows = table.dim(0), dim = table.dim(1);
  QuantizedTable out{.codes = Tensor::uninitialized({rows, dim}, DType::kInt8),
                     .scales = Tensor::uninitialized({rows}, DType::kFloat32)};
  const float* const from = table.data<float>().data();
  int8_t* const codes = out.codes.mutable_data<int8_t>().data();
  float* const scales = out.scales.mutable_data<float>().data();
  // The first invalid row of each block, or -1. The lowest one is reported, whatever the number of
  // workers.
  std::vector<int64_t> invalid_rows((rows + kRowsPerBlock - 1) / kRowsPerBlock, -1);
  parallel_for(rows, kRowsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (kernels::quantize_row_abs_max(from + r * dim, dim, codes + r * dim, scales + r)) continue;
      invalid_rows[begin / kRowsPerBlock] = r;
      return;
    }
  });
  for (const int64_t r : invalid_rows) {
    if (r >= 0)
      throw ValueError(caller, ": row ", r,
                       " cannot be quantized to int8: it is not finite; check the weights");
  }
  return out;
}

}  // namespace keel
