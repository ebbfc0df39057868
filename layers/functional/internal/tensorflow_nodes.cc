#include <keel/layers/functional/internal/tensorflow_nodes.h>

#include <absl/strings/str_split.h>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

namespace keel {
namespace {

// An op of TensorFlow: its function, and the parameters that its inputs stand for.
struct NodeOp {
  const char *op, *function, *parameters;
};
constexpr NodeOp kNodeOps[] = {{"Abs", "abs", "x"},
                               {"Add", "add", "x1 x2"},
                               {"AddV2", "add", "x1 x2"},
                               {"All", "all", "x axis"},
                               {"Any", "any", "x axis"},
                               {"ArgMax", "argmax", "x axis"},
                               {"BatchMatMul", "matmul", "x1 x2"},
                               {"BatchMatMulV2", "matmul", "x1 x2"},
                               {"BiasAdd", "add", "x1 x2"},
                               {"Cast", "cast", "x"},
                               {"Ceil", "ceil", "x"},
                               {"ClipByValue", "clip", "x x_min x_max"},
                               {"Cos", "cos", "x"},
                               {"Cumsum", "cumsum", "x axis"},
                               {"Div", "divide", "x1 x2"},
                               {"Elu", "elu", "x"},
                               {"Equal", "equal", "x1 x2"},
                               {"Exp", "exp", "x"},
                               {"ExpandDims", "expand_dims", "x axis"},
                               {"Floor", "floor", "x"},
                               {"FloorDiv", "floor_divide", "x1 x2"},
                               {"FloorMod", "mod", "x1 x2"},
                               {"GatherV2", "gather", "x indices axis"},
                               {"Greater", "greater", "x1 x2"},
                               {"GreaterEqual", "greater_equal", "x1 x2"},
                               {"Identity", "identity", "x"},
                               {"Less", "less", "x1 x2"},
                               {"LessEqual", "less_equal", "x1 x2"},
                               {"Log", "log", "x"},
                               {"Log1p", "log1p", "x"},
                               {"LogSoftmax", "log_softmax", "x"},
                               {"LogicalAnd", "logical_and", "x1 x2"},
                               {"LogicalNot", "logical_not", "x"},
                               {"LogicalOr", "logical_or", "x1 x2"},
                               {"MatMul", "matmul", "x1 x2"},
                               {"Max", "max", "x axis"},
                               {"Maximum", "maximum", "x1 x2"},
                               {"Mean", "mean", "x axis"},
                               {"Min", "min", "x axis"},
                               {"Minimum", "minimum", "x1 x2"},
                               {"Mul", "multiply", "x1 x2"},
                               {"Neg", "negative", "x"},
                               {"NotEqual", "not_equal", "x1 x2"},
                               {"Pow", "power", "x1 x2"},
                               {"Prod", "prod", "x axis"},
                               {"RealDiv", "divide", "x1 x2"},
                               {"Reciprocal", "reciprocal", "x"},
                               {"Relu", "relu", "x"},
                               {"Relu6", "relu6", "x"},
                               {"Reshape", "reshape", "x newshape"},
                               {"Rsqrt", "rsqrt", "x"},
                               {"SelectV2", "where", "condition x1 x2"},
                               {"Selu", "selu", "x"},
                               {"Sigmoid", "sigmoid", "x"},
                               {"Sign", "sign", "x"},
                               {"Sin", "sin", "x"},
                               {"Softmax", "softmax", "x"},
                               {"Softplus", "softplus", "x"},
                               {"Softsign", "softsign", "x"},
                               {"Sqrt", "sqrt", "x"},
                               {"Square", "square", "x"},
                               {"Squeeze", "squeeze", "x"},
                               {"Sub", "subtract", "x1 x2"},
                               {"Sum", "sum", "x axis"},
                               {"Tanh", "tanh", "x"},
                               {"Tile", "tile", "x repeats"},
                               {"Transpose", "transpose", "x axes"}};

// Returns attribute `name` of a node, of the kind "b", "i", "type" or "list"; null if it is absent.
Config attribute(const Config& node, const char* name, const char* kind) {
  const Config* const all = node.find("attr");
  const Config* const own = all != nullptr && all->is_dict() ? all->find(name) : nullptr;
  const Config* const value = own != nullptr && own->is_dict() ? own->find(kind) : nullptr;
  return value == nullptr ? Config() : *value;
}

// JSON of protocol buffers writes 64-bit integers as strings.
int64_t integer_of(const Config& value) {
  if (!value.is_string()) return value.is_null() ? 0 : value.integer();
  const std::string& text = value.string();
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ValueError("TensorFlowOpLayer: '", text, "' is no integer");
  }
  return out;
}

int64_t mask_of(const Config& node, const char* name) {
  return integer_of(attribute(node, name, "i"));
}

// Returns the key of a StridedSlice with constant positions.
Config key_of(const Config& node, const Config& begin, const Config& end, const Config& strides) {
  const int64_t no_begin = mask_of(node, "begin_mask"), no_end = mask_of(node, "end_mask");
  const int64_t shrink = mask_of(node, "shrink_axis_mask");
  const int64_t new_axis = mask_of(node, "new_axis_mask");
  const int64_t ellipsis = mask_of(node, "ellipsis_mask");
  const size_t count = begin.items().size();
  constexpr size_t kMost = 32;
  if (end.items().size() != count || strides.items().size() != count || count > kMost) {
    throw ValueError("TensorFlowOpLayer: the positions of a StridedSlice have different lengths");
  }
  Config::List key;
  for (size_t i = 0; i < count; ++i) {
    const auto is = [&](int64_t mask) { return (mask >> i & 1) != 0; };
    if (is(ellipsis)) {
      key.push_back(Config::dict({{"class_name", "__ellipsis__"}}));
    } else if (is(new_axis)) {
      key.emplace_back();
    } else if (is(shrink)) {
      key.push_back(begin.items()[i]);
    } else {
      key.push_back(Config::dict({{"start", is(no_begin) ? Config() : begin.items()[i]},
                                  {"stop", is(no_end) ? Config() : end.items()[i]},
                                  {"step", strides.items()[i]}}));
    }
  }
  return key;
}

// The inputs of a node: constants, and placeholders for the tensors.
Config::List inputs_of(const Config& config, int64_t tensors) {
  const Config* const constants = config.find("constants");
  Config::List out;
  int64_t next = 0;
  for (;; ++next) {
    const Config* const constant = constants == nullptr || !constants->is_dict()
                                       ? nullptr
                                       : constants->find(std::to_string(out.size()));
    if (constant != nullptr) {
      out.push_back(*constant);
      --next;
    } else if (next < tensors) {
      out.push_back(tensor_placeholder(next));
    } else {
      return out;
    }
  }
}

// Attributes that are read below, or that do not change the result.
bool is_known_attribute(const std::string& name) {
  static const std::set<std::string> kNames = {
      "DstT",         "Index",         "N",           "SrcT",
      "adj_x",        "adj_y",         "axis",        "batch_dims",
      "begin_mask",   "ellipsis_mask", "end_mask",    "exclusive",
      "grad_x",       "grad_y",        "keep_dims",   "incompatible_shape_error",
      "reverse",      "new_axis_mask", "output_type", "shrink_axis_mask",
      "squeeze_dims", "transpose_a",   "transpose_b", "validate_indices"};
  return name.starts_with('_') || name.starts_with("T") || kNames.contains(name);
}

// Throws for attributes that the functions have no argument for.
void check_attributes(const Config& node) {
  const std::string op = node["op"].string();
  const auto fail = [&](const std::string& name, const Config& value) {
    throw NotImplementedError("TensorFlowOpLayer: ", op, " with ", name, " ", to_json(value),
                              " is not supported; write a layer for it");
  };
  const Config* const all = node.find("attr");
  if (all == nullptr || !all->is_dict()) return;
  for (const auto& [name, value] : all->entries()) {
    if (name == "data_format") {
      // JSON of protocol buffers writes bytes in base64.
      const Config format = attribute(node, "data_format", "s");
      if (format != Config("NHWC") && format != Config("TkhXQw==")) fail(name, format);
    } else if (name == "Truncate") {
      if (attribute(node, "Truncate", "b") == Config(true)) fail(name, true);
    } else if (!is_known_attribute(name)) {
      fail(name, value);
    }
  }
}

// Returns the dtype with TensorFlow's name "DT_FLOAT" as the name of Keras, or null.
Config dtype_of(const Config& type) {
  static const std::pair<const char*, const char*> kTypes[] = {{"DT_FLOAT", "float32"},
                                                               {"DT_DOUBLE", "float64"},
                                                               {"DT_INT32", "int32"},
                                                               {"DT_INT64", "int64"},
                                                               {"DT_BOOL", "bool"}};
  for (const auto& [theirs, ours] : kTypes) {
    if (type == Config(theirs)) return ours;
  }
  return {};
}

// Adds the attributes that are arguments of the function.
void add_attributes(const Config& node, FunctionCall& call) {
  const auto flag = [&](const char* theirs, const char* ours) {
    const Config value = attribute(node, theirs, "b");
    if (value.is_bool() && value.boolean()) call.arguments.set(ours, true);
  };
  flag("keep_dims", "keepdims");
  flag("transpose_a", "transpose_a");
  flag("transpose_b", "transpose_b");
  flag("adj_x", "transpose_a");
  flag("adj_y", "transpose_b");
  flag("exclusive", "exclusive");
  flag("reverse", "reverse");
  if (call.function == "gather") {
    const int64_t batch_dims = integer_of(attribute(node, "batch_dims", "i"));
    if (batch_dims != 0) call.arguments.set("batch_dims", batch_dims);
  }
  if (call.function == "squeeze") {
    const Config list = attribute(node, "squeeze_dims", "list");
    const Config* const axes = list.is_dict() ? list.find("i") : nullptr;
    Config::List out;
    for (const Config& axis : axes == nullptr ? Config::List() : axes->items()) {
      out.emplace_back(integer_of(axis));
    }
    if (!out.empty()) call.arguments.set("axis", std::move(out));
  }
  if (call.function == "cast") {
    const Config dtype = dtype_of(attribute(node, "DstT", "type"));
    if (!dtype.is_null()) call.arguments.set("dtype", dtype);
  }
  if (call.function == "argmax") {
    const Config type = attribute(node, "output_type", "type");
    const Config dtype = type.is_null() ? Config("int64") : dtype_of(type);
    if (dtype.is_null()) {
      throw NotImplementedError("TensorFlowOpLayer: ArgMax with output_type ", to_json(type),
                                " is not supported; write a layer for it");
    }
    call.arguments.set("output_type", dtype);
  }
}

}  // namespace

FunctionCall from_tensorflow_node(const Config& config, int64_t tensors) {
  const Config* const given = config.find("node_def");
  if (given == nullptr) throw ValueError("TensorFlowOpLayer: the config has no node_def");
  const Config node = given->is_string() ? parse_json(given->string()) : *given;
  const std::string op = node["op"].string();
  Config::List inputs = inputs_of(config, tensors);
  const auto require = [&](size_t count) {
    if (inputs.size() >= count) return;
    throw ValueError("TensorFlowOpLayer: the op ", op, " has ", inputs.size(), " inputs, not ",
                     count);
  };
  const bool is_special = op == "ConcatV2" || op == "Pack" || op == "StridedSlice";
  const auto known = std::ranges::find(kNodeOps, op, [](const NodeOp& o) { return o.op; });
  if (!is_special && known == std::end(kNodeOps)) return {"", Config::dict({{"op", op}})};
  check_attributes(node);
  FunctionCall out{.function = "", .arguments = Config::dict()};
  if (op == "ConcatV2") {
    require(2);
    out = {"concatenate", Config::dict({{"axis", inputs.back()}})};
    inputs.pop_back();
    out.arguments.set("xs", std::move(inputs));
  } else if (op == "Pack") {
    out = {"stack", Config::dict({{"axis", integer_of(attribute(node, "axis", "i"))}})};
    out.arguments.set("x", std::move(inputs));
  } else if (op == "StridedSlice") {
    require(4);
    out = {"get_item", Config::dict({{"x", inputs[0]},
                                     {"key", key_of(node, inputs[1], inputs[2], inputs[3])}})};
  } else {
    out.function = known->function;
    const std::vector<std::string> names = absl::StrSplit(known->parameters, ' ');
    if (inputs.size() > names.size()) {
      throw NotImplementedError("TensorFlowOpLayer: ", op, " with ", inputs.size(),
                                " inputs is not supported; write a layer for it");
    }
    for (size_t i = 0; i < inputs.size(); ++i) out.arguments.set(names[i], inputs[i]);
    add_attributes(node, out);
  }
  return out;
}

}  // namespace keel
