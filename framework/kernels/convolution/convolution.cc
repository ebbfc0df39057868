#include <keel/framework/kernels/convolution/convolution.h>

#include <type_traits>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/gemm_bf16.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {
namespace {

// Elements of a block of patches. It stays in the L2 cache while the product reads it.
constexpr int64_t kBlockElements = 1 << 17;
constexpr int64_t kFewestRows = 32, kMostRows = 512;  // rows of a block
// The gradient of the kernel is summed in at most kMostParts parts, each of which has at least
// kPartWork multiplications. All parts together have at most kPartElements elements.
constexpr int64_t kMostParts = 16, kPartWork = 1 << 20, kPartElements = 1 << 22;

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// One group of a convolution. Its rows of patches are [taps, channels of the group].
template <class T>
struct Group {
  const Convolution& c;
  int64_t number = 0;

  int64_t channels() const { return c.channels / c.groups; }
  int64_t filters() const { return c.filters / c.groups; }
  int64_t depth() const { return c.grid.taps() * channels(); }
  int64_t rows() const { return c.batch * c.grid.outputs(); }
  int64_t block_rows() const {
    const int64_t rows = kBlockElements / std::max<int64_t>(depth(), 1);
    return std::clamp(rows, kFewestRows, kMostRows);
  }
  // True if the patches are the input itself.
  bool is_product() const { return c.groups == 1 && c.grid.is_identity(); }

  // Computes out = op(a) . op(b) [m, n], then adds the bias and applies relu.
  void multiply(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t k,
                bool transpose_a = false, const T* bias = nullptr, bool relu = false) const {
    if constexpr (std::is_same_v<T, float>) {
      const GemmEpilogue epilogue = {.bias = bias, .relu = relu};
      if (c.bfloat16) {
        gemm_bf16(a, b, out, m, n, k, transpose_a, false, epilogue, c.precision);
      } else {
        gemm(a, b, out, m, n, k, transpose_a, false, epilogue, c.precision);
      }
    } else {
      gemm(a, b, out, m, n, k, transpose_a, false);
      for (int64_t i = 0; i < m * n; ++i) {
        if (bias != nullptr) out[i] += bias[i % n];
        if (relu && out[i] < 0) out[i] = 0;
      }
    }
  }

  // Copies the patches of the rows [begin, end) to `out`, with zeros for padding.
  void gather(const T* x, int64_t begin, int64_t end, T* out) const {
    const int64_t width = channels();
    for (int64_t row = begin; row < end; ++row, out += depth()) {
      const T* image = x + row / c.grid.outputs() * c.grid.inputs() * c.channels + number * width;
      int64_t filled = 0;  // taps
      c.grid.for_each_run(row % c.grid.outputs(), [&](int64_t tap, int64_t pixel, int64_t count) {
        std::fill(out + filled * width, out + tap * width, T{0});
        if (c.groups == 1) {
          std::copy_n(image + pixel * width, count * width, out + tap * width);
        } else {
          for (int64_t i = 0; i < count; ++i) {
            std::copy_n(image + (pixel + i) * c.channels, width, out + (tap + i) * width);
          }
        }
        filled = tap + count;
      });
      std::fill(out + filled * width, out + depth(), T{0});
    }
  }

  // Adds patches to the pixels that they were gathered from.
  void scatter(const T* patches, int64_t begin, int64_t end, T* x) const {
    const int64_t width = channels();
    for (int64_t row = begin; row < end; ++row, patches += depth()) {
      T* image = x + row / c.grid.outputs() * c.grid.inputs() * c.channels + number * width;
      c.grid.for_each_run(row % c.grid.outputs(), [&](int64_t tap, int64_t pixel, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const T* from = patches + (tap + i) * width;
          T* __restrict to = image + (pixel + i) * c.channels;
          for (int64_t j = 0; j < width; ++j) to[j] += from[j];
        }
      });
    }
  }

  // Returns the columns of this group in rows of c.filters elements. They are copied to `scratch`
  // unless they are all columns.
  const T* columns(const T* all, int64_t count, T* scratch) const {
    if (c.groups == 1) return all;
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(all + i * c.filters + number * filters(), filters(), scratch + i * filters());
    }
    return scratch;
  }
  // The number of elements that columns() needs.
  int64_t columns_size(int64_t count) const { return c.groups == 1 ? 0 : count * filters(); }
};

template <class T>
void convolve_group(const Group<T>& group, const T* x, const T* all_kernels, const T* bias,
                    bool relu, T* y) {
  const Convolution& c = group.c;
  const int64_t depth = group.depth(), filters = group.filters(), first = group.number * filters;
  const Scratch<T> copy(group.columns_size(depth));
  const T* const kernel = group.columns(all_kernels, depth, copy.data());
  const T* const own_bias = bias == nullptr ? nullptr : bias + first;
  if (group.is_product()) {
    return group.multiply(x, kernel, y, group.rows(), filters, depth, false, own_bias, relu);
  }
  const int64_t block = group.block_rows();
  parallel_for(group.rows(), block, [&](int64_t begin, int64_t end) {
    const Scratch<T> patches(block * depth), results(group.columns_size(block));
    group.gather(x, begin, end, patches.data());
    T* const to = c.groups == 1 ? y + begin * filters : results.data();
    group.multiply(patches.data(), kernel, to, end - begin, filters, depth, false, own_bias, relu);
    if (c.groups == 1) return;
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(to + (row - begin) * filters, filters, y + row * c.filters + first);
    }
  });
}

// Transposes [rows, columns].
template <class T>
void transpose(const T* x, int64_t rows, int64_t columns, T* out) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) out[j * rows + i] = x[i * columns + j];
  }
}

// Windows overlap, so a sample is the smallest unit that workers may share. The product of a single
// sample is shared by the workers itself.
template <class T>
void transpose_group(const Group<T>& group, const T* dy, const T* all_kernels, T* dx) {
  const int64_t depth = group.depth(), filters = group.filters();
  const int64_t outputs = group.c.grid.outputs(), block = group.block_rows();
  const Scratch<T> copy(group.columns_size(depth)), transposed(depth * filters);
  transpose(group.columns(all_kernels, depth, copy.data()), depth, filters, transposed.data());
  if (group.is_product()) {
    return group.multiply(dy, transposed.data(), dx, group.rows(), depth, filters);
  }
  parallel_for(group.c.batch, 1, [&](int64_t sample, int64_t) {
    const Scratch<T> patches(block * depth), rows(group.columns_size(block));
    for (int64_t at = 0; at < outputs; at += block) {
      const int64_t begin = sample * outputs + at;
      const int64_t count = std::min(block, outputs - at);
      const T* const from = group.columns(dy + begin * group.c.filters, count, rows.data());
      group.multiply(from, transposed.data(), patches.data(), count, depth, filters);
      group.scatter(patches.data(), begin, begin + count, dx);
    }
  });
}

// Computes out = the sum over the rows [begin, end) of patch^T . dy, block by block.
template <class T>
void sum_of_products(const Group<T>& group, const T* x, const T* dy, int64_t begin, int64_t end,
                     T* out) {
  const int64_t depth = group.depth(), filters = group.filters(), block = group.block_rows();
  const bool is_product = group.is_product();
  const Scratch<T> patches(is_product ? 0 : block * depth), rows(group.columns_size(block));
  const Scratch<T> product(end - begin > block ? depth * filters : 0);
  for (int64_t at = begin; at < end; at += block) {
    const int64_t count = std::min(block, end - at);
    if (!is_product) group.gather(x, at, at + count, patches.data());
    const T* const a = is_product ? x + at * depth : patches.data();
    const T* const b = group.columns(dy + at * group.c.filters, count, rows.data());
    group.multiply(a, b, at == begin ? out : product.data(), depth, filters, count, true);
    if (at == begin) continue;
    for (int64_t i = 0; i < depth * filters; ++i) out[i] += product.data()[i];
  }
}

template <class T>
void kernel_gradient_of_group(const Group<T>& group, const T* x, const T* dy, T* all_kernels) {
  const int64_t filters = group.filters(), rows = group.rows(), elements = group.depth() * filters;
  const int64_t most = std::min(kMostParts, kPartElements / elements);
  const int64_t blocks = blocks_of(rows, group.block_rows());
  const int64_t parts = std::clamp<int64_t>(rows * elements / kPartWork, 1,
                                            std::max<int64_t>(1, std::min(most, blocks)));
  const Scratch<T> sums(parts * elements);
  parallel_for(parts, 1, [&](int64_t part, int64_t) {
    sum_of_products(group, x, dy, rows * part / parts, rows * (part + 1) / parts,
                    sums.data() + part * elements);
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < elements; ++i) sums.data()[i] += sums.data()[part * elements + i];
  }
  for (int64_t i = 0; i < group.depth(); ++i) {
    std::copy_n(sums.data() + i * filters, filters,
                all_kernels + i * group.c.filters + group.number * filters);
  }
}

}  // namespace

template <class T>
void convolve(const Convolution& sizes, const T* x, const T* kernel, const T* bias, bool relu,
              T* y) {
  if (sizes.batch * sizes.grid.outputs() == 0) return;
  for (int64_t g = 0; g < sizes.groups; ++g) {
    convolve_group(Group<T>{.c = sizes, .number = g}, x, kernel, bias, relu, y);
  }
}

template <class T>
void convolve_transposed(const Convolution& sizes, const T* dy, const T* kernel, T* dx) {
  std::fill_n(dx, sizes.batch * sizes.grid.inputs() * sizes.channels, T{0});
  if (sizes.batch * sizes.grid.outputs() == 0) return;
  for (int64_t g = 0; g < sizes.groups; ++g) {
    transpose_group(Group<T>{.c = sizes, .number = g}, dy, kernel, dx);
  }
}

template <class T>
void convolution_kernel_gradient(const Convolution& sizes, const T* x, const T* dy, T* dkernel) {
  const int64_t size = sizes.grid.taps() * sizes.channels / sizes.groups * sizes.filters;
  if (sizes.batch * sizes.grid.outputs() == 0) {
    std::fill_n(dkernel, size, T{0});
    return;
  }
  for (int64_t g = 0; size > 0 && g < sizes.groups; ++g) {
    kernel_gradient_of_group(Group<T>{.c = sizes, .number = g}, x, dy, dkernel);
  }
}

template void convolve(const Convolution&, const float*, const float*, const float*, bool, float*);
template void convolve(const Convolution&, const double*, const double*, const double*, bool,
                       double*);
template void convolve_transposed(const Convolution&, const float*, const float*, float*);
template void convolve_transposed(const Convolution&, const double*, const double*, double*);
template void convolution_kernel_gradient(const Convolution&, const float*, const float*, float*);
template void convolution_kernel_gradient(const Convolution&, const double*, const double*,
                                          double*);

}  // namespace keel::kernels
