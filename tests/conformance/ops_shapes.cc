#include <absl/strings/match.h>

#include "tests/conformance/case_fields.h"
#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using Results = std::vector<Tensor>;

int number_of(OpArguments& a, const std::string& name, int otherwise) {
  return static_cast<int>(a.integer(name, otherwise));
}
OpAdapter joined(Tensor (*f)(const std::vector<Tensor>&)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensors("xs"))}; };
}
// Calls one of the two overloads, for a number of sections or for a list of indices.
template <class BySections, class ByIndices>
Results divided(OpArguments& a, const BySections& by_sections, const ByIndices& by_indices) {
  const Tensor x = a.tensor("x");
  const Config& where = a.config("indices_or_sections");
  if (where.is_number()) return by_sections(x, where.integer());
  return by_indices(x, a.integers("indices_or_sections"));
}
template <class Split>
OpAdapter split_of(const Split& split) {
  return [split](OpArguments& a) -> Results { return divided(a, split, split); };
}
OpAdapter split_along(bool even) {
  return [even](OpArguments& a) -> Results {
    const int axis = number_of(a, "axis", 0);
    const auto split = [&](const Tensor& x, const auto& where) {
      return even ? K::split(x, where, axis) : K::array_split(x, where, axis);
    };
    return divided(a, split, split);
  };
}
Results pad(OpArguments& a) {
  const std::string mode = a.string("mode", "constant");
  const std::optional<double> value = a.maybe_number("constant_values");
  const Config& width = a.config("pad_width");
  if (width.is_number()) return {K::pad(a.tensor("x"), width.integer(), mode, value)};
  K::PadWidth pairs;
  for (const Config& pair : width.items()) {
    pairs.push_back({pair.items().at(0).integer(), pair.items().at(1).integer()});
  }
  return {K::pad(a.tensor("x"), pairs, mode, value)};
}
Results rearrange(OpArguments& a) {
  std::map<std::string, int64_t> lengths;
  for (const char* name : {"a", "b", "c", "d", "h", "w"}) {
    if (a.has(name)) lengths[name] = a.integer(name, 0);
  }
  return {K::rearrange(a.tensor("tensor"), a.string("pattern", ""), lengths)};
}
Results rot90(OpArguments& a) {
  std::vector<int> axes = a.axes_list("axes");
  if (axes.empty()) axes = {0, 1};
  return {K::rot90(a.tensor("array"), number_of(a, "k", 1), {axes[0], axes[1]})};
}
Tensor from_nested(OpArguments& a) {
  const Array values = array_of(a.config("x"));
  const bool whole = !absl::StrContains(to_json(a.config("x")), '.');
  return Tensor::from(values.values, Shape(values.shape))
      .cast(whole ? DType::kInt32 : DType::kFloat32);
}
Results windows(OpArguments& a, Tensor (*f)(int64_t)) { return {f(a.integer("x", 0))}; }

OpAdapters axis_adapters() {
  return {
      {"reshape",
       [](OpArguments& a) -> Results { return {K::reshape(a.tensor("x"), a.shape("newshape"))}; }},
      {"ravel", [](OpArguments& a) -> Results { return {K::ravel(a.tensor("x"))}; }},
      {"transpose",
       [](OpArguments& a) -> Results {
         return {K::transpose(a.tensor("x"), a.axes_list("axes"))};
       }},
      {"swapaxes",
       [](OpArguments& a) -> Results {
         return {K::swapaxes(a.tensor("x"), number_of(a, "axis1", 0), number_of(a, "axis2", 0))};
       }},
      {"moveaxis",
       [](OpArguments& a) -> Results {
         return {K::moveaxis(a.tensor("x"), a.axes_list("source"), a.axes_list("destination"))};
       }},
      {"expand_dims",
       [](OpArguments& a) -> Results { return {K::expand_dims(a.tensor("x"), a.axes())}; }},
      {"squeeze", [](OpArguments& a) -> Results { return {K::squeeze(a.tensor("x"), a.axes())}; }},
      {"broadcast_to",
       [](OpArguments& a) -> Results {
         return {K::broadcast_to(a.tensor("x"), a.shape("shape"))};
       }},
      {"rearrange", rearrange},
      {"concatenate",
       [](OpArguments& a) -> Results {
         return {K::concatenate(a.tensors("xs"), number_of(a, "axis", 0))};
       }},
      {"append",
       [](OpArguments& a) -> Results {
         return {K::append(a.tensor("x1"), a.tensor("x2"), a.axis())};
       }},
      {"stack",
       [](OpArguments& a) -> Results {
         return {K::stack(a.tensors("x"), number_of(a, "axis", 0))};
       }},
      {"hstack", joined(K::hstack)},
      {"vstack", joined(K::vstack)},
      {"dstack", joined(K::dstack)},
      {"column_stack", joined(K::column_stack)},
      {"split", split_along(true)},
      {"array_split", split_along(false)},
      {"hsplit", split_of([](const Tensor& x, const auto& at) { return K::hsplit(x, at); })},
      {"vsplit", split_of([](const Tensor& x, const auto& at) { return K::vsplit(x, at); })},
      {"dsplit", split_of([](const Tensor& x, const auto& at) { return K::dsplit(x, at); })},
      {"unstack", [](OpArguments& a) -> Results {
         return K::unstack(a.tensor("x"), a.maybe_integer("num"), number_of(a, "axis", 0));
       }}};
}

OpAdapters element_adapters() {
  return {
      {"tile",
       [](OpArguments& a) -> Results { return {K::tile(a.tensor("x"), a.integers("repeats"))}; }},
      {"repeat",
       [](OpArguments& a) -> Results {
         return {K::repeat(a.tensor("x"), a.integers("repeats"), a.axis())};
       }},
      {"flip", [](OpArguments& a) -> Results { return {K::flip(a.tensor("x"), a.axes())}; }},
      {"fliplr", [](OpArguments& a) -> Results { return {K::fliplr(a.tensor("x"))}; }},
      {"flipud", [](OpArguments& a) -> Results { return {K::flipud(a.tensor("x"))}; }},
      {"roll",
       [](OpArguments& a) -> Results {
         return {K::roll(a.tensor("x"), a.integers("shift"), a.axes())};
       }},
      {"rot90", rot90},
      {"pad", pad},
      {"tril",
       [](OpArguments& a) -> Results { return {K::tril(a.tensor("x"), a.integer("k", 0))}; }},
      {"triu",
       [](OpArguments& a) -> Results { return {K::triu(a.tensor("x"), a.integer("k", 0))}; }},
      {"diag",
       [](OpArguments& a) -> Results { return {K::diag(a.tensor("x"), a.integer("k", 0))}; }},
      {"diagflat",
       [](OpArguments& a) -> Results { return {K::diagflat(a.tensor("x"), a.integer("k", 0))}; }},
      {"diagonal",
       [](OpArguments& a) -> Results {
         return {K::diagonal(a.tensor("x"), a.integer("offset", 0), number_of(a, "axis1", 0),
                             number_of(a, "axis2", 1))};
       }},
      {"trace",
       [](OpArguments& a) -> Results {
         return {K::trace(a.tensor("x"), a.integer("offset", 0), number_of(a, "axis1", 0),
                          number_of(a, "axis2", 1))};
       }},
      {"depth_to_space",
       [](OpArguments& a) -> Results {
         return {K::depth_to_space(a.tensor("x"), a.integer("block_size", 0),
                                   a.string("data_format", "channels_last"))};
       }},
      {"space_to_depth",
       [](OpArguments& a) -> Results {
         return {K::space_to_depth(a.tensor("x"), a.integer("block_size", 0),
                                   a.string("data_format", "channels_last"))};
       }},
      {"unfold",
       [](OpArguments& a) -> Results {
         return {K::unfold(a.tensor("x"), a.pair("kernel_size", 1), a.pair("dilation", 1),
                           a.pair("padding", 0), a.pair("stride", 1))};
       }},
      {"fold", [](OpArguments& a) -> Results {
         return {K::fold(a.tensor("x"), a.pair("output_size", 1), a.pair("kernel_size", 1),
                         a.pair("dilation", 1), a.pair("padding", 0), a.pair("stride", 1))};
       }}};
}

OpAdapters creation_adapters() {
  return {
      {"zeros", [](OpArguments& a) -> Results { return {K::zeros(a.shape("shape"), a.dtype())}; }},
      {"ones", [](OpArguments& a) -> Results { return {K::ones(a.shape("shape"), a.dtype())}; }},
      {"full",
       [](OpArguments& a) -> Results {
         return {K::full(a.shape("shape"), a.operand("fill_value"), a.dtype())};
       }},
      {"zeros_like",
       [](OpArguments& a) -> Results { return {K::zeros_like(a.tensor("x"), a.dtype())}; }},
      {"ones_like",
       [](OpArguments& a) -> Results { return {K::ones_like(a.tensor("x"), a.dtype())}; }},
      {"full_like",
       [](OpArguments& a) -> Results {
         return {K::full_like(a.tensor("x"), a.operand("fill_value"), a.dtype())};
       }},
      {"eye",
       [](OpArguments& a) -> Results {
         return {K::eye(a.integer("N", 0), a.maybe_integer("M"), a.integer("k", 0), a.dtype())};
       }},
      {"identity",
       [](OpArguments& a) -> Results { return {K::identity(a.integer("n", 0), a.dtype())}; }},
      {"tri",
       [](OpArguments& a) -> Results {
         return {K::tri(a.integer("N", 0), a.maybe_integer("M"), a.integer("k", 0), a.dtype())};
       }},
      {"vander",
       [](OpArguments& a) -> Results {
         return {K::vander(a.tensor("x"), a.maybe_integer("N"), a.boolean("increasing", false))};
       }},
      {"meshgrid", [](OpArguments& a) -> Results {
         return K::meshgrid(a.tensors("x"), a.string("indexing", "xy"));
       }}};
}

OpAdapters range_adapters() {
  return {
      {"arange",
       [](OpArguments& a) -> Results {
         return {K::arange(a.operand("start"), a.maybe_operand("stop"), a.maybe_operand("step"),
                           a.dtype())};
       }},
      {"linspace",
       [](OpArguments& a) -> Results {
         const auto [points, step] =
             K::linspace_with_step(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                                   a.boolean("endpoint", true), a.dtype(), number_of(a, "axis", 0));
         return a.boolean("retstep", false) ? Results{points, step} : Results{points};
       }},
      {"logspace",
       [](OpArguments& a) -> Results {
         return {K::logspace(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                             a.boolean("endpoint", true), a.number("base", 10), a.dtype(),
                             number_of(a, "axis", 0))};
       }},
      {"geomspace",
       [](OpArguments& a) -> Results {
         return {K::geomspace(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                              a.boolean("endpoint", true), a.dtype(), number_of(a, "axis", 0))};
       }},
      {"bartlett", [](OpArguments& a) { return windows(a, K::bartlett); }},
      {"blackman", [](OpArguments& a) { return windows(a, K::blackman); }},
      {"hamming", [](OpArguments& a) { return windows(a, K::hamming); }},
      {"hanning", [](OpArguments& a) { return windows(a, K::hanning); }},
      {"kaiser",
       [](OpArguments& a) -> Results {
         return {K::kaiser(a.integer("x", 0), a.number("beta", 0))};
       }},
      {"one_hot",
       [](OpArguments& a) -> Results {
         return {K::one_hot(a.tensor("x"), a.integer("num_classes", 0), number_of(a, "axis", -1),
                            a.dtype())};
       }},
      {"multi_hot",
       [](OpArguments& a) -> Results {
         return {K::multi_hot(a.tensor("inputs"), a.integer("num_classes", 0),
                              number_of(a, "axis", -1), a.dtype())};
       }},
      {"array", [](OpArguments& a) -> Results { return {K::array(from_nested(a), a.dtype())}; }},
      {"convert_to_numpy",
       [](OpArguments& a) -> Results {
         const Tensor x = a.tensor("x");
         return {Tensor::from(K::convert_to_numpy<float>(x), x.shape())};
       }},
      {"convert_to_tensor", [](OpArguments& a) -> Results {
         return {K::convert_to_tensor(from_nested(a), a.dtype())};
       }}};
}

}  // namespace

OpAdapters shape_adapters() {
  OpAdapters out = axis_adapters();
  out.merge(element_adapters());
  out.merge(creation_adapters());
  out.merge(range_adapters());
  return out;
}

}  // namespace keel::conformance
