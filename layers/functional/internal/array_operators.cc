#include <tuple>

#include <keel/autodiff/keras_ops/core.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/signal.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/layers/functional/internal/operator_tables.h>

namespace keel {
namespace {

namespace K = keras_ops;
using Given = OperatorArguments;

std::pair<int, int> two_axes(const Given& a, const char* name) {
  const std::vector<int64_t> axes = a.numbers(name);
  if (axes.size() != 2) throw ValueError("the argument '", name, "' must have two items");
  return {static_cast<int>(axes[0]), static_cast<int>(axes[1])};
}

std::vector<int> ints(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Keras stores the widths as a number, a pair for all axes, or a pair for each axis.
Tensor padded(const Given& a) {
  const Tensor x = a.tensor("x");
  const std::string mode = a.text("mode", "constant");
  const std::optional<double> constant = a.optional_number("constant_values");
  const Config width = a.value("pad_width");
  if (!width.is_list()) return K::pad(x, a.integer("pad_width", 0), mode, constant);
  const auto pair_of = [](const Config& pair) {
    if (!pair.is_list()) return std::pair(pair.integer(), pair.integer());
    const Config::List& both = pair.items();
    if (both.empty() || both.size() > 2) throw ValueError("pad: pad_width must have pairs");
    return std::pair(both.front().integer(), both.back().integer());
  };
  const Config::List& items = width.items();
  const bool is_pair = items.size() == 2 && !items[0].is_list();
  K::PadWidth all;
  if (is_pair) {
    all.assign(x.rank(), pair_of(width));
  } else {
    for (const Config& pair : items) all.push_back(pair_of(pair));
    if (all.size() == 1) all.assign(x.rank(), K::PadWidth::value_type(all[0]));
  }
  return K::pad(x, all, mode, constant);
}

void add_shape_functions(OperatorTable& table) {
  const FunctionOfOne unary[] = {
      {"copy", K::copy}, {"fliplr", K::fliplr}, {"flipud", K::flipud}, {"ravel", K::ravel}};
  add_functions_of_one(table, unary);
  using Joined = Tensor (*)(const std::vector<Tensor>&);
  const std::pair<const char*, Joined> joined[] = {{"column_stack", K::column_stack},
                                                   {"dstack", K::dstack},
                                                   {"hstack", K::hstack},
                                                   {"vstack", K::vstack}};
  for (const auto& [name, function] : joined) {
    add_operator(table, name, "xs",
                 [f = function](const Given& a) { return Tensors(f(a.tensors("xs"))); });
  }
  using Diagonals = Tensor (*)(const Tensor&, int64_t);
  const std::pair<const char*, Diagonals> diagonals[] = {
      {"diag", K::diag}, {"diagflat", K::diagflat}, {"tril", K::tril}, {"triu", K::triu}};
  for (const auto& [name, function] : diagonals) {
    add_operator(table, name, "x k", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.integer("k", 0)));
    });
  }
  using Planes = Tensor (*)(const Tensor&, int64_t, int, int);
  const std::pair<const char*, Planes> planes[] = {{"diagonal", K::diagonal}, {"trace", K::trace}};
  for (const auto& [name, function] : planes) {
    add_operator(table, name, "x offset axis1 axis2", [f = function](const Given& a) {
      return Tensors(
          f(a.tensor("x"), a.integer("offset", 0), a.int_or("axis1", 0), a.int_or("axis2", 1)));
    });
  }
  add_operator(table, "swapaxes", "x axis1 axis2", [](const Given& a) {
    return Tensors(K::swapaxes(a.tensor("x"), a.int_or("axis1", 0), a.int_or("axis2", 1)));
  });
  add_operator(table, "moveaxis", "x source destination", [](const Given& a) {
    return Tensors(
        K::moveaxis(a.tensor("x"), ints(a.numbers("source")), ints(a.numbers("destination"))));
  });
  add_operator(table, "append", "x1 x2 axis", [](const Given& a) {
    return Tensors(K::append(a.tensor("x1"), a.tensor("x2"), a.axis()));
  });
  add_operator(table, "rearrange", "tensor pattern **", [](const Given& a) {
    std::map<std::string, int64_t> lengths;
    for (const auto& [name, value] : a.values().entries()) {
      if (name != "tensor" && name != "pattern" && !value.is_null())
        lengths[name] = value.integer();
    }
    return Tensors(K::rearrange(a.tensor("tensor"), a.text("pattern"), lengths));
  });
  add_operator(table, "repeat", "x repeats axis", [](const Given& a) {
    return Tensors(K::repeat(a.tensor("x"), a.numbers("repeats"), a.axis()));
  });
  add_operator(table, "roll", "x shift axis", [](const Given& a) {
    return Tensors(K::roll(a.tensor("x"), a.numbers("shift"), a.axes()));
  });
  add_operator(table, "rot90", "array k axes", [](const Given& a) {
    const std::pair<int, int> axes = a.has("axes") ? two_axes(a, "axes") : std::pair(0, 1);
    return Tensors(K::rot90(a.tensor("array"), a.int_or("k", 1), axes));
  });
  add_operator(table, "pad", "x constant_values pad_width mode",
               [](const Given& a) { return Tensors(padded(a)); });
  add_operator(table, "meshgrid", "*x indexing", [](const Given& a) {
    return list_of(K::meshgrid(a.tensors("x"), a.text("indexing", "xy")));
  });
  add_operator(table, "array_split", "x indices_or_sections axis", [](const Given& a) {
    const Tensor x = a.tensor("x");
    const int axis = a.int_or("axis", 0);
    if (a.is_list("indices_or_sections")) {
      return list_of(K::array_split(x, a.integers("indices_or_sections"), axis));
    }
    return list_of(K::array_split(x, a.integer("indices_or_sections", 1), axis));
  });
  using Blocks = Tensor (*)(const Tensor&, int64_t, const std::string&);
  const std::pair<const char*, Blocks> blocks[] = {{"depth_to_space", K::depth_to_space},
                                                   {"space_to_depth", K::space_to_depth}};
  for (const auto& [name, function] : blocks) {
    add_operator(table, name, "x block_size data_format", [f = function](const Given& a) {
      return Tensors(
          f(a.tensor("x"), a.integer("block_size", 1), a.text("data_format", "channels_last")));
    });
  }
}

void add_sorting(OperatorTable& table) {
  using Sort = Tensor (*)(const Tensor&, int);
  const std::pair<const char*, Sort> sorts[] = {{"argsort", K::argsort}, {"sort", K::sort}};
  for (const auto& [name, function] : sorts) {
    // Null sorts all elements.
    add_operator(table, name, "x axis", [f = function](const Given& a) {
      const bool flat = a.is_given("axis") && !a.has("axis");
      return Tensors(flat ? f(K::ravel(a.tensor("x")), -1)
                          : f(a.tensor("x"), a.int_or("axis", -1)));
    });
  }
  add_operator(table, "argpartition", "x kth axis", [](const Given& a) {
    return Tensors(K::argpartition(a.tensor("x"), a.integer("kth", 0), a.int_or("axis", -1)));
  });
  add_operator(table, "top_k", "x k sorted is_stable", [](const Given& a) {
    const auto [values, indices] = K::top_k(a.tensor("x"), a.integer("k", 1));
    return Tensors::tuple({values, indices});
  });
  add_operator(table, "in_top_k", "targets predictions k", [](const Given& a) {
    return Tensors(K::in_top_k(a.tensor("targets"), a.tensor("predictions"), a.integer("k", 1)));
  });
  add_operator(table, "searchsorted", "sorted_sequence values side", [](const Given& a) {
    return Tensors(
        K::searchsorted(a.tensor("sorted_sequence"), a.tensor("values"), a.text("side", "left")));
  });
  add_operator(table, "digitize", "x bins", [](const Given& a) {
    return Tensors(K::digitize(a.tensor("x"), a.tensor("bins")));
  });
  add_operator(table, "take_along_axis", "x indices axis", [](const Given& a) {
    return Tensors(K::take_along_axis(a.tensor("x"), a.tensor("indices"), a.axis()));
  });
  add_operator(table, "select", "condlist choicelist default", [](const Given& a) {
    return Tensors(K::select(a.tensors("condlist"), a.tensors("choicelist"),
                             a.has("default") ? a.operand("default") : K::Operand(0)));
  });
  add_operator(table, "unravel_index", "indices shape", [](const Given& a) {
    return list_of(K::unravel_index(a.tensor("indices"), Shape(a.integers("shape"))));
  });
}

void add_creation(OperatorTable& table) {
  add_operator(table, "array", "x dtype", [](const Given& a) {
    return Tensors(K::array(a.operand("x"), a.optional_dtype()));
  });
  add_operator(table, "convert_to_tensor", "x dtype", [](const Given& a) {
    return Tensors(K::convert_to_tensor(a.operand("x"), a.optional_dtype()));
  });
  const auto has_endpoint = [](const Given& a) { return !a.has("endpoint") || a.flag("endpoint"); };
  add_operator(
      table, "linspace", "start stop num endpoint retstep dtype axis", [=](const Given& a) {
        const auto [values, step] =
            K::linspace_with_step(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                                  has_endpoint(a), a.optional_dtype(), a.int_or("axis", 0));
        return a.flag("retstep") ? Tensors::tuple({values, step}) : Tensors(values);
      });
  add_operator(table, "logspace", "start stop num endpoint base dtype axis", [=](const Given& a) {
    return Tensors(K::logspace(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                               has_endpoint(a), a.number("base", 10), a.optional_dtype(),
                               a.int_or("axis", 0)));
  });
  add_operator(table, "geomspace", "start stop num endpoint dtype axis", [=](const Given& a) {
    return Tensors(K::geomspace(a.operand("start"), a.operand("stop"), a.integer("num", 50),
                                has_endpoint(a), a.optional_dtype(), a.int_or("axis", 0)));
  });
  add_operator(table, "full_like", "x fill_value dtype", [](const Given& a) {
    return Tensors(K::full_like(a.tensor("x"), a.operand("fill_value"), a.optional_dtype()));
  });
  add_operator(table, "empty_like", "x dtype", [](const Given& a) {
    return Tensors(K::empty_like(a.tensor("x"), a.optional_dtype()));
  });
  add_operator(table, "vander", "x N increasing", [](const Given& a) {
    std::optional<int64_t> n;
    if (a.has("N")) n = a.integer("N", 0);
    return Tensors(K::vander(a.tensor("x"), n, a.flag("increasing")));
  });
  add_operator(table, "multi_hot", "inputs num_classes axis dtype sparse", [](const Given& a) {
    if (a.flag("sparse")) throw NotImplementedError("multi_hot: graphs do not support sparse=true");
    return Tensors(K::multi_hot(a.tensor("inputs"), a.integer("num_classes", 0),
                                a.int_or("axis", -1), a.optional_dtype()));
  });
}

// The start indices are a tensor, or a list of numbers.
std::vector<int64_t> starts(const Given& a) {
  if (a.is_list("start_indices")) return a.integers("start_indices");
  return a.tensor("start_indices").cast(DType::kInt64).to_vector<int64_t>();
}

void add_core(OperatorTable& table) {
  add_operator(table, "slice", "inputs start_indices shape", [](const Given& a) {
    return Tensors(K::slice(a.tensor("inputs"), starts(a), Shape(a.integers("shape"))));
  });
  add_operator(table, "slice_update", "inputs start_indices updates", [](const Given& a) {
    return Tensors(K::slice_update(a.tensor("inputs"), starts(a), a.tensor("updates")));
  });
  add_operator(table, "scatter", "indices values shape", [](const Given& a) {
    return Tensors(K::scatter(a.tensor("indices"), a.tensor("values"), Shape(a.integers("shape"))));
  });
  add_operator(table, "scatter_update", "inputs indices updates reduction", [](const Given& a) {
    std::optional<std::string> reduction;
    if (a.has("reduction")) reduction = a.text("reduction");
    return Tensors(
        K::scatter_update(a.tensor("inputs"), a.tensor("indices"), a.tensor("updates"), reduction));
  });
  add_operator(table, "saturate_cast", "x dtype",
               [](const Given& a) { return Tensors(K::saturate_cast(a.tensor("x"), a.dtype())); });
  add_operator(table, "view", "x dtype",
               [](const Given& a) { return Tensors(K::view(a.tensor("x"), a.optional_dtype())); });
  using Segments = Tensor (*)(const Tensor&, const Tensor&, std::optional<int64_t>, bool);
  const std::pair<const char*, Segments> segments[] = {{"segment_max", K::segment_max},
                                                       {"segment_min", K::segment_min},
                                                       {"segment_prod", K::segment_prod},
                                                       {"segment_sum", K::segment_sum}};
  for (const auto& [name, function] : segments) {
    add_operator(
        table, name, "data segment_ids num_segments sorted", [f = function](const Given& a) {
          std::optional<int64_t> number;
          if (a.has("num_segments")) number = a.integer("num_segments", 0);
          return Tensors(f(a.tensor("data"), a.tensor("segment_ids"), number, a.flag("sorted")));
        });
  }
  add_operator(table, "extract_sequences", "x sequence_length sequence_stride", [](const Given& a) {
    return Tensors(K::extract_sequences(a.tensor("x"), a.integer("sequence_length", 1),
                                        a.integer("sequence_stride", 1)));
  });
}

// Complex values are pairs of a real and an imaginary tensor.
K::Complex complex(const Given& a, const char* name) {
  const std::vector<Tensor> parts = a.tensors(name);
  if (parts.size() != 2) throw ValueError("the argument '", name, "' must be a pair of tensors");
  return {parts[0], parts[1]};
}

Tensors pair_of(const K::Complex& parts) { return Tensors::tuple({parts.first, parts.second}); }

std::optional<int64_t> optional_integer(const Given& a, const char* name) {
  return a.has(name) ? std::optional(a.integer(name, 0)) : std::nullopt;
}

// A null window is none; a missing one is Keras's default.
K::SignalWindow window(const Given& a) {
  if (!a.is_given("window")) return "hann";
  if (!a.has("window")) return std::nullopt;
  if (a.value("window").is_string()) return a.text("window");
  return a.tensor("window");
}

bool is_centered(const Given& a) { return !a.has("center") || a.flag("center"); }

void add_signals(OperatorTable& table) {
  using Transform = K::Complex (*)(const K::Complex&);
  const std::pair<const char*, Transform> transforms[] = {
      {"fft", K::fft}, {"fft2", K::fft2}, {"ifft2", K::ifft2}};
  for (const auto& [name, function] : transforms) {
    add_operator(table, name, "x",
                 [f = function](const Given& a) { return pair_of(f(complex(a, "x"))); });
  }
  add_operator(table, "rfft", "x fft_length", [](const Given& a) {
    return pair_of(K::rfft(a.tensor("x"), optional_integer(a, "fft_length")));
  });
  add_operator(table, "irfft", "x fft_length", [](const Given& a) {
    return Tensors(K::irfft(complex(a, "x"), optional_integer(a, "fft_length")));
  });
  add_operator(table, "stft", "x sequence_length sequence_stride fft_length window center",
               [](const Given& a) {
                 return pair_of(K::stft(a.tensor("x"), a.integer("sequence_length", 1),
                                        a.integer("sequence_stride", 1), a.integer("fft_length", 1),
                                        window(a), is_centered(a)));
               });
  add_operator(
      table, "istft", "x sequence_length sequence_stride fft_length length window center",
      [](const Given& a) {
        return Tensors(K::istft(complex(a, "x"), a.integer("sequence_length", 1),
                                a.integer("sequence_stride", 1), a.integer("fft_length", 1),
                                optional_integer(a, "length"), window(a), is_centered(a)));
      });
}

using Parts = std::vector<Tensor>;

void add_splits(OperatorTable& table) {
  using Sections = Parts (*)(const Tensor&, int64_t);
  using Positions = Parts (*)(const Tensor&, const std::vector<int64_t>&);
  const std::tuple<const char*, Sections, Positions> all[] = {{"dsplit", K::dsplit, K::dsplit},
                                                              {"hsplit", K::hsplit, K::hsplit},
                                                              {"vsplit", K::vsplit, K::vsplit}};
  for (const auto& [name, sections, positions] : all) {
    add_operator(table, name, "x indices_or_sections",
                 [by_number = sections, by_position = positions](const Given& a) {
                   const char* const given = "indices_or_sections";
                   const Tensor x = a.tensor("x");
                   return list_of(a.is_list(given) ? by_position(x, a.integers(given))
                                                   : by_number(x, a.integer(given, 1)));
                 });
  }
}

}  // namespace

void add_array_operators(OperatorTable& table) {
  add_shape_functions(table);
  add_sorting(table);
  add_creation(table);
  add_core(table);
  add_signals(table);
  add_splits(table);
}

}  // namespace keel
