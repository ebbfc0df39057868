#include <keel/layers/functional/internal/operator_functions.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/layers/functional/internal/operator_tables.h>
#include <keel/layers/keras_ops/nn.h>

namespace keel {
namespace {

namespace K = keras_ops;
using Given = OperatorArguments;
using Table = OperatorTable;

std::vector<std::string> words(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

void add_unary(Table& table) {
  const FunctionOfOne all[] = {{"abs", K::abs},
                               {"absolute", K::absolute},
                               {"ceil", K::ceil},
                               {"cos", K::cos},
                               {"hard_sigmoid", K::hard_sigmoid},
                               {"hard_silu", K::hard_silu},
                               {"hard_tanh", K::hard_tanh},
                               {"erf", K::erf},
                               {"exp", K::exp},
                               {"expm1", K::expm1},
                               {"floor", K::floor},
                               {"identity", K::copy},
                               {"isfinite", K::isfinite},
                               {"isnan", K::isnan},
                               {"log", K::log},
                               {"log1p", K::log1p},
                               {"log_sigmoid", K::log_sigmoid},
                               {"logical_not", K::logical_not},
                               {"negative", K::negative},
                               {"reciprocal", K::reciprocal},
                               {"relu", K::relu},
                               {"relu6", K::relu6},
                               {"rsqrt", K::rsqrt},
                               {"selu", K::selu},
                               {"sigmoid", K::sigmoid},
                               {"sign", K::sign},
                               {"silu", K::silu},
                               {"sin", K::sin},
                               {"softplus", K::softplus},
                               {"softsign", K::softsign},
                               {"sqrt", K::sqrt},
                               {"square", K::square},
                               {"stop_gradient", K::stop_gradient},
                               {"tan", K::tan},
                               {"tanh", K::tanh}};
  add_functions_of_one(table, all);
  add_operator(table, "round", "x decimals", [](const Given& a) {
    return Tensors(K::round(a.tensor("x"), static_cast<int>(a.integer("decimals", 0))));
  });
  add_operator(table, "zeros_like", "x dtype", [](const Given& a) {
    return Tensors(K::zeros_like(a.tensor("x"), a.optional_dtype()));
  });
  add_operator(table, "ones_like", "x dtype", [](const Given& a) {
    return Tensors(K::ones_like(a.tensor("x"), a.optional_dtype()));
  });
  add_operator(table, "gelu", "x approximate", [](const Given& a) {
    return Tensors(K::gelu(a.tensor("x"), !a.has("approximate") || a.flag("approximate")));
  });
  add_operator(table, "elu", "x alpha",
               [](const Given& a) { return Tensors(K::elu(a.tensor("x"), a.number("alpha", 1))); });
  add_operator(table, "celu", "x alpha", [](const Given& a) {
    return Tensors(K::celu(a.tensor("x"), a.number("alpha", 1)));
  });
  add_operator(table, "leaky_relu", "x negative_slope", [](const Given& a) {
    return Tensors(K::leaky_relu(a.tensor("x"), a.number("negative_slope", 0.2)));
  });
  add_operator(table, "cast", "x dtype",
               [](const Given& a) { return Tensors(K::cast(a.tensor("x"), a.dtype())); });
}

void add_binary(Table& table) {
  const FunctionOfTwo all[] = {{"add", K::add},
                               {"divide", K::divide},
                               {"equal", K::equal},
                               {"floor_divide", K::floor_divide},
                               {"greater", K::greater},
                               {"greater_equal", K::greater_equal},
                               {"less", K::less},
                               {"less_equal", K::less_equal},
                               {"logical_and", K::logical_and},
                               {"logical_or", K::logical_or},
                               {"maximum", K::maximum},
                               {"minimum", K::minimum},
                               {"mod", K::mod},
                               {"multiply", K::multiply},
                               {"not_equal", K::not_equal},
                               {"power", K::power},
                               {"subtract", K::subtract},
                               {"true_divide", K::true_divide}};
  add_functions_of_two(table, all, "x1", "x2");
}

void add_reductions(Table& table) {
  using Reduction = Tensor (*)(const Tensor&, const K::Axes&, bool);
  const std::pair<const char*, Reduction> all[] = {
      {"all", K::all}, {"amax", K::amax}, {"amin", K::amin},
      {"any", K::any}, {"mean", K::mean}, {"std", K::std},
      {"sum", K::sum}, {"var", K::var},   {"logsumexp", K::logsumexp}};
  for (const auto& [name, function] : all) {
    add_operator(table, name, "x axis keepdims", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.axes(), a.flag("keepdims")));
    });
  }
  using Extremum = Tensor (*)(const Tensor&, const K::Axes&, bool, std::optional<double>);
  for (const auto& [name, function] : {std::pair<const char*, Extremum>{"max", K::max},
                                       std::pair<const char*, Extremum>{"min", K::min}}) {
    add_operator(table, name, "x axis keepdims initial", [f = function](const Given& a) {
      std::optional<double> initial;
      if (a.has("initial")) initial = a.number("initial", 0);
      return Tensors(f(a.tensor("x"), a.axes(), a.flag("keepdims"), initial));
    });
  }
  add_operator(table, "prod", "x axis keepdims dtype", [](const Given& a) {
    return Tensors(K::prod(a.tensor("x"), a.axes(), a.flag("keepdims"), a.optional_dtype()));
  });
  using Position = Tensor (*)(const Tensor&, K::Axis, bool);
  for (const auto& [name, function] : {std::pair<const char*, Position>{"argmax", K::argmax},
                                       std::pair<const char*, Position>{"argmin", K::argmin}}) {
    // output_type is TensorFlow's.
    add_operator(table, name, "x axis keepdims output_type", [f = function](const Given& a) {
      const Tensor at = f(a.tensor("x"), a.axis(), a.flag("keepdims"));
      return Tensors(ops::cast(at, a.optional_dtype("output_type").value_or(at.dtype())));
    });
  }
}

// TensorFlow's exclusive sums leave out the element itself; reverse ones begin at the end.
Tensor cumulative_sum(const Given& a) {
  Tensor x = a.tensor("x");
  K::Axis axis = a.axis();
  if (!axis) {
    x = K::ravel(x);
    axis = 0;
  }
  const bool reverse = a.flag("reverse");
  if (reverse) x = K::flip(x, *axis);
  Tensor out = K::cumsum(x, axis, a.optional_dtype());
  if (a.flag("exclusive") && out.dim(*axis) > 0) {
    out = ops::slice(ops::pad(out, *axis, 1, 0), *axis, 0, out.dim(*axis));
  }
  return reverse ? K::flip(out, *axis) : out;
}

void add_along_axis(Table& table) {
  add_operator(table, "cumsum", "x axis dtype exclusive reverse",
               [](const Given& a) { return Tensors(cumulative_sum(a)); });
  // A given null selects all elements.
  const auto last = [](const Given& a) { return a.is_given("axis") ? a.axes() : K::Axes(-1); };
  add_operator(table, "softmax", "x axis",
               [last](const Given& a) { return Tensors(K::softmax(a.tensor("x"), last(a))); });
  add_operator(table, "log_softmax", "x axis",
               [last](const Given& a) { return Tensors(K::log_softmax(a.tensor("x"), last(a))); });
  add_operator(table, "normalize", "x axis order epsilon", [last](const Given& a) {
    std::optional<double> epsilon;
    if (a.has("epsilon")) epsilon = a.number("epsilon", 0);
    return Tensors(K::normalize(a.tensor("x"), last(a), a.number("order", 2), epsilon));
  });
  // TensorFlow's function, which normalizes all elements by default.
  add_operator(table, "l2_normalize", "x axis epsilon", [](const Given& a) {
    return Tensors(K::normalize(a.tensor("x"), a.axes(), 2, std::sqrt(a.number("epsilon", 1e-12))));
  });
}

// Splits x into parts of these sizes, one of which may be -1: the rest.
std::vector<Tensor> split_by_sizes(const Tensor& x, std::vector<int64_t> sizes, int axis) {
  const auto rest = std::ranges::find(sizes, -1);
  const int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (rest != sizes.end()) *rest = x.dim(axis) - (sum + 1);
  std::vector<int64_t> ends(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
  if (sizes.empty() || *std::ranges::min_element(sizes) < 0 || ends.back() != x.dim(axis)) {
    throw ValueError("split: the sizes do not add up to the ", x.dim(axis), " elements of axis ",
                     axis);
  }
  ends.pop_back();
  return K::split(x, ends, axis);
}

void add_shapes(Table& table) {
  const auto axis_or = [](const Given& a, int64_t otherwise) {
    return static_cast<int>(a.integer("axis", otherwise));
  };
  add_operator(table, "reshape", "x newshape", [](const Given& a) {
    return Tensors(K::reshape(a.tensor("x"), Shape(a.integers("newshape"))));
  });
  add_operator(table, "transpose", "x axes", [](const Given& a) {
    std::vector<int> axes;
    if (a.has("axes")) {
      for (const int64_t axis : a.integers("axes")) axes.push_back(static_cast<int>(axis));
    }
    return Tensors(K::transpose(a.tensor("x"), axes));
  });
  add_operator(table, "expand_dims", "x axis",
               [](const Given& a) { return Tensors(K::expand_dims(a.tensor("x"), a.axes())); });
  add_operator(table, "squeeze", "x axis",
               [](const Given& a) { return Tensors(K::squeeze(a.tensor("x"), a.axes())); });
  add_operator(table, "flip", "x axis",
               [](const Given& a) { return Tensors(K::flip(a.tensor("x"), a.axes())); });
  add_operator(table, "tile", "x repeats", [](const Given& a) {
    return Tensors(K::tile(a.tensor("x"), a.integers("repeats")));
  });
  add_operator(table, "broadcast_to", "x shape", [](const Given& a) {
    return Tensors(K::broadcast_to(a.tensor("x"), Shape(a.integers("shape"))));
  });
  add_operator(table, "concatenate", "xs axis", [axis_or](const Given& a) {
    return Tensors(K::concatenate(a.tensors("xs"), axis_or(a, 0)));
  });
  add_operator(table, "stack", "x axis", [axis_or](const Given& a) {
    return Tensors(K::stack(a.tensors("x"), axis_or(a, 0)));
  });
  const auto listed = [](const std::vector<Tensor>& all) {
    return Tensors::list(Tensors::Items(all.begin(), all.end()));
  };
  add_operator(table, "split", "x indices_or_sections axis sizes", [=](const Given& a) {
    const Tensor x = a.tensor("x");
    const int axis = axis_or(a, 0);
    if (a.has("sizes")) return listed(split_by_sizes(x, a.integers("sizes"), axis));
    if (a.is_list("indices_or_sections")) {
      return listed(K::split(x, a.integers("indices_or_sections"), axis));
    }
    return listed(K::split(x, a.integer("indices_or_sections", 1), axis));
  });
  add_operator(table, "unstack", "x num axis", [=](const Given& a) {
    std::optional<int64_t> num;
    if (a.has("num")) num = a.integer("num", 0);
    return listed(K::unstack(a.tensor("x"), num, axis_or(a, 0)));
  });
  add_operator(table, "get_item", "x key",
               [](const Given& a) { return Tensors(a.item(a.tensor("x"), "key")); });
}

// Throws ValueError unless all ids are in [0, n).
void check_ids(const Tensor& ids, int64_t n) {
  for (const int64_t id : ids.to_vector<int64_t>()) {
    if (id < 0 || id >= n) {
      throw ValueError("gather: the index ", id, " is outside of an axis of ", n, " elements");
    }
  }
}

// TensorFlow's function: the first batch_dims axes of x and the indices are a common batch. The
// result has shape batch + (axes of x before `axis`) + (axes of the indices) + (axes after it).
Tensor gather(const Given& a) {
  const Tensor x = a.tensor("x"), indices = a.tensor("indices");
  int64_t batch_dims = a.integer("batch_dims", 0);
  if (batch_dims < 0) batch_dims += indices.rank();
  int64_t axis = a.integer("axis", batch_dims);
  if (axis < 0) axis += x.rank();
  const bool fits = batch_dims >= 0 && batch_dims <= axis && axis < x.rank() &&
                    batch_dims <= indices.rank() &&
                    x.shape().slice(0, static_cast<int>(batch_dims)) ==
                        indices.shape().slice(0, static_cast<int>(batch_dims));
  if (!fits) {
    throw ValueError("gather: the axis ", axis, " and batch_dims ", batch_dims,
                     " do not fit an x of shape ", x.shape(), " and indices of shape ",
                     indices.shape());
  }
  const int along = static_cast<int>(axis), common = static_cast<int>(batch_dims);
  if (common == 0) return K::take(x, indices, along);
  const Tensor moved = K::moveaxis(x, {along}, {common});
  const Shape batch = moved.shape().slice(0, common);
  const Shape row = moved.shape().slice(common + 1, moved.rank());
  const Shape own = indices.shape().slice(common, indices.rank());
  const int64_t n = moved.dim(common);
  const Tensor ids =
      ops::reshape(K::internal::ids_of("gather", indices), {batch.size(), own.size()});
  check_ids(ids, n);
  const Tensor first = ops::expand_dims(K::arange(0, batch.size(), 1, DType::kInt64), 1);
  const Tensor table = ops::reshape(moved, Shape{batch.size() * n} + row);
  Tensor out = ops::gather(table, ids + K::multiply(first, n));
  out = ops::reshape(out, batch + own + row);
  std::vector<int> source, destination;
  for (int i = 0; i < own.rank(); ++i) {
    source.push_back(common + i);
    destination.push_back(along + i);
  }
  return K::moveaxis(out, source, destination);
}

// on_value and off_value are TensorFlow's.
Tensor one_hot(const Given& a) {
  if (a.flag("sparse")) throw NotImplementedError("one_hot: graphs do not support sparse=true");
  const Tensor x = a.tensor("x");
  const int64_t depth = a.integer("num_classes", 0);
  const int axis = static_cast<int>(a.integer("axis", -1));
  if (!a.has("on_value") && !a.has("off_value")) {
    return K::one_hot(x, depth, axis, a.optional_dtype());
  }
  const K::Operand on = a.has("on_value") ? a.operand("on_value") : K::Operand(1);
  const K::Operand off = a.has("off_value") ? a.operand("off_value") : K::Operand(0);
  const Tensor hot = K::where(K::one_hot(x, depth, axis, DType::kBool), on, off);
  const DType natural = is_floating(hot.dtype()) ? DType::kFloat32 : DType::kInt32;
  return ops::cast(hot, a.optional_dtype().value_or(natural));
}

Tensor swapped_if(const Tensor& x, bool swaps) { return swaps ? K::swapaxes(x, -1, -2) : x; }

void add_others(Table& table) {
  // Numbers are real, so that adjoint matrices are transposed ones.
  add_operator(
      table, "matmul", "x1 x2 transpose_a transpose_b adjoint_a adjoint_b", [](const Given& a) {
        return Tensors(
            K::matmul(swapped_if(a.tensor("x1"), a.flag("transpose_a") || a.flag("adjoint_a")),
                      swapped_if(a.tensor("x2"), a.flag("transpose_b") || a.flag("adjoint_b"))));
      });
  add_operator(table, "clip", "x x_min x_max", [](const Given& a) {
    return Tensors(K::clip(a.tensor("x"), a.operand("x_min"), a.operand("x_max")));
  });
  add_operator(table, "where", "condition x1 x2", [](const Given& a) {
    return Tensors(K::where(a.tensor("condition"), a.operand("x1"), a.operand("x2")));
  });
  add_operator(table, "take", "x indices axis", [](const Given& a) {
    return Tensors(K::take(a.tensor("x"), a.tensor("indices"), a.axis()));
  });
  add_operator(table, "gather", "x indices axis batch_dims",
               [](const Given& a) { return Tensors(gather(a)); });
  add_operator(table, "one_hot", "x num_classes axis dtype sparse on_value off_value",
               [](const Given& a) { return Tensors(one_hot(a)); });
}

// Functions of TensorFlow: the name in keras.ops, and renamed parameters as "theirs=ours". "0" is
// the first argument of the call, "c:axis=0" a default that differs. "theirs~a,b" is a parameter
// without effect for the values a and b, "theirs~*" one without effect for any value. All other
// arguments keep their name.
struct TensorFlowName {
  const char *theirs, *ours, *parameters;
};
constexpr TensorFlowName kTensorFlowNames[] = {
    {"__operators__.getitem", "get_item", "0=x slice_spec=key"},
    {"broadcast_to", "broadcast_to", "0=x input=x"},
    {"cast", "cast", "0=x x=x"},
    {"clip_by_value", "clip", "0=x t=x clip_value_min=x_min clip_value_max=x_max"},
    {"concat", "concatenate", "0=xs values=xs"},
    {"expand_dims", "expand_dims", "0=x input=x"},
    {"gather", "gather", "0=x params=x validate_indices~*"},
    {"linalg.l2_normalize", "l2_normalize", "0=x"},
    {"linalg.matmul", "matmul", "0=x1 a=x1 b=x2 a_is_sparse~* b_is_sparse~*"},
    {"math.argmax", "argmax", "0=x input=x c:axis=0 c:output_type=int64"},
    {"math.argmin", "argmin", "0=x input=x c:axis=0 c:output_type=int64"},
    {"math.cumsum", "cumsum", "0=x c:axis=0"},
    {"math.l2_normalize", "l2_normalize", "0=x"},
    {"math.pow", "power", "0=x1 x=x1 y=x2"},
    {"math.floordiv", "floor_divide", "0=x1 x=x1 y=x2"},
    {"math.floormod", "mod", "0=x1 x=x1 y=x2"},
    {"math.truediv", "divide", "0=x1 x=x1 y=x2"},
    {"nn.bias_add", "add", "0=x1 value=x1 bias=x2 data_format~NHWC,N...C"},
    {"nn.gelu", "gelu", "0=x features=x c:approximate=false"},
    {"nn.l2_normalize", "l2_normalize", "0=x"},
    {"nn.leaky_relu", "leaky_relu", "0=x features=x alpha=negative_slope"},
    {"nn.log_softmax", "log_softmax", "0=x logits=x"},
    {"nn.softmax", "softmax", "0=x logits=x"},
    {"nn.swish", "silu", "0=x features=x"},
    {"one_hot", "one_hot", "0=x indices=x depth=num_classes"},
    {"reshape", "reshape", "0=x tensor=x shape=newshape"},
    {"reverse", "flip", "0=x tensor=x"},
    {"split", "split", "0=x value=x num_or_size_splits=indices_or_sections num~*"},
    {"squeeze", "squeeze", "0=x input=x"},
    {"stack", "stack", "0=x values=x"},
    {"tile", "tile", "0=x input=x multiples=repeats"},
    {"transpose", "transpose", "0=x a=x perm=axes conjugate~*"},
    {"unstack", "unstack", "0=x value=x"},
    {"where", "where", "0=condition condition=condition x=x1 y=x2"}};

// Returns the value of a default: an integer, a bool or a text.
Config default_value(const std::string& text) {
  if (text == "false") return false;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Config(number) : Config(text);
}

// Returns true if `values`, "a,b" or "*", has the value.
bool has_no_effect(const std::string& values, const Config& value) {
  if (values == "*") return true;
  return value.is_string() && ("," + values + ",").find("," + value.string() + ",") != values.npos;
}

FunctionCall renamed(const char* function, const std::string& parameters, const Config& arguments) {
  std::map<std::string, std::string> names, unused;
  FunctionCall out{.function = function, .arguments = Config::dict()};
  for (const std::string& pair : words(parameters)) {
    const size_t middle = pair.find_first_of("=~");
    const std::string theirs = pair.substr(0, middle), rest = pair.substr(middle + 1);
    if (theirs.starts_with("c:")) {
      out.arguments.set(theirs.substr(2), default_value(rest));
    } else {
      (pair[middle] == '~' ? unused : names)[theirs] = rest;
    }
  }
  for (const auto& [key, value] : arguments.entries()) {
    if (key == "name" || value.is_null()) continue;
    if (unused.contains(key) && has_no_effect(unused[key], value)) continue;
    const auto it = names.find(key);
    out.arguments.set(it == names.end() ? key : it->second, value);
  }
  return out;
}

// TensorFlow's split() takes the sizes of the parts where that of Keras takes positions.
FunctionCall with_sizes(FunctionCall call) {
  const Config* const given = call.arguments.find("indices_or_sections");
  if (call.function != "split" || given == nullptr || !given->is_list()) return call;
  FunctionCall out{.function = call.function, .arguments = Config::dict()};
  for (const auto& [key, value] : call.arguments.entries()) {
    out.arguments.set(key == "indices_or_sections" ? "sizes" : key, value);
  }
  return out;
}

bool has_parameters(const std::string& function, const std::vector<std::string>& parameters) {
  const OperatorFunction* const found = operator_function(function);
  return found != nullptr && found->parameters == parameters;
}

}  // namespace

void add_operator(OperatorTable& table, const char* name, const char* parameters,
                  std::function<Tensors(const OperatorArguments&)> compute) {
  table.emplace(name, OperatorFunction{words(parameters), std::move(compute)});
}

void add_functions_of_one(OperatorTable& table, std::span<const FunctionOfOne> functions) {
  for (const auto& [name, function] : functions) {
    add_operator(table, name, "x",
                 [f = function](const Given& a) { return Tensors(f(a.tensor("x"))); });
  }
}

void add_functions_of_two(OperatorTable& table, std::span<const FunctionOfTwo> functions,
                          const char* first, const char* second) {
  for (const auto& [name, function] : functions) {
    add_operator(table, name, absl::StrCat(first, " ", second).c_str(),
                 [f = function, first, second](const Given& a) {
                   return Tensors(f(a.operand(first), a.operand(second)));
                 });
  }
}

std::optional<Tensor> optional_tensor(const OperatorArguments& arguments, const char* name) {
  return arguments.has(name) ? std::optional(arguments.tensor(name)) : std::nullopt;
}

Tensors list_of(const std::vector<Tensor>& results) {
  return Tensors::list(Tensors::Items(results.begin(), results.end()));
}

const OperatorFunction* operator_function(const std::string& name) {
  static const Table kTable = [] {
    Table table;
    add_unary(table);
    add_binary(table);
    add_reductions(table);
    add_along_axis(table);
    add_shapes(table);
    add_others(table);
    add_math_operators(table);
    add_array_operators(table);
    add_nn_operators(table);
    return table;
  }();
  const auto it = kTable.find(name);
  return it == kTable.end() ? nullptr : &it->second;
}

std::string unknown_argument(const OperatorFunction& function, const Config& arguments) {
  for (const auto& [key, value] : arguments.entries()) {
    const auto is_known = [&key = key](const std::string& parameter) {
      return parameter == key || parameter == "*" + key || parameter == "**";
    };
    const bool known = std::ranges::any_of(function.parameters, is_known);
    if (!known && !value.is_null()) return key;
  }
  return "";
}

FunctionCall from_tensorflow(const std::string& function, const Config& arguments) {
  for (const TensorFlowName& known : kTensorFlowNames) {
    if (function != known.theirs) continue;
    return with_sizes(renamed(known.ours, known.parameters, arguments));
  }
  // "math.reduce_sum", "math.sigmoid", "nn.relu", "__operators__.add" and so on.
  std::string name = function.substr(function.rfind('.') + 1);
  if (name.starts_with("reduce_")) {
    name.erase(0, 7);
    return renamed(name.c_str(), "0=x input_tensor=x keep_dims=keepdims", arguments);
  }
  if (has_parameters(name, {"x1", "x2"})) return renamed(name.c_str(), "0=x1 x=x1 y=x2", arguments);
  return renamed(name.c_str(), "0=x x=x features=x input=x", arguments);
}

}  // namespace keel
