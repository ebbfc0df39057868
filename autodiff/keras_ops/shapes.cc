#include <keel/autodiff/keras_ops/shapes.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <algorithm>
#include <functional>
#include <numeric>

#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/base/function_ref.h>

namespace keel::keras_ops {
namespace {

using internal::kFill;
using Index = std::vector<int64_t>;

// Returns the elements of x whose index along each axis is source(axis, index), in a tensor of
// `shape`. kFill selects `fill`.
Tensor remap_axes(const Tensor& x, const Shape& shape,
                  FunctionRef<int64_t(int axis, int64_t index)> source, double fill = 0) {
  const std::vector<int64_t> strides = internal::strides_of(x.shape());
  return internal::remap(
      x, shape,
      [&](const Index& index) {
        int64_t at = 0;
        for (int axis = 0; axis < shape.rank(); ++axis) {
          const int64_t from = source(axis, index[axis]);
          if (from == kFill) return kFill;
          at += from * strides[axis];
        }
        return at;
      },
      fill);
}

std::vector<Tensor> split_at(const Tensor& x, const std::vector<int64_t>& ends, int axis) {
  std::vector<Tensor> out;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    out.push_back(ops::slice(x, axis, begin, std::max<int64_t>(0, end - begin)));
    begin = std::max(begin, end);
  }
  return out;
}

Tensor with_rank(const Tensor& x, int rank) {
  Tensor out = x;
  if (rank >= 1 && out.rank() == 0) out = ops::expand_dims(out, 0);
  if (rank >= 2 && out.rank() == 1) out = ops::expand_dims(out, 0);
  if (rank >= 3 && out.rank() == 2) out = ops::expand_dims(out, 2);
  return out;
}

std::vector<Tensor> each_with_rank(const std::vector<Tensor>& xs, int rank) {
  std::vector<Tensor> out;
  for (const Tensor& x : xs) out.push_back(with_rank(x, rank));
  return out;
}

int horizontal_axis(const Tensor& x) { return x.rank() == 1 ? 0 : 1; }

// ---- Patterns of rearrange(): a list of axes, each of which is a list of names.
using Pattern = std::vector<std::vector<std::string>>;
constexpr const char* kEllipsis = "...";
constexpr const char* kJoined = "(...)";  // an ellipsis whose axes are joined with others

Pattern pattern_of(const std::string& text) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::StrReplaceAll(text, {{"(", " ( "}, {")", " ) "}}),
                     absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty());
  Pattern out;
  bool inside = false;
  for (const std::string& word : words) {
    if (word == "(") {
      out.emplace_back();
      inside = true;
    } else if (word == ")") {
      inside = false;
    } else if (inside) {
      out.back().push_back(word == kEllipsis ? kJoined : word);
    } else {
      out.push_back({word});
    }
  }
  return out;
}

// Replaces an ellipsis by one name for each axis that the pattern leaves out.
Pattern expanded(const Pattern& pattern, int64_t left_out) {
  Pattern out;
  for (const auto& axis : pattern) {
    const bool alone = axis == std::vector<std::string>{kEllipsis};
    if (!alone) out.emplace_back();
    for (const std::string& name : axis) {
      const bool is_name = !alone && name != kJoined;
      if (is_name) out.back().push_back(name);
      for (int64_t i = 0; !is_name && i < left_out; ++i) {
        if (alone) out.emplace_back();
        out.back().push_back(absl::StrCat(kEllipsis, i));
      }
    }
  }
  return out;
}

std::vector<std::string> names_of(const Pattern& pattern) {
  std::vector<std::string> out;
  for (const auto& axis : pattern) out.insert(out.end(), axis.begin(), axis.end());
  return out;
}

// Finds the lengths of all names from the shape; each axis may have one name without a length.
void infer_lengths(const Pattern& pattern, const Shape& shape,
                   std::map<std::string, int64_t>& lengths) {
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t known = 1;
    std::string unknown;
    for (const std::string& name : pattern[i]) {
      if (const auto it = lengths.find(name); it != lengths.end()) {
        known *= it->second;
      } else if (unknown.empty()) {
        unknown = name;
      } else {
        throw ValueError("rearrange: the lengths of '", unknown, "' and '", name,
                         "' are not known; pass one in axes_lengths");
      }
    }
    if (known == 0 || shape[i] % known != 0 || (unknown.empty() && shape[i] != known)) {
      throw ValueError("rearrange: axis ", i, " of shape ", shape,
                       " does not match the pattern; change the pattern or axes_lengths");
    }
    if (!unknown.empty()) lengths[unknown] = shape[i] / known;
  }
}

// ---- Windows of unfold() and fold().

int64_t window_count(int64_t size, int64_t kernel, int64_t dilation, int64_t padding,
                     int64_t stride) {
  const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (span < 0) {
    throw ValueError("unfold: windows are larger than the padded image of ", size,
                     "; use a smaller kernel or more padding");
  }
  return span / stride + 1;
}

// Returns, for each element of the columns, its position in the image [batch, channels, h, w].
std::vector<int64_t> window_positions(const Shape& image, Pair kernel, Pair dilation, Pair padding,
                                      Pair stride) {
  const int64_t h = image[2], w = image[3];
  const int64_t down =
      window_count(h, kernel.height, dilation.height, padding.height, stride.height);
  const int64_t across = window_count(w, kernel.width, dilation.width, padding.width, stride.width);
  std::vector<int64_t> out;
  internal::for_each_index(
      {image[0], image[1], kernel.height, kernel.width, down, across}, [&](const Index& i) {
        const int64_t y = i[4] * stride.height + i[2] * dilation.height - padding.height;
        const int64_t x = i[5] * stride.width + i[3] * dilation.width - padding.width;
        const bool inside = y >= 0 && y < h && x >= 0 && x < w;
        const int64_t plane = i[0] * image[1] + i[1];
        out.push_back(inside ? (plane * h + y) * w + x : kFill);
      });
  return out;
}

void check_image(const char* caller, const Tensor& x, int rank) {
  if (x.rank() == rank) return;
  throw ValueError(caller, ": x must have rank ", rank, ", received shape ", x.shape());
}

bool channels_first(const char* caller, const std::string& data_format) {
  if (data_format == "channels_first") return true;
  if (data_format == "channels_last") return false;
  throw ValueError(caller, ": data_format must be channels_last or channels_first, received '",
                   data_format, "'");
}

}  // namespace

// ---- Axes.

Tensor reshape(const Tensor& x, const Shape& newshape) { return ops::reshape(x, newshape); }
Tensor ravel(const Tensor& x) { return ops::reshape(x, {kUnknown}); }
Tensor transpose(const Tensor& x, const std::vector<int>& axes) { return ops::transpose(x, axes); }
Tensor swapaxes(const Tensor& x, int axis1, int axis2) {
  std::vector<int> order(x.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[x.shape().normalize_axis(axis1)], order[x.shape().normalize_axis(axis2)]);
  return ops::transpose(x, order);
}
Tensor moveaxis(const Tensor& x, const std::vector<int>& source,
                const std::vector<int>& destination) {
  if (source.size() != destination.size()) {
    throw ValueError("moveaxis: source and destination must have the same length, received ",
                     source.size(), " and ", destination.size());
  }
  std::vector<int> order(x.rank(), -1), rest;
  std::vector<bool> moved(x.rank());
  for (size_t i = 0; i < source.size(); ++i) {
    const int from = x.shape().normalize_axis(source[i]);
    order[x.shape().normalize_axis(destination[i])] = from;
    moved[from] = true;
  }
  for (int i = 0; i < x.rank(); ++i) {
    if (!moved[i]) rest.push_back(i);
  }
  auto next = rest.begin();
  for (int& axis : order) {
    if (axis < 0) axis = *next++;
  }
  return ops::transpose(x, order);
}
Tensor expand_dims(const Tensor& x, const Axes& axis) {
  if (axis.all()) throw ValueError("expand_dims: axis is required");
  int count = 0;
  // The rank of the result depends on the number of axes.
  for (int rank = x.rank() + 1; rank <= Shape::kMaxRank; ++rank) {
    try {
      count = static_cast<int>(axis.of(rank).size());
    } catch (const ValueError&) {
      continue;
    }
    if (x.rank() + count == rank) break;
  }
  Tensor out = x;
  for (const int at : axis.of(x.rank() + count)) out = ops::expand_dims(out, at);
  return out;
}
Tensor squeeze(const Tensor& x, const Axes& axis) {
  Tensor out = x;
  const std::vector<int> axes = axis.of(x.rank());
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    if (!axis.all() || x.dim(*it) == 1) out = ops::squeeze(out, *it);
  }
  return out;
}
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return ops::broadcast_to(x, shape); }

Tensor rearrange(const Tensor& tensor, const std::string& pattern,
                 const std::map<std::string, int64_t>& axes_lengths) {
  const size_t arrow = pattern.find("->");
  if (arrow == std::string::npos) {
    throw ValueError("rearrange: the pattern '", pattern, "' must contain '->'");
  }
  const Pattern left = pattern_of(pattern.substr(0, arrow));
  const bool has_ellipsis =
      std::ranges::find(left, std::vector<std::string>{kEllipsis}) != left.end();
  const int64_t left_out = has_ellipsis ? tensor.rank() + 1 - std::ssize(left) : 0;
  const Pattern from = expanded(left, left_out);
  const Pattern to = expanded(pattern_of(pattern.substr(arrow + 2)), left_out);
  if (static_cast<int>(from.size()) != tensor.rank()) {
    throw ValueError("rearrange: the left side of '", pattern, "' must name each axis of ",
                     tensor.shape(), ", received ", from.size());
  }
  std::map<std::string, int64_t> lengths = axes_lengths;
  lengths["1"] = 1;
  infer_lengths(from, tensor.shape(), lengths);
  std::vector<int64_t> parts, joined;
  std::vector<int> order;
  const std::vector<std::string> names = names_of(from);
  for (const std::string& name : names) parts.push_back(lengths[name]);
  for (const auto& axis : to) {
    joined.push_back(1);
    for (const std::string& name : axis) {
      const auto at = std::ranges::find(names, name);
      if (at == names.end()) {
        throw ValueError("rearrange: '", name, "' is only on the right side of '", pattern,
                         "'; name it on the left side, too");
      }
      order.push_back(static_cast<int>(at - names.begin()));
      joined.back() *= lengths[name];
    }
  }
  return ops::reshape(ops::transpose(ops::reshape(tensor, Shape(parts)), order), Shape(joined));
}

// ---- Joining and splitting.

Tensor concatenate(const std::vector<Tensor>& xs, int axis) {
  if (xs.empty()) throw ValueError("concatenate: requires at least one tensor");
  DType dtype = xs[0].dtype();
  for (const Tensor& x : xs) {
    if (x.dtype() != dtype) dtype = result_type({Tensor::zeros({}, dtype), x});
  }
  std::vector<Tensor> same;
  for (const Tensor& x : xs) same.push_back(ops::cast(x, dtype));
  return ops::concat(same, axis);
}
Tensor append(const Tensor& x1, const Tensor& x2, Axis axis) {
  if (axis) return concatenate({x1, x2}, *axis);
  return concatenate({ravel(x1), ravel(x2)}, 0);
}
Tensor stack(const std::vector<Tensor>& x, int axis) { return ops::stack(x, axis); }
Tensor hstack(const std::vector<Tensor>& xs) {
  const std::vector<Tensor> parts = each_with_rank(xs, 1);
  return concatenate(parts, parts.empty() ? 0 : horizontal_axis(parts[0]));
}
Tensor vstack(const std::vector<Tensor>& xs) { return concatenate(each_with_rank(xs, 2), 0); }
Tensor dstack(const std::vector<Tensor>& xs) { return concatenate(each_with_rank(xs, 3), 2); }
Tensor column_stack(const std::vector<Tensor>& xs) {
  std::vector<Tensor> columns;
  for (const Tensor& x : xs) columns.push_back(x.rank() < 2 ? ops::reshape(x, {-1, 1}) : x);
  return concatenate(columns, 1);
}
std::vector<Tensor> split(const Tensor& x, int64_t sections, int axis) {
  return ops::split(x, sections, axis);
}
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& indices, int axis) {
  const int64_t n = x.dim(axis);
  std::vector<int64_t> ends;
  for (const int64_t at : indices) ends.push_back(std::clamp<int64_t>(at < 0 ? at + n : at, 0, n));
  ends.push_back(n);
  return split_at(x, ends, axis);
}
std::vector<Tensor> array_split(const Tensor& x, int64_t sections, int axis) {
  if (sections < 1) throw ValueError("array_split: requires at least one part");
  const int64_t n = x.dim(axis);
  std::vector<int64_t> ends;
  for (int64_t i = 1; i <= sections; ++i)
    ends.push_back(n / sections * i + std::min(i, n % sections));
  return split_at(x, ends, axis);
}
std::vector<Tensor> array_split(const Tensor& x, const std::vector<int64_t>& indices, int axis) {
  return split(x, indices, axis);
}
std::vector<Tensor> hsplit(const Tensor& x, int64_t sections) {
  return split(x, sections, horizontal_axis(x));
}
std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return split(x, indices, horizontal_axis(x));
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections) { return split(x, sections, 0); }
std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return split(x, indices, 0);
}
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections) { return split(x, sections, 2); }
std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& indices) {
  return split(x, indices, 2);
}
std::vector<Tensor> unstack(const Tensor& x, std::optional<int64_t> num, int axis) {
  const int64_t n = x.dim(axis);
  if (num && *num != n) {
    throw ValueError("unstack: num must be the length of axis ", axis, ", ", n, ", received ",
                     *num);
  }
  std::vector<Tensor> out;
  for (const Tensor& part : ops::split(x, n, axis)) out.push_back(ops::squeeze(part, axis));
  return out;
}

// ---- Repeating, reordering and padding.

Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats) {
  const int rank = std::max(x.rank(), static_cast<int>(repeats.size()));
  std::vector<int64_t> dims(rank, 1), times(rank, 1), out;
  std::ranges::copy(x.shape().dims(), dims.end() - x.rank());
  std::ranges::copy(repeats, times.end() - static_cast<int64_t>(repeats.size()));
  for (int i = 0; i < rank; ++i) out.push_back(dims[i] * times[i]);
  return remap_axes(ops::reshape(x, Shape(dims)), Shape(out),
                    [&](int axis, int64_t i) { return i % dims[axis]; });
}
Tensor repeat(const Tensor& x, const std::vector<int64_t>& repeats, Axis axis) {
  const Tensor in = axis ? x : ravel(x);
  const int along = in.shape().normalize_axis(axis.value_or(0));
  const int64_t n = in.dim(along);
  if (repeats.size() != 1 && static_cast<int64_t>(repeats.size()) != n) {
    throw ValueError("repeat: repeats must have 1 element or one for each of ", n,
                     " slices, received ", repeats.size());
  }
  std::vector<int64_t> from;
  for (int64_t i = 0; i < n; ++i) from.insert(from.end(), repeats[repeats.size() == 1 ? 0 : i], i);
  return remap_axes(in, in.shape().with(along, static_cast<int64_t>(from.size())),
                    [&](int a, int64_t i) { return a == along ? from[i] : i; });
}
Tensor flip(const Tensor& x, const Axes& axis) {
  const std::vector<int> axes = axis.of(x.rank());
  return remap_axes(x, x.shape(), [&](int a, int64_t i) {
    return std::ranges::find(axes, a) != axes.end() ? x.dim(a) - 1 - i : i;
  });
}
Tensor fliplr(const Tensor& x) { return flip(x, 1); }
Tensor flipud(const Tensor& x) { return flip(x, 0); }
Tensor roll(const Tensor& x, const std::vector<int64_t>& shift, const Axes& axis) {
  if (axis.all()) {
    if (shift.size() != 1) throw ValueError("roll: several shifts require as many axes");
    return ops::reshape(roll(ravel(x), shift, 0), x.shape());
  }
  const std::vector<int> axes = axis.of(x.rank());
  if (shift.size() != 1 && shift.size() != axes.size()) {
    throw ValueError("roll: requires one shift, or one for each of ", axes.size(),
                     " axes, received ", shift.size());
  }
  std::vector<int64_t> by(x.rank());
  for (size_t i = 0; i < axes.size(); ++i) by[axes[i]] = shift[shift.size() == 1 ? 0 : i];
  return remap_axes(x, x.shape(), [&](int a, int64_t i) {
    const int64_t n = x.dim(a);
    return ((i - by[a]) % n + n) % n;
  });
}
Tensor rot90(const Tensor& array, int k, std::pair<int, int> axes) {
  const int turns = ((k % 4) + 4) % 4;
  if (turns == 0) return array;
  if (turns == 2) return flip(array, {axes.first, axes.second});
  if (turns == 1) return swapaxes(flip(array, axes.second), axes.first, axes.second);
  return flip(swapaxes(array, axes.first, axes.second), axes.second);
}
Tensor pad(const Tensor& x, const PadWidth& pad_width, const std::string& mode,
           std::optional<double> constant_values) {
  PadWidth width = pad_width;
  if (width.size() == 1) width.resize(x.rank(), width[0]);
  if (static_cast<int>(width.size()) != x.rank()) {
    throw ValueError("pad: pad_width must have one element, or one for each axis of ", x.shape(),
                     ", received ", width.size());
  }
  if (mode != "constant" && mode != "reflect" && mode != "symmetric") {
    throw ValueError("pad: mode must be constant, reflect or symmetric, received '", mode, "'");
  }
  if (mode != "constant" && constant_values) {
    throw ValueError("pad: constant_values requires mode 'constant', received '", mode, "'");
  }
  Shape shape = x.shape();
  for (int a = 0; a < x.rank(); ++a) {
    if (width[a].first < 0 || width[a].second < 0) {
      throw ValueError("pad: pad_width must not be negative");
    }
    shape = shape.with(a, width[a].first + x.dim(a) + width[a].second);
  }
  const auto source = [&](int axis, int64_t index) {
    const int64_t n = x.dim(axis), i = index - width[axis].first;
    if (i >= 0 && i < n) return i;
    if (mode == "constant" || n == 0) return kFill;
    const bool edge_once = mode == "reflect";
    if (edge_once && n == 1) return int64_t{0};
    const int64_t period = edge_once ? 2 * (n - 1) : 2 * n;
    const int64_t at = ((i % period) + period) % period;
    return at < n ? at : (edge_once ? period - at : period - 1 - at);
  };
  return remap_axes(x, shape, source, constant_values.value_or(0));
}
Tensor pad(const Tensor& x, int64_t pad_width, const std::string& mode,
           std::optional<double> constant_values) {
  return pad(x, PadWidth(x.rank(), {pad_width, pad_width}), mode, constant_values);
}

// ---- Diagonals.

Tensor tril(const Tensor& x, int64_t k) {
  return internal::remap(x, x.shape(), [&, at = int64_t{0}](const Index& i) mutable {
    const int64_t here = at++;
    return i.back() - i[i.size() - 2] <= k ? here : kFill;
  });
}
Tensor triu(const Tensor& x, int64_t k) {
  return internal::remap(x, x.shape(), [&, at = int64_t{0}](const Index& i) mutable {
    const int64_t here = at++;
    return i.back() - i[i.size() - 2] >= k ? here : kFill;
  });
}
Tensor diag(const Tensor& x, int64_t k) {
  if (x.rank() == 1) return diagflat(x, k);
  if (x.rank() == 2) return diagonal(x, k);
  throw ValueError("diag: x must have rank 1 or 2, received shape ", x.shape());
}
Tensor diagflat(const Tensor& x, int64_t k) {
  const int64_t n = x.shape().size() + std::abs(k);
  return internal::remap(
      x, {n, n}, [k](const Index& i) { return i[1] - i[0] == k ? std::min(i[0], i[1]) : kFill; });
}
Tensor diagonal(const Tensor& x, int64_t offset, int axis1, int axis2) {
  const Tensor matrices = moveaxis(x, {axis1, axis2}, {-2, -1});
  const int64_t rows = matrices.dim(-2), columns = matrices.dim(-1);
  const int64_t row = std::max<int64_t>(0, -offset), column = std::max<int64_t>(0, offset);
  const int64_t n = std::max<int64_t>(0, std::min(rows - row, columns - column));
  const Shape batch = matrices.shape().slice(0, matrices.rank() - 2);
  std::vector<int64_t> positions;
  for (int64_t b = 0; b < batch.size(); ++b) {
    for (int64_t i = 0; i < n; ++i) {
      positions.push_back((b * rows + row + i) * columns + column + i);
    }
  }
  return internal::take_flat(matrices, positions, batch + Shape{n});
}
Tensor trace(const Tensor& x, int64_t offset, int axis1, int axis2) {
  return ops::sum(diagonal(internal::countable(x), offset, axis1, axis2), {-1});
}

// ---- Blocks of images.

Tensor depth_to_space(const Tensor& x, int64_t block_size, const std::string& data_format) {
  check_image("depth_to_space", x, 4);
  const std::map<std::string, int64_t> lengths = {{"p", block_size}, {"q", block_size}};
  if (channels_first("depth_to_space", data_format)) {
    return rearrange(x, "b (c p q) h w -> b c (h p) (w q)", lengths);
  }
  return rearrange(x, "b h w (p q c) -> b (h p) (w q) c", lengths);
}
Tensor space_to_depth(const Tensor& x, int64_t block_size, const std::string& data_format) {
  check_image("space_to_depth", x, 4);
  const std::map<std::string, int64_t> lengths = {{"p", block_size}, {"q", block_size}};
  if (channels_first("space_to_depth", data_format)) {
    return rearrange(x, "b c (h p) (w q) -> b (c p q) h w", lengths);
  }
  return rearrange(x, "b (h p) (w q) c -> b h w (p q c)", lengths);
}
Tensor unfold(const Tensor& x, Pair kernel_size, Pair dilation, Pair padding, Pair stride) {
  check_image("unfold", x, 4);
  const auto positions = window_positions(x.shape(), kernel_size, dilation, padding, stride);
  const int64_t rows = x.dim(1) * kernel_size.height * kernel_size.width;
  const int64_t all_rows = std::max<int64_t>(1, x.dim(0) * rows);
  const int64_t windows = static_cast<int64_t>(positions.size()) / all_rows;
  return internal::take_flat(x, positions, {x.dim(0), rows, windows});
}
Tensor fold(const Tensor& x, Pair output_size, Pair kernel_size, Pair dilation, Pair padding,
            Pair stride) {
  check_image("fold", x, 3);
  const int64_t channels = x.dim(1) / (kernel_size.height * kernel_size.width);
  const Shape image = {x.dim(0), channels, output_size.height, output_size.width};
  const auto positions = window_positions(image, kernel_size, dilation, padding, stride);
  if (static_cast<int64_t>(positions.size()) != x.shape().size()) {
    throw ValueError("fold: x of shape ", x.shape(), " does not hold the windows of ", image,
                     "; pass the sizes and strides of unfold()");
  }
  return internal::scatter_flat(x, positions, image);
}

}  // namespace keel::keras_ops
